//! `/api/users/@me/sessions/`.

use crate::http::prelude::*;
use crate::ids::SessionId;

use super::api::SessionBody;

const LIST: &str = "/api/users/@me/sessions/";
const ONE: &str = "/api/users/@me/sessions/{id}/";

/// Adds the routes of sessions.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("user:read");
    let write = Requirements::scope("user:write");
    routes.resource("sessions", "The browsers that are signed in to the console as you.");
    routes
        .get(LIST, "users_sessions_list", read, list)
        .summary("List your console sessions, newest first.")
        .returns_all::<SessionBody>();
    routes
        .delete(ONE, "users_sessions_destroy", write, destroy)
        .summary("End one of your console sessions. Requests in it fail immediately.")
        .id::<SessionId>();
}

async fn list(at: ReadAccess<Global>) -> ApiResult {
    let now = at.app.now();
    let listed = at.read(move |tx, at| {
        let caller = &at.caller;
        let sees_keys = caller.key.has_scope("personal_api_key:read");
        super::api::list(tx, caller.user.id, caller.key.session, sees_keys, now)
    });
    listed.await.map(ApiResponse::Json)
}

async fn destroy(at: WriteAccess<Global>, PathId(id): PathId<SessionId>) -> ApiResult {
    let id = id?;
    let end = at.change(move |tx, caller, _: &Global, now| {
        super::end(tx, caller.user.id, id, now)?;
        Ok(caller.user.id)
    });
    let user = end.await?;
    if at.dry_run.is_none() {
        tracing::info!(session = %id, %user, "session ended by its user");
    }
    Ok(ApiResponse::NoContent)
}
