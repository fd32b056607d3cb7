//! `secrets rotate` on the real binary, beside a server and with a free file.

use serde_json::{Value, json};

use crate::support::process::DataFolder;

fn told(pages: u64) -> Value {
    let renewed = ["invite links", "public pages", "live events tokens", "console sessions"];
    json!({ "renewed": renewed, "public_pages": pages })
}

#[test]
fn secret_rotation_works_with_and_without_a_running_server() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let project = format!("/api/projects/{}/", made["project_id"]);
    let dashboards = format!("{project}dashboards/");
    let server = site.serve(&[]);
    let board = server.post(&dashboards, key, &json!({ "name": "A" })).ok();
    let sharing = format!("{dashboards}{}/sharing/", board["id"]);
    let enabled = json!({ "enabled": true });
    let shown = server.send("PATCH", &sharing, key, Some(&enabled)).ok();
    let page = |shown: &Value| format!("/shared/{}.json", shown["access_token"].as_str().unwrap());
    let mut old = page(&shown);
    assert_eq!(server.get(&old, "").status, 200);
    assert_eq!(site.json(&["secrets", "rotate"]), told(1));
    assert_eq!(server.get(&old, "").status, 404);
    old = page(&server.get(&sharing, key).ok());
    assert_eq!(server.get(&old, "").status, 200);
    assert!(!server.stop().contains("ERROR"));

    assert_eq!(site.json(&["secrets", "rotate"]), told(1));
    let text = site.run(&["secrets", "rotate"]).ok();
    assert!(text.contains("public_pages  1"), "{text}");
    let server = site.serve(&[]);
    assert_eq!(server.get(&old, "").status, 404);
    assert_eq!(server.get(&page(&server.get(&sharing, key).ok()), "").status, 200);
    server.stop();
    site.run(&["secrets"]).assert_usage_error("rotate");
    site.check();
}

#[test]
fn backup_from_before_a_rotation_is_restored_only_without_a_running_server() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let server = site.serve(&[]);
    site.json(&["backup", "copy.redb"]);
    site.json(&["secrets", "rotate"]);
    let why = "the backup has different secrets than the server, because they were rotated; stop the server to restore it";
    site.run(&["restore", "copy.redb"]).assert_failed(why);
    assert_eq!(server.get("/api/users/@me/", key).status, 200);
    site.json(&["backup", "after.redb"]);
    site.json(&["restore", "after.redb"]);
    server.stop();
    site.json(&["restore", "copy.redb"]);
    assert_eq!(site.serve(&[]).get("/api/users/@me/", key).status, 200);
    site.check();
}
