//! The page that shows the value of a key, once.

use askama::Template;
use serde_json::Value;

use crate::console::assets::icon;
use crate::console::layout::{self, Frame};
use crate::console::registry::PageResult;

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
pub(super) fn show(frame: Frame, title: &'static str, key: &Value) -> PageResult {
    let text = |name: &str| key.get(name).and_then(Value::as_str).map(str::to_owned);
    let page = ValuePage {
        title,
        id: text("id").unwrap_or_default(),
        label: text("label").unwrap_or_default(),
        value: text("value"),
    };
    Ok(layout::page(&frame.titled(title), &page)?)
}
