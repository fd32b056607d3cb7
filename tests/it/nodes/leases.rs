//! What one node does for all: it sends mail, and completes deletions.

use std::pin::pin;

use futures_util::poll;
use steward::testing::mail::OutboxMessage;

use super::{PAST_A_LEASE, end, has_none, holder, is_held_by};
use crate::support::prelude::*;

/// A database with two nodes, `a` and `b`. Each has a clock of its own that stands still, so no lease expires by itself.
struct Pair {
    a: Workspace,
    b: Workspace,
    clock_of_b: ManualClock,
    server: MailServer,
}

impl Pair {
    /// Starts both nodes. The first has the leases.
    async fn new() -> Self {
        let server = MailServer::start();
        let (config, _) = with_clock();
        let a = Workspace::on_node("a", with_server(config, &server)).await;
        for duty in ["mail", "maintenance"] {
            is_held_by(&a, duty, "a").await;
        }
        let (config, clock_of_b) = with_clock();
        let b = a.join("b", with_server(config, &server)).await;
        Self { a, b, clock_of_b, server }
    }

    /// Creates an invite at `node`, which sends a mail.
    async fn invite(node: &Workspace, name: &str) -> String {
        let address = format!("{name}@x.example");
        invite(&node.owner, node, json!({ "target_email": address })).await;
        address
    }

    /// Asserts that the mail server gets one mail to each of these addresses, and no other. `node` is open.
    async fn sends(&mut self, node: &Workspace, mut addresses: Vec<String>) {
        let mut recipients = Vec::new();
        for _ in &addresses {
            recipients.extend(self.server.mail().await.to);
        }
        addresses.sort_unstable();
        recipients.sort_unstable();
        assert_eq!(recipients, addresses);
        has_none::<OutboxMessage>(node).await;
        self.server.has_no_more();
    }
}

/// Creates a project with a dashboard at `node`, deletes it, and returns its path.
async fn delete_project(node: &Workspace) -> String {
    let made = node.owner.post(&node.organization("projects/"), json!({ "name": "Old" })).await;
    let id = made.ok()["id"].clone();
    let dashboards = format!("/api/projects/{id}/dashboards/");
    node.owner.post(&dashboards, json!({ "name": "Sales" })).await.ok();
    let project = node.organization(&format!("projects/{id}/"));
    assert_eq!(node.owner.delete(&project).await.status, 204);
    project
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn each_mail_of_two_nodes_is_sent_once() {
    let mut pair = Pair::new().await;
    let (a, b) = (pair.a.clone(), pair.b.clone());
    let mut addresses = Vec::new();
    for (number, node) in [&a, &b].into_iter().cycle().take(6).enumerate() {
        addresses.push(Pair::invite(node, &format!("n{number}")).await);
    }
    pair.sends(&b, addresses).await;
    assert_eq!(holder(&b, "mail").as_deref(), Some("a"));
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn mail_that_a_closing_node_is_sending_is_sent_once_and_its_leases_go_to_another() {
    let mut pair = Pair::new().await;
    let (a, b) = (pair.a.clone(), pair.b.clone());
    pair.server.next([ServerBehavior::Hold]);
    let first = Pair::invite(&a, "ann").await;
    assert_eq!(pair.server.mail().await.to, [first]);
    let second = Pair::invite(&a, "bob").await;
    let mut closing = pin!(a.app.close());
    assert!(poll!(&mut closing).is_pending(), "it waits for the mail");
    assert_eq!(holder(&b, "mail").as_deref(), Some("a"));
    pair.server.release();
    closing.await;
    pair.sends(&b, vec![second]).await;
    for duty in ["mail", "maintenance"] {
        is_held_by(&b, duty, "b").await;
    }
    end([b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn expired_lease_is_taken_and_its_former_holder_sends_nothing() {
    let mut pair = Pair::new().await;
    let (a, b) = (pair.a.clone(), pair.b.clone());
    // By the clock of `a`, its lease goes on.
    pair.clock_of_b.advance(PAST_A_LEASE);
    for duty in ["mail", "maintenance"] {
        is_held_by(&b, duty, "b").await;
    }
    let addresses = vec![Pair::invite(&a, "ann").await, Pair::invite(&b, "bob").await];
    pair.sends(&b, addresses).await;
    assert_eq!(holder(&b, "mail").as_deref(), Some("b"));
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn deletion_at_one_node_is_completed_by_the_node_with_the_lease() {
    let Pair { a, b, .. } = Pair::new().await;
    let project = delete_project(&b).await;
    b.completes_deletions().await;
    has_none::<Dashboard>(&b).await;
    assert_eq!(a.owner.get(&project).await.status, 404);
    assert_eq!(holder(&b, "maintenance").as_deref(), Some("a"));
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn deletion_that_a_closing_node_began_is_completed_by_another() {
    let Pair { a, b, .. } = Pair::new().await;
    let project = delete_project(&a).await;
    a.app.close().await;
    assert_eq!(b.owner.get(&project).await.status, 404);
    is_held_by(&b, "maintenance", "b").await;
    b.completes_deletions().await;
    has_none::<Dashboard>(&b).await;
    end([b]).await;
}
