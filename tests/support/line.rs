//! A line to a server, such as PostgreSQL, that a test can hold, cut and slow down.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::{SockAddr, Socket, Type};

/// What happens to bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// They arrive.
    Passes,
    /// They wait until they may pass, as when packets are lost and sent again.
    Waits,
    /// Their connection ends instead.
    Ends,
}

/// Forwards connections to a server. They end when it is dropped.
pub struct Line {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    server: SockAddr,
    /// Changes the bytes of requests.
    alter: fn(&mut [u8]),
    conditions: Mutex<Conditions>,
    changed: Condvar,
}

struct Conditions {
    requests: Flow,
    answers: Flow,
    delay: Duration,
    open: Vec<(TcpStream, Socket)>,
}

#[derive(Clone, Copy)]
enum Direction {
    Requests,
    Answers,
}

impl Line {
    /// Listens for connections to the server with its socket in this folder.
    pub fn to(folder: &Path) -> Self {
        Self::altered(folder, |_| ())
    }

    /// Does what [`to`](Self::to) does, and changes the bytes of requests in place.
    pub fn altered(folder: &Path, alter: fn(&mut [u8])) -> Self {
        Self::with(SockAddr::unix(folder.join(".s.PGSQL.5432")).expect("a short path"), alter)
    }

    /// Listens for connections to the server with this address.
    pub fn before(address: SocketAddr) -> Self {
        Self::with(address.into(), |_| ())
    }

    fn with(server: SockAddr, alter: fn(&mut [u8])) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (requests, answers) = (Flow::Passes, Flow::Passes);
        let conditions = Conditions { requests, answers, delay: Duration::ZERO, open: Vec::new() };
        let state = Arc::new(State {
            server,
            alter,
            conditions: Mutex::new(conditions),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = accepting.connect(client);
            }
        });
        Self { address, state }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL of the server's first database through this line.
    pub fn url(&self, role: &str) -> String {
        format!("postgres://{role}@{}/postgres", self.address)
    }

    /// Sets what happens to what clients send, and to what the server answers.
    pub fn set(&self, requests: Flow, answers: Flow) {
        let mut conditions = self.state.conditions();
        (conditions.requests, conditions.answers) = (requests, answers);
        drop(conditions);
        self.state.changed.notify_all();
    }

    /// Delays whatever is received at once by this time, in each direction.
    pub fn slow_down(&self, delay: Duration) {
        self.state.conditions().delay = delay;
    }

    /// Ends all connections. New ones are possible.
    pub fn reset(&self) {
        let open = std::mem::take(&mut self.state.conditions().open);
        for (client, server) in open {
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.set(Flow::Ends, Flow::Ends);
        self.reset();
    }
}

impl State {
    fn connect(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = Socket::new(self.server.domain(), Type::STREAM, None)?;
        server.connect(&self.server)?;
        client.set_nodelay(true)?;
        let pair = (client.try_clone()?, server.try_clone()?);
        self.conditions().open.push(pair);
        let (from_client, to_client) = (client.try_clone()?, client);
        let (from_server, to_server) = (server.try_clone()?, server);
        let [requests, answers] = [Arc::clone(self), Arc::clone(self)];
        thread::spawn(move || {
            let _ = requests.forward(from_client, &to_server, Direction::Requests);
            let _ = to_server.shutdown(Shutdown::Write);
        });
        thread::spawn(move || {
            let _ = answers.forward(from_server, &to_client, Direction::Answers);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        Ok(())
    }

    fn forward(&self, mut from: impl Read, mut to: impl Write, way: Direction) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut buffer)?;
            let Some(bytes) = buffer.get_mut(..count).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            let delay = self.wait(way).ok_or(io::ErrorKind::ConnectionAborted)?;
            if matches!(way, Direction::Requests) {
                (self.alter)(bytes);
            }
            drop(self.changed.wait_timeout_while(self.conditions(), delay, |_| true));
            to.write_all(bytes)?;
        }
    }

    /// Waits until bytes may pass. Returns the delay, or `None` if their connection ends instead.
    fn wait(&self, direction: Direction) -> Option<Duration> {
        let flow = |conditions: &Conditions| match direction {
            Direction::Requests => conditions.requests,
            Direction::Answers => conditions.answers,
        };
        let waits = |conditions: &mut Conditions| flow(conditions) == Flow::Waits;
        let conditions = self.changed.wait_while(self.conditions(), waits);
        let conditions = conditions.unwrap_or_else(PoisonError::into_inner);
        (flow(&conditions) == Flow::Passes).then_some(conditions.delay)
    }

    fn conditions(&self) -> MutexGuard<'_, Conditions> {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
