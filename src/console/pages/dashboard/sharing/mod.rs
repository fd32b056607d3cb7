//! The public page of a dashboard: its link, and buttons to enable, rotate and disable it.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::assets::icon;
use crate::console::form::{ONCE, once_key};
use crate::console::layout::{self, Command, with_notice};
use crate::console::operation::Write;
use crate::console::pages::dashboard_name;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::Rights;
use crate::console::reach::local_base;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::tile::Tile;

const SHARING: &str = "/console/projects/{project_id}/dashboards/{id}/sharing/";

const UPDATE: &str = "dashboards_sharing_partial_update";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, SHARING, page);
    pages.signed_in(Method::POST, SHARING, apply);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    tiles: Vec<Tile>,
    #[serde(flatten)]
    rights: Rights,
}

#[derive(Deserialize)]
struct Sharing {
    created_at: Option<String>,
    enabled: bool,
    access_token: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/sharing/page.html")]
struct SharingPage {
    object: ObjectPath,
    name: String,
    is_enabled: bool,
    /// When the page was first enabled.
    since: Option<String>,
    /// The public link.
    link: Option<String>,
    /// The base of the link, if it works on this machine only.
    local_base: Option<String>,
    tiles: usize,
    may_share: bool,
    /// Why the session may not share, although its key may.
    reason: Option<&'static str>,
    /// The `Idempotency-Key` of the buttons.
    once: String,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, ObjectPath::of(&request.visit, DASHBOARDS)?, None).await
}

fn enable(object: &ObjectPath, is_enabled: bool) -> Write {
    object.write(UPDATE).body(json!({ "enabled": is_enabled }))
}

async fn apply(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let form = &request.visit.form;
    let (write, notice) = match form.value("action") {
        "enable" => (enable(&object, true), "page-enabled"),
        "disable" => (enable(&object, false), "page-disabled"),
        "rotate" => (object.write("dashboards_sharing_refresh_create"), "link-replaced"),
        _ => return Err(Error::not_found().into()),
    };
    match request.api.attempt(&write.once(form.value(ONCE))).await? {
        Ok(_) => Ok(see_other(&with_notice(&object.page("sharing/"), notice))?),
        Err(refusal) => show(&request, object, Some(refusal)).await,
    }
}

async fn show(request: &SignedIn, object: ObjectPath, refusal: Option<Error>) -> PageResult {
    let found: Dashboard = request.api.get(&object.api("")).await?;
    let sharing: Sharing = request.api.get(&object.api("sharing/")).await?;
    let reason = reason(&found, sharing.enabled);
    let may_share = reason.is_none() && request.api.may(&object.operation(UPDATE)).await?;
    let token = sharing.access_token.filter(|_| sharing.enabled);
    let link = token.map(|token| format!("{}/shared/{token}/", request.visit.base_url()));
    let frame = object.frame(request).await?;
    let name = dashboard_name(found.name.as_deref()).to_owned();
    let frame = frame.titled(format!("Sharing of {name}")).with_refusal(refusal);
    let page = SharingPage {
        command: command(request, &object, may_share, sharing.enabled)?,
        object,
        name,
        is_enabled: sharing.enabled,
        since: sharing.created_at,
        link,
        local_base: local_base(&request.visit.base_url()),
        tiles: found.tiles.len(),
        may_share,
        reason,
        once: once_key(),
    };
    Ok(layout::page(&frame, &page)?)
}

fn reason(dashboard: &Dashboard, is_enabled: bool) -> Option<&'static str> {
    if !dashboard.rights.may_edit() {
        Some("Only users who may edit the dashboard can share it.")
    } else if !is_enabled && dashboard.tiles.iter().any(Tile::is_hidden) {
        Some(
            "The dashboard shows an insight that you may not view. Only users who may view all its insights can share it.",
        )
    } else {
        None
    }
}

/// Returns the command of the button that enables or disables the page, or else of the page itself.
fn command(
    request: &SignedIn,
    object: &ObjectPath,
    may_share: bool,
    is_enabled: bool,
) -> Result<Command> {
    if may_share {
        Command::write(request, &enable(object, !is_enabled))
    } else {
        Ok(Command::get(&request.visit, &object.api("sharing/")))
    }
}
