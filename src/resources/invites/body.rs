//! The JSON of an invite.

use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, OrganizationId};
use crate::json::{self, Object};
use crate::resources::members::Membership;
use crate::resources::users::{self, EmbeddedUserWriter};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::project_access;
use super::{Fields, Invite, InviteLinks};

/// An invite to an organization.
#[derive(ToSchema)]
#[schema(as = Invite)]
pub struct InviteBody {
    /// The stored fields of the invite.
    #[serde(flatten)]
    pub own: Fields,
    /// Whether the invite has expired.
    pub is_expired: bool,
    /// The member that created the invite.
    pub created_by: Option<users::Fields>,
}

/// An invite that was just created.
#[derive(ToSchema)]
pub struct CreatedInvite {
    /// The invite.
    #[serde(flatten)]
    pub invite: InviteBody,
    /// The link for accepting the invite, if no mail sends it. Shown only once, null otherwise. If the server sends
    /// mail, only admins and owners can see the link.
    #[schema(format = "uri")]
    pub accept_url: Option<String>,
}

/// The items of a list of invites, for one caller.
pub(super) struct InviteItems<'l> {
    pub(super) text: json::JsonItems,
    users: EmbeddedUserWriter,
    caller: &'l Membership,
}

impl<'l> InviteItems<'l> {
    /// Creates an empty list for this caller.
    pub(super) fn of(caller: &'l Membership) -> Self {
        Self { text: json::JsonItems::default(), users: EmbeddedUserWriter::default(), caller }
    }

    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        row: &Row<'_, Invite>,
        now: Timestamp,
    ) -> Result<()> {
        let visible = visible_to(tx, row, self.caller)?;
        self.text.push(|out| {
            let own = visible.as_deref().unwrap_or(row.fields);
            begin(tx, row, own, &mut self.users, now, out)?.end();
            Ok(())
        })
    }
}

/// Returns the stored fields without projects that the member may not see, or `None` if no project has to be removed.
fn visible_to(tx: &impl Tx, row: &Row<'_, Invite>, member: &Membership) -> Result<Option<Vec<u8>>> {
    if member.level.is_admin() {
        return Ok(None);
    }
    let mut fields: Fields = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    let all = std::mem::take(&mut fields.private_project_access);
    let count = all.len();
    fields.private_project_access = project_access::visible_to(tx, member, all)?;
    if fields.private_project_access.len() == count {
        return Ok(None);
    }
    serde_json::to_vec(&fields).map(Some).map_err(Error::internal)
}

/// Returns the response to the creation of an invite. Contains the link if no mail sends it and the caller passes
/// `links`.
pub(super) fn created(
    tx: &impl Tx,
    key: (OrganizationId, InviteId),
    links: Option<&InviteLinks>,
    now: Timestamp,
) -> Result<Versioned> {
    let mut json = Vec::with_capacity(1024);
    let invite: Invite = tx.get(&key)?;
    let link = links.filter(|_| !invite.fields.emailing_attempt_made);
    let link = link.map(|links| links.shared_link(key.1));
    let version = tx.view::<Invite, _>(&key, |row| {
        begin(tx, &row, row.fields, &mut EmbeddedUserWriter::default(), now, &mut json)?
            .field("accept_url", &link)?
            .end();
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

fn begin<'o>(
    tx: &impl Tx,
    row: &Row<'_, Invite>,
    own: &[u8],
    users: &mut EmbeddedUserWriter,
    now: Timestamp,
    out: &'o mut Vec<u8>,
) -> Result<Object<'o>> {
    Object::begin(out)
        .splice(own)
        .field("is_expired", &row.meta.is_expired(now))?
        .with("created_by", |out| users.write(tx, row.meta.created_by, out))
}
