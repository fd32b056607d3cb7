//! Commands about the running server: its health and its log filter.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::store::Place;

use super::{Failure, control};

/// How long the server may take to answer a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks over the control socket, so that the addresses of the server do not matter.
pub(super) async fn healthcheck(place: &Place) -> Result<Value, Failure> {
    let asking = async { control::ready(connect(place).await?).await };
    let answered = timeout(HEALTH_TIMEOUT, asking).await;
    let silent = |_| Failure::Other(format!("the server did not answer within {HEALTH_TIMEOUT:?}"));
    answered.map_err(silent)?
}

/// Changes the running server's log filter.
pub(super) async fn log(place: &Place, filter: String) -> Result<Value, Failure> {
    control::log(connect(place).await?, filter).await
}

async fn connect(place: &Place) -> Result<UnixStream, Failure> {
    control::connect(place.file()).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::Other(format!("no server is serving {place}"))
        }
        _ => error.into(),
    })
}
