//! Which entries a list shows, and the list: newest first.

use std::ops::ControlFlow;

use crate::error::Result;
use crate::ids::{UserId, UserUuid};
use crate::json::{self, Object};
use crate::resources::users::{self, Embedder};
use crate::store::{Order, Row, Tx, Window};
use crate::time::Timestamp;

use super::about::About;
use super::sight::{Log, Sight};
use super::{BY_ITEM, BY_PROJECT, BY_USER, Entry};

/// How many entries that the caller may read a filtered list looks at. Where more come into question, those
/// behind are as if they were not there: a span of time reaches them.
const LOOKED_AT: usize = 100_000;

/// Which entries a list shows: those of which all that is asked for is true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those about one of these kinds of things, where any is named.
    pub scopes: Vec<String>,
    /// Only those that tell of one of these, where any is named.
    pub activities: Vec<String>,
    /// Only those about the thing with this id.
    pub item: Option<String>,
    /// Only those of changes that this user made.
    pub user: Option<Maker>,
    /// Only those from this moment on.
    pub after: Option<Timestamp>,
    /// Only those before this moment.
    pub before: Option<Timestamp>,
}

/// A user as a query names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The caller, `@me`.
    Caller,
    /// By the name in paths.
    Uuid(UserUuid),
}

impl Filter {
    /// Whether it leaves out any that the caller may read.
    pub fn narrows(&self) -> bool {
        *self != Self::default()
    }

    fn finds(&self, row: &Row<'_, Entry>, about: &About<'_>, maker: Option<UserId>) -> bool {
        let is_one_of = |sought: &[String], word: &str| {
            sought.is_empty() || sought.iter().any(|sought| sought == word)
        };
        is_one_of(&self.scopes, &about.scope)
            && is_one_of(&self.activities, &about.activity)
            && self.item.as_ref().is_none_or(|item| *item == about.item_id)
            && (maker.is_none() || row.head.user == maker)
    }
}

/// The entries that somebody may read and `filter` lets through: how many there are in all, and those in
/// `window` as the items of a JSON array. `caller` is who `@me` is.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    sight: &Sight,
    caller: UserId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let window = Window { order: Order::Descending, ..window };
    if filter.narrows() {
        return list_found(tx, sight, caller, filter, window);
    }
    let (count, is_all) = sight.count(tx)?;
    let mut items = Items::default();
    if !window.begins_within(count) {
        return Ok((count, Vec::new()));
    }
    match sight.log {
        _ if !is_all => walk_shown(tx, sight, window, &mut items)?,
        Log::Organization(id) => tx.scan::<Entry, _>(&id, window, |row| items.push(tx, &row))?,
        Log::Project(_, id) => tx.walk(&BY_PROJECT, &id, window, |row| items.push(tx, &row))?,
    }
    Ok((count, items.text.into_bytes()))
}

/// The page where some entries are hidden: those are passed over.
fn walk_shown(tx: &impl Tx, sight: &Sight, window: Window, items: &mut Items) -> Result<()> {
    let mut position = 0;
    walk(tx, sight.log, &Filter::default(), None, |row| {
        if sight.shows(&row.head, &About::of(&row)?) {
            if window.shows(position) {
                items.push(tx, &row)?;
            }
            position += 1;
        }
        Ok(go_on(position < window.offset.saturating_add(window.limit)))
    })
}

/// Those that are found by looking at each that may be.
fn list_found(
    tx: &impl Tx,
    sight: &Sight,
    caller: UserId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let maker = match filter.user {
        None => None,
        Some(Maker::Caller) => Some(caller),
        Some(Maker::Uuid(uuid)) => match tx.lookup(&users::BY_UUID, &uuid)? {
            None => return Ok((0, Vec::new())),
            found => found,
        },
    };
    let (mut looked_at, mut count, mut items) = (0, 0, Items::default());
    walk(tx, sight.log, filter, maker, |row| {
        let about = About::of(&row)?;
        if sight.log.holds(&row.head) && sight.shows(&row.head, &about) {
            if filter.finds(&row, &about, maker) {
                if window.shows(count) {
                    items.push(tx, &row)?;
                }
                count += 1;
            }
            looked_at += 1;
        }
        Ok(go_on(looked_at < LOOKED_AT))
    })?;
    Ok((count as u64, items.text.into_bytes()))
}

const fn go_on(wanted: bool) -> ControlFlow<()> {
    if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Walks what may be in the log and let through, newest first, by the index that leads to the fewest.
fn walk(
    tx: &impl Tx,
    log: Log,
    filter: &Filter,
    maker: Option<UserId>,
    visit: impl FnMut(Row<'_, Entry>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let of = log.organization();
    let after = filter.after.unwrap_or(Timestamp::MIN);
    let before = filter.before.unwrap_or(Timestamp::MAX);
    match (&filter.item, maker, log) {
        (Some(item), _, _) => {
            let at = |moment| ((of, item.clone()), of, moment);
            tx.walk_down(&BY_ITEM, &at(after), &at(before), visit)
        }
        (None, Some(maker), _) => {
            let at = |moment| ((of, maker), of, moment);
            tx.walk_down(&BY_USER, &at(after), &at(before), visit)
        }
        (None, None, Log::Project(_, id)) => {
            let at = |moment| (id, of, moment);
            tx.walk_down(&BY_PROJECT, &at(after), &at(before), visit)
        }
        (None, None, Log::Organization(_)) => {
            let span = ((of, after), (of, before));
            tx.scan_between(&span.0, &span.1, Order::Descending, visit)
        }
    }
}

/// The items of a list.
#[derive(Default)]
struct Items {
    text: json::Items,
    users: Embedder,
}

impl Items {
    fn push(&mut self, tx: &impl Tx, row: &Row<'_, Entry>) -> Result<()> {
        self.text.push(|out| {
            Object::begin(out)
                .field("id", &row.head.id)?
                .with("user", |out| self.users.write(tx, row.head.user, out))?
                .splice(row.shown)
                .field("created_at", &row.head.created_at)?
                .end();
            Ok(())
        })
    }
}
