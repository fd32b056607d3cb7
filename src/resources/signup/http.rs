//! `/api/signup/:id/`, and the page that the links of invites open.

use std::sync::Arc;

use axum::extract::State;

use crate::auth::PublicAccess;
use crate::base::secret::Seed;
use crate::base::tasks::run_to_end;
use crate::config::Caps;
use crate::exchange::idempotency::IdempotencyKey;
use crate::http::html::HtmlPage;
use crate::http::prelude::*;
use crate::ids::{InviteId, OrganizationId, RequesterId, UserId};
use crate::resources::api_keys::IssuedKey;
use crate::resources::cascade_delete;
use crate::resources::invites::InviteLinks;
use crate::resources::users::{self, User};
use crate::store::WriteTx;

use super::api::{InviteOffer, Signup};
use super::{Acceptance, SignupConfig, SignupFields};

const ONE: &str = "/api/signup/{id}/";
const PAGE: &str = "/signup/{id}/";

/// Why some dry runs are refused: a dry run shows the effect of one transaction, and must not hold it for long.
const LARGE_DRY_RUN: &str = "The account has too many memberships for a dry run, because taking it over needs several transactions.";

/// Adds the routes of signup.
pub fn routes(routes: &mut Routes) {
    const WHY: &str = "an invited person may not have an account";
    let read = Requirements::any_key().optional(WHY);
    let write =
        Requirements::scope("user:write").unscoped_key("join an organization").optional(WHY);
    routes.resource("signup", "Accepting invites.");
    routes
        .get(ONE, "signup_retrieve", read, offer)
        .summary("Retrieve an invite.")
        .id::<InviteId>()
        .query::<String>(
            "token",
            "The token from the link of the invite. Optional, but must be valid.",
        )
        .returns_unversioned::<InviteOffer>()
        .may_return(400);
    routes
        .post(ONE, "signup_create", write, accept)
        .summary("Accept an invite, as a new user or with a key of the invited account.")
        .id::<InviteId>()
        .body::<SignupFields>()
        .example(r#"{"token": "Zk3v...", "first_name": "Ben"}"#)
        .returns::<Signup>(201);
    let open = Requirements::public("the page is static and requests its data from the API");
    routes
        .get(PAGE, "signup_page", open, page)
        .summary("Open the page for accepting an invite.")
        .id::<InviteId>()
        .query::<String>(
            "token",
            "The token from the link of the invite, which the page sends to the API.",
        )
        .media_types(&["text/html"]);
}

async fn page() -> HtmlPage<'static> {
    HtmlPage {
        title: "You are invited",
        style: include_str!("page/style.css"),
        script: include_str!("page/script.js"),
        body: include_str!("page/body.html"),
    }
}

async fn offer(
    State(app): State<App>,
    access: PublicAccess,
    PathId(id): PathId<InviteId>,
    query: QueryParams,
) -> ApiResult {
    let tx = app.store().fresh().await?;
    let access = access.caller.map(|caller| caller.user.id);
    let (token, sends_mail) = (query.last("token"), app.sends_mail());
    super::offer(&*tx, app.links(), id.ok(), token, access, sends_mail, app.now())
        .map(ApiResponse::Json)
}

async fn accept(
    State(app): State<App>,
    access: PublicAccess,
    PathId(id): PathId<InviteId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let id = id.ok();
    let sent = Arc::new(Acceptance::of(id, &sent));
    let key =
        id.and_then(|id| Some(access.idempotency.as_ref()?.to_key(RequesterId(id.0), None, None)));
    app.store().refresh().await?;
    if let Some(reply) = app.find_stored_response_public(&access, key.as_ref())? {
        return app.repeat(reply).await;
    }
    let user = access.caller.as_ref().map(|caller| caller.user.id);
    let (links, sends_mail, caps) = (app.links().clone(), app.sends_mail(), app.config().caps);
    let Caps { max_members: members, max_organizations: organizations, .. } = caps;
    let terms = SignupConfig { sends_mail, members, organizations };
    let (tx, now) = (app.store().snapshot()?, app.now());
    let account = super::require_acceptable(&*tx, &links, terms, &sent, user, now)?.taken_over();
    drop(tx);
    let first_key = match user {
        None => Some(app.issue_key(Some(access.consumer), None).await?),
        Some(_) => None,
    };
    let accepting = AcceptInvite { links, terms, sent, user, first_key, seed: app.seed() };
    match account {
        Some(account) => accepting.take_over(app, access, key, account).await,
        None => app.post_public(&access, key, accepting.in_write()).await,
    }
}

/// The acceptance of an invite, with what its transactions need.
struct AcceptInvite {
    links: InviteLinks,
    terms: SignupConfig,
    sent: Arc<Acceptance>,
    /// The user whose API key the request has.
    user: Option<UserId>,
    /// The key of a user without one.
    first_key: Option<IssuedKey>,
    seed: Seed,
}

impl AcceptInvite {
    /// Accepts the invite for an account that is taken over. Its data is deleted first, in several transactions if it is a lot.
    async fn take_over(
        self,
        app: App,
        access: PublicAccess,
        key: Option<IdempotencyKey>,
        account: (OrganizationId, UserId),
    ) -> ApiResult {
        if access.dry_run.is_some() && needs_batches(&app, account)? {
            return Err(Error::limit_reached(LARGE_DRY_RUN));
        }
        // In a separate task, so that a takeover of several transactions completes even if the client disconnects.
        let taking_over = run_to_end(async move {
            while needs_batches(&app, account)? {
                let (links, terms, sent) = (self.links.clone(), self.terms, Arc::clone(&self.sent));
                // The first part includes the keys of the account, so that it can change nothing in the meantime.
                let delete_part = move |tx: &mut WriteTx<'_>, now: Timestamp| {
                    let accepted = super::require_acceptable(tx, &links, terms, &sent, None, now)?;
                    let (organization, account) =
                        accepted.taken_over().ok_or_else(Error::not_found)?;
                    cascade_delete::delete_account_data(tx, organization, account)?;
                    let meta = tx.meta::<User>(&account)?.ok_or_else(Error::not_found)?;
                    Ok((meta, ApiResponse::Empty))
                };
                app.post_public(&access, None, delete_part).await?;
            }
            app.post_public(&access, key, self.in_write()).await
        });
        taking_over.await?
    }

    /// Returns the transaction that accepts the invite and deletes the rest of an account that is taken over.
    fn in_write(
        self,
    ) -> impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<(users::Meta, ApiResponse)> + Send + 'static
    {
        let Self { links, terms, sent, user, first_key, seed } = self;
        move |tx: &mut WriteTx<'_>, now: Timestamp| {
            let accepted = super::require_acceptable(tx, &links, terms, &sent, user, now)?;
            if let Some((organization, account)) = accepted.taken_over() {
                while cascade_delete::delete_account_data(tx, organization, account)? {}
            }
            let (mut rng, sends_mail, key) = (seed.rng(), terms.sends_mail, first_key.as_ref());
            let (user, body) = super::accept(tx, accepted, sends_mail, &sent, key, &mut rng, now)?;
            Ok((user, ApiResponse::Created(body)))
        }
    }
}

fn needs_batches(app: &App, (organization, account): (OrganizationId, UserId)) -> Result<bool> {
    cascade_delete::needs_batches(&*app.store().snapshot()?, organization, account)
}
