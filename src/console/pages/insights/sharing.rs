//! The public page of an insight: enable, rotate and disable its link.

use askama::Template;
use axum::http::Method;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use crate::console::assets::icon;
use crate::console::form::{ONCE, once_key};
use crate::console::layout::{self, Command, with_notice};
use crate::console::operation::Write;
use crate::console::pages::object::{INSIGHTS, ObjectPath};
use crate::console::reach::local_base;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::insight::Insight;

const SHARING: &str = "/console/projects/{project_id}/insights/{id}/sharing/";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, SHARING, page);
    pages.signed_in(Method::POST, SHARING, act);
}

#[derive(Deserialize)]
struct Sharing {
    enabled: bool,
    access_token: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/insights/sharing.html")]
struct SharingPage {
    object: ObjectPath,
    name: String,
    enabled: bool,
    /// The link, if the session may know it.
    url: Option<String>,
    /// The base of the link, if it works on this machine only.
    local_base: Option<String>,
    /// Why the session may not change it.
    reason: Option<Error>,
    once: String,
    command: Command,
}

fn set(object: &ObjectPath, enabled: bool) -> Write {
    object.write("insights_sharing_partial_update").body(json!({ "enabled": enabled }))
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    Ok(show(&request, object, None).await?)
}

async fn show(request: &SignedIn, object: ObjectPath, refusal: Option<Error>) -> Result<Response> {
    let path = object.api("sharing/");
    let insight: Insight = request.api.get(&object.api("")).await?;
    let sharing: Sharing = request.api.get(&path).await?;
    let frame = object.frame(request).await?;
    let frame = frame.titled("Sharing").with_refusal(refusal);
    let token = sharing.access_token.filter(|_| sharing.enabled);
    let page = SharingPage {
        name: insight.name().to_owned(),
        url: token.map(|token| format!("{}/shared/{token}/", request.visit.base_url())),
        local_base: local_base(&request.visit.base_url()),
        enabled: sharing.enabled,
        reason: request.api.dry_run(&set(&object, !sharing.enabled)).await?,
        once: once_key(),
        command: Command::get(&request.visit, &path),
        object,
    };
    layout::page(&frame, &page)
}

async fn act(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let form = &request.visit.form;
    let (write, notice) = match form.value("action") {
        "enable" => (set(&object, true), "page-enabled"),
        "disable" => (set(&object, false), "page-disabled"),
        "rotate" => {
            let rotate = object.write("insights_sharing_refresh_create");
            (rotate.once(form.value(ONCE)), "link-replaced")
        }
        _ => return Err(Error::not_found().into()),
    };
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(&with_notice(&object.page("sharing/"), notice))?),
        Err(error) if error.status() == 404 => Err(error.into()),
        Err(error) => Ok(show(&request, object, Some(error)).await?),
    }
}
