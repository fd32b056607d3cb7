//! A gate between a browser and the server: it holds back what passes, or lets nothing through.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the gate does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    /// Keeps what clients send until the gate opens: a server that is slow.
    Slow,
    /// Closes all connections, also new ones: a server that is stopped.
    Shut,
}

pub struct Gate {
    pub port: u16,
    state: watch::Sender<State>,
}

impl Gate {
    /// Opens a gate in front of a port of this machine.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let (state, seen) = watch::channel(State::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, port, seen.clone()));
            }
        });
        Self { port: own, state }
    }

    pub fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

/// Passes bytes between a client and the server until one of them closes the connection, or the gate is shut.
async fn pass(mut client: TcpStream, port: u16, mut state: watch::Receiver<State>) {
    if *state.borrow() == State::Shut {
        return;
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let (mut sent, mut answered) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut shut = state.clone();
    let is_shut = shut.wait_for(|state| *state == State::Shut);
    let passing = async {
        loop {
            let done = tokio::select! {
                read = client.read(&mut sent) => {
                    let length = read.unwrap_or(0);
                    let is_open = state.wait_for(|state| *state != State::Slow).await.is_ok();
                    length == 0 || !is_open || server.write_all(&sent[..length]).await.is_err()
                }
                read = server.read(&mut answered) => {
                    let length = read.unwrap_or(0);
                    length == 0 || client.write_all(&answered[..length]).await.is_err()
                }
            };
            if done {
                return;
            }
        }
    };
    tokio::select! {
        _ = is_shut => {}
        () = passing => {}
    }
}
