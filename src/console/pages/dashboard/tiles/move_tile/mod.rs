//! The form that moves a tile to another dashboard of the project.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::console::assets::icon;
use crate::console::form::{Choice, Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, with_notice};
use crate::console::pages::dashboard::dashboard_choices;
use crate::console::pages::dashboard::rights::name_version_and_refusal;
use crate::console::pages::number;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Result;

const MOVE: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/{tile_id}/move/";

const MOVE_TILE: &str = "dashboards_move_tile_partial_update";

const FORM: FormSpec = FormSpec::create(
    "Move the tile",
    &[Input::new("toDashboard").label("To the dashboard").hint("Dashboards that you may edit.")],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, MOVE, page);
    pages.signed_in(Method::POST, MOVE, move_tile);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/tiles/move_tile/page.html")]
struct MovePage {
    object: ObjectPath,
    name: String,
    /// Why the session cannot move it.
    refusal: Option<String>,
    /// `None` if the session may edit no other dashboard.
    form: Option<Form>,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let action = action(&request, &object)?;
    let form = FORM.empty(&request, &object.operation(MOVE_TILE), &action)?;
    show(&request, object, form).await
}

async fn move_tile(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let tile: u64 = number(&request.visit, "tile_id")?.parse().unwrap_or_default();
    let action = action(&request, &object)?;
    let mut sent = FORM.sent(&request, object.operation(MOVE_TILE), &action)?;
    sent.body.insert("tile".to_owned(), json!({ "id": tile }));
    let done = with_notice(&object.page(""), "tile-moved");
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&done)?),
        // A form that was sent twice.
        Outcome::Again(form)
            if form.status() == StatusCode::NOT_FOUND
                && is_moved(&request, &object, tile).await? =>
        {
            Ok(see_other(&done)?)
        }
        Outcome::Again(form) => show(&request, object, *form).await,
    }
}

/// Whether the dashboard that the form names has the tile.
async fn is_moved(request: &SignedIn, object: &ObjectPath, tile: u64) -> Result<bool> {
    let Ok(target) = request.visit.form.value("toDashboard").parse::<u64>() else {
        return Ok(false);
    };
    let path = format!("/api/projects/{}/dashboards/{target}/", object.tenant);
    let found: Option<Value> = request.api.get_if_allowed(&path).await?;
    let mut tiles = found.iter().filter_map(|found| found["tiles"].as_array()).flatten();
    Ok(tiles.any(|one| one["id"] == tile))
}

fn action(request: &SignedIn, object: &ObjectPath) -> Result<String> {
    Ok(object.page(&format!("tiles/{}/move/", number(&request.visit, "tile_id")?)))
}

async fn show(request: &SignedIn, object: ObjectPath, form: Form) -> PageResult {
    let frame = object.frame(request).await?;
    let status = form.status();
    let (name, _, refusal) = name_version_and_refusal(request, &object).await?;
    let form = offer_dashboards(request, &object, form).await?;
    let page = MovePage { object, name, refusal, form };
    Ok(layout::page_with_status(&frame.titled("Move the tile"), &page, status)?)
}

/// Offers the other dashboards that the session may edit. Returns `None` if there are none. With too many dashboards, the
/// field takes the id of one.
async fn offer_dashboards(
    request: &SignedIn,
    object: &ObjectPath,
    form: Form,
) -> Result<Option<Form>> {
    let found = dashboard_choices(request, &object.tenant).await?.unwrap_or_default();
    if !found.is_complete() {
        return Ok(Some(form.with_hint("toDashboard", "The ID of a dashboard that you may edit.")));
    }
    let others = found.results.iter().filter(|one| one.id.to_string() != object.id);
    let choices = others.filter(|one| one.may_edit()).map(|one| Choice::new(one.id, one.name()));
    let choices: Vec<_> = choices.collect();
    Ok((!choices.is_empty()).then(|| form.with_choices("toDashboard", choices)))
}
