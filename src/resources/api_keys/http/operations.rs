//! What a key can do: `/api/personal_api_keys/{id}/operations/` and `/api/personal_api_keys/operations/`.

use axum::extract::State;
use uuid::Uuid;

use crate::auth::{Caller, Global, KeyReach, PathTarget, ReadAccess, WriteAccess};
use crate::error::{Error, Result};
use crate::http::body::JsonBody;
use crate::http::path::PathId;
use crate::http::routes::{RouteSpec, RouteTable};
use crate::ids::ApiKeyId;
use crate::input::Parsed;
use crate::json::{Array, output};
use crate::resources::api_keys::{self, KeyPermissions, PersonalApiKeyAccess};
use crate::response::{ApiResponse, ApiResult};
use crate::state::App;
use crate::store::Tx;
use crate::time::Timestamp;

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
pub(super) async fn of_key(
    app: App,
    access: ReadAccess<Global>,
    PathId(id): PathId<ApiKeyId>,
    table: RouteTable,
) -> ApiResult {
    let (id, now) = (id?, app.now());
    let listed = app.long_reads().read(access, move |tx, at| {
        let key = api_keys::get_own(tx, at.caller.user.id, id)?;
        let key = (id, KeyPermissions::of(key.meta));
        operations(tx, &at.caller, key, table.specs(), now)
    });
    listed.await.map(ApiResponse::Json)
}

/// Lists what a key could do that the caller could create with this access.
pub(super) async fn of_new_key(
    State(app): State<App>,
    access: WriteAccess<Global>,
    JsonBody(sent): JsonBody,
    table: RouteTable,
) -> ApiResult {
    let (wanted, now) = (Parsed::<PersonalApiKeyAccess>::new(&sent), app.now());
    let listed = app.long_reads().read(app.read_access(&access)?, move |tx, at| {
        let grantor = &at.caller.key.permissions;
        let permissions = api_keys::issuable_permissions(tx, grantor, &wanted, now)?;
        let key = (ApiKeyId(Uuid::nil()), permissions);
        operations(tx, &at.caller, key, table.specs(), now)
    });
    listed.await.map(ApiResponse::Json)
}

/// Returns the operations that require a key and can succeed, in the order of the OpenAPI document, as a JSON array.
fn operations(
    tx: &impl Tx,
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
