//! Making a dashboard (facts-dashboards §2, §5, §6).

use crate::access::levels;
use crate::access::{Caller, InProject};
use crate::error::Result;
use crate::ids::DashboardId;
use crate::resources::access_controls::rules;
use crate::secret::Draw;
use crate::store::{Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::templates::Template;
use super::{Dashboard, DetailsShown, Head, NewDashboard, Sent, Shown, copies, input, put, tiles};

/// What a new dashboard is made from.
enum Source {
    Nothing,
    Template(Template),
    Copy(Head),
}

impl Source {
    fn of(tx: &impl Tx, place: &InProject, new: &NewDashboard) -> Result<Self> {
        match input::source(new)? {
            (Some(name), _) => Template::built_in(name).map(Self::Template),
            (None, Some(id)) => copies::source(tx, place, id).map(Self::Copy),
            (None, None) => Ok(Self::Nothing),
        }
    }
}

/// About how many bytes the answer to a request for a copy of a dashboard has, if rendering it takes long.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn large_copy(
    tx: &impl Tx,
    place: &InProject,
    new: &Sent<NewDashboard>,
) -> Result<Option<usize>> {
    match new.get().and_then(input::source) {
        Ok((_, Some(source))) => tiles::large_answer(tx, place.project.id, source),
        Ok((_, None)) | Err(_) => Ok(None),
    }
}

/// Makes a dashboard: empty, from a template, or as a copy of another.
///
/// # Errors
/// 403 for one who may not make dashboards, or not see the source; 400 for a field, or a source that is not
/// there.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    place: &InProject,
    new: &Sent<NewDashboard>,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<DashboardId> {
    require(tx, place)?;
    let new = new.get()?;
    let source = Source::of(tx, place, new)?;
    let mut dashboard = blank(tx, caller, place, now)?;
    let id = dashboard.head.id;
    let mut details = DetailsShown::default();
    if let Source::Copy(source) = &source {
        copies::begin(tx, source, new.filters.is_some(), &mut dashboard, &mut details)?;
    }
    input::fill(new.clone(), &mut dashboard, &mut details);
    if let Source::Template(template) = &source {
        template.fill(&mut dashboard, &mut details);
        "template".clone_into(&mut dashboard.shown.creation_mode);
        details.use_template = new.use_template.clone().unwrap_or_default();
    }
    put(tx, dashboard, details)?;
    match source {
        Source::Nothing => {}
        Source::Template(template) => template.add_tiles(tx, place, id, draw, now)?,
        Source::Copy(source) => {
            let deep = new.duplicate_tiles == Some(true);
            tiles::copy_all(tx, place, (source.id, id), deep, draw, now)?;
        }
    }
    Ok(id)
}

/// Lets only those on who may make dashboards.
///
/// # Errors
/// 403 for the others.
pub(super) fn require(tx: &impl Tx, place: &InProject) -> Result<()> {
    levels::require_create(&place.member, rules::on_all(tx, place)?)
}

/// The caller's new dashboard, as it is before anything is said of it.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn blank(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    place: &InProject,
    now: Timestamp,
) -> Result<Dashboard> {
    let id = DashboardId(tx.next_number(Table::Dashboards)?);
    let head = Head {
        organization: place.project.organization,
        project: place.project.id,
        id,
        created_by: Some(caller.user.id),
        restriction_level: levels::EVERYONE_EDITS,
        deleted: false,
        detailed: false,
    };
    let shown = Shown {
        id,
        name: None,
        description: String::new(),
        pinned: false,
        created_at: now,
        is_shared: false,
        deleted: false,
        creation_mode: "default".to_owned(),
        tags: Vec::new(),
        restriction_level: levels::EVERYONE_EDITS,
    };
    Ok(Dashboard { head, shown })
}
