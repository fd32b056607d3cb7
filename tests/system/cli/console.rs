//! `steward console`: the link that signs a user in.

use super::{each_way, names};
use crate::prelude::*;

/// Returns the base and the code of a link.
#[track_caller]
fn parts(link: &str) -> (&str, &str) {
    let (base, code) = link.split_once("/console/enter/#").expect("a link to the console");
    assert!(code.len() == 44 && code.chars().all(|c| c.is_ascii_alphanumeric()), "{link}");
    (base, code)
}

#[test]
fn console_command_prints_a_link_for_the_server_or_its_default_address() {
    each_way(|place| {
        let port = place.server.as_ref().map_or(8000, |server| server.address.port());
        let here = format!("http://steward.localhost:{port}");
        let made = place.json(&["console"]);
        assert_eq!(names(&made), ["url", "email", "operator", "expires_at"]);
        assert_eq!((&made["email"], &made["operator"]), (&json!(OWNER), &json!(false)));
        let (base, first) = parts(made["url"].as_str().unwrap());
        assert_eq!(base, here);

        let text = place.run(&["console", OWNER, "--operator"]).ok();
        let about = format!(
            "Open this link to sign in as {OWNER}. It works once, within five minutes:\n\n  "
        );
        let link = text.strip_prefix(&about).expect("the text").strip_suffix('\n').unwrap();
        let (base, second) = parts(link);
        assert_eq!(base, here);
        assert_ne!(first, second);
        assert_eq!(place.json(&["console", "--operator"])["operator"], true);
    });
}

#[test]
fn console_link_uses_the_public_url() {
    let (site, _) = DataFolder::with_workspace();
    let public = ["--public-url", "https://admin.corp.example/"];
    let link = site.json(&[&["console"][..], &public].concat())["url"].clone();
    assert_eq!(parts(link.as_str().unwrap()).0, "https://admin.corp.example");
    let server = site.serve(&public);
    let link = site.json(&["console"])["url"].clone();
    assert_eq!(parts(link.as_str().unwrap()).0, "https://admin.corp.example");
    let log = server.stop();
    assert!(log.contains("created a sign-in link") && !log.contains("enter"), "{log}");
}
