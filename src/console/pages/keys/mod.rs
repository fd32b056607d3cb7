//! The user's API keys: their list, a new one with scopes to choose from and what it could do, and the page that shows the value
//! of one, once; what one key can do, its change, its rotation and its revocation.

mod access;

use super::prelude::*;
use access::{Abilities, Access, scope_in_words};

/// The list of keys.
const LIST: &str = "/console/keys/";

/// The list of keys in the API.
const API: &str = "/api/personal_api_keys/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(LIST, &list);
    pages.form(NEW, &new);
    pages.page("/console/keys/{id}/", &show_key, &save);
    pages.post("/console/keys/{id}/rotate/", &rotate);
    pages.form("/console/keys/{id}/revoke/", &revoke);
}

impl Key {
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
    list: ListPage<Row>,
    may_create: bool,
}

async fn list(request: SignedIn) -> PageResult {
    let keys: Vec<Key> = request.api.get(API).await.read()?;
    let url = |offset| format!("{LIST}?offset={offset}");
    let (shown, paging) = Paging::of_all(&keys, &request.visit, OFFSET, PAGE_SIZE, &url)?;
    let own = request.api.key().await?;
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
    let list =
        ListPage { rows: rows.collect(), paging, command: Command::get(&request.visit, API) };
    let page = KeysPage { list, may_create: request.api.may(&operation()).await? };
    Feedback::default().show(&request, "API keys", &page).await
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

const NEW: &str = "/console/keys/new/";

/// The field of a button that chooses a preset.
const PRESET: &str = "_preset";
/// The field of the button that shows what the key could do.
const CHECK: &str = "_check";

/// The seconds after which a new key expires, unless the user types another time.
const DEFAULT_LIFE: i64 = 90 * 24 * 60 * 60;

const FORM: FormSpec = FormSpec::create(
    "Create the key",
    &[
        Input::new("label").label("Label").hint("For example the program that will use the key."),
        Input::new("scopes").label("Scopes"),
        Input::new("scoped_organizations")
            .label("Only in these organizations")
            .hint("None: the same organizations as this session."),
        Input::new("scoped_teams")
            .label("Only in these projects")
            .hint("None: the same projects as this session."),
        Input::new("expires_at")
            .label("Expires")
            .hint("Empty: with the key of this session, or never if that never expires."),
    ],
);

#[derive(Template)]
#[template(path = "console/pages/keys/new.html")]
struct NewKeyPage {
    /// The names and labels of the presets.
    presets: Vec<(&'static str, &'static str)>,
    form: Form,
    abilities: Abilities,
}

fn operation() -> Operation {
    Operation::new("personal_api_keys_create", [])
}

async fn new(request: SignedIn) -> PageResult {
    // The frame comes first: after the request, an error would lose the value.
    let frame = Frame::load(&request).await?;
    let own = request.api.key().await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let (form, abilities) = if request.visit.sends_form() {
        let mut sent = FORM.sent(&request, operation(), NEW)?;
        let preset = request.visit.form.value(PRESET);
        let scopes = json!(access.preset(preset));
        if !preset.is_empty() {
            sent.body.insert("scopes".to_owned(), scopes.clone());
        }
        let body = sent.body.clone();
        let form = match preset {
            "" if request.visit.form.has(CHECK) => sent.form,
            "" => match sent.send(&request).await? {
                Ok(key) => return show_value(frame, "API key created", &key),
                Err(form) => *form,
            },
            _ => sent.form.with_value("scopes", &scopes),
        };
        (form, Abilities::of_new(&request, &body).await?)
    } else {
        let mut form = FORM.empty(&request, &operation(), NEW)?;
        let end = request.visit.app.now().plus_seconds(DEFAULT_LIFE);
        let last = own.as_ref().and_then(|key| Timestamp::parse(key.expires_at.as_deref()?));
        if last.is_none_or(|last| end < last) {
            let midnight = format!("{}T00:00:00Z", super::day(&end.to_string()));
            form = form.with_value("expires_at", &json!(midnight));
        }
        let may_create = request.api.may(&operation()).await?;
        let refusal = (!may_create).then(|| "This session may not create keys.".to_owned());
        (form.refused_for(refusal), Abilities::default())
    };
    let frame = frame.titled("New API key").with_status(form.status);
    let page = NewKeyPage { presets: access.presets(), form: access.offer(form), abilities };
    Ok(layout::page(&frame, &page)?)
}

const UPDATE: &str = "personal_api_keys_partial_update";

/// The seconds for which the old value of a rotated key works, unless the user chooses another time.
const DEFAULT_GRACE: u32 = 24 * 60 * 60;

const CHANGE: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("label").label("Label"),
        Input::new("scopes").label("Scopes"),
        Input::new("scoped_organizations")
            .label("Only in these organizations")
            .hint("None: no limit."),
        Input::new("scoped_teams").label("Only in these projects").hint("None: no limit."),
        Input::new("expires_at").label("Expires").hint("Empty: never."),
    ],
);

