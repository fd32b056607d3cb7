//! `/api/personal_api_keys/`.

use uuid::Uuid;

use crate::auth::{KeyReach, PathTarget};
use crate::base::json::{Array, output};
use crate::exchange::idempotency::IdempotencyRequest;
use crate::http::prelude::*;
use crate::http::routes::RouteTable;
use crate::ids::ApiKeyId;
use crate::resources::api_keys::{self, KeyPermissions};

use super::api::PersonalApiKeyBody;
use super::{ApiKey, PersonalApiKeyAccess, PersonalApiKeyFields, PersonalApiKeyPatch, RollFields};

const LIST: &str = "/api/personal_api_keys/";
const CURRENT: &str = "/api/personal_api_keys/@current/";
const ONE: &str = "/api/personal_api_keys/{id}/";
const OPERATIONS: &str = "/api/personal_api_keys/operations/";
const OPERATIONS_OF_ONE: &str = "/api/personal_api_keys/{id}/operations/";
const ROLL: &str = "/api/personal_api_keys/{id}/roll/";

/// Adds the routes of API keys.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("personal_api_key:read");
    let write = Requirements::scope("personal_api_key:write");
    routes.resource("personal_api_keys", "The credentials with which programs act for you.");
    routes
        .get(LIST, "personal_api_keys_list", read, list)
        .summary("List your keys, newest first.")
        .returns_all::<PersonalApiKeyBody>();
    routes
        .post(LIST, "personal_api_keys_create", write, create)
        .summary("Create a key with at most the access of the key that makes the request. The value is shown only once.")
        .body::<PersonalApiKeyFields>()
        .example(r#"{"label": "Nightly report", "scopes": ["dashboard:read"]}"#)
        .returns::<PersonalApiKeyBody>(201);
    routes
        .get(CURRENT, "personal_api_keys_current", Requirements::any_key(), current)
        .summary("Retrieve the key that makes the request.")
        .may_return(404)
        .returns::<PersonalApiKeyBody>(200);
    routes
        .get(ONE, "personal_api_keys_retrieve", read, retrieve)
        .summary("Retrieve one of your keys.")
        .id::<ApiKeyId>()
        .returns::<PersonalApiKeyBody>(200);
    routes
        .patch(ONE, "personal_api_keys_partial_update", write, update)
        .summary("Update a key. The key that makes the request must have at least the same access.")
        .id::<ApiKeyId>()
        .body::<PersonalApiKeyPatch>()
        .example(r#"{"label": "Weekly report"}"#)
        .returns::<PersonalApiKeyBody>(200);
    routes
        .delete(ONE, "personal_api_keys_destroy", write, destroy)
        .summary("Revoke a key. Requests with it fail immediately.")
        .id::<ApiKeyId>();
    routes
        .post(ROLL, "personal_api_keys_roll_create", write, roll)
        .summary("Replace the value of a key. The new value is shown only once.")
        .id::<ApiKeyId>()
        .body::<RollFields>()
        .example(r#"{"grace_seconds": 3600}"#)
        .returns::<PersonalApiKeyBody>(200);
    let table = routes.table();
    let of_key = move |at, id| of_key(at, id, table.clone());
    routes
        .get(OPERATIONS_OF_ONE, "personal_api_keys_operations_list", read, of_key)
        .summary(
            "List what one of your keys can do: each operation, and why the key cannot use it.",
        )
        .id::<ApiKeyId>()
        .returns_all::<KeyOperation>();
    let table = routes.table();
    let of_new_key = move |at, body| of_new_key(at, body, table.clone());
    routes
        .post(OPERATIONS, "personal_api_keys_operations_create", read, of_new_key)
        .summary(
            "List what a key with this access could do, before you create it. Changes nothing.",
        )
        .only_reads()
        .body::<PersonalApiKeyAccess>()
        .example(r#"{"scopes": ["dashboard:read"]}"#)
        .returns_all::<KeyOperation>();
}

async fn list(at: ReadAccess<Global>) -> ApiResult {
    at.read(|tx, at| super::list(tx, at.caller.user.id)).await.map(ApiResponse::Json)
}

async fn current(at: ReadAccess<Global>) -> ApiResult {
    let id = at.caller.key.id.ok_or_else(Error::not_found)?;
    super::body(at.tx(), id).map(ApiResponse::Object)
}

async fn retrieve(at: ReadAccess<Global>, PathId(id): PathId<ApiKeyId>) -> ApiResult {
    let id = super::get_own(at.tx(), at.caller.user.id, id?)?.meta.id;
    super::body(at.tx(), id).map(ApiResponse::Object)
}

async fn create(mut at: WriteAccess<Global>, JsonBody(sent): JsonBody) -> ApiResult {
    // The new key takes what the body leaves out from the caller's key.
    at.idempotency = at.idempotency.map(IdempotencyRequest::inheriting_key_scope);
    let new = Parsed::<PersonalApiKeyFields>::new(&sent);
    let stored = at.find_stored_response(|tx, caller, now| {
        super::require_issuable(tx, &caller.key.permissions, &new, now)
    });
    if let Some(reply) = stored? {
        return at.app.repeat(reply).await;
    }
    let issued = at.app.issue_key(Some(at.consumer), None).await?;
    at.post(move |tx, caller, _: &Global, now| {
        super::issue(tx, &caller.key.permissions, &new, &issued, now)?;
        super::body_with(tx, issued.id, Some(&issued.value)).map(ApiResponse::Created)
    })
    .await
}

async fn update(
    at: WriteAccess<Global>,
    PathId(id): PathId<ApiKeyId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, Parsed::<PersonalApiKeyPatch>::new(&sent));
    at.update::<ApiKey>(move |tx, caller, _: &Global, now| {
        super::update(tx, &caller.key.permissions, id, &patch, now)?;
        Ok((id, super::body(tx, id)?))
    })
    .await
}

async fn destroy(at: WriteAccess<Global>, PathId(id): PathId<ApiKeyId>) -> ApiResult {
    let id = id?;
    at.delete::<ApiKey>(move |tx, caller, _: &Global, _| {
        super::revoke(tx, &caller.key.permissions, id)?;
        Ok(id)
    })
    .await
}

async fn roll(
    at: WriteAccess<Global>,
    PathId(id): PathId<ApiKeyId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, sent) = (id?, Parsed::<RollFields>::new(&sent));
    let stored = at.find_stored_response(|tx, caller, _| {
        super::require_can_rotate(tx, &caller.key.permissions, id, &sent)
    });
    if let Some(reply) = stored? {
        return at.app.repeat(reply).await;
    }
    let issued = at.app.issue_key(Some(at.consumer), Some(id)).await?;
    at.post(move |tx, caller, _: &Global, now| {
        super::rotate(tx, &caller.key.permissions, &issued, &sent, now)?;
        super::body_with(tx, id, Some(&issued.value)).map(ApiResponse::Object)
    })
    .await
}

output! {
    /// An operation of the API, and whether a key could use it.
    pub struct KeyOperation<'a> {
        /// The id of the operation in the OpenAPI document.
        operation: &'a str as String,
        /// The HTTP method.
        method: &'a str as String,
        /// The path, with its parameters in braces.
        path: &'a str as String,
        /// What the operation does.
        summary: &'a str as String,
        /// The resource of the operation, its tag in the OpenAPI document.
        resource: &'a str as String,
        /// The scope that the operation requires; null if any key may use it.
        scope: Option<&'a str> as Option<String>,
        /// Whether the key passes the authorization of the operation in at least one organization or project that it
        /// reaches.
        allowed: bool,
        /// Why the key cannot use the operation; null if it can.
        reason: Option<&'a str> as Option<String>,
    }
}

