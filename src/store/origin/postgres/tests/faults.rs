//! Connections that end at a bad moment.

use std::thread;

use super::line::{Flow, Line};
use super::support::{execute, local_server};
use super::*;
use crate::wait::until;

/// Ends the session of the node that waits for the head, once there is one.
fn kill_waiting(schema: &Schema, node: &str) {
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'steward {node}' AND wait_event_type = 'Lock' \
         AND pid IN (SELECT pid FROM pg_locks WHERE relation = '{}.steward_head'::regclass)",
        schema.name()
    );
    let kill = || Some(schema.execute(&sql)).filter(|killed| !killed.is_empty());
    assert_eq!(until("a session that waits", kill), [["t"]]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commit_whose_backend_is_killed_is_unknown_and_then_found_undone() {
    let database = Database::new();
    let other = open(&database.schema.url(), "killed");
    let (_, held) = turn(&database.origin, database.first);
    let name = new_name();
    let commit = Commit { from: database.first, name, rows: &[put("a", "2")] };
    thread::scope(|scope| {
        let killed = scope.spawn(|| other.commit(&commit));
        kill_waiting(&database.schema, "killed");
        let fault = killed.join().expect("an answer").expect_err("no outcome");
        assert!(matches!(fault, Fault::Unknown(_)), "{fault:?}");
    });
    drop(held);
    assert_eq!(other.committed(name).expect("an answer"), None);
    assert_eq!(all(&other), (vec![put("a", "1")], database.first));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn question_that_the_database_ends_is_asked_without_limits() {
    let database = Database::new();
    let second = taken(&database.origin, database.first, &[put("a", "2")]);
    let other = open(&database.schema.url(), "asking");
    // Prepares the question, which looks at the table too.
    since(&other, database.first).expect("an answer");
    let holder = database.origin.link().expect("a connection");
    holder.run("SET idle_in_transaction_session_timeout = 0").expect("a setting");
    holder.run("BEGIN; LOCK TABLE steward_rows").expect("a lock");
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
                  WHERE application_name = 'steward asking' AND wait_event_type = 'Lock'";
    thread::scope(|scope| {
        let asking = scope.spawn(|| since(&other, database.first));
        until("the question is ended", || {
            (!database.schema.execute(cancel).is_empty()).then_some(())
        });
        assert!(matches!(asking.join().expect("an answer"), Err(Fault::Behind)));
    });
    holder.run("COMMIT").expect("an answer");
    assert_eq!(other.since_far(database.first, &mut |_| Ok(())).expect("an answer"), second);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commit_whose_answer_is_lost_is_unknown_and_then_found_done() {
    let server = local_server();
    let schema = Schema::on(&server.url(support::ROLE));
    let line = Line::to(server.folder());
    let origin = open(&schema.url_at(&line.url(support::ROLE)), "node a");
    let first = found(&origin, &[put("a", "1")]);
    let second = taken(&origin, first, &[put("a", "2")]);
    line.set(Flow::Passes, Flow::Ends);
    let name = new_name();
    let commit = Commit { from: second, name, rows: &[put("a", "3")] };
    let fault = origin.commit(&commit).expect_err("no answer");
    assert!(matches!(fault, Fault::Unknown(_)), "{fault:?}");
    let fault = origin.committed(name).expect_err("no answer");
    assert!(matches!(fault, Fault::Away(_)), "{fault:?}");
    line.set(Flow::Passes, Flow::Passes);
    // The server may still be at it.
    let direct = open(&schema.url(), "node b");
    let _ = direct.turn(second, &mut |_| Ok(()));
    assert_eq!(origin.committed(name).expect("an answer"), Some(3));
    assert_eq!(origin.commit(&commit).expect("an outcome"), CommitOutcome::Overtaken);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn turn_that_the_database_has_ended_is_overtaken() {
    let database = Database::new();
    let (head, held) = turn(&database.origin, database.first);
    let kill = format!(
        "SELECT pg_terminate_backend(pid, 300000) FROM pg_stat_activity WHERE state = 'idle in transaction' \
         AND pid IN (SELECT pid FROM pg_locks WHERE relation = '{}.steward_head'::regclass)",
        database.schema.name()
    );
    assert_eq!(database.schema.execute(&kill), [["t"]]);
    let commit = Commit { from: head, name: new_name(), rows: &[put("a", "2")] };
    assert_eq!(held.commit(&commit).expect("an outcome"), CommitOutcome::Overtaken);
    assert_eq!(taken(&database.origin, head, &[put("a", "3")]).seq, 2);
}

/// Lets the statements of `origin` wait for a lock for only a moment.
pub(super) fn hurry(origin: &Postgres) {
    let link = origin.link().expect("a connection");
    link.run("SET lock_timeout = 100").expect("a setting");
    origin.idle().push(link);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn session_that_has_locked_the_head_is_named() {
    let database = Database::new();
    let other = open(&format!("{}&application_name=psql", database.schema.url()), "node b");
    let commit = Commit { from: database.first, name: new_name(), rows: &[put("a", "2")] };
    for lock in [
        "SELECT * FROM steward_head FOR UPDATE",
        "UPDATE steward_head SET horizon = horizon",
        "LOCK TABLE steward_head IN EXCLUSIVE MODE",
        "LOCK TABLE steward_head",
    ] {
        let holder = other.link().expect("a connection");
        holder.run("SET idle_in_transaction_session_timeout = 0").expect("a setting");
        holder.run(&format!("BEGIN; {lock}")).expect("a lock");
        let pid = holder.ask(ANSWER, sql::OWN_PID, &[]).expect("a row").expect("a row");
        let ended = format!("SELECT pg_terminate_backend({})", pid.get::<_, i32>(0));
        let held = |what: &str, fault: Fault| match fault {
            Fault::Held(why) => {
                for part in ["psql", "role steward", "idle in transaction", &ended] {
                    assert!(why.contains(part), "{lock}, {what}: {part}: {why}");
                }
            }
            fault => panic!("{lock}, {what}: {fault:?}"),
        };
        hurry(&database.origin);
        held("commit", database.origin.commit(&commit).expect_err("a lock"));
        hurry(&database.origin);
        let turn = database.origin.turn(database.first, &mut |_| Ok(())).map(drop);
        held("turn", turn.expect_err("a lock"));
        // A session that waits as well is not to blame.
        thread::scope(|scope| {
            let waiting = open(&database.schema.url(), "waiting");
            let work = scope.spawn(move || waiting.commit(&commit).map(drop));
            until("another node waits", || {
                let sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'steward waiting' \
                           AND wait_event_type = 'Lock'";
                (!database.schema.execute(sql).is_empty()).then_some(())
            });
            hurry(&database.origin);
            let fault = database.origin.commit(&commit).expect_err("a lock");
            assert!(!fault.to_string().contains("steward waiting"), "{fault}");
            held("behind another node", fault);
            holder.run("ROLLBACK").expect("an answer");
            let _ = work.join().expect("no panic");
        });
        // The waiting node may have been first.
        let (_, head) = all(&database.origin);
        database.schema.execute(&format!(
            "UPDATE steward_head SET seq = {}, name = '{}' WHERE seq = {}",
            database.first.seq, database.first.name, head.seq
        ));
        database
            .schema
            .execute(&format!("DELETE FROM steward_commits WHERE seq > {}", database.first.seq));
    }
    assert_eq!(taken(&database.origin, database.first, &[put("a", "3")]).seq, 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn session_that_has_locked_a_row_of_a_commit_is_named() {
    let database = Database::new();
    let other = open(&format!("{}&application_name=psql", database.schema.url()), "node b");
    let holder = other.link().expect("a connection");
    holder.run("SET idle_in_transaction_session_timeout = 0").expect("a setting");
    holder.run("BEGIN; SELECT * FROM steward_rows FOR UPDATE").expect("a lock");
    let commit = Commit { from: database.first, name: new_name(), rows: &[put("a", "2")] };
    let why = until("the session is named", || {
        hurry(&database.origin);
        match database.origin.commit(&commit) {
            Err(Fault::Held(why)) => why.contains("psql").then_some(why),
            outcome => panic!("{outcome:?}"),
        }
    });
    assert!(why.contains("pg_terminate_backend"), "{why}");
    holder.run("ROLLBACK").expect("an answer");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn node_that_stops_to_read_while_it_has_the_turn_is_ended() {
    let database = Database::new();
    let long = "x".repeat(1 << 20);
    let rows: Vec<_> = (0..8).map(|key| put(&key.to_string(), &long)).collect();
    let second = taken(&database.origin, database.first, &rows);
    let stalled = open(&database.schema.url(), "stalled");
    let (release, held) = std::sync::mpsc::channel::<()>();
    thread::scope(|scope| {
        let first = database.first;
        let reading = scope.spawn(move || {
            let mut take = |_| {
                let _ = held.recv();
                Ok(())
            };
            stalled.turn(first, &mut take).map(drop)
        });
        until("the answer is not read", || {
            let sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'steward stalled' \
                       AND wait_event = 'ClientWrite'";
            (!database.schema.execute(sql).is_empty()).then_some(())
        });
        let commit = Commit { from: second, name: new_name(), rows: &[put("a", "2")] };
        until("the other node is ended", || match database.origin.commit(&commit) {
            Ok(CommitOutcome::Committed(_)) => Some(()),
            Err(Fault::Held(why)) => {
                assert!(why.contains("steward stalled"), "{why}");
                None
            }
            outcome => panic!("{outcome:?}"),
        });
        drop(release);
        assert!(reading.join().expect("no panic").is_err());
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn restarted_server_is_used_again_by_the_next_call() {
    let server = Server::start(&[], "");
    let schema = Schema::on(&server.url(support::ROLE));
    let origin = open(&schema.url(), "node a");
    let first = found(&origin, &[put("a", "1")]);
    let second = taken(&origin, first, &[put("a", "2")]);
    server.control(&["-m", "immediate", "restart"]);
    let third = taken(&origin, second, &[put("a", "3")]);
    assert_eq!(all(&origin), (vec![put("a", "3")], third));
    server.control(&["-m", "fast", "stop"]);
    let away = since(&origin, third).expect_err("no server");
    assert!(matches!(away, Fault::Away(_)), "{away:?}");
    let away = origin.commit(&Commit { from: third, name: new_name(), rows: &[] });
    assert!(matches!(away, Err(Fault::Away(_))), "{away:?}");
    server.control(&["start"]);
    assert_eq!(since(&origin, third).expect("an answer"), (Vec::new(), third));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn overtaken_large_commit_leaves_no_transaction_open() {
    let database = Database::new();
    let second = taken(&database.origin, database.first, &[put("a", "2")]);
    let long = "x".repeat(1 << 20);
    let rows = [put("b", &long), put("c", &long)];
    let commit = Commit { from: database.first, name: new_name(), rows: &rows };
    assert_eq!(database.origin.commit(&commit).expect("an outcome"), CommitOutcome::Overtaken);
    let (_, held) = turn(&database.origin, second);
    assert_eq!(held.commit(&commit).expect("an outcome"), CommitOutcome::Overtaken);
    let pids = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
                WHERE state LIKE 'idle in transaction%' AND relation = 'steward_head'::regclass";
    assert_eq!(database.schema.execute(pids), [["0"]]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn failed_founding_leaves_no_workspace() {
    let schema = Schema::new();
    let origin = open(&schema.url(), "node a");
    let rows = [Ok(put("a", "1")), Err(crate::base::error::Error::internal("no more rows"))];
    let failed = origin.found_workspace(new_name(), &mut rows.into_iter()).expect_err("a failure");
    assert!(matches!(failed, Fault::Copy(_)), "{failed:?}");
    assert_eq!(origin.head().expect("an answer"), None);
    assert_eq!(found(&origin, &[put("a", "2")]).seq, 1);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn two_first_starts_at_once_found_one_workspace() {
    let schema = Schema::new();
    let start = |node: &str| {
        let rows =
            &mut [put(node, "1")].into_iter().map(Ok::<OriginRow, crate::base::error::Error>);
        open(&schema.url(), node).found_workspace(new_name(), rows).expect("an answer")
    };
    let start = &start;
    let founded: Vec<_> = thread::scope(|scope| {
        let nodes = ["a", "b", "c", "d"].map(|node| scope.spawn(move || start(node)));
        nodes.into_iter().filter_map(|node| node.join().expect("a node")).collect()
    });
    assert_eq!(founded.len(), 1);
    let (rows, head) = all(&open(&schema.url(), "e"));
    assert_eq!((rows.len(), head), (1, founded[0]));
    assert_eq!(execute(&schema.url(), "SELECT count(*) FROM steward_commits"), [["1"]]);
}
