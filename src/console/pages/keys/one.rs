//! One key: what it can do, its change, its rotation and its revocation.

use crate::console::pages::prelude::*;

use super::access::{Abilities, Access};
use super::{LIST, show_value};

const UPDATE: &str = "personal_api_keys_partial_update";

/// The seconds for which the old value of a rotated key works, unless the user chooses another time.
const DEFAULT_GRACE: u32 = 24 * 60 * 60;

const FORM: FormSpec = FormSpec::change(
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

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/keys/{id}/", show, save);
    pages.post("/console/keys/{id}/rotate/", rotate);
    pages.form("/console/keys/{id}/revoke/", revoke);
}

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
    match FORM.sent(&request, update(&id), &path(&id))?.send(&request).await? {
        Outcome::Done(_) => finish(&path(&id), "key-saved"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

async fn rotate(request: SignedIn) -> PageResult {
    let id = request.visit.uuid("id")?;
    // The frame comes first: the rotation ends the sessions of the key, perhaps this one.
    let frame = Frame::load(&request).await?;
    let sent = ROTATION.sent(&request, roll(&id), &format!("{}rotate/", path(&id)))?;
    match sent.send(&request).await? {
        Outcome::Done(key) => show_value(frame, "API key rotated", &key),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let id = &request.visit.uuid("id")?;
    let stored = request.api.get_versioned(&format!("/api/personal_api_keys/{id}/")).await?;
    let key = Key::deserialize(&stored.body).map_err(Error::internal)?;
    let form = FORM.shown(&request, &update(id), &path(id), &stored, &mut feedback)?;
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
    feedback.show(&request, page.key.label.clone(), &page).await
}

async fn revoke(request: SignedIn) -> PageResult {
    let id = request.visit.uuid("id")?;
    let done = with_notice(LIST, "key-revoked");
    let key = request.api.get::<Key>(&format!("/api/personal_api_keys/{id}/")).await;
    let key = key.map_err(|error| answered_before(&request, error, &done))?;
    let own = request.api.key().await?;
    let text = if own.is_some_and(|own| own.id == key.id) {
        "This session uses the key and ends with it. Programs that send the key stop working at once."
    } else {
        "Programs that send the key stop working at once. This cannot be undone."
    };
    let question = format!("Revoke the key {}?", key.label);
    let write = Write::new("personal_api_keys_destroy", [&id]);
    let confirm = Confirm::new(question, text, "Revoke the key", write);
    confirm.respond(&request, &path(&id), &done).await
}
