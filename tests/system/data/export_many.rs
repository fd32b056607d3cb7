//! Measures the memory of an export and an import of many records. Run it by name; `RECORDS` sets the number of records.
//! `STEWARD_BINARY` names another build of the command.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::support::exports::{first_of, lines, sealed};
use crate::support::process::{DataFolder, cleared, until};

/// Returns an export with `count` dashboards.
pub fn many(count: u64) -> Vec<u8> {
    let (site, made) = DataFolder::with_workspace();
    let server = site.serve(&[]);
    let key = made["api_key"].as_str().expect("a key");
    server.post("/api/projects/1/dashboards/", key, &json!({ "name": "Dashboard 1" })).ok();
    server.stop();
    let mut lines = lines(site.run(&["export", "--secrets"]).ok().as_bytes());
    let at = first_of(&lines, "dashboards");
    let one = String::from_utf8(lines[at].clone()).expect("text");
    assert!(one.contains("\"id\":1,") && one.contains("Dashboard 1"));
    let number = |number| {
        one.replace("\"id\":1,", &format!("\"id\":{number},"))
            .replace("Dashboard 1", &format!("Dashboard {number}"))
            .into_bytes()
    };
    lines.splice(at..=at, (1..=count).map(number));
    let sequence = "{\"of\":\"dashboards\",\"last\":";
    let line = lines.iter_mut().find(|line| String::from_utf8_lossy(line).contains(sequence));
    *line.expect("a sequence") =
        format!("{{\"table\":\"sequences\",\"meta\":{sequence}{count}}}}}\n").into_bytes();
    sealed(&lines)
}

/// Returns the peak memory of a command in MiB.
fn measured(site: &DataFolder, args: &[&str]) -> u64 {
    let binary = std::env::var("STEWARD_BINARY");
    let mut command = binary.map_or_else(|_| site.steward(&[]), cleared);
    command.current_dir(site.folder()).args(args).stdout(Stdio::null());
    let mut child = command.spawn().expect("a process");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = until("the command ends", || {
        let held = fs::read_to_string(&status).unwrap_or_default();
        let held = held.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let held = held.and_then(|held| held.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(held.unwrap_or(0));
        child.try_wait().expect("a child")
    });
    assert!(ended.success(), "{args:?}");
    most / 1024
}

#[test]
#[ignore = "a measurement: run it alone"]
fn export_and_import_of_many_records_use_limited_memory() {
    let count = std::env::var("RECORDS").map_or(100_000, |count| count.parse().expect("a number"));
    let export = many(count);
    let site = DataFolder::empty();
    fs::write(site.path("many.jsonl"), &export).expect("written");
    let mebibytes = export.len() / (1024 * 1024);
    drop(export);
    for args in [&["import", "many.jsonl"][..], &["export", "--secrets", "again.jsonl"], &["check"]]
    {
        let memory = measured(&site, args);
        println!("{count} records, {mebibytes} MiB of lines: {}: {memory} MiB at most", args[0]);
        assert!(memory < 512, "{args:?}: {memory} MiB");
    }
    let read = |name| blake3::hash(&fs::read(site.path(name)).expect("an export"));
    assert_eq!(read("many.jsonl"), read("again.jsonl"));
}
