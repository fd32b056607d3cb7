//! The nodes of a shared database.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::Store;
use super::engine::RETRY_AFTER;
use super::origin::Node;

/// A server that works with a shared database, or did so lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The name of the node.
    pub name: String,
    /// The release that it runs.
    pub release: String,
    /// The number of the last commit that its copy held at its last heartbeat.
    pub position: u64,
    /// How many commits of the database the copy lacked then.
    pub behind: u64,
    /// The time of the last heartbeat, by the clock of the database.
    pub seen_at: Timestamp,
}

impl Store {
    /// Returns the name of this node of a shared database, or `None` for a data file.
    pub(crate) fn node(&self) -> Option<&str> {
        self.source.as_ref().map(|source| source.origin.node())
    }

    /// Returns the nodes of a shared database, ordered by name, or `None` for a data file.
    ///
    /// # Errors
    /// 503 when the database does not answer.
    pub(crate) async fn nodes(&self) -> Result<Option<Vec<NodeStatus>>> {
        let Some(source) = self.source.as_ref().map(Arc::clone) else { return Ok(None) };
        let (reply, answer) = oneshot::channel();
        // The methods of an origin block, and never run on a thread of an async runtime.
        let ask = move || drop(reply.send(source.origin.nodes()));
        let thread = std::thread::Builder::new().name("nodes".to_owned());
        thread.spawn(ask).map_err(Error::internal)?;
        let nodes = answer.await.map_err(Error::internal)?;
        let nodes = nodes.map_err(|fault| Error::unavailable(RETRY_AFTER, fault))?;
        // Later than the nodes, so that none of them is ahead.
        let head = self.fresh().await?.position.seq;
        Ok(Some(nodes.into_iter().map(|node| status(node, head)).collect()))
    }
}

fn status(node: Node, head: u64) -> NodeStatus {
    let Node { name, release, seq, seen } = node;
    let micros = i64::try_from(seen.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX);
    let seen_at = Timestamp::from_micros(micros);
    NodeStatus { name, release, position: seq, behind: head.saturating_sub(seq), seen_at }
}
