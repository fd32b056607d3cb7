//! The deleted tiles of a dashboard, with buttons to restore them.

use askama::Template;
use axum::http::Method;

use crate::console::layout::{self, Command};
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::DASHBOARD;
use crate::console::paging::{ListPage, ListSpec, Paging, list_page};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use crate::console::pages::dashboard::rights::name_of;
use crate::console::pages::dashboard::tile::DeletedTile;

const TRASH: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/trash/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TRASH, page);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/tiles/trash/page.html")]
struct TrashPage {
    object: ObjectPath,
    name: String,
    tiles: Vec<DeletedTile>,
    may_write: bool,
    paging: Paging,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let list = ListSpec::new(object.api("deleted_tiles/"), &object.page("tiles/trash/"));
    let ListPage { rows: tiles, paging, command } = list_page(&request, list).await?;
    let frame = object.frame(&request).await?;
    let page = TrashPage {
        name: name_of(&request, &object).await?,
        may_write: DASHBOARD.may_write(&request, &object.tenant).await?,
        tiles,
        paging,
        command,
        object,
    };
    Ok(layout::page(&frame.titled("Deleted tiles"), &page)?)
}
