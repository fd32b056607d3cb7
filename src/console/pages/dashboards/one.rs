//! One dashboard: its tiles on the grid that their layouts describe, and the forms of its description and tags.

use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;

use super::tile::{self, Card};
use super::tiles;

const DESCRIPTION: &str = "/console/projects/{project_id}/dashboards/{id}/description/";
const TAGS: &str = "/console/projects/{project_id}/dashboards/{id}/tags/";

/// The forms on the page. Each has a path of its own, which ends with the id of the form.
const DESCRIPTION_FORM: FormSpec =
    FormSpec::change("Save", &[Input::new("description").label("Description").shape(Shape::Area)])
        .with_id("description");
const TAGS_FORM: FormSpec =
    FormSpec::change("Save", &[Input::new("tags").label("Tags")]).with_id("tags");

/// With more tiles than this, the page is rendered on a thread of its own.
const MAX_INLINE_TILES: usize = 16;

pub(super) fn routes(pages: &mut Pages<'_>) {
    let open = |request| show(request, Feedback::default());
    pages.get("/console/projects/{project_id}/dashboards/{id}/", open);
    pages.post("/console/projects/{project_id}/dashboards/{id}/tiles/", change_tile);
    pages.post(DESCRIPTION, |request| save(request, &DESCRIPTION_FORM));
    pages.post(TAGS, |request| save(request, &TAGS_FORM));
}

/// The actions that the page offers.
#[expect(clippy::struct_excessive_bools, reason = "each is a control of its own")]
struct Offers {
    edit: bool,
    duplicate: bool,
    share: bool,
    access: bool,
    activity: bool,
    /// The pages of insights.
    insights: bool,
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/one.html")]
struct DashboardPage {
    object: ObjectPath,
    /// The dashboard without its tiles, which are the cards.
    dashboard: Dashboard,
    offers: Offers,
    /// Why the session may not edit, although its key may.
    reason: Option<String>,
    /// The forms of description and tags, if the session may edit.
    in_place: Option<(Form, Form)>,
    cards: Vec<Card>,
    version: Option<String>,
    /// Whether the dashboard has changed since the page was opened whose action was refused.
    is_stale: bool,
    command: Command,
}

/// Returns the form that restores the tile that was just removed.
fn undo(request: &SignedIn, object: &ObjectPath) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let fields = vec![("only", format!("restore {id}"))];
    Some(Undo { action: object.page("tiles/"), fields })
}

async fn change_tile(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    match tiles::apply(&request, &object).await? {
        Ok(done) => Ok(see_other(&done)?),
        Err(refusal) => show(request, refusal.into()).await,
    }
}

/// Shows the dashboard, and what became of a form.
async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let path = object.api("");
    let versioned = request.api.get_versioned(&path).await?;
    let mut dashboard: Dashboard = versioned.read()?;
    let (project, api) = (object.tenant.as_str(), &request.api);
    let offers = Offers {
        edit: DASHBOARD.may_write(&request, project).await? && dashboard.rights.may_edit(),
        duplicate: DASHBOARD.may_create(&request, project).await?,
        share: api.may(&object.operation("dashboards_sharing_retrieve")).await?,
        access: api.may(&object.operation("dashboards_access_list")).await?,
        activity: api.may(&Operation::new("activity_log_list", [project])).await?,
        insights: api.may(&Operation::new("insights_retrieve", [project, "0"])).await?,
    };
    let frame = Frame::load(&request).await?;
    let command = Command::get(&request.visit, &path);
    let name = dashboard.name().to_owned();
    let is_long = dashboard.tiles.len() > MAX_INLINE_TILES;
    let is_stale = feedback.refusal.take_if(|refusal| refusal.status() == 412).is_some();
    let is_editable = offers.edit || feedback.has_form();
    let mut shown = |form: &'static FormSpec| {
        let (update, action) = (object.operation(DASHBOARD.update), action(&object, form));
        form.shown(&request, &update, &action, &versioned, &mut feedback)
    };
    let in_place =
        if is_editable { Some((shown(&DESCRIPTION_FORM)?, shown(&TAGS_FORM)?)) } else { None };
    let frame = feedback.on(frame.titled(name).with_undo(undo(&request, &object)));
    let version = versioned.version;
    let render = move || {
        let style = tile::grid_style(&dashboard.tiles);
        let page = DashboardPage {
            cards: tile::cards(std::mem::take(&mut dashboard.tiles)),
            reason: DASHBOARD.reason(&dashboard.rights),
            dashboard,
            object,
            offers,
            in_place,
            version,
            is_stale,
            command,
        };
        layout::page_with_style(&frame, &page, &style)
    };
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}

/// Returns the URL that the browser sends a form to.
fn action(object: &ObjectPath, form: &FormSpec) -> String {
    object.page(&format!("{}/", form.id))
}

async fn save(request: SignedIn, form: &'static FormSpec) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let update = object.operation(DASHBOARD.update);
    match form.sent(&request, update, &action(&object, form))?.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "dashboard-saved"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}
