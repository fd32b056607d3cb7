//! The dashboards of a project: their list with its filters and changes of one or many, and their names for other pages.

mod forms;
mod one;
mod tile;
mod tiles;

use uuid::Uuid;

use crate::console::words::{COLLABORATORS_EDIT, EVERYONE_EDITS};

use super::people::People;
use super::prelude::*;
use super::shareable::DASHBOARD;

const MOVE_TILE: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/{tile_id}/move/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/projects/{project_id}/dashboards/", &show, &apply);
    pages.form("/console/projects/{project_id}/dashboards/new/", &forms::new);
    pages.form("/console/projects/{project_id}/dashboards/{id}/edit/", &forms::edit);
    pages.form("/console/projects/{project_id}/dashboards/{id}/tiles/new/", &tiles::new);
    pages.form("/console/projects/{project_id}/dashboards/{id}/tiles/{tile_id}/", &tiles::edit);
    pages.form(MOVE_TILE, &tiles::move_tile);
    pages.get("/console/projects/{project_id}/dashboards/{id}/tiles/trash/", &tiles::trash_page);
    pages.form("/console/projects/{project_id}/dashboards/{id}/arrange/", &one::arrange);
    one::routes(pages);
}

async fn apply(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    if needs_question(&request) && DASHBOARD.may_write(&request, &project).await? {
        return ask(&request, &project).await;
    }
    match change_each(&request, &project).await {
        Ok((_, outcome)) if !outcome.refused.is_empty() => show(request, outcome).await,
        Ok((notice, outcome)) => Ok(see_other(&after(&request, &project, notice, &outcome))?),
        Err(error) if error.status() == 400 => show(request, error.into()).await,
        Err(error) => Err(error.into()),
    }
}

/// Returns the page after changes that all succeeded: that of the dashboard whose page had the form, or the list.
fn after(
    request: &SignedIn,
    project: &str,
    notice: &'static str,
    outcome: &BulkFeedback,
) -> String {
    let base = DASHBOARDS.list(project);
    let from = request.visit.form.value("from").parse::<u64>();
    let page = match from {
        Ok(id) if outcome.undo.is_none() => format!("{base}{id}/"),
        _ => filters(&request.visit).to_query().at(Paging::offset(&request.visit)).url(&base),
    };
    let page = with_notice_of(&page, notice, outcome.done.len());
    if outcome.undo.is_some() { format!("{page}&undo={}", outcome.done.join(",")) } else { page }
}

/// The name of the action that deletes dashboards.
const DELETE: &str = "delete";

