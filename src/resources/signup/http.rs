//! `/api/signup/:id/`, and the page that mails lead to.

use std::sync::Arc;

use axum::extract::State;

use crate::access::{Needs, Visitor};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::html::Document;
use crate::http::path::{Id, Query};
use crate::http::routes::Routes;
use crate::ids::{InviteId, OrganizationId, RequesterId, UserId};
use crate::resources::invites::Links;
use crate::resources::sweeps;
use crate::resources::users::{self, User};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Snapshot, Tx, WriteTx};
use crate::time::Timestamp;

use super::body::{InviteOffer, Signup};
use super::{Acceptance, AcceptedBy, SignupFields, Terms};

const ONE: &str = "/api/signup/{id}/";
const PAGE: &str = "/signup/{id}/";

/// The routes of signing up.
pub fn routes(routes: &mut Routes) {
    const WHY: &str = "who is invited may have no account yet";
    let read = Needs::any_key().or_nobody(WHY);
    let write = Needs::scope("user:write").unlimited("join an organization").or_nobody(WHY);
    routes.noun("signup", "Accepting an invite.");
    routes
        .get(ONE, "signup_retrieve", read, offer)
        .summary("Retrieve what an invite offers.")
        .id::<InviteId>()
        .query::<String>(
            "token",
            "The token of the invite's link; where one is sent, it has to be right.",
        )
        .answers::<InviteOffer>(200)
        .unversioned()
        .may(400);
    routes
        .post(ONE, "signup_create", write, accept)
        .summary("Accept an invite: as somebody new, or with a key of the account that it is for.")
        .id::<InviteId>()
        .takes::<SignupFields>()
        .example(r#"{"token": "Zk3v...", "first_name": "Ben"}"#)
        .answers::<Signup>(201);
    let open = Needs::nothing("the page holds nothing; what it shows it asks the API for");
    routes
        .get(PAGE, "signup_page", open, page)
        .summary("Open the page on which an invite is accepted.")
        .id::<InviteId>()
        .query::<String>("token", "The token of the invite's link, for the page to send.")
        .media(&["text/html"]);
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
    let (token, sends_mail) = (query.last("token"), app.sends_mail());
    super::offer(&*tx, app.links(), id.ok(), token, visitor, sends_mail, app.now())
        .map(Answer::Plain)
}

async fn accept(
    State(app): State<App>,
    visitor: Visitor,
    Id(id): Id<InviteId>,
    Body(sent): Body,
) -> Answered {
    let id = id.ok();
    let (sent, seed) = (Arc::new(Acceptance::of(id, &sent)), Seed::take());
    let user = visitor.caller.as_ref().map(|caller| caller.user.id);
    let (links, terms) = (app.links().clone(), terms(&app));
    let acceptable = {
        let (links, sent, now) = (links.clone(), Arc::clone(&sent), app.now());
        move |tx: &Snapshot| super::require_acceptable(tx, &links, terms, &sent, user, now)
    };
    let once = id.and_then(|id| Some(visitor.once.as_ref()?.of(RequesterId(id.0), None, None)));
    if let Some(reply) = app.find_reply_as_visitor(&visitor, once.as_ref())? {
        return Ok(reply);
    }
    let taken = acceptable(&*app.store().snapshot()?)?.taken_over();
    let by = match user {
        Some(user) => AcceptedBy::User(user),
        None => AcceptedBy::Newcomer(
            app.new_key(visitor.consumer, None, move |tx| acceptable(tx).map(drop)).await?,
        ),
    };
    let Some(account) = taken else {
        return app.post_as_visitor(&visitor, once, accepting(links, terms, sent, by, seed)).await;
    };
    // On a task of its own: a takeover of several writes goes on if the client leaves.
    let taking_over = tokio::spawn(async move {
        while ends_in_pieces(&app, account)? {
            let piece = end_piece(links.clone(), terms, Arc::clone(&sent));
            app.post_as_visitor(&visitor, None, piece).await?;
            app.sweep();
        }
        let accepting = accepting(links, terms, sent, by, seed);
        let answer = app.post_as_visitor(&visitor, once, accepting).await;
        app.sweep();
        answer
    });
    taking_over.await.map_err(Error::internal)?
}

/// Accepts, and ends what is left of an account that is taken over, in one write.
fn accepting(
    links: Links,
    terms: Terms,
    sent: Arc<Acceptance>,
    by: AcceptedBy,
    seed: Seed,
) -> impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<(users::Head, Answer)> + Send + 'static {
    move |tx: &mut WriteTx<'_>, now: Timestamp| {
        let accepted = super::require_acceptable(tx, &links, terms, &sent, by.user(), now)?;
        if let Some((organization, account)) = accepted.taken_over() {
            while sweeps::end_account(tx, organization, account)? {}
        }
        let (mut draw, sends_mail) = (seed.draw(), terms.sends_mail);
        let (user, body) = super::accept(tx, accepted, sends_mail, &sent, &by, &mut draw, now)?;
        Ok((user, Answer::Created(body)))
    }
}

/// Ends a piece of the account that is about to be taken over. The first piece takes the account's keys, so it comes to
/// nothing more meanwhile.
fn end_piece(
    links: Links,
    terms: Terms,
    sent: Arc<Acceptance>,
) -> impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<(users::Head, Answer)> + Send + 'static {
    move |tx: &mut WriteTx<'_>, now: Timestamp| {
        let accepted = super::require_acceptable(tx, &links, terms, &sent, None, now)?;
        let (organization, account) = accepted.taken_over().ok_or_else(Error::not_found)?;
        sweeps::end_account(tx, organization, account)?;
        let head = tx.head::<User>(&account)?.ok_or_else(Error::not_found)?;
        Ok((head, Answer::Empty))
    }
}

fn ends_in_pieces(app: &App, (organization, account): (OrganizationId, UserId)) -> Result<bool> {
    sweeps::ends_in_pieces(&*app.store().snapshot()?, organization, account)
}

fn terms(app: &App) -> Terms {
    let caps = &app.config().caps;
    Terms { sends_mail: app.sends_mail(), members: caps.members, organizations: caps.organizations }
}
