//! Changes of one or many dashboards: each is one request to the API.

use crate::console::pages::bulk::{BulkFeedback, MAX_OBJECTS};
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::console::words::{COLLABORATORS_EDIT, EVERYONE_EDITS};

/// The name of the action that deletes dashboards.
pub(super) const DELETE: &str = "delete";

/// What an action sends for each dashboard.
enum Change {
    Update(Value),
    /// Adds the tag of the form, or removes it.
    Tag {
        is_wanted: bool,
    },
    StopSharing,
}

/// Returns the change of the action with this name, and the name of its notice.
///
/// # Errors
/// 400 if there is no such action.
fn parse(action: &str) -> Result<(Change, &'static str)> {
    let saved = |body| (Change::Update(body), "dashboard-saved");
    Ok(match action {
        "pin" => saved(json!({ "pinned": true })),
        "unpin" => saved(json!({ "pinned": false })),
        "add_tag" => (Change::Tag { is_wanted: true }, "dashboard-saved"),
        "remove_tag" => (Change::Tag { is_wanted: false }, "dashboard-saved"),
        "restrict" => saved(json!({ "restriction_level": COLLABORATORS_EDIT })),
        "open" => saved(json!({ "restriction_level": EVERYONE_EDITS })),
        "stop_sharing" => (Change::StopSharing, "page-disabled"),
        DELETE => (Change::Update(json!({ "deleted": true })), "dashboard-deleted"),
        "restore" => (Change::Update(json!({ "deleted": false })), "dashboard-restored"),
        _ => return Err(Error::invalid_request("invalid_form", "Choose what to do.")),
    })
}

/// The changes that a form made.
pub(super) struct Changes {
    /// The name of the notice.
    pub(super) notice: &'static str,
    /// Whether the dashboards were deleted, and can be restored.
    pub(super) is_deletion: bool,
    pub(super) outcome: BulkFeedback,
}

/// Applies a form with `action`, one `id` or several, and for tags `tag`. A button for one dashboard sends `only`: its
/// action and its id.
///
/// # Errors
/// 400 if the form names no action or no dashboard; 401 if the session has ended; errors of the service.
pub(super) async fn apply(request: &SignedIn, project: &str) -> Result<Changes> {
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
        let changed = apply_to_one(request, &change, project, &id, &tag).await;
        outcome.add(id, changed)?;
    }
    Ok(Changes { notice, is_deletion: action == DELETE, outcome })
}

async fn apply_to_one(
    request: &SignedIn,
    change: &Change,
    project: &str,
    id: &str,
    tag: &str,
) -> Result<()> {
    let (operation, body) = match change {
        Change::Update(body) => (DASHBOARD.update, body.clone()),
        Change::Tag { is_wanted } => return set_tag(request, project, id, tag, *is_wanted).await,
        Change::StopSharing => (DASHBOARD.share, json!({ "enabled": false })),
    };
    request.api.write(&Write::new(operation, [project, id]).body(body)).await.map(drop)
}

#[derive(Deserialize)]
struct Tagged {
    tags: Vec<String>,
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
    let Tagged { mut tags } = serde_json::from_value(found.body).map_err(Error::internal)?;
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
