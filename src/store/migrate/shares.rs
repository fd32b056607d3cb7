//! What form 5 has and form 4 lacks: the weights of dashboards, and the answers kept of each requester. They are made
//! from the records, which stay as they are.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::Result;
use crate::time::Timestamp;

use super::super::key::Key;
use super::super::read::Raw;
use super::super::record::{count_key, damaged};
use super::super::schema::Table;
use super::super::sums::sum_key;
use super::super::window::Order;
use super::super::write::WriteTx;

/// How many records are looked at before what they give is written: the notes of a write are in memory.
const PIECE: usize = 1000;

/// What a tile shows, by number.
#[derive(Deserialize)]
enum Content {
    Insight(u64),
    Text(u64),
}

/// The head of a tile.
#[derive(Deserialize)]
struct Tile {
    _organization: Uuid,
    project: u64,
    dashboard: u64,
    _id: u64,
    content: Content,
    _deleted: bool,
    _position: (f64, f64),
}

/// The head of an insight.
#[derive(Deserialize)]
struct Insight {
    _organization: Uuid,
    _project: u64,
    _id: u64,
    _created_by: Option<u64>,
    _last_modified_by: Option<u64>,
    deleted: bool,
}

/// The head of a text.
#[derive(Deserialize)]
struct Text {
    _organization: Uuid,
    _project: u64,
    _id: u64,
    _created_by: Option<u64>,
    _last_modified_by: Option<u64>,
}

/// The head of a kept answer.
#[derive(Deserialize)]
struct Kept {
    requester: Uuid,
    _request: String,
    _body: [u8; 32],
    at: Timestamp,
}

/// Fills them all.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    each(tx, Table::Tiles, |tx, (_, payload)| {
        let (tile, shown) = head_of::<Tile>(Table::Tiles, payload)?;
        let weight = shown.len() as u64 + content_of(tx, &tile)?;
        tx.add_to_sum(&sum_key("tile bytes", &(tile.project, tile.dashboard).encoded()), weight)
    })?;
    each(tx, Table::Idempotency, |tx, (key, payload)| {
        let (kept, _) = head_of::<Kept>(Table::Idempotency, payload)?;
        let entry = [&kept.requester.as_bytes()[..], &kept.at.encoded(), key].concat();
        tx.put_plain(Table::IdempotencyByRequester, &entry, key)?;
        tx.count_up(&count_key(Table::Idempotency, kept.requester.as_bytes()))
    })
}

/// Hands each record of a table to `visit`, and keeps what that wrote, piece by piece.
fn each(
    tx: &mut WriteTx<'_>,
    table: Table,
    visit: impl Fn(&mut WriteTx<'_>, (&[u8], &[u8])) -> Result<()>,
) -> Result<()> {
    let mut from = Vec::new();
    loop {
        let mut piece = Vec::new();
        tx.raw_between(table, (&from, None), 0, Order::Ascending, &mut |key, payload| {
            piece.push((key.to_vec(), payload.to_vec()));
            let full = piece.len() == PIECE;
            Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let Some((last, _)) = piece.last() else { return Ok(()) };
        from.clone_from(last);
        from.push(0);
        for (key, payload) in &piece {
            visit(tx, (key, payload))?;
        }
        tx.keep()?;
    }
}

/// How many bytes what a tile shows adds to the weight of its dashboard.
fn content_of(tx: &WriteTx<'_>, tile: &Tile) -> Result<u64> {
    let (table, id) = match tile.content {
        Content::Insight(id) => (Table::Insights, id),
        Content::Text(id) => (Table::Texts, id),
    };
    let mut weight = 0;
    tx.raw_get(table, &(tile.project, id).encoded(), &mut |payload| {
        weight = match tile.content {
            Content::Insight(_) => {
                let (insight, shown) = head_of::<Insight>(table, payload)?;
                let updated_at = shown.rsplit(|byte| *byte == b'"').nth(5).map_or(0, <[u8]>::len);
                shown.len() + usize::from(insight.deleted) - updated_at
            }
            Content::Text(_) => head_of::<Text>(table, payload)?.1.len(),
        };
        Ok(())
    })?;
    Ok(weight as u64)
}

/// The head of a record, and the JSON behind it.
fn head_of<H: DeserializeOwned>(table: Table, payload: &[u8]) -> Result<(H, &[u8])> {
    let unreadable = |error: postcard::Error| damaged(table, &error);
    let (_, rest) = postcard::take_from_bytes::<u64>(payload).map_err(unreadable)?;
    postcard::take_from_bytes(rest).map_err(unreadable)
}
