//! A node that freezes for longer than its leases last, and then goes on.

use super::{Cluster, database};
use crate::prelude::*;
use crate::support::smtp::{Mail, ServerBehavior};

impl Cluster {
    /// Whether this node has the lease of mail.
    fn has_lease_of_mail(&self, node: usize) -> bool {
        let listed = self.nodes[node].run("nodes");
        let name = self.nodes[node].folder.path("steward-copy.redb");
        let name = name.to_str().expect("UTF-8").to_owned();
        let mut nodes = listed["results"].as_array().expect("a list").iter();
        let own = nodes.find(|one| one["name"].as_str().is_some_and(|at| at.ends_with(&name)));
        let leases = own.and_then(|own| own["leases"].as_array());
        leases.is_some_and(|leases| leases.contains(&json!("mail")))
    }

    fn invite(&self, node: usize, name: &str) -> String {
        let address = format!("{name}@x.example");
        self.ask(node, "POST", &self.invites(), Some(&json!({ "target_email": address }))).ok();
        address
    }

    fn invites(&self) -> String {
        let me = self.ask(1, "GET", "/api/users/@me/", None).ok();
        let organization = me["organization"]["id"].as_str().expect("an id").to_owned();
        format!("/api/organizations/{organization}/invites/")
    }
}

fn id(mail: &Mail) -> String {
    mail.parsed().message_id().expect("an id").to_owned()
}

#[test]
fn node_that_was_frozen_past_its_lease_sends_no_further_mail_and_shows_nothing_old() {
    let mut mails = MailServer::start();
    let (schema, _postgres) = database();
    let mail = ["--smtp-url", &mails.url(), "--smtp-from", "steward@corp.example"];
    let cluster = Cluster::with([schema.url(), schema.url()], &mail);
    until("the first node has the lease", || cluster.has_lease_of_mail(0).then_some(()));

    mails.next([ServerBehavior::Hold]);
    let first = cluster.invite(0, "first");
    let held = mails.mail_now();
    assert_eq!(held.to, std::slice::from_ref(&first));
    cluster.nodes[0].signal(Signal::STOP);
    let second = cluster.invite(1, "second");
    until("the other node has the lease", || cluster.has_lease_of_mail(1).then_some(()));
    let mut sent = [mails.mail_now(), mails.mail_now()];
    sent.sort_by_key(|mail| mail.to.clone());
    assert_eq!(sent.each_ref().map(|mail| mail.to[0].clone()), [first, second]);
    assert_eq!(id(&sent[0]), id(&held), "the repeated mail must have the same Message-ID");

    mails.release();
    cluster.nodes[0].signal(Signal::CONT);
    let own = cluster.ask(0, "GET", &cluster.invites(), None).ok();
    assert_eq!(own["count"], 2, "the node that was frozen must show what the other one created");
    let third = cluster.invite(0, "third");
    assert_eq!(mails.mail_now().to, [third]);
    assert!(cluster.has_lease_of_mail(1) && !cluster.has_lease_of_mail(0));
    cluster.check();
    mails.has_no_more();
}
