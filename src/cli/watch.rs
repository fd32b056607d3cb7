//! Commands about the running server itself: whether it is well, and what it logs.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Failure, control};

/// How long a server may take to say that it is well.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks through the control socket, so that it works however the server listens.
pub(super) async fn healthcheck(data: &Path) -> Result<Value, Failure> {
    let asking = async { control::ready(server(data).await?).await };
    let answered = timeout(PATIENCE, asking).await;
    let silent = |_| Failure::Other(format!("the server did not answer within {PATIENCE:?}"));
    answered.map_err(silent)?
}

/// Has the running server log something else.
pub(super) async fn log(data: &Path, filter: String) -> Result<Value, Failure> {
    control::log(server(data).await?, filter).await
}

async fn server(data: &Path) -> Result<UnixStream, Failure> {
    control::connect(data).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::Other(format!("no server that is ready holds {}", data.display()))
        }
        _ => error.into(),
    })
}
