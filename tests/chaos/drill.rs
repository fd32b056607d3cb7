//! A disaster drill with the real binary: serve under load, back up, kill, damage the file, restore, and
//! serve again. Also a series of kills at random moments. The load is that of the nodes of a shared database.
//!
//! `KILLS` sets the number of kills in the series.

use crate::nodes::Cluster;
use crate::nodes::load::{Load, gaps};
use crate::prelude::*;
use crate::support::process::all_rows;

const KILLS: u64 = 12;
/// How many parts of the file are overwritten.
const PIECES: usize = 64;

/// Overwrites parts of a file, after its first page.
fn damage(path: &Path, seed: u64) {
    let mut bytes = fs::read(path).expect("the file");
    let mut dice = TestRng(seed);
    for _ in 0..PIECES {
        let at = 4096 + dice.below(bytes.len() - 8192);
        bytes[at..at + 512].fill_with(|| dice.next().to_le_bytes()[0]);
    }
    fs::write(path, bytes).expect("written");
}

#[test]
fn restore_after_a_kill_and_damage_returns_all_writes_before_the_backup() {
    let cluster = Cluster::on_file();
    let (node, load) = (&cluster.nodes[0], Load::new(&cluster));
    let mut before = BTreeMap::new();
    load.run(|| {
        load.goes_on([0], 60);
        before = load.created();
        node.folder.json(&["backup", "copy.redb"]);
        node.folder.json(&["export", "--secrets", "copy.jsonl"]);
        load.goes_on([0], 60);
        node.kill();
    });
    damage(&node.folder.data(), seed());

    let run = node.folder.run(&["check", "--json"]);
    assert!(run.code != Some(0) || !run.stdout.contains("\"problem_count\":0"), "{run:?}");
    if let Ok(server) = node.folder.try_serve(&[]) {
        // The file may open. Then requests that read damaged values fail, and no response is wrong.
        let reply = server.get(&cluster.dashboards, &cluster.key);
        assert!([200, 401, 500, 503].contains(&reply.status), "{}", reply.status);
    }

    let restored = node.folder.json(&["restore", "copy.redb"]);
    assert!(restored["replaced"].is_string(), "the damaged file must be kept: {restored}");
    node.folder.check();
    node.folder.json(&["import", "copy.jsonl", "--data", "imported.redb"]);
    assert_eq!(node.folder.json(&["check", "--data", "imported.redb"])["problem_count"], 0);
    // Each has one moment of the load.
    for data in ["steward.redb", "imported.redb"] {
        let server = node.folder.serve(&["--data", data]);
        let get = |path: &str| server.get(path, &cluster.key).ok();
        let (rows, count) = all_rows(&cluster.dashboards, get);
        assert_eq!(gaps(&rows, count), None, "{data}");
        let found: BTreeMap<_, _> = rows.iter().map(id_and_name).collect();
        let lost = before.iter().filter(|(id, name)| found.get(*id) != Some(*name));
        assert_eq!(lost.count(), 0, "{data} lost some of {before:?}: {found:?}");
        server.stop();
    }
    node.restart();
    let more = Load::new(&cluster);
    more.run(|| more.goes_on([0], 40));
    let report = more.end();
    println!("{} dashboards before the backup, {PIECES} parts overwritten; {report}", before.len());
    report.assert_right();
    cluster.check();
}

#[test]
fn kills_at_random_moments_under_load_lose_no_acknowledged_write() {
    let kills = size("KILLS", KILLS);
    let cluster = Cluster::on_file();
    let (load, mut dice) = (Load::new(&cluster), TestRng(seed()));
    load.run(|| {
        for _ in 0..kills {
            // Vary the moment of the kill.
            load.goes_on([0], 1 + dice.next() % 20);
            cluster.nodes[0].kill();
            cluster.nodes[0].restart();
        }
        load.goes_on([0], 20);
    });
    println!("{kills} kills");
    load.end().assert_right();
    cluster.check();
}
