//! Connections: which server they choose, how many there are, and what they cost. Commits that wait for a synchronous standby.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

use socket2::{Domain, Socket, Type};
use tokio_postgres::SimpleQueryMessage;

use crate::base::time::Clock;
use crate::wait::until;

use super::faults::hurry;
use super::support::local_server;
use super::*;

#[test]
#[ignore = "needs PostgreSQL"]
fn next_host_is_tried_if_one_does_not_answer_or_takes_no_writes() {
    let server = local_server();
    let schema = Schema::on(&server.url(support::ROLE));
    let folder = server.folder().to_str().expect("UTF-8").replace('/', "%2F");
    // A port that this test holds, but on which nobody listens.
    let closed = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    closed.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
    let closed_at = closed.local_addr().expect("an address").as_socket().expect("an IP address");
    let url = format!("postgres://{}@{closed_at},{folder}:5432/postgres", support::ROLE);
    let origin = open(&schema.url_at(&url), "node a");
    let first = found(&origin, &[put("a", "1")]);
    assert_eq!(all(&origin), (vec![put("a", "1")], first));
    let standby = format!("{}%20-c%20default_transaction_read_only%3Don", schema.url());
    let away = open(&standby, "node a").head().expect_err("no server takes writes");
    assert!(matches!(&away, Fault::Away(why) if why.contains("does not allow writes")), "{away:?}");
}

#[test]
fn server_that_accepts_and_says_nothing_is_away() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let url = format!("postgres://ann@{address}/x?connect_timeout=1").parse().expect("a URL");
    let origin = Postgres::new(&url, None, "node a").expect("a valid URL");
    let away = origin.head().expect_err("no answer");
    assert!(matches!(&away, Fault::Away(why) if why.contains("time limit")), "{away:?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn thread_that_calls_again_uses_its_connection_again() {
    let database = Database::new();
    let mut head = database.first;
    for number in 0..20 {
        head = taken(&database.origin, head, &[put("a", &number.to_string())]);
        since(&database.origin, head).expect("an answer");
    }
    assert_eq!(database.origin.idle().len(), 1);
    let (_, held) = turn(&database.origin, head);
    since(&database.origin, head).expect("an answer beside the turn");
    drop(held);
    assert_eq!(database.origin.idle().len(), 2);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn question_for_changes_uses_the_index_whatever_the_rows_look_like() {
    let database = Database::new();
    // Rows in an order that has nothing to do with the commits: an index seems dear to read there.
    database.schema.execute(
        "INSERT INTO steward_rows SELECT 'users/1', int4send(g), '\\x00', (g * 7919) % 1000 \
         FROM generate_series(1, 20000) g; ANALYZE steward_rows",
    );
    let link = database.origin.link().expect("a connection");
    let explain = format!("PREPARE p(int8) AS {}; EXPLAIN EXECUTE p(1000)", sql::SINCE);
    let messages = link.wait(ANSWER, link.client().simple_query(&explain)).expect("a plan");
    let plan: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    assert!(plan.iter().any(|line| line.contains("steward_rows_by_seq")), "{plan:#?}");
    assert!(!plan.iter().any(|line| line.contains("Seq Scan on steward_rows")), "{plan:#?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn copy_that_lacks_many_rows_takes_them_without_limits() {
    let Database { schema, origin, first } = Database::new();
    assert!(sql::SINCE.contains(&format!("LIMIT {})", sql::MOST_CHANGES)));
    let many: Vec<_> = (0..sql::MOST_CHANGES).map(|key| put(&key.to_string(), "x")).collect();
    let second = taken(&origin, first, &many[1..]);
    assert_eq!(since(&origin, first).expect("an answer").0.len(), sql::MOST_CHANGES - 1);
    let third = taken(&origin, second, &many[..1]);
    assert!(matches!(since(&origin, first), Err(Fault::Behind)));
    assert!(matches!(origin.turn(first, &mut |_| Ok(())).map(drop), Err(Fault::Behind)));
    let lacking = origin.lacking(first).expect("an answer");
    assert_eq!((lacking.rows, lacking.of), (20_001, 20_002));
    let mut count = 0;
    let mut take = |_| {
        count += 1;
        Ok(())
    };
    assert_eq!(origin.since_far(first, &mut take).expect("an answer"), third);
    assert_eq!(count, sql::MOST_CHANGES);
    let elsewhere = Position { name: new_name(), ..first };
    assert!(matches!(origin.since_far(elsewhere, &mut |_| Ok(())), Err(Fault::Forked)));
    assert!(matches!(origin.lacking(elsewhere), Err(Fault::Forked)));
    schema.execute("UPDATE steward_head SET format = format + 1");
    assert!(matches!(origin.since_far(first, &mut |_| Ok(())), Err(Fault::Newer { .. })));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn heartbeat_tells_how_far_the_clocks_are_apart() {
    let database = Database::new();
    let now = Clock::System.now();
    let beat = database.origin.heartbeat(database.first, None).expect("an answer");
    for hours in [-1, 0, 1] {
        let found = beat.ahead(now.plus_seconds(hours * 3_600));
        // The time since `now` counts too.
        assert!((found - hours * 3_600_000).abs() < 1_800_000, "{found} for {hours}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tables_have_no_trace_of_removed_rows_after_trimming() {
    let database = Database::new();
    let second = taken(&database.origin, database.first, &[removal("a"), put("b", "2")]);
    taken(&database.origin, second, &[put("b", "3")]);
    let count = |table: &str| database.schema.execute(&format!("SELECT count(*) FROM {table}"));
    assert_eq!(count("steward_rows"), [["2"]]);
    database.origin.trim(1).expect("an answer");
    assert_eq!(count("steward_rows"), [["1"]]);
    assert_eq!(count("steward_commits"), [["2"]]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn origin_can_be_dropped_by_an_async_task() {
    let database = Database::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async move { drop(database.origin) });
}

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
            Ok(CommitOutcome::Committed(_)) => false,
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
        let beat = waiting.end(by, |origin| origin.heartbeat(head, None));
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
    assert!(waiting.origin.heartbeat(waiting.head, None).is_ok());
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
    assert!(matches!(other.confirm(Position { name: new_name(), ..head }), Err(Fault::Forked)));
    database.schema.execute("DELETE FROM steward_commits");
    other.confirm(head).expect("the head needs no history");
    assert_eq!(since(&other, head).expect("an answer"), (Vec::new(), head));
    drop(held);
    let empty = Schema::new();
    assert_refused(open(&empty.url(), "node a").confirm(head), &["no Steward workspace"]);
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
    assert_refused(alone.head(), &["an old primary that came back: it is at timeline 1"]);
    // Nor by a connection that was open before, or after a copy was opened that knows only the old one.
    for primary in [newer, known, Primary::default()] {
        origin.remember(primary);
    }
    assert_refused(origin.head(), &["an old primary that came back"]);
    // Another history has no order with this one.
    alone.remember(Primary { system: 1, ..newer });
    assert!(alone.head().is_ok());
}
