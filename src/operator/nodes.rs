//! The nodes of a shared database.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::leases;
use crate::state::App;

/// Lists the nodes of the shared database, with the leases that each holds.
///
/// # Errors
/// 400 `no_nodes` for a data file, 503 when the database does not answer.
pub(super) async fn list_nodes(app: &App) -> Result<Value> {
    let nodes = app.store().nodes().await?.ok_or_else(|| {
        let text =
            "a data file has no nodes: only a shared database has them (--data postgres://...)";
        Error::invalid("no_nodes", text)
    })?;
    // A node whose copy cannot be read knows no leases.
    let leases = app.store().snapshot().and_then(|tx| leases::list(&*tx)).unwrap_or_default();
    let now = app.now();
    let held_by = |name: &str| -> Vec<&str> {
        let is_held = |lease: &&leases::Lease| lease.holder.node == name && lease.is_valid(now);
        leases.iter().filter(is_held).map(|lease| lease.duty.as_str()).collect()
    };
    let results: Vec<_> = nodes
        .iter()
        .map(|node| {
            json!({
                "name": node.name,
                "release": node.release,
                "position": node.position,
                "behind": node.behind,
                "seen_at": node.seen_at,
                "leases": held_by(&node.name),
                "problem": node.problem,
            })
        })
        .collect();
    Ok(json!({ "results": results }))
}