/// Lists what one of the caller's keys can do.
async fn of_key(
    at: ReadAccess<Global>,
    PathId(id): PathId<ApiKeyId>,
    table: RouteTable,
) -> ApiResult {
    let (id, now) = (id?, at.app.now());
    let listed = at.read(move |tx, at| {
        let key = api_keys::get_own(tx, at.caller.user.id, id)?;
        let key = (id, KeyPermissions::of(key.meta));
        operations(tx, &at.caller, key, table.specs(), now)
    });
    listed.await.map(ApiResponse::Json)
}

/// Lists what a key could do that the caller could create with this access.
async fn of_new_key(
    at: WriteAccess<Global>,
    JsonBody(sent): JsonBody,
    table: RouteTable,
) -> ApiResult {
    let (wanted, now) = (Parsed::<PersonalApiKeyAccess>::new(&sent), at.app.now());
    let listed = at.read_access()?.read(move |tx, at| {
        let grantor = &at.caller.key.permissions;
        let permissions = api_keys::issuable_permissions(tx, grantor, &wanted, now)?;
        let key = (ApiKeyId(Uuid::nil()), permissions);
        operations(tx, &at.caller, key, table.specs(), now)
    });
    listed.await.map(ApiResponse::Json)
}

/// Returns the operations that require a key and can succeed, in the order of the OpenAPI document, as a JSON array.
fn operations(
    tx: &dyn Raw,
    requester: &Caller,
    key: (ApiKeyId, KeyPermissions),
    specs: &[RouteSpec],
    now: Timestamp,
) -> Result<Vec<u8>> {
    let mut reach = KeyReach::of(tx, requester, key, now)?;
    let mut out = Vec::with_capacity(256 * specs.len());
    let listed = specs.iter().filter(|spec| !spec.is_public() && spec.status < 400);
    Array::write(&mut out, |array| {
        for spec in listed {
            let route = (spec.requirements, PathTarget::of(spec.path));
            let refusal = reach.refusal(tx, route)?;
            array.push(KeyOperation {
                operation: spec.operation,
                method: spec.method.as_str(),
                path: spec.path,
                summary: spec.summary,
                resource: spec.resource.name,
                scope: spec.requirements.scope,
                allowed: refusal.is_none(),
                reason: refusal.as_ref().map(Error::detail),
            })?;
        }
        Ok(())
    })?;
    Ok(out)
}
