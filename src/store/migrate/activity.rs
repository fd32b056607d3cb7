//! What form 4 has of the activity log and form 3 lacks: indexes by project, user and item, and counts. They
//! are made from the entries, which stay as they are.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::Deserialize;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::super::key::Key;
use super::super::read::Raw;
use super::super::record::{count_key, damaged};
use super::super::schema::Table;
use super::super::window::Order;
use super::super::write::WriteTx;

/// How many entries are looked at before what they give is written: the notes of a write are in memory.
const PIECE: usize = 1000;

/// The head of an entry.
#[derive(Deserialize)]
struct Head {
    organization: Uuid,
    _created_at: Timestamp,
    _id: Uuid,
    project: Option<u64>,
    user: Option<u64>,
}

/// What is read of its JSON.
#[derive(Deserialize)]
struct Shown<'e> {
    #[serde(borrow)]
    scope: Cow<'e, str>,
    #[serde(borrow)]
    item_id: Cow<'e, str>,
}

/// What one entry gives.
struct Given {
    primary: Vec<u8>,
    entries: Vec<(Table, Vec<u8>)>,
    counts: Vec<Vec<u8>>,
}

/// Fills the indexes and counts.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    let mut from = Vec::new();
    loop {
        let mut piece = Vec::new();
        tx.raw_between(
            Table::Activity,
            (&from, None),
            0,
            Order::Ascending,
            &mut |key, payload| {
                piece.push(Given::by(key, payload)?);
                let full = piece.len() == PIECE;
                Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        let Some(last) = piece.last() else { return Ok(()) };
        from.clone_from(&last.primary);
        from.push(0);
        for given in piece {
            for (table, key) in given.entries {
                tx.put_plain(table, &key, &given.primary)?;
            }
            for tenant in given.counts {
                tx.count_up(&count_key(Table::Activity, &tenant))?;
            }
        }
        tx.keep()?;
    }
}

impl Given {
    fn by(primary: &[u8], payload: &[u8]) -> Result<Self> {
        let unreadable = |error: postcard::Error| damaged(Table::Activity, &error);
        let (_, rest) = postcard::take_from_bytes::<u64>(payload).map_err(unreadable)?;
        let (head, shown) = postcard::take_from_bytes::<Head>(rest).map_err(unreadable)?;
        let shown: Shown<'_> = serde_json::from_slice(shown).map_err(Error::internal)?;
        let organization = head.organization.as_bytes().as_slice();
        let entry = |table, parts: &[&[u8]]| (table, [&parts.concat(), primary].concat());
        let item = shown.item_id.clone().into_owned().encoded();
        let mut entries = vec![entry(Table::ActivityByItem, &[organization, &item])];
        let mut counts = vec![[&[0], organization].concat()];
        if let Some(user) = head.user {
            entries.push(entry(Table::ActivityByUser, &[organization, &user.encoded()]));
        }
        match head.project {
            Some(project) => {
                entries.push(entry(Table::ActivityByProject, &[&project.encoded()]));
                counts.push((2_u8, project).encoded());
                let dashboard = dashboard_of(&shown.scope, &shown.item_id);
                counts.extend(dashboard.map(|id| (3_u8, project, id).encoded()));
            }
            None if shown.scope == "PersonalAPIKey" => {}
            None => counts.push([&[1], organization].concat()),
        }
        Ok(Self { primary: primary.to_vec(), entries, counts })
    }
}

/// The dashboard that an entry is about, or says who may see.
fn dashboard_of(scope: &str, item: &str) -> Option<u64> {
    let mut parts = item.split(':');
    let id = match scope {
        "Dashboard" => Some(item),
        "DashboardCollaborator" => parts.next(),
        "AccessControl" if parts.nth(1) == Some("dashboard") => parts.next(),
        _ => None,
    };
    id?.parse().ok()
}
