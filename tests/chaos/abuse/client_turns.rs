//! Tests that a client with many connections does not run all of its requests before another client's.

use std::future::pending;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use steward::testing::http::Peer;
use steward::{ServerLimits, serve};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::prelude::*;

const GREEDY: &str = "127.0.0.2";
const MODEST: &str = "127.0.0.3";
/// The number of connections of the greedy client.
const MANY: usize = 64;

/// The clients in the order in which their requests ran.
type Order = Arc<Mutex<Vec<IpAddr>>>;

async fn note(State(order): State<Order>, Extension(Peer(peer)): Extension<Peer>) {
    order.lock().expect("the order").push(peer.ip());
}

/// A server on one thread, which runs only while the test waits for it.
struct Served {
    runtime: Runtime,
    order: Order,
    greedy: Vec<TcpStream>,
    modest: TcpStream,
}

fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let stream = connect_from(from, to).expect("a connection");
    stream.set_nonblocking(true).expect("a socket");
    stream
}

impl Served {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let order = Order::default();
        let router = Router::new().route("/", get(note)).with_state(Arc::clone(&order));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(
            async move { serve(listener, router, &ServerLimits::default(), pending()).await },
        );
        let greedy = (0..MANY).map(|_| connect(GREEDY, address)).collect();
        let modest = connect(MODEST, address);
        Self { runtime, order, greedy, modest }
    }

    /// Sends a request on each connection of the greedy client, then one of the modest client. Returns how many
    /// requests ran before the modest client's.
    fn run_before_the_modest(&mut self) -> usize {
        for stream in self.greedy.iter_mut().chain([&mut self.modest]) {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        }
        for stream in self.greedy.iter_mut().chain([&mut self.modest]) {
            self.runtime.block_on(async {
                while stream.peek(&mut [0]).is_err() {
                    tokio::task::yield_now().await;
                }
            });
            assert!(stream.read(&mut [0; 1024]).expect("an answer") > 0);
        }
        let ran = std::mem::take(&mut *self.order.lock().expect("the order"));
        let modest: IpAddr = MODEST.parse().expect("an address");
        ran.iter().position(|client| *client == modest).expect("it ran")
    }
}

#[test]
fn client_with_one_request_is_not_delayed_by_many_of_another_client() {
    let mut served = Served::start();
    served.run_before_the_modest();
    // Clients count as active for a second, which a busy machine may exceed. Without turns, the modest client's request is the
    // last one in every round.
    let mut rounds = (0..50).map(|_| served.run_before_the_modest());
    assert!(rounds.any(|before| before <= MANY / 4), "the modest client waited in each round");
}
