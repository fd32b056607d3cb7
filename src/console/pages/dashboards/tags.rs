//! Adds and removes one tag of a dashboard.

use serde::Deserialize;
use serde_json::json;

use crate::console::operation::Write;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

#[derive(Deserialize)]
struct Tagged {
    tags: Vec<String>,
}

/// Adds a tag, or removes it if `is_wanted` is false. The request names the version of the dashboard, so that no other change
/// of the tags is lost.
///
/// # Errors
/// The errors of the API.
pub(super) async fn set_tag(
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
