//! The user's API keys: their list, and the page that shows the value of one, once.

mod access;
mod new;
mod one;

use crate::base::time::Timestamp;
use crate::console::paging::OFFSET;

use super::prelude::*;
use access::{Access, scope_in_words};

/// The list of keys.
const LIST: &str = "/console/keys/";

/// The list of keys in the API.
const API: &str = "/api/personal_api_keys/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(LIST, list);
    new::routes(pages);
    one::routes(pages);
}

impl Key {
    /// Returns the key of the session, or `None` in a session without a key.
    async fn of_session(request: &SignedIn) -> Result<Option<Self>> {
        request.api.get_if_allowed("/api/personal_api_keys/@current/").await
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        let created_at = Timestamp::parse(&self.created_at);
        let end = self.expires_at.as_deref().and_then(Timestamp::parse);
        end.is_some_and(|end| !end.is_end_of_current_since(created_at, now))
    }
}

/// The number of keys on a page.
const PAGE_SIZE: usize = 50;
/// The number of scopes that a row names.
const MAX_SCOPES: usize = 6;

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
    let keys: Vec<Key> = request.api.get(API).await?;
    let url = |offset| format!("{LIST}?offset={offset}");
    let (shown, paging) = Paging::of_all(&keys, &request.visit, OFFSET, PAGE_SIZE, url)?;
    let own = Key::of_session(&request).await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let now = request.visit.app.now();
    let rows = shown.iter().map(|key| Row {
        scopes: key.scopes.iter().take(MAX_SCOPES).map(|scope| scope_in_words(scope)).collect(),
        more: key.scopes.len().saturating_sub(MAX_SCOPES),
        limits: access.limits(key),
        is_current: own.as_ref().is_some_and(|own| own.id == key.id),
        is_expired: key.is_expired(now),
        key: key.clone(),
    });
    let create = Operation::new("personal_api_keys_create", []);
    let page = KeysPage {
        rows: rows.collect(),
        may_create: request.api.may(&create).await?,
        paging,
        command: Command::get(&request.visit, API),
    };
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    Ok(layout::page(&frame.titled("API keys"), &page)?)
}

/// The value of a key that was created or rotated. Not `Debug`, because it is a secret.
#[derive(Template)]
#[template(path = "console/pages/keys/value.html")]
struct ValuePage {
    title: &'static str,
    id: String,
    label: String,
    /// The value, which is absent if the form was sent twice.
    value: Option<String>,
}

/// Shows the value in a response of the API. The caller loads the frame before the request, because the rotation of a key
/// ends its sessions.
fn show_value(frame: Frame, title: &'static str, key: &Value) -> PageResult {
    let text = |name: &str| key.get(name).and_then(Value::as_str).map(str::to_owned);
    let page = ValuePage {
        title,
        id: text("id").unwrap_or_default(),
        label: text("label").unwrap_or_default(),
        value: text("value"),
    };
    Ok(layout::page(&frame.titled(title), &page)?)
}
