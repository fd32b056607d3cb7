//! Requests to one node after requests to another.

use super::end;
use crate::support::prelude::*;

async fn two_nodes() -> (Workspace, Workspace) {
    let a = Workspace::on_node("a", Config::default()).await;
    let b = a.join("b", Config::default()).await;
    (a, b)
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn key_that_is_revoked_at_one_node_is_refused_at_another_by_the_next_request() {
    let (a, b) = two_nodes().await;
    for _ in 0..5 {
        let sent = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
        let made = a.owner.post(KEYS, sent).await.ok();
        let at_b = b.with_key(made["value"].as_str().expect("a key"));
        for _ in 0..2 {
            assert_eq!(at_b.get(&b.dashboards("")).await.status, 200);
        }
        a.owner.delete(&at(&made, "")).await.assert_empty(204);
        at_b.get(&b.dashboards("")).await.is_bad_key();
    }
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn etag_of_one_node_guards_a_change_at_another() {
    let (a, b) = two_nodes().await;
    let (_, path) = a.owner.create(&a.dashboards(""), json!({ "name": "Sales" })).await;
    let patch = async |node: &Workspace, tag: &str, name: &str| {
        let headers = [("if-match", tag), JSON[0]];
        node.owner.fetch(Method::PATCH, &path, &headers, json!({ "name": name }).to_string()).await
    };
    let tag = async |node: &Workspace| node.owner.get(&path).await.tag();
    let old = tag(&a).await;
    assert_eq!(tag(&b).await, old);
    assert_eq!(patch(&b, &old, "Revenue").await.status, 200);
    assert_eq!(patch(&a, &old, "Costs").await.status, 412);
    assert_eq!(a.owner.get(&path).await.ok()["name"], "Revenue");
    assert_eq!(patch(&a, &tag(&b).await, "Costs").await.status, 200);
    assert_eq!(b.owner.get(&path).await.ok()["name"], "Costs");
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn idempotency_key_at_two_nodes_at_once_takes_effect_once() {
    let (a, b) = two_nodes().await;
    let path = a.dashboards("");
    for number in 0..10 {
        let (key, body) = (format!("key {number}"), json!({ "name": format!("D {number}") }));
        let (first, second) = tokio::join!(
            post_once(&a.owner, &path, &key, &body),
            post_once(&b.owner, &path, &key, &body)
        );
        let replayed = [&first, &second].map(|one| one.headers.contains_key("idempotent-replayed"));
        assert_eq!(replayed.iter().filter(|replayed| **replayed).count(), 1);
        assert_eq!(first.ok()["id"], second.ok()["id"]);
    }
    for node in [&a, &b] {
        assert_eq!(node.owner.get(&path).await.ok()["count"], 10);
    }
    end([a, b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn domain_that_two_nodes_add_at_once_is_added_once() {
    let (a, b) = two_nodes().await;
    let path = a.organization("domains/");
    for number in 0..10 {
        let body = json!({ "domain": format!("corp{number}.example") });
        let (first, second) =
            tokio::join!(a.owner.post(&path, body.clone()), b.owner.post(&path, body));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 400], "{} {}", first.body, second.body);
    }
    for node in [&a, &b] {
        assert_eq!(node.owner.get(&path).await.ok()["count"], 10);
    }
    end([a, b]).await;
}
