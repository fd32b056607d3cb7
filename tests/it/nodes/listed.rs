//! `steward nodes`.

use steward::{InitialRecords, create};

use crate::support::prelude::*;

use super::{end, is_held_by};

/// Asks this node for the list until it is as `is_expected` says.
async fn listed(node: &Workspace, is_expected: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    eventually_async("the nodes are listed as expected", async || {
        let listed = node.run_operation(Operation::NodeList).await;
        Some(listed["results"].as_array()?.clone()).filter(|nodes| is_expected(nodes))
    })
    .await
}

fn names(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().map(|node| node["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn nodes_are_listed_with_their_positions_and_leases() {
    let a = Workspace::on_node("a", Config::default()).await;
    is_held_by(&a, "maintenance", "a").await;
    let b = a.join("b", Config::default()).await;
    let are_current = |nodes: &[Value]| {
        names(nodes) == ["a", "b"] && nodes.iter().all(|node| node["behind"] == 0)
    };
    for node in [&a, &b] {
        let nodes = listed(node, are_current).await;
        for node in &nodes {
            assert_eq!(node["release"], env!("CARGO_PKG_VERSION"));
            assert!(node["seen_at"].is_string());
            assert!(node["problem"].is_null(), "{node}");
            assert_eq!(node.as_object().expect("an object").len(), 7);
        }
        assert_eq!(nodes[0]["position"], nodes[1]["position"]);
        assert_eq!(json!([nodes[0]["leases"], nodes[1]["leases"]]), json!([["maintenance"], []]));
    }
    a.app.close().await;
    let has_lease = |nodes: &[Value]| nodes[1]["leases"] == json!(["maintenance"]);
    assert_eq!(listed(&b, has_lease).await[0]["leases"], json!([]));
    end([b]).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn command_that_opens_a_copy_is_no_node_and_takes_no_lease() {
    let a = Workspace::on_node("a", Config::default()).await;
    // A node lists itself before its first heartbeat too.
    listed(&a, |nodes| names(nodes) == ["a"] && nodes[0]["seen_at"].is_string()).await;
    a.app.close().await;
    let command = App::new_for_command(a.open_store(), Config::default()).expect("it opens");
    let listed = perform(&command, Operation::NodeList, Progress::silent()).await.expect("a list");
    let nodes = listed["results"].as_array().expect("a list");
    assert_eq!((names(nodes), &nodes[0]["leases"]), (vec!["a"], &json!([])));
    command.close().await;
}

#[tokio::test]
async fn data_file_has_no_nodes() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("steward.redb");
    let (app, _) = create(&path, Config::default(), &InitialRecords::default()).expect("a file");
    let refused =
        perform(&app, Operation::NodeList, Progress::silent()).await.expect_err("no list");
    assert_eq!((refused.status(), refused.code()), (400, "no_nodes"));
    app.close().await;
    assert!(Store::open(&path, 0).is_ok());
}
