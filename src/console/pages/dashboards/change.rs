//! Changes of one or many dashboards: each is one request to the API.

use crate::console::pages::bulk::{BulkOutcome, MAX_OBJECTS};
use crate::console::pages::prelude::*;
use crate::console::words::{COLLABORATORS_EDIT, EVERYONE_EDITS};

/// An action of a form on dashboards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Pin,
    Unpin,
    AddTag,
    RemoveTag,
    Restrict,
    Open,
    StopSharing,
    Delete,
    Restore,
}

/// The actions on live dashboards with the names in the form, and the labels.
pub(super) const ACTIONS: [(&str, &str); 8] = [
    ("pin", "Pin"),
    ("unpin", "Unpin"),
    ("add_tag", "Add the tag"),
    ("remove_tag", "Remove the tag"),
    ("restrict", "Let only collaborators edit"),
    ("open", "Let everyone edit"),
    ("stop_sharing", "Stop sharing"),
    ("delete", "Delete"),
];

impl Action {
    /// Returns the action with this name.
    ///
    /// # Errors
    /// 400 if there is no such action.
    fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "pin" => Self::Pin,
            "unpin" => Self::Unpin,
            "add_tag" => Self::AddTag,
            "remove_tag" => Self::RemoveTag,
            "restrict" => Self::Restrict,
            "open" => Self::Open,
            "stop_sharing" => Self::StopSharing,
            "delete" => Self::Delete,
            "restore" => Self::Restore,
            _ => return Err(Error::invalid_request("invalid_form", "Choose what to do.")),
        })
    }

    const fn notice(self) -> &'static str {
        match self {
            Self::Delete => "dashboard-deleted",
            Self::Restore => "dashboard-restored",
            Self::StopSharing => "page-disabled",
            _ => "dashboard-saved",
        }
    }
}

/// The changes that a form made.
pub(super) struct Changes {
    /// The name of the notice.
    pub(super) notice: &'static str,
    /// Whether the dashboards were deleted, and can be restored.
    pub(super) is_deletion: bool,
    pub(super) outcome: BulkOutcome,
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
    let action = Action::parse(action)?;
    let ids = ids.into_iter().take(MAX_OBJECTS).map(str::parse::<u64>);
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(|_| Error::not_found())?;
    let tag = form.value("tag").trim().to_lowercase();
    let lacks = match action {
        _ if ids.is_empty() => Some("Select the dashboards first."),
        Action::AddTag | Action::RemoveTag if tag.is_empty() => Some("Enter the tag."),
        _ => None,
    };
    if let Some(detail) = lacks {
        return Err(Error::invalid_request("invalid_form", detail));
    }
    let mut outcome = BulkOutcome::default();
    for id in ids {
        let id = id.to_string();
        let changed = change(request, action, project, &id, &tag).await;
        outcome.add(id, changed)?;
    }
    Ok(Changes { notice: action.notice(), is_deletion: action == Action::Delete, outcome })
}

async fn change(
    request: &SignedIn,
    action: Action,
    project: &str,
    id: &str,
    tag: &str,
) -> Result<()> {
    let body = match action {
        Action::AddTag => return set_tag(request, project, id, tag, true).await,
        Action::RemoveTag => return set_tag(request, project, id, tag, false).await,
        Action::StopSharing => {
            let write = Write::new("dashboards_sharing_partial_update", [project, id]);
            let write = write.body(json!({ "enabled": false }));
            return request.api.write(&write).await.map(drop);
        }
        Action::Pin => json!({ "pinned": true }),
        Action::Unpin => json!({ "pinned": false }),
        Action::Restrict => json!({ "restriction_level": COLLABORATORS_EDIT }),
        Action::Open => json!({ "restriction_level": EVERYONE_EDITS }),
        Action::Delete => json!({ "deleted": true }),
        Action::Restore => json!({ "deleted": false }),
    };
    let write = Write::new("dashboards_partial_update", [project, id]);
    request.api.write(&write.body(body)).await.map(drop)
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
    let write = Write::new("dashboards_partial_update", [project, id]);
    let write = Write { version: found.version, ..write.body(json!({ "tags": tags })) };
    request.api.write(&write).await.map(drop)
}
