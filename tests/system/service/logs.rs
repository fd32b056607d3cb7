//! The log: one line for each request, with the key and the organization. The filter can be changed without a restart.

use serde_json::Value;
use steward::testing::ids::ApiKeyId;

use crate::support::process::{DataFolder, Server, until};

/// Returns the log lines of requests to one route.
fn lines(log: &str, route: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"));
    lines.filter(|line| line["route"] == route).collect()
}

const ME: &str = "/api/users/@me/";

#[test]
fn log_line_has_the_caller_the_request_and_the_outcome() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    let id = &site.json(&["key", "list"])["results"][0]["id"];
    let server = site.serve(&["--log", "info,request=debug"]);
    let members =
        format!("/api/organizations/{}/members/", made["organization_id"].as_str().unwrap());
    server.get(&format!("{members}?email=hidden"), key).ok();
    server.get("/api/projects/999/dashboards/", key);
    server.get(ME, "").assert_error(401, "authentication_error", "not_authenticated");
    let log = server.stop();
    let line = &lines(&log, "/api/organizations/{organization_id}/members/")[0];
    let names: Vec<&str> = line.as_object().expect("members").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "timestamp",
            "level",
            "message",
            "request_id",
            "method",
            "route",
            "status",
            "duration_ms",
            "client",
            "key",
            "organization",
            "target"
        ]
    );
    assert_eq!((&line["key"], &line["organization"]), (id, &made["organization_id"]));
    assert_eq!((&line["method"], &line["status"]), (&"GET".into(), &200.into()));
    assert_eq!((&line["target"], &line["level"]), (&"request".into(), &"DEBUG".into()));
    assert!(line["key"].as_str().is_some_and(|id| id.parse::<ApiKeyId>().is_ok()));
    let refused = &lines(&log, "/api/projects/{project_id}/dashboards/")[0];
    assert_eq!((&refused["key"], &refused["status"]), (id, &404.into()));
    assert_eq!(refused.get("organization"), None);
    let anonymous = &lines(&log, ME)[0];
    assert_eq!((anonymous.get("key"), &anonymous["status"]), (None, &401.into()));
    assert!(!log.contains("hidden"), "{log}");
}

/// Changes the log filter, sends a request, stops the server, and returns the log lines of the request.
fn after(site: &DataFolder, server: Server, key: &str, changes: &[&str]) -> Vec<Value> {
    for change in changes {
        assert_eq!(site.json(&["log", change])["log"], *change);
    }
    server.get(ME, key).ok();
    lines(&server.stop(), ME)
}

#[test]
fn log_filter_can_be_changed_at_run_time() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    assert!(after(&site, site.serve(&[]), key, &[]).is_empty(), "by default no request is logged");
    for (changes, expected) in [
        (&["info,request=debug"][..], 1),
        (&["debug"], 1),
        (&["info,request=debug", "warn"], 0),
        (&["off"], 0),
    ] {
        assert_eq!(after(&site, site.serve(&[]), key, changes).len(), expected, "{changes:?}");
    }
}

#[test]
fn rejected_log_filter_leaves_the_old_one_with_a_reason() {
    let (site, made) = DataFolder::with_workspace();
    let key = made["api_key"].as_str().expect("a key");
    site.run(&["log", "debug"]).assert_failed("no server is serving steward.redb");
    let server = site.serve(&["--log", "info,request=debug"]);
    for bad in ["loud", "", "request=loud", "info,loud", "request=debug=info", "[", "debug,,info"] {
        site.run(&["log", bad]).assert_failed("is not valid");
    }
    until("the server responds", || (server.get(ME, key).status == 200).then_some(()));
    let log = server.stop();
    assert!(!lines(&log, ME).is_empty(), "{log}");
    assert!(!log.contains("changed the log filter"), "{log}");
    site.run(&["serve", "--log", "loud"]).assert_usage_error("\"loud\" is not a level");
}
