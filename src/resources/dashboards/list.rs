//! Which dashboards a list shows, and the list (facts-dashboards §2, §9).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::access::InProject;
use crate::access::levels::{self, AccessLevel, Rights};
use crate::error::{Error, Result};
use crate::ids::{DashboardId, ProjectId, UserId, UserUuid};
use crate::input::Choices;
use crate::resources::access_controls::rules::Ruling;
use crate::resources::collaborators;
use crate::resources::users;
use crate::store::{Order, Row, Tx, Window};

use super::body::Items;
use super::removals::{self, Removal};
use super::{BY_NAME, Dashboard, Head};

/// Which dashboards a list shows: those of which all that is asked for is true.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those whose name or description contains this, in whatever case. Itself in lower case.
    pub search: Option<String>,
    /// If there are any: only dashboards with at least one of these tags, in the form in which tags are stored, each once.
    pub tags: Vec<String>,
    /// Only those that are pinned, or only those that are not.
    pub pinned: Option<bool>,
    /// Only those made this way.
    pub creation_mode: Option<&'static str>,
    /// Only those made by this user.
    pub created_by: Option<Maker>,
    /// The removed ones in place of the live ones.
    pub deleted: bool,
}

/// The ways in which dashboards are made.
pub struct CreationModes;

impl Choices for CreationModes {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["default", "template", "duplicate"];
}

/// A user as a query names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The caller, `@me`.
    Caller,
    /// By number.
    Number(UserId),
    /// By the name in paths.
    Uuid(UserUuid),
}

impl Maker {
    /// The user that `text` names, if it names one.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "@me" {
            return Some(Self::Caller);
        }
        let number = text.parse().ok().map(Self::Number);
        number.or_else(|| text.parse().ok().map(Self::Uuid))
    }

    /// The user's number, if there is such a user.
    fn find(self, tx: &impl Tx, place: &InProject) -> Result<Option<UserId>> {
        match self {
            Self::Caller => Ok(Some(place.member.user)),
            Self::Number(id) => Ok(Some(id)),
            Self::Uuid(uuid) => tx.lookup(&users::BY_UUID, &uuid),
        }
    }
}

/// What of a dashboard's own JSON is searched.
#[derive(Deserialize)]
struct Searched<'r> {
    name: Option<Cow<'r, str>>,
    #[serde(borrow)]
    description: Cow<'r, str>,
    pinned: bool,
    #[serde(borrow)]
    creation_mode: Cow<'r, str>,
    tags: Vec<Cow<'r, str>>,
}

impl Filter {
    /// The way to make a dashboard that `text` names, if it names one.
    pub fn creation_mode(text: &str) -> Option<&'static str> {
        CreationModes::ALL.iter().copied().find(|mode| *mode == text)
    }

    /// Whether it leaves out any that the caller may see.
    pub fn narrows(&self) -> bool {
        self.created_by.is_some() || self.reads()
    }

    /// Whether it asks for what stands in a dashboard's own JSON.
    fn reads(&self) -> bool {
        let Self { search, tags, pinned, creation_mode, .. } = self;
        search.is_some() || !tags.is_empty() || pinned.is_some() || creation_mode.is_some()
    }

    /// Whether it lets a dashboard through, as far as it is not a question of who made it.
    fn finds(&self, row: &Row<'_, Dashboard>) -> Result<bool> {
        if !self.reads() {
            return Ok(true);
        }
        let Searched { name, description, pinned, creation_mode, tags } =
            serde_json::from_slice(row.shown).map_err(Error::internal)?;
        let holds = |text: &str, sought: &str| text.to_lowercase().contains(sought);
        let found = |sought: &String| {
            name.is_some_and(|name| holds(&name, sought)) || holds(&description, sought)
        };
        Ok(self.pinned.is_none_or(|wanted| pinned == wanted)
            && self.creation_mode.is_none_or(|wanted| creation_mode == wanted)
            && (self.tags.is_empty()
                || tags.iter().any(|tag| self.tags.iter().any(|it| it == tag)))
            && self.search.as_ref().is_none_or(found))
    }
}

/// What decides of the caller's rights on each dashboard of a project, read once for a list.
pub(super) struct Standing<'p> {
    place: &'p InProject,
    collaborates: HashMap<DashboardId, i64>,
    ruling: Ruling,
}

impl<'p> Standing<'p> {
    fn of(tx: &impl Tx, place: &'p InProject) -> Result<Self> {
        let collaborates = collaborators::levels(tx, place)?;
        // Rules say nothing of admins.
        let ruled = !place.member.level.administers();
        let ruling = if ruled { Ruling::of(tx, place)? } else { Ruling::default() };
        Ok(Self { place, collaborates, ruling })
    }

    /// What the caller may do with a dashboard.
    pub(super) fn rights(&self, dashboard: &Head) -> Rights {
        let collaborator = self.collaborates.get(&dashboard.id).copied();
        dashboard.rights_given(self.place, collaborator, self.ruling.on(dashboard.id))
    }

    /// What the caller has on all dashboards, before what is said of single ones.
    fn on_all(&self) -> AccessLevel {
        levels::on_all(&self.place.member, self.ruling.all)
    }

    /// Whether no rule hides any dashboard from the caller.
    fn sees_all(&self) -> bool {
        self.on_all().lets_view() && self.ruling.singled_out().next().is_none()
    }

