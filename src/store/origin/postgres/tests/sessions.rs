//! Connections: which server they choose, how many there are, and what they cost.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};
use tokio_postgres::SimpleQueryMessage;

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
    let now = OffsetDateTime::now_utc();
    for hours in [-1, 0, 1] {
        let shown = now + time::Duration::hours(hours);
        let beat = database.origin.heartbeat(database.first, shown, None).expect("an answer");
        let found = beat.ahead;
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
    assert_eq!(
        (count("steward_rows"), count("steward_commits")),
        (vec![vec!["1".to_owned()]], vec![vec!["2".to_owned()]])
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn origin_can_be_dropped_by_an_async_task() {
    let database = Database::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async move { drop(database.origin) });
}
