//! The style sheet, the script and the icons.

use axum::http::Method;

use crate::console::assets;
use crate::console::headers::EmbeddedFile;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::Visit;
use crate::http::assets::VERSION;

const FILE: &str = "/console/assets/{asset}/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::GET, FILE, file);
}

async fn file(visit: Visit) -> PageResult {
    let name = visit.parameter("asset");
    let mut response = assets::response(&name, visit.query.last(VERSION))?;
    response.extensions_mut().insert(EmbeddedFile);
    Ok(response)
}
