//! `/api/personal_api_keys/`.

use std::sync::Arc;

use axum::extract::State;

use crate::access::gate::authorize;
use crate::access::{Admitted, Anywhere, Changing, Needs};
use crate::error::Result;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::ApiKeyId;
use crate::input::Parsed;
use crate::state::App;
use crate::store::Snapshot;
use crate::time::Timestamp;

use super::body::PersonalApiKeyBody;
use super::{ApiKey, Holdings, PersonalApiKeyFields, PersonalApiKeyPatch, RollFields};

const LIST: &str = "/api/personal_api_keys/";
const CURRENT: &str = "/api/personal_api_keys/@current/";
const ONE: &str = "/api/personal_api_keys/{id}/";
const ROLL: &str = "/api/personal_api_keys/{id}/roll/";

/// The routes of API keys.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("personal_api_key:read");
    let write = Needs::scope("personal_api_key:write");
    routes.noun("personal_api_keys", "What programs present to act for you.");
    routes
        .get(LIST, "personal_api_keys_list", read, list)
        .summary("List your keys, newest first.")
        .answers_all::<PersonalApiKeyBody>();
    routes
        .post(LIST, "personal_api_keys_create", write, create)
        .summary("Make a key, which can do no more than the one that makes it. Its value is shown this once.")
        .takes::<PersonalApiKeyFields>()
        .example(r#"{"label": "Nightly report", "scopes": ["dashboard:read"]}"#)
        .answers::<PersonalApiKeyBody>(201);
    routes
        .get(CURRENT, "personal_api_keys_current", Needs::any_key(), current)
        .summary("Retrieve the key that asks.")
        .answers::<PersonalApiKeyBody>(200);
    routes
        .get(ONE, "personal_api_keys_retrieve", read, retrieve)
        .summary("Retrieve a key of yours.")
        .id::<ApiKeyId>()
        .answers::<PersonalApiKeyBody>(200);
    routes
        .patch(ONE, "personal_api_keys_partial_update", write, update)
        .summary("Change a key that lies within the one that asks.")
        .id::<ApiKeyId>()
        .takes::<PersonalApiKeyPatch>()
        .example(r#"{"label": "Weekly report"}"#)
        .answers::<PersonalApiKeyBody>(200);
    routes
        .delete(ONE, "personal_api_keys_destroy", write, destroy)
        .summary("Revoke a key. It opens nothing from then on.")
        .id::<ApiKeyId>();
    routes
        .post(ROLL, "personal_api_keys_roll_create", write, roll)
        .summary("Replace the value of a key. The new one is shown this once.")
        .id::<ApiKeyId>()
        .takes::<RollFields>()
        .example(r#"{"grace_seconds": 3600}"#)
        .answers::<PersonalApiKeyBody>(200);
}

async fn list(State(app): State<App>, at: Admitted<Anywhere>) -> Answered {
    let listed = app.long_reads().read(at, |tx, at| super::list(tx, at.caller.user.id));
    listed.await.map(Answer::Plain)
}

async fn current(at: Admitted<Anywhere>) -> Answered {
    super::body(&*at.tx, at.caller.key.id).map(Answer::Shown)
}

async fn retrieve(at: Admitted<Anywhere>, Id(id): Id<ApiKeyId>) -> Answered {
    let id = super::get_own(&*at.tx, at.caller.user.id, id?)?.head.id;
    super::body(&*at.tx, id).map(Answer::Shown)
}

async fn create(State(app): State<App>, at: Changing<Anywhere>, Body(sent): Body) -> Answered {
    let at = at.inheriting();
    let new = Arc::new(Parsed::<PersonalApiKeyFields>::of(&sent));
    let asked = Arc::clone(&new);
    let wanted =
        wanted(&app, &at, move |tx, holder, now| super::require_issuable(tx, holder, &asked, now));
    if let Some(reply) = app.find_reply_where(&at, &wanted)? {
        return Ok(reply);
    }
    let made = app.new_key(at.consumer, None, wanted).await?;
    app.post(&at, move |tx, caller, _: &Anywhere, now| {
        super::issue(tx, &caller.key.holdings, &new, made.id(), made.secret(), now)?;
        super::body_with(tx, made.id(), Some(made.value())).map(Answer::Created)
    })
    .await
}

async fn update(
    State(app): State<App>,
    at: Changing<Anywhere>,
    Id(id): Id<ApiKeyId>,
    Body(sent): Body,
) -> Answered {
    let (id, patch) = (id?, Parsed::<PersonalApiKeyPatch>::of(&sent));
    let expected = at.expected.clone();
    app.change(&at, move |tx, caller, _: &Anywhere, now| {
        super::update(tx, &caller.key.holdings, id, &patch, now)?;
        expected.require::<ApiKey>(tx, &id)?;
        super::body(tx, id)
    })
    .await
    .map(Answer::Shown)
}

async fn destroy(State(app): State<App>, at: Changing<Anywhere>, Id(id): Id<ApiKeyId>) -> Answered {
    let (id, expected) = (id?, at.expected.clone());
    app.change(&at, move |tx, caller, _: &Anywhere, _| {
        super::revoke(tx, &caller.key.holdings, id)?;
        expected.require::<ApiKey>(tx, &id)
    })
    .await?;
    Ok(Answer::NoContent)
}

async fn roll(
    State(app): State<App>,
    at: Changing<Anywhere>,
    Id(id): Id<ApiKeyId>,
    Body(sent): Body,
) -> Answered {
    let (id, sent) = (id?, Arc::new(Parsed::<RollFields>::of(&sent)));
    let asked = Arc::clone(&sent);
    let wanted =
        wanted(&app, &at, move |tx, holder, _| super::require_rollable(tx, holder, id, &asked));
    if let Some(reply) = app.find_reply_where(&at, &wanted)? {
        return Ok(reply);
    }
    let made = app.new_key(at.consumer, Some(id), wanted).await?;
    app.post(&at, move |tx, caller, _: &Anywhere, now| {
        super::roll(tx, &caller.key.holdings, id, &sent, made.secret(), now)?;
        super::body_with(tx, id, Some(made.value())).map(Answer::Shown)
    })
    .await
}

/// Asks the gate, and then `rule`, whether what the caller wants a secret for would be done: before there is one,
/// because it is dear.
fn wanted(
    app: &App,
    at: &Changing<Anywhere>,
    rule: impl Fn(&Snapshot, &Holdings, Timestamp) -> Result<()> + Send + 'static,
) -> impl Fn(&Snapshot) -> Result<()> + Send + 'static {
    let (app, ask) = (app.clone(), Arc::clone(&at.ask));
    move |tx| {
        let now = app.now();
        rule(tx, &authorize(tx, &ask, now)?.caller.key.holdings, now)
    }
}
