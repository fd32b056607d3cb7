//! The list of keys.

use askama::Template;
use axum::http::Method;

use crate::console::api::Operation;
use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::model::Key;
use crate::console::paging::Paging;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::access::{Access, scope_in_words};
use super::{API, LIST};

/// The number of keys on a page.
const PAGE_SIZE: usize = 50;
/// The number of scopes that a row names.
const MAX_SCOPES: usize = 6;

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
    paging: Paging,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let offset = Paging::offset(&request.visit);
    let keys: Vec<Key> = request.api.get(API).await?;
    let count = keys.len() as u64;
    let own = Key::of_session(&request).await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let now = request.visit.app.now();
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rows = keys.into_iter().skip(start).take(PAGE_SIZE).map(|key| Row {
        scopes: key.scopes.iter().take(MAX_SCOPES).map(|scope| scope_in_words(scope)).collect(),
        more: key.scopes.len().saturating_sub(MAX_SCOPES),
        limits: access.limits(&key),
        is_current: own.as_ref().is_some_and(|own| own.id == key.id),
        is_expired: key.is_expired(now),
        key,
    });
    let rows: Vec<_> = rows.collect();
    let paging = Paging::new(&request.visit, rows.len(), count, PAGE_SIZE as u64, |offset| {
        format!("{LIST}?offset={offset}")
    })?;
    let create = Operation::new("personal_api_keys_create", []);
    let page = KeysPage {
        rows,
        may_create: request.api.may(&create).await?,
        paging,
        command: Command::get(&request.visit, API),
    };
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    Ok(layout::page(&frame.titled("API keys"), &page)?)
}
