//! Changes of the tiles of a dashboard.

mod edit;
mod move_tile;
mod new;
mod trash;

use serde_json::json;

use crate::console::form::VERSION;
use crate::console::layout::with_notice;
use crate::console::pages::object::ObjectPath;
use crate::console::registry::Pages;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

/// The operation that changes tiles.
const UPDATE: &str = "dashboards_partial_update";

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    new::routes(pages);
    edit::routes(pages);
    move_tile::routes(pages);
    trash::routes(pages);
}

/// Applies a button of one tile: `only` has its action and the id of the tile. Returns the page that follows, or why the
/// API refuses.
///
/// # Errors
/// 404 if the form is not that of a tile; 401 if the session has ended; 500.
pub(super) async fn apply(request: &SignedIn, object: &ObjectPath) -> Result<Result<String>> {
    let (action, id) = request.visit.form.value("only").split_once(' ').unwrap_or_default();
    let id: u64 = id.parse().map_err(|_| Error::not_found())?;
    let (body, notice) = match action {
        "remove" => (json!({ "tiles": [{ "id": id, "deleted": true }] }), "tile-removed"),
        "restore" => (json!({ "tiles": [{ "id": id, "deleted": false }] }), "tile-restored"),
        "duplicate" => (json!({ "duplicate_tiles": [{ "id": id }] }), "tile-duplicated"),
        _ => return Err(Error::not_found()),
    };
    let mut write = object.write(UPDATE).body(body);
    // With the version, a button that is pressed twice duplicates the tile once.
    let version = request.visit.form.value(VERSION);
    write.version = (action == "duplicate" && !version.is_empty()).then(|| version.to_owned());
    let outcome = request.api.attempt(&write).await?;
    let page = with_notice(&object.page(""), notice);
    let undo = if action == "remove" { format!("&undo={id}") } else { String::new() };
    Ok(outcome.map(|_| page + &undo))
}
