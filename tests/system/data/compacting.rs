//! `serve --compact-at-start` compacts the file only if more than half of it is unused.

use std::fs;

use serde_json::json;

use crate::support::process::{Connection, DataFolder, Server, until};

const FLAG: &str = "--compact-at-start";

fn size(site: &DataFolder) -> u64 {
    fs::metadata(site.data()).expect("the file").len()
}

#[test]
fn compact_flag_compacts_a_mostly_unused_file_at_startup() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    // Write much data and delete it again.
    let server = site.serve(&[]);
    let filler = "x".repeat(30_000);
    let two = server.post("/api/organizations/", key, &json!({ "name": "Two" })).ok();
    let project = &server.get("/api/projects/", key).ok()["results"][1]["id"];
    let path = format!("/api/projects/{project}/dashboards/");
    let mut connection: Connection = server.connect();
    for number in 0..60 {
        let sent = json!({ "name": format!("D{number}"), "filters": { "long": filler } });
        let reply = connection.send("POST", &path, key, Some(&sent)).expect("an answer");
        assert_eq!(reply.status, 201, "{}", reply.json());
    }
    let path = format!("/api/projects/{}/dashboards/", made["project_id"]);
    server.post(&path, key, &json!({ "name": "kept" })).ok();
    let gone = format!("/api/organizations/{}/", two["id"].as_str().expect("an id"));
    assert_eq!(server.send("DELETE", &gone, key, None).status, 204);
    until("the records of the organization are deleted", || {
        let run = site.run(&["export"]).ok();
        (!run.contains("\"D59\"") && !run.contains("\"table\":\"sweeps\"")).then_some(())
    });
    server.stop();
    let large = size(&site);

    // A closing server may cut free space off the end of the file, so another copy is served without the flag.
    let other = DataFolder::with_bytes(&fs::read(site.data()).expect("the file"));
    let log = other.serve(&[]).stop();
    assert!(!log.contains("dead space") && !log.contains("is compacted"), "{log}");

    let server = site.serve(&[FLAG]);
    let small = size(&site);
    assert_eq!(server.dashboards(&made["project_id"], key).len(), 1);
    let log = server.stop();
    assert!(log.contains("more than half of the data file is dead space; compacting it"), "{log}");
    assert!(log.contains("the data file is compacted"), "{log}");
    assert!(small < large / 2, "{small} of {large}");
    site.check();

    let mut again = site.steward(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    again.env("STEWARD_COMPACT_AT_START", "1");
    let server = Server::start(&mut again).expect("a server");
    let log = server.stop();
    assert!(log.contains("little dead space and is not compacted"), "{log}");
    assert!(!log.contains("compacting it"), "{log}");
}

#[test]
fn new_file_is_not_compacted_at_startup() {
    let site = DataFolder::empty();
    let log = site.serve(&[FLAG]).stop();
    assert!(!log.contains("dead space"), "{log}");
    site.check();
}
