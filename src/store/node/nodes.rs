//! The nodes of a shared database.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::store::disk::engine::RETRY_AFTER;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::{Fault, Node};
use crate::store::writer::Store;

/// A server that works with a shared database, or did so lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The name of the node.
    pub name: String,
    /// The release that it runs.
    pub release: String,
    /// The number of the last commit that its copy held at its last heartbeat.
    pub position: u64,
    /// How many commits of the database the copy lacked then; `None` if the database does not answer, or has no heartbeat.
    pub behind: Option<u64>,
    /// The time of the last heartbeat, by the clock of the database; `None` if it does not answer, or has none.
    pub seen_at: Option<Timestamp>,
    /// What keeps the node from serving.
    pub problem: Option<String>,
}

impl Store {
    /// Returns the name of this node of a shared database, or `None` for a data file.
    pub(crate) fn node(&self) -> Option<&str> {
        self.shared.origin.as_ref().map(|source| source.origin.node())
    }

    /// Returns the nodes of a shared database, ordered by name, or `None` for a data file. A node whose database does not answer
    /// knows only itself.
    ///
    /// # Errors
    /// 503 when the database does not answer and this process is no node.
    pub(crate) async fn nodes(&self) -> Result<Option<Vec<NodeStatus>>> {
        let Some(source) = &self.shared.origin else { return Ok(None) };
        let is_node = source.state.is_node.load(Ordering::Acquire);
        let own = self.node().filter(|_| is_node);
        let problem = self.troubles().into_iter().next().map(|(_, text)| text);
        let found = match ask(Arc::clone(source)).await? {
            Ok(nodes) => nodes,
            Err(fault) => {
                let own = own.ok_or_else(|| Error::unavailable(RETRY_AFTER, &fault))?;
                let problem = problem.or_else(|| Some(fault.to_string()));
                return Ok(Some(vec![self.own_status(own, problem)]));
            }
        };
        // Later than the nodes, so that none of them is ahead.
        let head = self.fresh().await.ok().map(|state| state.position.seq);
        let mut nodes: Vec<_> = found.into_iter().map(|node| status(node, head)).collect();
        // This process knows its own problem before it can tell the database, and also if it never can.
        if let Some(own) = own {
            match nodes.iter_mut().find(|node| node.name == own) {
                Some(node) => node.problem = problem,
                None => nodes.push(self.own_status(own, problem)),
            }
            nodes.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(Some(nodes))
    }

    fn own_status(&self, name: &str, problem: Option<String>) -> NodeStatus {
        NodeStatus {
            name: name.to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            position: self.snapshot().map_or(0, |state| state.position.seq),
            behind: None,
            seen_at: None,
            problem,
        }
    }
}

/// Asks on a thread of its own: the methods of an origin block, and never run on a thread of an async runtime.
async fn ask(source: Arc<CopySource>) -> Result<Result<Vec<Node>, Fault>> {
    let (reply, answer) = oneshot::channel();
    let ask = move || drop(reply.send(source.origin.nodes()));
    let thread = std::thread::Builder::new().name("nodes".to_owned());
    thread.spawn(ask).map_err(Error::internal)?;
    answer.await.map_err(Error::internal)
}

fn status(node: Node, head: Option<u64>) -> NodeStatus {
    let Node { name, release, seq, seen, problem } = node;
    let micros = i64::try_from(seen.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX);
    let seen_at = Some(Timestamp::from_micros(micros));
    let behind = head.map(|head| head.saturating_sub(seq));
    NodeStatus { name, release, position: seq, behind, seen_at, problem }
}
