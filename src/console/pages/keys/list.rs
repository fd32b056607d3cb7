//! The list of keys.

use askama::Template;
use axum::http::Method;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::operation::Operation;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::access::{self, Access};
use super::{API, Key, LIST};

/// The number of keys on a page.
const PAGE_SIZE: usize = 50;
/// The number of scopes that a row names.
const MAX_SCOPES: usize = 6;

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
}

/// A key in the list.
struct Row {
    scopes: Vec<String>,
    /// The number of scopes that are not named.
    more: usize,
    limits: Vec<String>,
    is_current: bool,
    is_expired: bool,
    key: Key,
}

#[derive(Template)]
#[template(path = "console/pages/keys/list.html")]
struct KeysPage {
    rows: Vec<Row>,
    may_create: bool,
    count: usize,
    first: usize,
    last: usize,
    /// The offsets of the pages before and after.
    previous: Option<usize>,
    next: Option<usize>,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let offset = request.visit.query("offset").parse::<u16>().map_or(0, usize::from);
    let keys: Vec<Key> = request.api.get(API).await?;
    let count = keys.len();
    if offset > 0 && offset >= count {
        return Err(Error::not_found_as("The list of keys has no such page.").into());
    }
    let own = Key::of_session(&request).await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let now = request.visit.app.now();
    let rows = keys.into_iter().skip(offset).take(PAGE_SIZE).map(|key| Row {
        scopes: key.scopes.iter().take(MAX_SCOPES).map(|scope| access::in_words(scope)).collect(),
        more: key.scopes.len().saturating_sub(MAX_SCOPES),
        limits: access.limits(&key),
        is_current: own.as_ref().is_some_and(|own| own.id == key.id),
        is_expired: key.is_expired(now),
        key,
    });
    let rows: Vec<_> = rows.collect();
    let last = offset + rows.len();
    let create = Operation::new("personal_api_keys_create", []);
    let page = KeysPage {
        rows,
        may_create: request.api.may(&create).await?,
        count,
        first: offset + 1,
        last,
        previous: (offset > 0).then(|| offset.saturating_sub(PAGE_SIZE)),
        next: (last < count).then_some(last),
        command: Command::get(&request.visit, API),
    };
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    Ok(layout::page(&frame.titled("API keys"), &page)?)
}
