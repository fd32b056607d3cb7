//! Several nodes of one shared database. These tests need PostgreSQL: `cargo test --test it -- --ignored nodes::`.

mod leases;
mod listed;
mod metrics;
mod requests;

use steward::testing::leases::list as all_leases;

use crate::support::prelude::*;

/// Longer than a lease lasts.
const PAST_A_LEASE: Duration = Duration::from_secs(61);

/// Returns the name of the node that has the lease of this duty, as the copy of `node` shows it.
fn holder(node: &Workspace, duty: &str) -> Option<String> {
    let tx = node.app.store().snapshot().expect("an open copy");
    let leases = all_leases(&*tx).expect("leases");
    leases.into_iter().find(|lease| lease.duty == duty).map(|lease| lease.holder.node)
}

/// Waits until the copy of `node` shows that the node `name` has the lease of this duty.
async fn is_held_by(node: &Workspace, duty: &str, name: &str) {
    let what = format!("{name} has the lease of {duty}");
    eventually(&what, || (holder(node, duty)? == name).then_some(())).await;
}

/// Waits until the copy of `node` has no record of this type.
async fn has_none<R: Record>(node: &Workspace) {
    eventually("the records are deleted", || {
        let tx = node.app.store().snapshot().ok()?;
        let mut is_empty = true;
        tx.scan::<R, _>(&(), Window { offset: 0, limit: 1, order: Order::Ascending }, |_| {
            is_empty = false;
            Ok(())
        })
        .expect("records");
        is_empty.then_some(())
    })
    .await;
}

/// Closes the nodes, and asserts that the data has no problem.
async fn end(nodes: impl IntoIterator<Item = Workspace>) {
    for node in nodes {
        node.assert_file_valid().await;
        node.app.close().await;
    }
}
