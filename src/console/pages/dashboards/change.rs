//! Changes of one or many dashboards: each is one request to the API.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::operation::Write;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

/// The maximum number of dashboards of one form, which is that of a page.
const MAX_CHANGES: usize = 50;

/// What a form does with dashboards.
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
    /// 400 if there is none.
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
            Self::Delete => "deleted",
            Self::Restore => "restored",
            Self::StopSharing => "disabled",
            _ => "saved",
        }
    }
}

/// What became of a form.
pub(super) struct Changes {
    /// The name of the notice.
    pub(super) notice: &'static str,
    /// The ids of the dashboards that were deleted, to restore them.
    pub(super) deleted: Vec<String>,
    pub(super) done: usize,
    pub(super) refused: Vec<Refusal>,
}

/// A dashboard that the API refused to change.
pub(super) struct Refusal {
    pub(super) id: String,
    pub(super) status: u16,
    pub(super) detail: String,
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
    let ids = ids.into_iter().take(MAX_CHANGES).map(str::parse::<u64>);
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
    let mut changes =
        Changes { notice: action.notice(), deleted: Vec::new(), done: 0, refused: Vec::new() };
    for id in ids {
        let id = id.to_string();
        match change(request, action, project, &id, &tag).await {
            Ok(()) => {
                changes.done += 1;
                if action == Action::Delete {
                    changes.deleted.push(id);
                }
            }
            Err(error) if matches!(error.status(), 401 | 500) => return Err(error),
            Err(error) => {
                let (status, detail) = (error.status(), error.detail().to_owned());
                changes.refused.push(Refusal { id, status, detail });
            }
        }
    }
    Ok(changes)
}

async fn change(
    request: &SignedIn,
    action: Action,
    project: &str,
    id: &str,
    tag: &str,
) -> Result<()> {
    let body = match action {
        Action::AddTag | Action::RemoveTag => {
            return change_tags(request, action, project, id, tag).await;
        }
        Action::StopSharing => {
            let write = Write::new("dashboards_sharing_partial_update", [project, id]);
            return request.api.write(&write.body(json!({ "enabled": false }))).await.map(drop);
        }
        Action::Pin => json!({ "pinned": true }),
        Action::Unpin => json!({ "pinned": false }),
        Action::Restrict => json!({ "restriction_level": 37 }),
        Action::Open => json!({ "restriction_level": 21 }),
        Action::Delete => json!({ "deleted": true }),
        Action::Restore => json!({ "deleted": false }),
    };
    request.api.write(&patch(project, id, body)).await.map(drop)
}

fn patch(project: &str, id: &str, body: Value) -> Write {
    Write::new("dashboards_partial_update", [project, id]).body(body)
}

#[derive(Deserialize)]
struct Tagged {
    tags: Vec<String>,
}

/// Adds or removes a tag. The request names the version of the dashboard, so that no other change of the tags is lost.
async fn change_tags(
    request: &SignedIn,
    action: Action,
    project: &str,
    id: &str,
    tag: &str,
) -> Result<()> {
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let found = request.api.get_versioned(&path).await?;
    let Tagged { mut tags } = serde_json::from_value(found.body).map_err(Error::internal)?;
    let has_tag = tags.iter().any(|known| known == tag);
    if has_tag == (action == Action::AddTag) {
        return Ok(());
    }
    tags.retain(|known| known != tag);
    if action == Action::AddTag {
        tags.push(tag.to_owned());
    }
    let mut write = patch(project, id, json!({ "tags": tags }));
    write.version = found.version;
    request.api.write(&write).await.map(drop)
}
