//! What form 5 has of mail and form 4 lacks: the outbox indexed and counted by organization, and the user who caused a
//! mail. Mails of older files have no such user, so they count against their organization and mailbox alone.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::super::key::Key;
use super::super::read::Raw;
use super::super::record::{count_key, damaged};
use super::super::schema::Table;
use super::super::window::Order;
use super::super::write::WriteTx;

/// How many records are read before they are written: the notes of a write are in memory.
const PIECE: usize = 1000;

/// A letter of form 4.
#[derive(Deserialize)]
struct OldLetter {
    id: Uuid,
    organization: Uuid,
    about: OldAbout,
    written_at: Timestamp,
    due_at: Timestamp,
    attempts: u32,
}

#[derive(Deserialize)]
enum OldAbout {
    Invite { invite: Uuid, to: String },
    Joining { user: u64 },
    Joined { user: u64, to: String },
}

/// A letter of form 5.
#[derive(Serialize)]
struct Letter {
    id: Uuid,
    organization: Uuid,
    about: About,
    written_at: Timestamp,
    due_at: Timestamp,
    attempts: u32,
}

#[derive(Serialize)]
enum About {
    Invite { invite: Uuid, to: String, by: Option<u64> },
    Joining { user: u64 },
    Joined { user: u64, to: String },
}

/// A sent mail of form 4.
#[derive(Serialize, Deserialize)]
struct OldSent {
    at: Timestamp,
    letter: Uuid,
    organization: Uuid,
    address: String,
}

/// A sent mail of form 5: the same, and the user.
#[derive(Serialize)]
struct Sent(OldSent, Option<u64>);

/// Brings waiting and sent mails to form 5.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    rewrite(tx, Table::Outbox, |tx, primary, payload| {
        let (version, old, shown) = read::<OldLetter>(Table::Outbox, payload)?;
        let OldLetter { id, organization, about, written_at, due_at, attempts } = old;
        let about = match about {
            OldAbout::Invite { invite, to } => About::Invite { invite, to, by: None },
            OldAbout::Joining { user } => About::Joining { user },
            OldAbout::Joined { user, to } => About::Joined { user, to },
        };
        let letter = Letter { id, organization, about, written_at, due_at, attempts };
        let entry = [organization.as_bytes(), due_at.encoded().as_slice(), primary].concat();
        tx.put_plain(Table::OutboxByOrganization, &entry, primary)?;
        tx.count_up(&count_key(Table::Outbox, organization.as_bytes()))?;
        write(version, &letter, shown)
    })?;
    rewrite(tx, Table::MailSent, |_, _, payload| {
        let (version, old, shown) = read::<OldSent>(Table::MailSent, payload)?;
        write(version, &Sent(old, None), shown)
    })
}

/// Puts what `change` makes of each payload of `table` in its place.
fn rewrite(
    tx: &mut WriteTx<'_>,
    table: Table,
    change: impl Fn(&mut WriteTx<'_>, &[u8], &[u8]) -> Result<Vec<u8>>,
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
            let payload = change(tx, key, payload)?;
            tx.put_plain(table, key, &payload)?;
        }
        tx.keep()?;
    }
}

/// The version and head of a record, and the JSON behind them.
fn read<'p, H: Deserialize<'p>>(table: Table, payload: &'p [u8]) -> Result<(u64, H, &'p [u8])> {
    let read = postcard::take_from_bytes::<(u64, H)>(payload);
    let ((version, head), shown) = read.map_err(|error| damaged(table, &error))?;
    Ok((version, head, shown))
}

fn write(version: u64, head: &impl Serialize, shown: &[u8]) -> Result<Vec<u8>> {
    let mut out = postcard::to_stdvec(&(version, head)).map_err(Error::internal)?;
    out.extend_from_slice(shown);
    Ok(out)
}
