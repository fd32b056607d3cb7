//! Requests with an idempotency key: their identity, and what happens when they are repeated.

use crate::auth::authorize::AuthContext;
use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::exchange::idempotency::{self, IdempotencyKey, IdempotencyRequest, IdempotentResponse};
use crate::ids::RequesterId;
use crate::resources::api_keys::KeyPermissions;
use crate::store::WriteTx;

/// Completes the idempotency key with the tenant of the request's path. If the body inherits rights from the caller's
/// key, these become part of the request's identity too.
pub(super) fn idempotency_key(
    sent: Option<&IdempotencyRequest>,
    context: &AuthContext,
) -> Result<Option<IdempotencyKey>> {
    let Some(sent) = sent else { return Ok(None) };
    let AuthContext { caller, member, project } = context;
    let by = RequesterId(caller.user.uuid.0);
    let (organization, project) =
        (member.as_ref().map(|member| member.organization), project.as_ref().map(|one| one.id));
    if !sent.inherits_key_scope() {
        return Ok(Some(sent.to_key(by, organization, project)));
    }
    let KeyPermissions { user: _, scopes, organizations, projects, expires_at } =
        &caller.key.permissions;
    let held = serde_json::to_vec(&(scopes, organizations, projects, expires_at));
    Ok(Some(sent.with_context(&held.map_err(Error::internal)?).to_key(by, organization, project)))
}

/// Runs `rule` unless the request was performed before. In that case a dry run only checks that the caller still has
/// the rights, and the inner error is the response of the first time. `reply` returns the response to store.
pub(super) fn run_idempotent<T>(
    tx: &mut WriteTx<'_>,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
    rule: &mut dyn FnMut(&mut WriteTx<'_>) -> Result<T>,
    reply: fn(&T) -> IdempotentResponse,
) -> Result<Result<T, IdempotentResponse>> {
    let Some(key) = key else { return rule(tx).map(Ok) };
    if let Some(reply) = idempotency::find(tx, key, now)? {
        return match tx.dry_run(rule) {
            Err(refused) if is_not_bad_request(&refused) => Err(refused),
            _ => Ok(Err(reply)),
        };
    }
    let done = rule(tx)?;
    idempotency::store(tx, key, &reply(&done), now)?;
    Ok(Ok(done))
}

/// Whether a repeated request must fail with this error. A 400 may only be a consequence of the first request.
pub(super) fn is_not_bad_request(refused: &Error) -> bool {
    !matches!(refused.status(), 400)
}
