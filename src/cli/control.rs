//! The control socket: how a command reaches the server that holds the data file.
//!
//! One line of JSON in, the operation; one line out, `{"done": ...}` or `{"refused": "..."}`. Only the
//! user who runs the server is answered.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::operator::{Operation, perform};
use crate::state::App;
use crate::store::beside;

use super::Failure;

/// The longest path that a socket's address holds, with room to spare.
const LONGEST: usize = 100;
/// The largest operation.
const LARGEST: u64 = 64 * 1024;
/// How long a command may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Done(Value),
    Refused(String),
}

/// Where the socket of a data file is: beside it, or under the runtime folder where that path is too
/// long for a socket.
fn socket_path(data: &Path) -> io::Result<PathBuf> {
    let data = std::path::absolute(data)?;
    let beside = beside(&data, "sock");
    if beside.as_os_str().len() <= LONGEST {
        return Ok(beside);
    }
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir().join(format!("steward-{}", geteuid().as_raw())),
    };
    let name = blake3::hash(data.as_os_str().as_encoded_bytes()).to_hex();
    Ok(folder.join(format!("steward-{}.sock", &name[..16])))
}

/// The socket of a server; removed when the server is done.
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Control {
    /// Opens the socket. Only the holder of the data file's lock may: a socket that is there already
    /// was left by one who is gone.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let path = socket_path(data)?;
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Serves commands, each on its own, until it is dropped.
    pub(super) async fn serve(self, app: App) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let app = app.clone();
                    tokio::spawn(async move {
                        if let Err(error) = answer(stream, &app).await {
                            tracing::warn!(%error, "a command was not served");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket refuses");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// Answers one command. Whoever is not the user who runs the server hears nothing.
async fn answer(stream: UnixStream, app: &App) -> io::Result<()> {
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut read = BufReader::new(read.take(LARGEST));
    tokio::time::timeout(PATIENCE, read.read_line(&mut line)).await??;
    let reply = match serde_json::from_str::<Operation>(&line) {
        Ok(operation) => match perform(app, operation).await {
            Ok(answer) => Reply::Done(answer),
            Err(error) => Reply::Refused(error.to_string()),
        },
        Err(_) => Reply::Refused(
            "the server does not know this command; is it another release?".to_owned(),
        ),
    };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    write.write_all(&text).await
}

/// Reaches the server that holds the data file.
///
/// `PermissionDenied` where another user answers: that one would not listen, and under a shared folder
/// it may be somebody who waits to be told secrets.
pub(super) async fn connect(data: &Path) -> io::Result<UnixStream> {
    let server = UnixStream::connect(socket_path(data)?).await?;
    let user = server.peer_cred()?.uid();
    if user == geteuid().as_raw() {
        return Ok(server);
    }
    let text = format!("the server runs as user {user}; run the command as that user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Has the server do it.
pub(super) async fn ask(server: UnixStream, operation: &Operation) -> Result<Value, Failure> {
    let reply = exchange(server, operation).await.and_then(|line| Ok(serde_json::from_str(&line)?));
    match reply {
        Ok(Reply::Done(answer)) => Ok(answer),
        Ok(Reply::Refused(text)) => Err(Failure::Other(text)),
        Err(_) => Err(Failure::Other(
            "the server went away before it answered; look whether it was done".to_owned(),
        )),
    }
}

async fn exchange(server: UnixStream, operation: &Operation) -> io::Result<String> {
    let (read, mut write) = server.into_split();
    let mut text = serde_json::to_vec(operation)?;
    text.push(b'\n');
    write.write_all(&text).await?;
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).await?;
    Ok(line)
}
