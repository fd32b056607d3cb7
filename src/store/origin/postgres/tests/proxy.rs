//! A line to the database that a test can cut.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Forwards connections to a server's socket.
pub(super) struct Proxy {
    address: SocketAddr,
    drops_answers: Arc<AtomicBool>,
}

impl Proxy {
    /// Listens for connections to the server with its socket in this folder.
    pub(super) fn to(folder: &std::path::Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let drops_answers = Arc::new(AtomicBool::new(false));
        let (socket, drops) = (folder.join(".s.PGSQL.5432"), Arc::clone(&drops_answers));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (socket, drops) = (socket.clone(), Arc::clone(&drops));
                thread::spawn(move || forward(client, &socket, &drops));
            }
        });
        Self { address, drops_answers }
    }

    /// Returns the URL of the server's first database through this line.
    pub(super) fn url(&self, role: &str) -> String {
        format!("postgres://{role}@{}/postgres", self.address)
    }

    /// Lets what clients send through, and ends a connection in place of an answer.
    pub(super) fn drop_answers(&self, drops: bool) {
        self.drops_answers.store(drops, Ordering::SeqCst);
    }
}

fn forward(client: TcpStream, socket: &PathBuf, drops: &AtomicBool) -> Option<()> {
    let server = UnixStream::connect(socket).ok()?;
    let (mut to_server, mut from_client) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let (mut from_server, mut to_client) = (server, client);
    let mut bytes = [0; 4096];
    loop {
        let count = from_server.read(&mut bytes).ok().filter(|count| *count > 0);
        let answer = count.and_then(|count| bytes.get(..count));
        let (Some(answer), false) = (answer, drops.load(Ordering::SeqCst)) else {
            let _ = to_client.shutdown(Shutdown::Both);
            return None;
        };
        to_client.write_all(answer).ok()?;
    }
}
