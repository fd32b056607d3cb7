//! The deleted tiles of a dashboard, with buttons to restore them.

use askama::Template;
use axum::http::Method;

use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::list::List;
use crate::console::paging::Paging;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use crate::console::pages::dashboard::address::Address;
use crate::console::pages::dashboard::rights::may_write;
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
    address: Address,
    name: String,
    tiles: Vec<DeletedTile>,
    may_write: bool,
    paging: Paging,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let offset = Paging::offset(&request.visit);
    let Address { project, id } = &address;
    let path = format!(
        "/api/projects/{project}/dashboards/{id}/deleted_tiles/?limit={PAGE_SIZE}&offset={offset}"
    );
    let found: List<DeletedTile> = request.api.get(&path).await?;
    let url = |offset| address.page(&format!("tiles/trash/?offset={offset}"));
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let frame = Frame::load(&request, Section::Dashboards, In::Project(&address.project)).await?;
    let page = TrashPage {
        name: address.name(&request).await?,
        may_write: may_write(&request, &address.project).await?,
        tiles: found.results,
        paging,
        command: Command::get(&request.visit, &path),
        address,
    };
    Ok(layout::page(&frame.titled("Deleted tiles"), &page)?)
}
