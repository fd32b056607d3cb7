//! Commits that wait for a synchronous standby.

use std::thread;

use super::faults::hurry;
use super::*;
use crate::wait::until;

/// A server whose commits wait for a standby that does not come.
struct Waiting {
    server: Server,
    origin: Postgres,
    head: Position,
}

impl Waiting {
    fn new() -> Self {
        let server = Server::start(&[], "");
        let origin = open(&server.url(support::ROLE), "node a");
        let head = found(&origin, &[put("a", "1")]);
        let mut waiting = Self { server, origin, head };
        waiting.set_standbys("'*'");
        // The server follows its settings a moment later.
        until("commits wait", || waiting.ends_a_wait("pg_cancel_backend").then_some(()));
        waiting
    }

    fn set_standbys(&self, names: &str) {
        let url = self.server.url(support::ROLE);
        support::execute(&url, &format!("ALTER SYSTEM SET synchronous_standby_names = {names}"));
        support::execute(&url, "SELECT pg_reload_conf()");
    }

    /// Makes a commit, and ends its wait by this function. Returns false if it does not wait. Then it is taken.
    fn ends_a_wait(&mut self, by: &str) -> bool {
        let name = new_name();
        let commit = Commit { from: self.head, name, rows: &[put("a", "2")] };
        let outcome = self.end(by, |origin| origin.commit(&commit));
        let seq = self.origin.committed(name).expect("an answer").expect("it is done");
        self.head = Position { seq, name };
        match outcome {
            Ok(Outcome::Taken(_)) => false,
            Err(Fault::Unknown(_)) => true,
            outcome => panic!("{outcome:?}"),
        }
    }

    /// Calls `work`, and ends its wait by this function if it waits.
    fn end<T: Send>(
        &self,
        by: &str,
        work: impl FnOnce(&Postgres) -> Result<T, Fault> + Send,
    ) -> Result<T, Fault> {
        let url = self.server.url(support::ROLE);
        let sql = format!("SELECT {by}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
        thread::scope(|scope| {
            let working = scope.spawn(|| work(&self.origin));
            until("the wait ends", || {
                let is_over = working.is_finished();
                (!support::execute(&url, &sql).is_empty() || is_over).then_some(())
            });
            working.join().expect("no panic")
        })
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commit_whose_wait_for_a_standby_is_ended_is_unknown() {
    let mut waiting = Waiting::new();
    for by in ["pg_cancel_backend", "pg_terminate_backend"] {
        assert!(waiting.ends_a_wait(by), "{by}");
        // To look for it is no proof. A durable write waits as well.
        let head = waiting.head;
        let unconfirmed = waiting.end(by, |origin| origin.confirm(head));
        assert!(matches!(unconfirmed, Err(Fault::Away(_))), "{by}: {unconfirmed:?}");
        let now = OffsetDateTime::UNIX_EPOCH;
        let beat = waiting.end(by, |origin| origin.heartbeat(head, now, None));
        assert!(matches!(beat, Err(Fault::Away(_))), "{by}: {beat:?}");
        let (from, replaced) = (waiting.head, new_name());
        let outcome = waiting.end(by, |origin| {
            let (_, turn) = origin.turn(from, &mut |_| Ok(()))?;
            turn.replace(replaced, &mut [Ok(put("a", "3"))].into_iter())
        });
        assert!(matches!(outcome, Err(Fault::Unknown(_))), "{by}: {outcome:?}");
        let seq = waiting.origin.committed(replaced).expect("an answer").expect("it is done");
        waiting.head = Position { seq, name: replaced };
    }
    waiting.set_standbys("''");
    until("no standby is waited for", || waiting.origin.confirm(waiting.head).ok());
    assert!(waiting.origin.heartbeat(waiting.head, OffsetDateTime::UNIX_EPOCH, None).is_ok());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn node_that_waits_for_a_standby_is_not_to_blame() {
    let waiting = Waiting::new();
    let url = waiting.server.url(support::ROLE);
    let commit = Commit { from: waiting.head, name: new_name(), rows: &[put("a", "3")] };
    thread::scope(|scope| {
        let working = scope.spawn(|| waiting.origin.commit(&commit).map(drop));
        until("it waits", || {
            let sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
            (!support::execute(&url, sql).is_empty()).then_some(())
        });
        let other = open(&url, "node b");
        hurry(&other);
        let why = other.commit(&commit).expect_err("a lock").to_string();
        assert!(why.contains("waits for a synchronous standby"), "{why}");
        assert!(!why.contains("terminate"), "{why}");
        waiting.set_standbys("''");
        let _ = working.join().expect("no panic");
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn durable_write_changes_nothing_and_waits_for_no_turn() {
    let database = Database::new();
    let (head, held) = turn(&database.origin, database.first);
    let other = open(&database.schema.url(), "node b");
    other.confirm(head).expect("an answer");
    let lost = Position { name: new_name(), ..head };
    assert!(matches!(other.confirm(lost), Err(Fault::Forked)));
    database.schema.execute("DELETE FROM steward_commits");
    other.confirm(head).expect("the head needs no history");
    assert_eq!(since(&other, head).expect("an answer"), (Vec::new(), head));
    drop(held);
    let empty = Schema::new();
    let why = refusal(open(&empty.url(), "node a").confirm(head));
    assert!(why.contains("no Steward workspace"), "{why}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn old_primary_that_came_back_is_not_followed() {
    let old = Server::start(&["fsync = on"], "");
    let origin = open(&old.url(support::ROLE), "node a");
    let head = found(&origin, &[put("a", "1")]);
    let known = origin.primary();
    assert!(known.system != 0 && known.timeline == 1, "{known:?}");
    let new = old.standby();
    new.control(&["promote"]);
    let promoted = open(&new.url(support::ROLE), "node a");
    assert_eq!(promoted.head().expect("an answer").map(|found| found.position), Some(head));
    let newer = promoted.primary();
    assert_eq!((newer.system, newer.timeline), (known.system, 2));
    // Both take writes now.
    let folders = [&old, &new].map(|one| one.folder().display().to_string().replace('/', "%2F"));
    let both = format!("postgres://{}@{}/postgres", support::ROLE, folders.join(","));
    let node = open(&both, "node b");
    assert!(node.head().is_ok());
    assert_eq!(node.primary(), known, "the connection to the first server is idle");
    node.remember(newer);
    let link = node.link().expect("a connection");
    let row = link.ask(ANSWER, "SHOW unix_socket_directories", &[]).expect("a row").expect("a row");
    assert_eq!(row.get::<_, &str>(0), new.folder().to_str().expect("UTF-8"));
    assert_eq!(node.primary(), newer);
    let lost = taken(&origin, head, &[put("a", "2")]);
    node.confirm(head).expect("the new primary has it");
    assert!(matches!(node.confirm(lost), Err(Fault::Forked)), "the failover has lost it");
    let alone = open(&old.url(support::ROLE), "node c");
    alone.remember(newer);
    let why = refusal(alone.head());
    assert!(why.contains("an old primary that came back: it is at timeline 1"), "{why}");
    // Nor by a connection that was open before, or after a copy was opened that knows only the old one.
    for primary in [newer, known, Primary::default()] {
        origin.remember(primary);
    }
    assert!(refusal(origin.head()).contains("an old primary that came back"));
    // Another history has no order with this one.
    alone.remember(Primary { system: 1, ..newer });
    assert!(alone.head().is_ok());
}
