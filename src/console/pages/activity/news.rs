//! The number of entries that are newer than those on a page, which the script of the page asks for.

use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;

use crate::console::model::List;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::etag::matches_any;
use crate::time::Timestamp;

use super::entry::Entry;
use super::filters::Filters;
use super::log::Log;

const OF_ORGANIZATION: &str = "/console/organizations/{organization_id}/activity/news/";
const OF_PROJECT: &str = "/console/projects/{project_id}/activity/news/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, OF_ORGANIZATION, news);
    pages.signed_in(Method::GET, OF_PROJECT, news);
}

/// Returns the number of entries after the moment `since`, with the filters of the page. Its entity tag changes with
/// every new entry.
async fn news(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let mut filters = Filters::of(&request.visit);
    if let Some(newest) = Timestamp::parse(request.visit.query("since")) {
        filters = filters.since(newest);
    }
    let path = filters.to_api_query(1, 0).url(&log.api());
    let found: List<Entry> = request.api.get(&path).await?;
    let newest = found.results.first().map_or("", |entry| entry.id.as_str());
    let tag = format!("\"{}-{newest}\"", found.count);
    let known = request.visit.head.headers.get(IF_NONE_MATCH).and_then(|sent| sent.to_str().ok());
    let header = HeaderValue::try_from(&tag).map_err(Error::internal)?;
    if known.is_some_and(|known| matches_any(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header)]).into_response());
    }
    let json_type = HeaderValue::from_static("application/json");
    let body = json!({ "count": found.count }).to_string();
    Ok(([(ETAG, header), (CONTENT_TYPE, json_type)], body).into_response())
}
