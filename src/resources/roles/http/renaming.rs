//! Renames a role and renders it, for `PATCH` and `PUT`.

use crate::auth::{Caller, InOrganization, WriteAccess};
use crate::error::Result;
use crate::ids::RoleId;
use crate::resources::roles::{self, Role};
use crate::response::{ApiResponse, ApiResult};
use crate::state::{App, LargeResponse};
use crate::store::{AnyTx, WriteTx};
use crate::time::Timestamp;

/// Renames a role if `name` returns a name. Its error counts only if the role exists.
pub(super) async fn rename(
    app: App,
    access: WriteAccess<InOrganization>,
    id: RoleId,
    name: impl Fn() -> Result<Option<String>> + Send + Sync + 'static,
) -> ApiResult {
    let expected = access.if_match.clone();
    let rule = move |tx: &mut WriteTx<'_>,
                     _: &Caller,
                     tenant: &InOrganization,
                     _: Timestamp,
                     large: &LargeResponse| {
        let organization = tenant.member.organization;
        let is_long = roles::is_expensive(tx, organization, id)?;
        if is_long {
            large.require_reserved(0)?;
        }
        roles::rename(tx, organization, id, &name)?;
        expected.require::<Role>(tx, &(organization, id))?;
        if is_long {
            tx.end_batch();
            return Ok(None);
        }
        roles::body(tx, organization, id).map(Some)
    };
    let render = move |tx: &AnyTx<'_>, _: &Caller, tenant: &InOrganization| {
        roles::body(tx, tenant.member.organization, id)
    };
    app.change_and_render(&access, rule, render).await.map(ApiResponse::Object)
}
