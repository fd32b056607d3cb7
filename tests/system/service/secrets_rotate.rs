//! `secrets rotate` on the real binary, beside a server and with a free file.

use serde_json::json;

use crate::support::process::DataFolder;

#[test]
fn secret_rotation_works_with_and_without_a_running_server() {
    let (site, _) = DataFolder::with_workspace();
    let renewed = ["invite links", "public pages", "live events tokens", "console sessions"];
    let told = json!({ "renewed": renewed, "public_pages": 0 });
    let server = site.serve(&[]);
    assert_eq!(site.json(&["secrets", "rotate"]), told);
    assert!(!server.stop().contains("ERROR"));
    assert_eq!(site.json(&["secrets", "rotate"]), told);
    let text = site.run(&["secrets", "rotate"]).ok();
    assert!(text.contains("public_pages  0"), "{text}");
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
