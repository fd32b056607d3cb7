//! Checks what runs several nodes against the program: the systemd template, the Compose file and the balancer's settings.

use regex::Captures;

use super::packaging::{self, default_of, duration};
use crate::prelude::*;

/// How long `HAProxy` may need to notice that a node is not ready: an interval, and two fast ones.
const NOTICED_AFTER: Duration = Duration::from_secs(2);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/cluster")
}

fn read(name: &str) -> String {
    packaging::read(&format!("packaging/cluster/{name}"))
}

#[test]
fn template_is_the_unit_with_the_name_of_the_node() {
    let unit = packaging::read("packaging/steward.service");
    let (_, unit) = unit.split_once("[Unit]\n").expect("a section");
    let expected = unit
        .replace(
            "Steward, the admin API of an analytics workspace",
            "Steward, node %i of a shared database",
        )
        .replace("/etc/steward/steward.toml\n", "/etc/steward/%i.toml\n")
        .replace("StateDirectory=steward\n", "StateDirectory=steward/%i\n")
        .replace("WorkingDirectory=/var/lib/steward\n", "WorkingDirectory=/var/lib/steward/%i\n");
    let template = read("steward@.service");
    let (_, template) = template.split_once("[Unit]\n").expect("a section");
    assert_eq!(template, expected);
    assert_eq!(template.matches("%i").count(), 4);
}

#[test]
fn haproxy_accepts_its_configuration() {
    for variables in [vec![], vec![("STEWARD_BIND", ":8443"), ("STEWARD_A", "10.0.0.1:8000")]] {
        let mut command = tool("haproxy", "haproxy");
        command.args(["-c", "-f"]).arg(folder().join("haproxy.cfg")).envs(variables);
        let run = CommandOutput::new(&mut command);
        let valid = "Configuration file is valid\n";
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), valid), "{run:?}");
        assert!(!run.stderr.contains("WARNING"), "{run:?}");
    }
}

#[test]
fn haproxy_waits_longer_than_nodes_and_closes_idle_connections_sooner() {
    let config = read("haproxy.cfg");
    let timeout = |name: &str| {
        let line =
            config.lines().find_map(|line| line.trim().strip_prefix(&format!("timeout {name} ")));
        duration(line.unwrap_or_else(|| panic!("no timeout {name}")))
    };
    assert!(timeout("server") > default_of("request-timeout"));
    assert!(timeout("http-keep-alive") < default_of("header-timeout"));
    // Reads go on while writes wait for a standby.
    assert!(config.contains("\n    use_backend reads if METH_GET "));
    let (_, backends) = config.split_once("\nbackend writes\n").expect("a backend");
    let (writes, reads) = backends.split_once("\nbackend reads\n").expect("a backend");
    // What a node may have done goes to another one only if it is done once.
    let once = "unless METH_POST { req.hdr(Idempotency-Key) -m found }";
    assert!(writes.contains(&format!("\n    http-request disable-l7-retry {once}\n")));
    for (backend, asked) in [(writes, "/_readyz"), (reads, "/_readyz/reads")] {
        assert!(backend.contains(&format!("\n    http-check send meth GET uri {asked} ver ")));
        // The response without a node has the members of every error.
        let error = backend.lines().find_map(|line| line.split_once("lf-string \""));
        let (body, headers) = error.expect("a response").1.split_once("}\"").expect("an object");
        let body: Value =
            serde_json::from_str(&format!("{body}}}").replace("\\\"", "\"")).expect("JSON");
        let members: BTreeSet<&str> =
            body.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, BTreeSet::from(["attr", "code", "detail", "type"]));
        assert_eq!(headers, " hdr Retry-After 1");
        let servers = |text: &str| text.lines().filter(|line| line.contains(" server ")).count();
        assert_eq!(servers(backend), NODES.len());
    }
}

/// Returns the Compose file as Compose sees it: with its variables and without its anchors and merges.
fn compose() -> Value {
    let variable = Regex::new(r"\$\{([A-Z_]+)(?::-([^}]*)|:\?[^}]*)?\}").expect("a pattern");
    let text = read("compose.yaml");
    let text = variable.replace_all(&text, |found: &Captures<'_>| {
        found
            .get(2)
            .map_or_else(|| format!("test{}", &found[1]), |default| default.as_str().to_owned())
    });
    let mut parsed: yaml_serde::Value = yaml_serde::from_str(&text).expect("YAML");
    parsed.apply_merge().expect("merges");
    serde_json::to_value(parsed).expect("a value of JSON")
}

const NODES: [&str; 3] = ["a", "b", "c"];

#[test]
fn compose_file_gives_each_node_a_name_a_volume_and_an_address_of_its_own() {
    let compose = compose();
    let services = compose["services"].as_object().expect("services");
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["a", "b", "balancer", "c", "postgres"]));
    let balancer = &services["balancer"];
    let address = |service: &Value| {
        service["networks"]["default"]["ipv4_address"].as_str().expect("an address").to_owned()
    };
    for name in NODES {
        let node = &services[name];
        assert_eq!(node["environment"]["STEWARD_NODE"], name);
        assert_eq!(node["volumes"], serde_json::json!([format!("{name}:/data")]));
        assert!(compose["volumes"].as_object().expect("volumes").contains_key(name));
        assert_eq!(node["depends_on"]["postgres"]["condition"], "service_healthy");
        let served = format!("{}:8000", address(node));
        let variable = format!("STEWARD_{}", name.to_uppercase());
        assert_eq!(balancer["environment"][variable.as_str()], served);
        assert!(read("haproxy.cfg").contains(&format!("\"${{{variable}-")), "{variable}");
        let trusted = format!("{}/32", address(balancer));
        assert_eq!(node["environment"]["STEWARD_TRUSTED_PROXY"], trusted);
    }
    let mounts = [&balancer["volumes"], &services["postgres"]["volumes"]];
    let mounts = mounts.iter().flat_map(|list| list.as_array().expect("a list"));
    let files: Vec<_> = mounts
        .filter_map(|mount| mount.as_str().expect("a text").split(':').next()?.strip_prefix("./"))
        .collect();
    assert_eq!(files, ["haproxy.cfg", "create-role.sh"]);
    assert!(files.iter().all(|file| folder().join(file).is_file()));
    let context = services["a"]["build"].as_str().expect("a folder");
    assert!(folder().join(context).join("Dockerfile").is_file());
}

#[test]
fn compose_file_sets_variables_that_the_program_reads() {
    let compose = compose();
    let node = &compose["services"]["a"];
    let variables = node["environment"].as_object().expect("variables");
    let set = variables.iter().map(|(name, value)| (name.as_str(), value.as_str().expect("text")));
    let read = packaging::settings_from(set).into_keys();
    let read: BTreeSet<_> = read.map(|key| key.replace('-', "_").to_uppercase()).collect();
    let set: BTreeSet<String> =
        variables.keys().map(|name| name.trim_start_matches("STEWARD_").to_owned()).collect();
    assert_eq!(read, set);
    let drain = duration(variables["STEWARD_DRAIN_DELAY"].as_str().expect("a time"));
    assert!(drain > NOTICED_AFTER, "HAProxy must notice that the node is about to stop");
    let stop = duration(node["stop_grace_period"].as_str().expect("a time"));
    assert!(stop > drain + default_of("grace"), "Compose must not kill the node before");
}
