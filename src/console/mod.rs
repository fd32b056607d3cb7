//! The web console at `/console/`. Pages are rendered on the server from responses of the API: a page sends the requests
//! of its session to the API's router in this process. So the console has no rules of its own.
//!
//! A template that fails and an operation that the API does not have are defects, and give 500. The documentation of
//! functions mentions only other errors.

mod api;
pub(crate) mod assets;
mod cookie;
mod failure;
mod form;
mod headers;
pub(crate) mod layout;
mod model;
mod origin;
mod pages;
pub(crate) mod paging;
pub(crate) mod registry;
mod sign_in;
pub(crate) mod urls;
pub(crate) mod visit;
mod words;

use axum::Router;
use axum::http::Method;

use crate::app::App;
use crate::http::routes::Routes;

use api::ApiRouter;
use registry::Pages;

/// The root of the console's paths.
const ROOT: &str = "/console/";

/// Adds the pages and actions of the console. `api` builds the router of the API, on the first request to a page.
pub fn routes(routes: &mut Routes, api: fn(App) -> Router) {
    routes.lead_browsers_to(ROOT);
    asset_routes(routes);
    let api = ApiRouter::new(api, routes.table());
    let mut pages = Pages::new(routes, api);
    sign_in::routes(&mut pages);
    pages::routes(&mut pages);
}

/// Adds the files that pages load.
pub(crate) fn asset_routes(routes: &mut Routes) {
    registry::public_page(routes, Method::GET, "/console/assets/{asset}/", &pages::file);
}