/// What an action sends for each dashboard.
enum Change {
    Update(&'static str, Value),
    /// Adds the tag of the form, or removes it.
    Tag {
        is_wanted: bool,
    },
}

/// Returns the change of the action with this name, and the name of its notice.
///
/// # Errors
/// 400 if there is no such action.
fn parse(action: &str) -> Result<(Change, &'static str)> {
    let update = |body| Change::Update(DASHBOARD.update, body);
    let saved = |body| (update(body), "dashboard-saved");
    Ok(match action {
        "pin" => saved(json!({ "pinned": true })),
        "unpin" => saved(json!({ "pinned": false })),
        "add_tag" => (Change::Tag { is_wanted: true }, "dashboard-saved"),
        "remove_tag" => (Change::Tag { is_wanted: false }, "dashboard-saved"),
        "restrict" => saved(json!({ "restriction_level": COLLABORATORS_EDIT })),
        "open" => saved(json!({ "restriction_level": EVERYONE_EDITS })),
        "stop_sharing" => {
            (Change::Update(DASHBOARD.share, json!({ "enabled": false })), "page-disabled")
        }
        DELETE => (update(json!({ "deleted": true })), "dashboard-deleted"),
        "restore" => (update(json!({ "deleted": false })), "dashboard-restored"),
        _ => return Err(Error::invalid_request("invalid_form", "Choose what to do.")),
    })
}

/// Applies a form with `action`, one `id` or several, and for tags `tag`. A button for one dashboard sends `only`: its
/// action and its id. Returns the name of the notice, and the outcome.
///
/// # Errors
/// 400 if the form names no action or no dashboard; 401 if the session has ended; errors of the service.
async fn change_each(request: &SignedIn, project: &str) -> Result<(&'static str, BulkFeedback)> {
    let form = &request.visit.form;
    let (action, ids) = match form.value("only").split_once(' ') {
        Some((action, id)) => (action, vec![id]),
        None => (form.value("action"), form.values("id").collect()),
    };
    let (change, notice) = parse(action)?;
    let ids = ids.into_iter().take(MAX_OBJECTS).map(str::parse::<u64>);
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(|_| Error::not_found())?;
    let tag = form.value("tag").trim().to_lowercase();
    let lacks = match change {
        _ if ids.is_empty() => Some("Select the dashboards first."),
        Change::Tag { .. } if tag.is_empty() => Some("Enter the tag."),
        _ => None,
    };
    if let Some(detail) = lacks {
        return Err(Error::invalid_request("invalid_form", detail));
    }
    let mut outcome = BulkFeedback::default();
    for id in ids {
        let id = id.to_string();
        let changed = match &change {
            Change::Tag { is_wanted } => set_tag(request, project, &id, &tag, *is_wanted).await,
            Change::Update(operation, body) => {
                let write = Write::new(operation, [project, &id]).body(body.clone());
                request.api.write(&write).await.map(drop)
            }
        };
        outcome.add(id, changed)?;
    }
    if action == DELETE {
        outcome.undo = restoring(outcome.done.clone(), &DASHBOARDS.list(project));
    }
    Ok((notice, outcome))
}

/// Adds a tag, or removes it if `is_wanted` is false. The request names the version of the dashboard, so that no other change
/// of the tags is lost.
///
/// # Errors
/// The errors of the API.
async fn set_tag(
    request: &SignedIn,
    project: &str,
    id: &str,
    tag: &str,
    is_wanted: bool,
) -> Result<()> {
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let found = request.api.get_versioned(&path).await?;
    let mut tags = found.read::<Dashboard>()?.tags;
    if tags.iter().any(|known| known == tag) == is_wanted {
        return Ok(());
    }
    tags.retain(|known| known != tag);
    if is_wanted {
        tags.push(tag.to_owned());
    }
    let write = Write::new(DASHBOARD.update, [project, id]);
    let write = Write { version: found.version, ..write.body(json!({ "tags": tags })) };
    request.api.write(&write).await.map(drop)
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/list.html")]
struct DashboardsPage {
    base: String,
    filters: ListFilters,
    people: People,
    list: ListPage<Dashboard>,
    /// Whether the session may change dashboards, as far as each dashboard lets it.
    may_write: bool,
    may_create: bool,
    may_see_access: bool,
    /// The URL of this page.
    here: String,
    chosen: Chosen,
    refusals: Option<Refusals>,
}

impl DashboardsPage {
    /// Whether a row can be selected.
    fn selects(&self) -> bool {
        self.list.rows.iter().any(|dashboard| self.may_edit(dashboard))
    }

    fn may_edit(&self, dashboard: &Dashboard) -> bool {
        self.may_write && dashboard.rights.may_edit()
    }
}

/// Shows the list, and what became of a form.
async fn show(request: SignedIn, mut feedback: BulkFeedback) -> PageResult {
    let project = request.visit.project_id()?;
    let filters = filters(&request.visit);
    let base = DASHBOARDS.list(&project);
    let list = ListSpec::new(DASHBOARDS.api(&project), &base).filtered(filters.fields());
    let list = list_page(&request, list).await.read::<Dashboard>()?;
    let frame = Frame::load(&request).await?.titled("Dashboards");
    let frame = feedback.on(frame.with_undo(undo_of_query(&request, &base)));
    let name = |id: &str| {
        let known = list.rows.iter().find(|one| one.id.to_string() == id);
        known.map_or_else(|| format!("Dashboard {id}"), |known| known.name().to_owned())
    };
    let refusals = feedback.refusals(name);
    let access = Operation::new("dashboards_access_list", [&project, "0"]);
    let page = DashboardsPage {
        people: People::load(&request.api, frame.organization()).await?,
        here: filters.to_query().at(Paging::offset(&request.visit)).url(&base),
        chosen: Chosen::of(&request),
        may_write: DASHBOARD.may_write(&request, &project).await?,
        may_create: DASHBOARD.may_create(&request, &project).await?,
        may_see_access: request.api.may(&access).await?,
        refusals,
        base,
        filters,
        list,
    };
    Ok(layout::page(&frame, &page)?)
}

/// Returns the form that restores the dashboards that were just deleted, which the query names.
fn undo_of_query(request: &SignedIn, base: &str) -> Option<Undo> {
    let ids = request.visit.query("undo").split(',').filter_map(|id| id.parse::<u64>().ok());
    restoring(ids.map(|id| id.to_string()), base)
}

/// Returns the form that restores these dashboards.
fn restoring(ids: impl IntoIterator<Item = String>, base: &str) -> Option<Undo> {
    let mut fields: Vec<_> = ids.into_iter().map(|id| ("id", id)).collect();
    if fields.is_empty() {
        return None;
    }
    fields.push(("action", "restore".to_owned()));
    Some(Undo { action: base.to_owned(), fields })
}

/// The field of a form that comes from the question.
const SURE: &str = "sure";

#[derive(Template)]
#[template(path = "console/pages/dashboards/deletion.html")]
struct DeletionPage {
    question: String,
    /// The ids and the names.
    dashboards: Vec<(u64, String)>,
    /// The URL of the list.
    here: String,
}

/// Returns whether a form deletes the selected dashboards, and has to be asked about first.
fn needs_question(request: &SignedIn) -> bool {
    let form = &request.visit.form;
    let is_deletion = form.value("action") == DELETE && form.has("id") && !form.has("only");
    is_deletion && !form.has(SURE) && !request.visit.changes_nothing()
}

/// Asks whether the selected dashboards are to be deleted.
async fn ask(request: &SignedIn, project: &str) -> PageResult {
    let ids = request.visit.form.values("id").take(MAX_OBJECTS).map(str::parse::<u64>);
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(|_| Error::not_found())?;
    let dashboards = dashboard_names(request, project, &ids).await?;
    let question = match dashboards.as_slice() {
        [(_, name)] => format!("Delete the dashboard {name}?"),
        several => format!("Delete {} dashboards?", several.len()),
    };
    let here = request.visit.path_and_query().to_owned();
    let page = DeletionPage { question, dashboards, here };
    Feedback::default().show(request, &page.question, &page).await
}

/// The names of the filters, which are those of the API.
const FILTERS: [&str; 5] = ["search", "tags", "created_by", "pinned", "creation_mode"];

const PINNED: Choices = &[("", "Pinned or not"), ("true", "Pinned"), ("false", "Not pinned")];
const MODES: Choices = &[
    ("", "Created in any way"),
    ("default", "Created empty"),
    ("template", "From a template"),
    ("duplicate", "As a copy"),
];

/// Reads the filters of the list.
fn filters(visit: &Visit) -> ListFilters {
    ListFilters::of(visit, &FILTERS, |name, text| match name {
        "created_by" if text != "@me" => {
            text.parse::<Uuid>().map_or(String::new(), |uuid| uuid.to_string())
        }
        "pinned" if !is_one_of(PINNED, text) => String::new(),
        "creation_mode" if !is_one_of(MODES, text) => String::new(),
        _ => text.to_owned(),
    })
}

/// The maximum number of dashboards that a form offers by name. With more, it takes their ids.
const MAX_CHOICES: u64 = 500;

/// The maximum number of dashboards whose names are read one by one.
const MAX_READ: usize = 10;

/// Returns these dashboards with their names. Beyond the dashboards that a form offers, only the first ones have theirs.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn dashboard_names(
    request: &SignedIn,
    project: &str,
    ids: &[u64],
) -> Result<Vec<(u64, String)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let listed = dashboard_choices(request, project).await?.unwrap_or_default().results;
    let (mut named, mut read) = (Vec::new(), 0);
    for id in ids {
        let mut name = listed.iter().find(|one| one.id == *id).map(|one| one.name().to_owned());
        if name.is_none() && read < MAX_READ {
            read += 1;
            let path = format!("/api/projects/{project}/dashboards/{id}/");
            let found: Option<Dashboard> = request.api.get(&path).await.read_if_allowed()?;
            name = found.map(|one| one.name().to_owned());
        }
        named.push((*id, name.unwrap_or_else(|| format!("Dashboard {id}"))));
    }
    Ok(named)
}

/// Loads the first dashboards of a project. Returns `None` if the session may not list them.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn dashboard_choices(
    request: &SignedIn,
    project: &str,
) -> Result<Option<List<Dashboard>>> {
    let path = format!("/api/projects/{project}/dashboards/?limit={MAX_CHOICES}");
    request.api.get(&path).await.read_if_allowed()
}
