//! The limits on access rules on objects. They bound the responses that list the rules.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::ids::ProjectId;
use crate::resources::shared::access_objects::Kind;
use crate::store::{Order, Tx, Window};

use super::rules::{AccessRule, RuleKey};

/// The maximum number of objects of a kind in a project that have rules of their own.
const MAX_OBJECTS: u64 = 1_000;
/// The maximum number of rules on one object.
const MAX_ON_OBJECT: usize = 1_000;
/// The maximum number of rules of a project on all objects of a kind, over all kinds.
const MAX_ON_KINDS: usize = 5_000;

/// Checks that a project may have a rule with this key.
///
/// # Errors
/// 400 if it has none yet, and its rules reached a limit.
pub(super) fn require_room(tx: &impl Tx, key: &RuleKey) -> Result<()> {
    if tx.exists::<AccessRule>(key)? {
        return Ok(());
    }
    let (project, kind, object, _) = *key;
    match object {
        Some(number) => {
            require_room_on_object(tx, project, kind, number)?;
            require_room_for_object(tx, project, kind, number)
        }
        None => require_room_on_kinds(tx, project),
    }
}

fn require_room_on_object(tx: &impl Tx, project: ProjectId, kind: Kind, number: u64) -> Result<()> {
    if count(tx, (project, kind), Some(number), MAX_ON_OBJECT)? < MAX_ON_OBJECT {
        return Ok(());
    }
    let kind = kind.as_str();
    Err(Error::limit_reached(format!(
        "Reached the limit of {MAX_ON_OBJECT} access controls on one {kind}."
    )))
}

fn require_room_on_kinds(tx: &impl Tx, project: ProjectId) -> Result<()> {
    let mut left = MAX_ON_KINDS;
    for kind in Kind::ALL {
        left -= count(tx, (project, *kind), None, left)?;
    }
    if left > 0 {
        return Ok(());
    }
    Err(Error::limit_reached(format!(
        "Reached the limit of {MAX_ON_KINDS} access controls on all objects of a kind in one project."
    )))
}

/// Counts the rules on one object, or on all objects of a kind, up to `limit`.
fn count(
    tx: &impl Tx,
    (project, kind): (ProjectId, Kind),
    object: Option<u64>,
    limit: usize,
) -> Result<usize> {
    let mut count = 0;
    let window = Window { offset: 0, limit, order: Order::Ascending };
    tx.scan::<AccessRule, _>(&(project, kind, object), window, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Checks that an object may have rules of its own: it has some, or fewer than [`MAX_OBJECTS`] of its kind have.
fn require_room_for_object(
    tx: &impl Tx,
    project: ProjectId,
    kind: Kind,
    number: u64,
) -> Result<()> {
    if tx.count::<AccessRule>(&(project, kind))? < MAX_OBJECTS
        || next_object(tx, (project, kind), number)? == Some(number)
    {
        return Ok(());
    }
    let mut from = 0;
    for _ in 0..MAX_OBJECTS {
        match next_object(tx, (project, kind), from)? {
            Some(found) => from = found + 1,
            None => return Ok(()),
        }
    }
    let kind = kind.as_str();
    Err(Error::limit_reached(format!(
        "Reached the limit of {MAX_OBJECTS} {kind}s with access control overrides."
    )))
}

/// Returns the first object of the kind that has rules of its own and at least the number `from`.
fn next_object(tx: &impl Tx, (project, kind): (ProjectId, Kind), from: u64) -> Result<Option<u64>> {
    let (from, until) = ((project, kind, Some(from)), (project, kind, None::<u64>));
    let mut found = None;
    tx.scan_between::<AccessRule, _>(&from, &until, Order::Ascending, |row| {
        found = row.meta.object;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}
