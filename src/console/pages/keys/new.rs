//! A new key: scopes to choose from, what the key could do, and its value.

use crate::base::time::Timestamp;
use crate::console::pages::prelude::*;

use super::access::{Abilities, Access};
use super::show_value;

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

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form(NEW, page, create);
}

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

async fn page(request: SignedIn) -> PageResult {
    let own = Key::of_session(&request).await?;
    let mut form = FORM.empty(&request, &operation(), NEW)?;
    let end = request.visit.app.now().plus_seconds(DEFAULT_LIFE);
    let last = own.as_ref().and_then(|key| Timestamp::parse(key.expires_at.as_deref()?));
    if last.is_none_or(|last| end < last) {
        let midnight = format!("{}T00:00:00Z", crate::console::pages::day(&end.to_string()));
        form = form.with_value("expires_at", &json!(midnight));
    }
    let may_create = request.api.may(&operation()).await?;
    let refusal = (!may_create).then(|| "This session may not create keys.".to_owned());
    let access = Access::load(&request, own.as_ref()).await?;
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    show(frame, &access, form.refused_for(refusal), Abilities::default())
}

async fn create(request: SignedIn) -> PageResult {
    // The frame comes first: after the request, an error would lose the value.
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    let own = Key::of_session(&request).await?;
    let access = Access::load(&request, own.as_ref()).await?;
    let mut sent = FORM.sent(&request, operation(), NEW)?;
    let preset = request.visit.form.value(PRESET);
    if !preset.is_empty() {
        let scopes = json!(access.preset(preset));
        sent.body.insert("scopes".to_owned(), scopes.clone());
        let abilities = Abilities::of_new(&request, &sent.body).await?;
        return show(frame, &access, sent.into_form().with_value("scopes", &scopes), abilities);
    }
    let body = sent.body.clone();
    if request.visit.form.has(CHECK) {
        let abilities = Abilities::of_new(&request, &body).await?;
        return show(frame, &access, sent.into_form(), abilities);
    }
    match sent.send(&request).await? {
        Outcome::Done(key) => show_value(frame, "API key created", &key),
        Outcome::Again(form) => {
            let abilities = Abilities::of_new(&request, &body).await?;
            show(frame, &access, *form, abilities)
        }
    }
}

fn show(frame: Frame, access: &Access, form: Form, abilities: Abilities) -> PageResult {
    let frame = frame.titled("New API key").with_status(form.status());
    let page = NewKeyPage { presets: access.presets(), form: access.offer(form), abilities };
    Ok(layout::page(&frame, &page)?)
}