const ROTATION: FormSpec = FormSpec::create(
    "Rotate the key",
    &[Input::new("grace_seconds")
        .label("The old value")
        .hint("Programs need time to get the new value. A value that others know should stop at once.")
        .choices(&[
            ("86400", "Works for one more day"),
            ("3600", "Works for one more hour"),
            ("0", "Stops working at once"),
        ])],
)
.with_id("rotate");

/// Returns the path of a key's page.
fn path(id: &str) -> String {
    format!("{LIST}{id}/")
}

fn update(id: &str) -> Operation {
    Operation::new(UPDATE, [id])
}

fn roll(id: &str) -> Operation {
    Operation::new("personal_api_keys_roll_create", [id])
}

#[derive(Template)]
#[template(path = "console/pages/keys/one.html")]
struct KeyPage {
    key: Key,
    is_current: bool,
    is_expired: bool,
    form: Form,
    /// Absent if the session may not change the key.
    rotation: Option<Form>,
    abilities: Abilities,
}

async fn save(request: SignedIn) -> PageResult {
    let id = request.visit.uuid("id")?;
    let sent = CHANGE.sent(&request, update(&id), &path(&id))?;
    submit(request, sent, &path(&id), "key-saved", &show_key).await
}

async fn rotate(request: SignedIn) -> PageResult {
    let id = request.visit.uuid("id")?;
    // The frame comes first: the rotation ends the sessions of the key, perhaps this one.
    let frame = Frame::load(&request).await?;
    let sent = ROTATION.sent(&request, roll(&id), &format!("{}rotate/", path(&id)))?;
    match sent.send(&request).await? {
        Ok(key) => show_value(frame, "API key rotated", &key),
        Err(form) => show_key(request, form.into()).await,
    }
}

async fn show_key(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let id = &request.visit.uuid("id")?;
    let stored = request.api.get_versioned(&format!("/api/personal_api_keys/{id}/")).await?;
    let key = Key::deserialize(&stored.body).map_err(Error::internal)?;
    let form = CHANGE.shown(&request, &update(id), &path(id), &stored, &mut feedback)?;
    let rotation = match feedback.take(ROTATION.id) {
        Some(rotation) => rotation,
        None => ROTATION
            .empty(&request, &roll(id), &format!("{}rotate/", path(id)))?
            .with_value("grace_seconds", &json!(DEFAULT_GRACE)),
    };
    let refusal = request.api.refusal(&Write::new(UPDATE, [id]).body(json!({}))).await?;
    let own = request.api.key().await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let page = KeyPage {
        is_current: own.is_some_and(|own| own.id == key.id),
        is_expired: key.is_expired(request.visit.app.now()),
        rotation: refusal.is_none().then_some(rotation),
        form: access.offer(form).refused_for(refusal),
        abilities: Abilities::of_key(&request, &key).await?,
        key,
    };
    feedback.show(&request, &page.key.label, &page).await
}

async fn revoke(request: SignedIn) -> PageResult {
    let id = request.visit.uuid("id")?;
    let done = with_notice(LIST, "key-revoked");
    let key = request.api.get(&format!("/api/personal_api_keys/{id}/")).await.read::<Key>();
    let key = key.map_err(|error| answered_before(&request, error, &done))?;
    let own = request.api.key().await?;
    let text = if own.is_some_and(|own| own.id == key.id) {
        "This session uses the key and ends with it. Programs that send the key stop working at once."
    } else {
        "Programs that send the key stop working at once. This cannot be undone."
    };
    let question = format!("Revoke the key {}?", key.label);
    let write = Write::new("personal_api_keys_destroy", [&id]);
    let confirm = Confirm::new(&question, text, "Revoke the key", write);
    confirm.respond(&request, &path(&id), &done).await
}
