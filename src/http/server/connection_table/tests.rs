//! Which connections are closed for which.

use super::*;

fn table() -> ConnectionTable {
    let proxies = ["10.9.0.0/16".parse().expect("a network")].into_iter().collect();
    ConnectionTable::new(&ServerLimits {
        connections: 8,
        connections_per_address: 4,
        trusted_proxies: proxies,
        ..ServerLimits::default()
    })
}

impl ConnectionTable {
    fn open(&self, address: &str) -> Option<AcceptedConnection> {
        let socket = Arc::clone(&self.0.sockets).try_acquire_owned().expect("a socket");
        self.admit(SocketAddr::new(address.parse().expect("an address"), 4000), socket)
    }

    fn open_many(&self, address: &str, count: usize) -> Vec<AcceptedConnection> {
        (0..count).map(|_| self.open(address).expect("a slot")).collect()
    }
}

fn begin_requests(connections: &[AcceptedConnection]) {
    for connection in connections {
        connection.slot.begin_request().expect("it is open");
    }
}

fn answer(connection: &AcceptedConnection) {
    connection.slot.end_answer();
    connection.slot.flushed();
}

/// Which of the connections were closed.
fn closed(connections: &mut [AcceptedConnection]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, connection) in connections.iter_mut().enumerate() {
        if let Err(oneshot::error::TryRecvError::Closed) = connection.closed.try_recv() {
            found.push(at);
        }
    }
    found
}

#[test]
fn address_over_its_share_loses_its_longest_idle_connection() {
    let table = table();
    let mut own = table.open_many("192.0.2.1", 4);
    let mut other = table.open_many("192.0.2.2", 1);
    begin_requests(&own[..2]);
    answer(&own[0]);
    let new = table.open("192.0.2.1").expect("a slot");
    assert!(new.replaced_idle);
    assert_eq!(closed(&mut own), [2]);
    assert!(own[2].slot.begin_request().is_err(), "a closed connection takes no request");
    let _third = table.open("192.0.2.1").expect("a slot");
    let _fourth = table.open("192.0.2.1").expect("a slot");
    assert_eq!((closed(&mut own), closed(&mut other)), (vec![0, 2, 3], vec![]));
}

#[test]
fn connections_with_active_requests_are_never_closed() {
    let table = table();
    let mut own = table.open_many("2001:db8::1", 4);
    begin_requests(&own);
    for _ in 0..3 {
        assert!(table.open("2001:db8::ffff:2").is_none(), "an IPv6 network shares its slots");
    }
    assert!(table.open("2001:db8:0:1::1").is_some());
    own[3].slot.end_answer();
    assert!(table.open("2001:db8::1").is_none(), "the response is not sent yet");
    answer(&own[3]);
    assert!(table.open("2001:db8::1").is_some());
    assert_eq!(closed(&mut own), [3]);
}

#[test]
fn full_table_closes_an_idle_connection_of_the_largest_address() {
    let table = table();
    let (mut modest, mut greedy) =
        (table.open_many("192.0.2.1", 1), table.open_many("192.0.2.2", 4));
    let mut middle = table.open_many("192.0.2.3", 3);
    begin_requests(&greedy[..1]);
    let _new = table.open_many("192.0.2.4", 2);
    assert_eq!(closed(&mut greedy), [1, 2]);
    let _newer = table.open_many("192.0.2.5", 1);
    assert_eq!((closed(&mut middle), closed(&mut modest)), (vec![0], vec![]));
}

#[test]
fn new_connection_never_replaces_one_of_an_address_with_fewer() {
    let table = table();
    let greedy = [table.open_many("192.0.2.1", 3), table.open_many("192.0.2.2", 3)];
    let mut modest = table.open_many("192.0.2.3", 2);
    for connections in &greedy {
        begin_requests(connections);
    }
    assert!(table.open("192.0.2.1").is_none());
    assert!(closed(&mut modest).is_empty());
    assert!(table.open("192.0.2.4").is_some());
    assert_eq!(closed(&mut modest), [0]);
}

#[test]
fn trusted_proxy_has_no_share_and_loses_connections_last() {
    let table = table();
    let mut proxy = table.open_many("10.9.0.1", 7);
    let mut direct = table.open_many("192.0.2.1", 1);
    let _new = table.open("10.9.0.2").expect("a slot");
    assert_eq!((closed(&mut direct), closed(&mut proxy)), (vec![0], vec![]));
    let _newer = table.open("192.0.2.1").expect("a slot");
    assert_eq!(closed(&mut proxy), [0]);
}

#[test]
fn loopback_connections_are_accepted_when_all_slots_are_busy() {
    for address in ["127.0.0.1", "::1"] {
        let table = table();
        let busy = [table.open_many("192.0.2.1", 4), table.open_many("192.0.2.2", 4)];
        for connections in &busy {
            begin_requests(connections);
        }
        assert!(table.open("192.0.2.3").is_none());
        let mut probes = Vec::new();
        for _ in 0..4 {
            probes.push(table.open(address).expect("a slot"));
            begin_requests(&probes);
        }
        assert!(table.open(address).is_none(), "loopback addresses have a share too");
    }
}

#[test]
fn loopback_reserve_is_limited() {
    let table = table();
    let busy: Vec<_> = (0..=u8::MAX)
        .map_while(|at| {
            table
                .open(&format!("127.0.0.{at}"))
                .inspect(|one| begin_requests(std::slice::from_ref(one)))
        })
        .collect();
    assert_eq!(busy.len(), 8 + LOOPBACK_RESERVE);
}

#[test]
fn closed_connections_leave_no_table_entries() {
    let table = table();
    let mut open = table.open_many("192.0.2.1", 4);
    begin_requests(&open[..2]);
    let replacing = table.open_many("192.0.2.1", 2);
    open.truncate(1);
    drop(replacing);
    drop(open);
    assert!(table.lock().0.is_empty());
    assert_eq!(table.0.sockets.available_permits(), 8 + LOOPBACK_RESERVE + CLOSING_SOCKETS);
}
