//! A real DNS server on loopback, over UDP and TCP on the same port, with the replies that the test sets.

use std::collections::HashMap;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::net::xfer::Protocol;
use hickory_server::proto::op::{Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::{CNAME, TXT};
use hickory_server::proto::rr::{Name, RData, Record};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use steward::Config;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;

use super::wait::{TEST_TIMEOUT, eventually};

/// The reply for a name.
#[derive(Debug, Clone)]
pub enum Reply {
    /// TXT records, each with its strings. Over UDP, replies above 512 bytes are truncated.
    Texts(Vec<Vec<String>>),
    /// A CNAME record. The client has to look up its target.
    Alias(String),
    /// The name exists, but has no TXT record.
    NoData,
    /// The name does not exist.
    NxDomain,
    /// The server failed.
    ServFail,
    /// The server refuses to answer.
    Refused,
    /// No reply at all.
    Silence,
}

impl Reply {
    /// Creates TXT records, each with its strings.
    pub fn texts(records: &[&[&str]]) -> Self {
        let strings = |record: &&[&str]| record.iter().map(|text| (*text).to_owned()).collect();
        Self::Texts(records.iter().map(strings).collect())
    }
}

/// A query: its protocol, name and id.
type Question = (Protocol, String, u16);

/// A running DNS server. It stops when it is dropped.
pub struct Dns {
    address: SocketAddr,
    zone: Arc<Zone>,
    _server: Server<Handler>,
}

struct Zone {
    replies: Mutex<HashMap<String, Reply>>,
    asked: Mutex<Vec<Question>>,
    open: watch::Sender<bool>,
}

impl Zone {
    fn note(&self, question: Question) {
        let mut asked = self.asked.lock().expect("the zone");
        if !asked.contains(&question) {
            asked.push(question);
        }
    }
}

impl Dns {
    /// Starts a server without any names.
    pub async fn start() -> Self {
        let (udp, tcp) = sockets().await;
        let address = udp.local_addr().expect("an address");
        let zone = Arc::new(Zone {
            replies: Mutex::default(),
            asked: Mutex::default(),
            open: watch::Sender::new(true),
        });
        let mut server = Server::new(Handler(Arc::clone(&zone)));
        server.register_socket(udp);
        server.register_listener(tcp, TEST_TIMEOUT, 16);
        Self { address, zone, _server: server }
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a configuration that uses this server.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        config.dns_resolvers = vec![self.address];
        config
    }

    /// Sets the reply for `name`, which must be absolute. Other names do not exist.
    pub fn set(&self, name: &str, reply: Reply) {
        self.zone.replies.lock().expect("the zone").insert(name.to_owned(), reply);
    }

    /// Delays all replies until [`let_go`](Self::let_go).
    pub fn hold(&self) {
        self.zone.open.send_replace(false);
    }

    /// Sends the delayed replies.
    pub fn let_go(&self) {
        self.zone.open.send_replace(true);
    }

    /// Waits until `count` queries have arrived.
    pub async fn heard(&self, count: usize) {
        eventually("queries arrive", || (self.asked().len() >= count).then_some(())).await;
    }

    /// Returns the protocol and name of every query so far. Retransmissions count once.
    pub fn asked(&self) -> Vec<(Protocol, String)> {
        let asked = self.zone.asked.lock().expect("the zone");
        asked.iter().map(|(over, name, _)| (*over, name.clone())).collect()
    }
}

/// Binds a UDP and a TCP socket to the same port.
async fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a UDP socket");
        let address = udp.local_addr().expect("an address");
        if let Ok(tcp) = TcpListener::bind(address).await {
            return (udp, tcp);
        }
    }
}

struct Handler(Arc<Zone>);

impl RequestHandler for Handler {
    fn handle_request<'life0, 'life1, 'async_trait, R, T>(
        &'life0 self,
        request: &'life1 Request,
        handle: R,
    ) -> Pin<Box<dyn Future<Output = ResponseInfo> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        R: ResponseHandler + 'async_trait,
        T: Time + 'async_trait,
    {
        Box::pin(self.answer(request, handle))
    }
}

impl Handler {
    async fn answer(&self, request: &Request, mut handle: impl ResponseHandler) -> ResponseInfo {
        let asked = request.request_info().expect("one question");
        let name = asked.query.original().name().to_string();
        self.0.note((asked.protocol, name.clone(), request.metadata.id));
        self.0.open.subscribe().wait_for(|open| *open).await.expect("a zone");

        let reply = self.0.replies.lock().expect("the zone").get(&name).cloned();
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.recursion_available = true;
        let mut data = Vec::new();
        metadata.response_code = match reply.unwrap_or(Reply::NxDomain) {
            Reply::Texts(records) => {
                data.extend(records.into_iter().map(|texts| RData::TXT(TXT::new(texts))));
                ResponseCode::NoError
            }
            Reply::Alias(target) => {
                data.push(RData::CNAME(CNAME(Name::from_ascii(target).expect("a name"))));
                ResponseCode::NoError
            }
            Reply::NoData => ResponseCode::NoError,
            Reply::NxDomain => ResponseCode::NXDomain,
            Reply::ServFail => ResponseCode::ServFail,
            Reply::Refused => ResponseCode::Refused,
            Reply::Silence => pending().await,
        };
        let owner = asked.query.original().name();
        let records: Vec<Record> =
            data.into_iter().map(|data| Record::from_rdata(owner.clone(), 60, data)).collect();
        let response = MessageResponseBuilder::from_message_request(request).build(
            metadata,
            &records,
            [],
            [],
            [],
        );
        handle.send_response(response).await.expect("an answer")
    }
}
