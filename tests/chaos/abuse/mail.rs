//! Tests that nobody can flood a mailbox, the outbox or the DNS.

use steward::testing::ids::{InviteId, OutboxMessageId};
use steward::testing::mail::{Notification, OutboxMessage, Pace, PaceKey};
use steward::testing::resources::users::User;
use steward::testing::time::ManualClock;
use uuid::Uuid;

use super::addresses::mailed;
use crate::prelude::*;
use crate::support::dns::{Dns, Reply};
use crate::support::domains::add;
use crate::support::invites::{invites, with_mail};
use crate::support::log;
use crate::support::smtp::Mail;

const CURRENT_INVITES: &str = "/api/organizations/@current/invites/";
const VICTIM: &str = "victim@x.example";
const NO_ADDRESS: &str = "Enter a valid email address.";
const FULL: &str = "This organization has the maximum number of mails waiting to be sent (1000).";
/// A delay after which the messages in the outbox are not due during a test.
const LATER: Duration = Duration::from_mins(30);

/// Returns the configuration of a service that sends mail to this server.
pub fn sending_to(mut config: Config, server: &MailServer) -> Config {
    config.mail.smtp_url = Some(server.url().parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config
}

/// Adds messages of the first organization to the outbox that are due after this time.
async fn fill_outbox(workspace: &Workspace, count: u128, delay: Duration) {
    let organization = workspace.made.organization_id;
    let due_at = workspace.app.now().plus(delay);
    let message = move |number: u128| {
        let id = Uuid::from_u128(0x0bec_0000_0000_7000_9000_0000_0000_0000 + number);
        let (to, by) = (format!("{number}@x.example"), UserId(id.as_u64_pair().1));
        OutboxMessage {
            id: OutboxMessageId(id),
            organization,
            about: Notification::Invite { invite: InviteId(id), to, by },
            written_at: due_at,
            retry_at: due_at,
            due_at,
            attempts: 0,
        }
    };
    let fill =
        move |tx: &mut WriteTx<'_>| (0..count).try_for_each(|number| tx.put(&message(number)));
    workspace.write(fill).await;
}

fn waiting(workspace: &Workspace) -> usize {
    workspace.records::<OutboxMessage>(&()).len()
}

/// Creates a workspace with a clock and a mail server that cannot be reached.
async fn unsent() -> Workspace {
    let (mut config, _) = with_clock();
    config.mail = with_mail().mail;
    Workspace::with(config).await
}

#[tokio::test]
async fn outbox_messages_per_organization_are_limited_to_one_thousand() {
    let workspace = unsent().await;
    let (other, _) = workspace.outsider("eve").await;
    fill_outbox(&workspace, 1_000, LATER).await;
    let sent = json!({ "target_email": "ann@x.example" });
    let refused = workspace.owner.post(&invites(&workspace, ""), sent.clone()).await;
    refused.assert_invalid_body("limit_reached", FULL);
    let bulk = workspace.owner.post(&invites(&workspace, "bulk/"), json!([sent])).await;
    assert_eq!((bulk.status, &bulk.body["code"]), (400, &json!("limit_reached")));
    let list = workspace.owner.get(&invites(&workspace, "")).await.ok();
    assert_eq!(list["count"], 0, "no invite was created");
    assert_eq!(waiting(&workspace), 1_000);
    let by_hand = json!({ "target_email": "ann@x.example", "send_email": false });
    invite(&workspace.owner, &workspace, by_hand).await;
    // Other organizations can still send mail.
    other.create(CURRENT_INVITES, json!({ "target_email": "ann@x.example" })).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn announcements_use_at_most_half_of_the_outbox() {
    log::capture();
    let workspace = unsent().await;
    let sent = json!({ "target_email": "ann@x.example", "send_email": false });
    let made = invite(&workspace.owner, &workspace, sent).await;
    fill_outbox(&workspace, 500, LATER).await;
    let fields = json!({ "first_name": "Ann" });
    let joined = Offer::of(&made).accept(&workspace.anonymous(), fields).await;
    assert_eq!(joined.status, 201, "{}", joined.body);
    assert_eq!(waiting(&workspace), 500, "the announcement must be dropped");
    let lines = log::lines_about(workspace.made.organization_id);
    let told = lines.iter().find(|line| line["dropped"] == 1).expect("a warning in the log");
    assert_eq!(told["level"], "WARN");
    invite(&workspace.owner, &workspace, json!({ "target_email": "ben@x.example" })).await;
    assert_eq!(waiting(&workspace), 501);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn takeover_mail_is_sent_even_if_the_outbox_is_full() {
    let workspace = unsent().await;
    let anonymous = workspace.anonymous();
    let sent = json!({ "target_email": VICTIM, "send_email": false });
    let (eve, _) = workspace.outsider("eve").await;
    let link = eve.post(CURRENT_INVITES, sent.clone()).await.ok();
    Offer::of(&link).accept(&anonymous, json!({ "first_name": "E" })).await.ok();
    let made = invite(&workspace.owner, &workspace, sent).await;
    fill_outbox(&workspace, 1_000, LATER).await;
    let before = waiting(&workspace);
    let fields = json!({ "first_name": "V", "take_over": true });
    mailed(&workspace, &made).accept(&anonymous, fields).await.ok();
    assert_eq!(waiting(&workspace), before + 1);
}

/// More messages wait than the worker reads at once.
#[tokio::test]
async fn messages_waiting_for_a_quota_do_not_hold_up_other_mail() {
    let mut server = MailServer::start();
    let (config, _) = with_clock();
    let workspace = Workspace::with(sending_to(config, &server)).await;
    let (eve, _) = workspace.outsider("eve").await;
    let key = PaceKey::Organization(workspace.made.organization_id);
    let used = Pace { key, attempts: vec![workspace.app.now(); 100], paused_until: None };
    workspace.write(move |tx: &mut WriteTx<'_>| tx.put(&used)).await;
    fill_outbox(&workspace, 3_000, Duration::ZERO).await;
    for number in 0..10 {
        let to = format!("{number}@eve.example");
        eve.post(CURRENT_INVITES, json!({ "target_email": to })).await.ok();
        assert_eq!(server.mail().await.to, [to]);
    }
}

/// Returns the number of attempts that count against each organization, user and mailbox.
fn attempts(workspace: &Workspace) -> Vec<(PaceKey, usize)> {
    let paces = workspace.records::<Pace>(&());
    paces.into_iter().map(|pace| (pace.key, pace.attempts.len())).collect()
}

#[tokio::test]
async fn failed_attempts_count_against_the_quota_of_organization_and_user() {
    let server = MailServer::start();
    let (config, clock) = with_clock();
    let workspace = Workspace::with(sending_to(config, &server)).await;
    server.refuse(VICTIM);
    invite(&workspace.owner, &workspace, json!({ "target_email": VICTIM })).await;
    let me = workspace.owner.get("/api/users/@me/").await.ok();
    let user: UserId = serde_json::from_value(me["id"].clone()).expect("a number");
    // The mailbox received nothing, so the next mail to it need not wait a minute.
    let counted = |count| {
        let organization = PaceKey::Organization(workspace.made.organization_id);
        attempts(&workspace) == [(organization, count), (PaceKey::User(user), count)]
    };
    eventually("the attempt is recorded", || counted(1).then_some(())).await;
    clock.advance(Duration::from_secs(5));
    eventually("the mail is sent again", || counted(2).then_some(())).await;
}

/// A user with thirty organizations, a mail server, and another sender, whose mails show which ones arrived before.
struct Bomb {
    workspace: Workspace,
    /// The lists of invites of the organizations.
    invites: Vec<String>,
    server: MailServer,
    clock: ManualClock,
    eve: TestClient,
    asked: usize,
}

impl Bomb {
    async fn new() -> Self {
        let server = MailServer::start();
        let (config, clock) = with_clock();
        let workspace = Workspace::with(sending_to(config, &server)).await;
        let (eve, _) = workspace.outsider("eve").await;
        let mut invites = Vec::new();
        for number in 0..30 {
            let name = json!({ "name": format!("Bomb {number}") });
            let made = workspace.owner.post("/api/organizations/", name).await.ok();
            invites.push(in_organization(&made, "invites/"));
        }
        Self { workspace, invites, server, clock, eve, asked: 0 }
    }

    async fn invite(&self, organization: usize, to: &str) {
        let sent = json!({ "target_email": to });
        self.workspace.owner.create(&self.invites[organization], sent).await;
    }

    /// Returns the mails that arrive before a new mail of the other sender.
    async fn mails(&mut self) -> Vec<Mail> {
        self.asked += 1;
        let last = format!("{}@beside.example", self.asked);
        self.eve.create(CURRENT_INVITES, json!({ "target_email": last })).await;
        let mut mails = Vec::new();
        loop {
            let mail = self.server.mail().await;
            if mail.to == [last.as_str()] {
                return mails;
            }
            mails.push(mail);
        }
    }

    /// Returns the mails that arrive until none is due.
    async fn mails_until_quiet(&mut self) -> Vec<Mail> {
        eventually("no mail is due", || (self.due() == 0).then_some(())).await;
        self.mails().await
    }

    /// Returns the number of mails in the outbox that are due.
    fn due(&self) -> usize {
        let now = self.workspace.app.now();
        let messages = self.workspace.records::<OutboxMessage>(&());
        messages.iter().filter(|message| message.due_at <= now).count()
    }
}

#[tokio::test]
async fn mailbox_receives_one_mail_a_minute_for_any_spelling_and_sender() {
    let mut bomb = Bomb::new().await;
    for organization in 0..30 {
        for spelling in [VICTIM, "Victim+a@X.example", "victim+b@x.example", "VICTIM+B+c@x.example"]
        {
            bomb.invite(organization, spelling).await;
        }
    }
    let mut came = bomb.mails_until_quiet().await.len();
    assert_eq!(came, 1, "in the first minute");
    for minute in 1..60 {
        bomb.clock.advance(Duration::from_mins(1));
        let more = bomb.mails_until_quiet().await.len();
        assert!(more <= 1, "{more} in minute {minute}");
        came += more;
    }
    assert!((50..=60).contains(&came), "{came} in the first hour");
    bomb.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn user_sends_at_most_one_hundred_mails_an_hour_across_organizations() {
    let mut bomb = Bomb::new().await;
    for organization in 0..30 {
        for number in 0..5 {
            bomb.invite(organization, &format!("{number}@to-{organization}.example")).await;
        }
    }
    let first = bomb.mails_until_quiet().await;
    assert_eq!(first.len(), 100, "in the first hour");
    // Mails of deleted invites still count.
    let to = first[0].to[0].clone();
    for path in &bomb.invites {
        let list = bomb.workspace.owner.get(path).await.ok();
        for made in list["results"].as_array().expect("invites") {
            if made["target_email"] == json!(to) {
                let one = format!("{path}{}/", made["id"].as_str().expect("an id"));
                bomb.workspace.owner.delete(&one).await.assert_empty(204);
            }
        }
    }
    bomb.clock.advance(Duration::from_mins(59));
    assert!(bomb.mails_until_quiet().await.is_empty());
    bomb.clock.advance(Duration::from_mins(1));
    assert_eq!(bomb.mails_until_quiet().await.len(), 50, "nothing is lost");
    bomb.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn quoted_addresses_are_rejected_and_existing_accounts_keep_working() {
    let workspace = Workspace::new().await;
    for quoted in ["\"v\\ictim\"@x.example", "\"victim\"@x.example", "\"a b\"@x.example"] {
        let sent = json!({ "target_email": quoted });
        let refused = workspace.owner.post(&invites(&workspace, ""), sent.clone()).await;
        refused.assert_invalid("target_email", "invalid_input", NO_ADDRESS);
        let refused = workspace.owner.post(&invites(&workspace, "bulk/"), json!([sent])).await;
        refused.assert_invalid("0__target_email", "invalid_input", NO_ADDRESS);
    }
    let id: UserId = {
        let me = workspace.owner.get("/api/users/@me/").await.ok();
        serde_json::from_value(me["id"].clone()).expect("a number")
    };
    let quoted = "\"ol\\ga\"@corp.example";
    let rename = move |tx: &mut WriteTx<'_>| {
        let mut user: User = tx.get(&id)?;
        user.fields.email = quoted.to_owned();
        tx.put(&user)
    };
    workspace.write(rename).await;
    let me = workspace.owner.get("/api/users/@me/").await.ok();
    assert_eq!(me["email"], quoted);
    let caller = workspace.key(quoted, &["*"]).await;
    assert_eq!(caller.get("/api/users/@me/").await.ok()["email"], quoted);
    assert!(workspace.run_operation(Operation::Check).await["problem_count"] == 0);
}

#[tokio::test]
async fn silent_name_servers_delay_only_one_organization() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let (_, silent) = add(&workspace, "silent.example").await;
    let silent_name = "_posthog-challenge.silent.example.";
    dns.set(silent_name, Reply::Silence);
    let (eve, made) = workspace.outsider("eve").await;
    let list = in_organization(&made, "domains/");
    let (domain, one) = eve.create(&list, json!({ "domain": "eve.example" })).await;
    let challenge = domain["verification_challenge"].as_str().expect("a challenge");
    dns.set("_posthog-challenge.eve.example.", Reply::texts(&[&[challenge]]));

    let path = format!("{silent}verify/");
    let attack: Vec<_> = (0..70)
        .map(|_| {
            let (caller, path) = (workspace.owner.clone(), path.clone());
            tokio::spawn(async move { caller.send(Method::POST, &path, None).await })
        })
        .collect();
    dns.heard(2).await;
    // Besides the two lookups, eight requests wait.
    let refused = || attack.iter().filter(|one| one.is_finished()).count();
    eventually("sixty requests fail", || (refused() == 60).then_some(())).await;
    eve.send(Method::POST, &format!("{one}verify/"), None).await.assert_empty(200);
    assert_eq!(eve.get(&one).await.ok()["is_verified"], true);
    let asked = dns.asked().into_iter().filter(|(_, name)| name == silent_name).count();
    assert_eq!(asked, 2, "concurrent lookups of one organization");
    for one in attack {
        if one.is_finished() {
            let answer = one.await.expect("an answer");
            assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")));
            assert!(answer.headers.contains_key("retry-after"));
        } else {
            one.abort();
        }
    }
}
