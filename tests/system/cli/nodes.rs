//! `steward nodes` with servers of one shared database.

use serde_json::{Value, json};

use crate::support::postgres::Schema;
use crate::support::process::{DataFolder, until};

/// Returns the members `name` of all listed nodes.
fn listed(list: &Value, name: &str) -> Vec<Value> {
    list["results"].as_array().expect("a list").iter().map(|node| node[name].clone()).collect()
}

#[test]
fn nodes_are_listed_by_a_server_and_without_one() {
    let schema = Schema::new();
    let url = schema.url();
    let [a, b] = ["a", "b"].map(|name| {
        let site = DataFolder::empty();
        let founds = (name == "a").then_some("--found");
        let server =
            site.serve(&[&["--data", &url, "--node", name][..], founds.as_slice()].concat());
        (site, server)
    });
    let list = |site: &DataFolder| site.json(&["nodes", "--data", &url]);
    for site in [&a.0, &b.0] {
        until("both nodes are listed", || {
            let found = list(site);
            let leases = listed(&found, "leases");
            let is_whole = listed(&found, "name") == ["a", "b"]
                && listed(&found, "behind") == [0, 0]
                && leases == [json!(["maintenance"]), json!([])];
            is_whole.then_some(())
        });
    }
    assert!(a.1.stop().contains("stopped"));
    let is_passed_on = |site: &DataFolder| {
        let leases = listed(&list(site), "leases");
        (leases == [json!([]), json!(["maintenance"])]).then_some(())
    };
    until("the other node has the lease", || is_passed_on(&b.0));
    // Without a server beside it, the command opens the copy, and is no node itself.
    until("the list is the same", || is_passed_on(&a.0));
    b.1.kill();
    let text = b.0.run(&["nodes", "--data", &url]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("NAME  RELEASE"), "{text}");
    assert!(lines[2].starts_with("b "), "{text}");
}