    /// Lets only those on who may see dashboards at all, or some: those they were named for, and their own
    /// (facts-dashboards §9).
    fn require_list(&self, tx: &impl Tx) -> Result<()> {
        let allowed = self.on_all().require(AccessLevel::Viewer);
        if allowed.is_ok() || self.ruling.grants_any() || self.owns_any(tx)? {
            return Ok(());
        }
        allowed
    }

    fn owns_any(&self, tx: &impl Tx) -> Result<bool> {
        let mut owns = false;
        let me = Some(self.place.member.user);
        let first = Window { offset: 0, limit: 1, order: Order::Ascending };
        let mine = |head: &Head| head.created_by == me;
        tx.scan_kept::<Dashboard, _>(&self.place.project.id, first, mine, |_| {
            owns = true;
            Ok(())
        })?;
        Ok(owns)
    }

    /// The live dashboards that are hidden from the caller, where those are the ones that rules single out.
    fn hidden(&self, tx: &impl Tx) -> Result<HashSet<DashboardId>> {
        let mut hidden = HashSet::new();
        for id in self.ruling.singled_out() {
            let head = tx.head::<Dashboard>(&(self.place.project.id, id))?;
            if head.is_some_and(|head| !head.deleted && !self.rights(&head).can_view()) {
                hidden.insert(id);
            }
        }
        Ok(hidden)
    }
}

/// The dashboards of a project that the caller may see and `filter` lets through: how many there are in
/// all, and those in `window` as the items of a JSON array. Live ones stand in the order of their names,
/// removed ones newest removal first.
///
/// # Errors
/// 403 where rules hide all dashboards from the caller; 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    place: &InProject,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let standing = Standing::of(tx, place)?;
    standing.require_list(tx)?;
    match (filter.deleted, filter.narrows()) {
        (false, false) if standing.on_all().lets_view() => list_live(tx, &standing, window),
        (true, false) if standing.sees_all() => list_removed(tx, &standing, window),
        _ => list_found(tx, &standing, filter, window),
    }
}

/// The live ones, where few are hidden: their count is maintained, and the page passes the hidden ones over.
fn list_live(tx: &impl Tx, standing: &Standing<'_>, window: Window) -> Result<(u64, Vec<u8>)> {
    let project = standing.place.project.id;
    let hidden = standing.hidden(tx)?;
    let mut items = Items::new(standing, window.limit);
    let count = tx.count::<Dashboard>(&project)?.saturating_sub(hidden.len() as u64);
    if hidden.is_empty() && window.begins_within(count) {
        tx.walk(&BY_NAME, &project, window, |row| items.push(tx, &row, None))?;
    } else if window.begins_within(count) {
        let keep = |head: &Head| !hidden.contains(&head.id);
        tx.walk_kept(&BY_NAME, &project, window, keep, |row| items.push(tx, &row, None))?;
    }
    Ok((count, items.out))
}

/// The removed ones, where none is hidden.
fn list_removed(tx: &impl Tx, standing: &Standing<'_>, window: Window) -> Result<(u64, Vec<u8>)> {
    let project = standing.place.project.id;
    let mut items = Items::new(standing, window.limit);
    let count = tx.count::<Removal>(&project)?;
    if window.begins_within(count) {
        walk_removed(tx, project, window, |row, removal| items.push(tx, row, Some(removal)))?;
    }
    Ok((count, items.out))
}

/// Those that are found by looking at each that may be.
fn list_found(
    tx: &impl Tx,
    standing: &Standing<'_>,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let made_by = filter.created_by.map(|maker| maker.find(tx, standing.place)).transpose()?;
    let made_by = match made_by {
        Some(None) => return Ok((0, Vec::new())),
        found => found.flatten(),
    };
    let (mut count, mut items) = (0, Items::new(standing, window.limit));
    let mut look_at = |row: &Row<'_, Dashboard>, removal: Option<&Removal>| {
        let is_sought = made_by.is_none() || row.head.created_by == made_by;
        if is_sought && standing.rights(&row.head).can_view() && filter.finds(row)? {
            if window.shows(count) {
                items.push(tx, row, removal)?;
            }
            count += 1;
        }
        Ok(())
    };
    let project = standing.place.project.id;
    let all = Window::all(Order::Ascending);
    match (filter.deleted, filter.pinned) {
        (true, _) => walk_removed(tx, project, all, |row, removal| look_at(row, Some(removal)))?,
        (false, None) => tx.walk(&BY_NAME, &project, all, |row| look_at(&row, None))?,
        (false, Some(pinned)) => {
            tx.walk(&BY_NAME, &(project, !pinned), all, |row| look_at(&row, None))?;
        }
    }
    Ok((count as u64, items.out))
}

/// Walks the removed dashboards of a project, newest removal first.
fn walk_removed(
    tx: &impl Tx,
    project: ProjectId,
    window: Window,
    mut visit: impl FnMut(&Row<'_, Dashboard>, &Removal) -> Result<()>,
) -> Result<()> {
    let window = Window { order: Order::Descending, ..window };
    tx.walk(&removals::BY_MOMENT, &project, window, |removal| {
        let key = (project, removal.head.dashboard);
        let found = tx.view::<Dashboard, _>(&key, |row| visit(&row, &removal.head))?;
        found.ok_or_else(|| Error::internal("a dashboard was removed that is not there"))
    })
}
