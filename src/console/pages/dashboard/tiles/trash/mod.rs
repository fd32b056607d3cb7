//! The deleted tiles of a dashboard, with buttons to restore them.

use askama::Template;
use axum::http::Method;

use crate::console::layout::{self, Command};
use crate::console::list::List;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::paging::Paging;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use crate::console::pages::dashboard::rights::{may_write, name_of};
use crate::console::pages::dashboard::tile::DeletedTile;

const TRASH: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/trash/";

/// The number of tiles on a page.
const PAGE_SIZE: u64 = 50;

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
    let offset = Paging::offset(&request.visit);
    let path = object.api(&format!("deleted_tiles/?limit={PAGE_SIZE}&offset={offset}"));
    let found: List<DeletedTile> = request.api.get(&path).await?;
    let url = |offset| object.page(&format!("tiles/trash/?offset={offset}"));
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let frame = object.frame(&request).await?;
    let page = TrashPage {
        name: name_of(&request, &object).await?,
        may_write: may_write(&request, &object.tenant).await?,
        tiles: found.results,
        paging,
        command: Command::get(&request.visit, &path),
        object,
    };
    Ok(layout::page(&frame.titled("Deleted tiles"), &page)?)
}
