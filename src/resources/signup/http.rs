//! `/api/signup/:id/`, and the page that mails lead to.

use axum::extract::State;

use crate::access::{Caller, Needs, Visitor};
use crate::error::Result;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::html::Document;
use crate::http::path::{Id, Query};
use crate::http::routes::Routes;
use crate::ids::{InviteId, UserId};
use crate::secret::Seed;
use crate::state::App;

use super::{Acceptance, AcceptedBy, SignupFields};

const ONE: &str = "/api/signup/{id}/";
const PAGE: &str = "/signup/{id}/";

/// The routes of signing up.
pub fn routes(routes: &mut Routes) {
    const WHY: &str = "who is invited may have no account yet";
    let read = Needs::any_key().or_nobody(WHY);
    let write = Needs::scope("user:write").or_nobody(WHY);
    routes.get(ONE, "signup_retrieve", read, offer).answers(200, "InviteOffer");
    routes.post(ONE, "signup_create", write, accept).takes::<SignupFields>().answers(201, "Signup");
    let open = Needs::nothing("the page holds nothing; what it shows it asks the API for");
    routes.get(PAGE, "signup_page", open, page).answers(200, "A page");
}

async fn page() -> Document<'static> {
    Document {
        title: "You are invited",
        style: include_str!("page/style.css"),
        script: include_str!("page/script.js"),
        body: include_str!("page/body.html"),
    }
}

async fn offer(
    State(app): State<App>,
    visitor: Visitor,
    Id(id): Id<InviteId>,
    query: Query,
) -> Answered {
    let tx = app.store().snapshot()?;
    let visitor = visitor.caller.map(|caller| caller.user.id);
    super::offer(&*tx, app.links(), id.ok(), query.last("token"), visitor, app.now())
        .map(Answer::Shown)
}

async fn accept(
    State(app): State<App>,
    visitor: Visitor,
    Id(id): Id<InviteId>,
    Body(sent): Body,
) -> Answered {
    let (sent, seed) = (Acceptance::of(id.ok(), &sent), Seed::take());
    let user = who(visitor.caller.as_ref())?;
    super::require_acceptable(&*app.store().snapshot()?, app.links(), &sent, user, app.now())?;
    let by = match user {
        Some(user) => AcceptedBy::User(user),
        None => AcceptedBy::Newcomer(app.new_key().await?),
    };
    let (links, sends_mail) = (app.links().clone(), app.sends_mail());
    app.change_as_visitor(&visitor, move |tx, caller, now| {
        who(caller)?;
        super::accept(tx, &links, &sent, &by, sends_mail, &mut seed.draw(), now)
    })
    .await
    .map(Answer::Created)
}

/// The visitor's account, if they came with a key of it that may join.
fn who(caller: Option<&Caller>) -> Result<Option<UserId>> {
    let Some(caller) = caller else { return Ok(None) };
    caller.key.require_unlimited("join an organization")?;
    Ok(Some(caller.user.id))
}
