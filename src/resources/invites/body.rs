//! The JSON of an invite.

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, OrganizationId};
use crate::json::{JsonItems, JsonText, WriteJson, output};
use crate::resources::members::Membership;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::project_access;
use super::{Fields, Invite, InviteLinks, Meta};

output! {
    /// An invite to an organization.
    pub struct InviteBody<'a> as Invite {
        /// The stored fields of the invite.
        ..own: JsonText<'a, Fields> as Fields,
        /// Whether the invite has expired.
        is_expired: bool,
        /// When the invite expires.
        expires_at: Timestamp,
        /// The member that created the invite.
        created_by: EmbeddedUser as Option<users::Fields>,
    }
}

output! {
    /// An invite that was just created.
    pub struct CreatedInvite<'a> {
        /// The invite.
        ..invite: InviteBody<'a>,
        /// The link for accepting the invite, if no mail sends it. Shown only once, null otherwise. If the server sends
        /// mail, only admins and owners can see the link.
        #[schema(format = "uri")]
        accept_url: Option<&'a str> as Option<String>,
    }
}

/// The items of a list of invites, for one caller.
pub(super) struct InviteItems<'l> {
    pub(super) text: JsonItems,
    users: EmbeddedUsers,
    caller: &'l Membership,
}

impl<'l> InviteItems<'l> {
    /// Creates an empty list for this caller.
    pub(super) fn of(caller: &'l Membership) -> Self {
        Self { text: JsonItems::default(), users: EmbeddedUsers::default(), caller }
    }

    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        row: &Row<'_, Invite>,
        now: Timestamp,
    ) -> Result<()> {
        let visible = visible_to(tx, row, self.caller)?;
        let own = visible.as_deref().map_or_else(|| row.json(), JsonText::new);
        let invite = body(tx, &row.meta, own, &mut self.users, now)?;
        self.text.push(invite)
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
        let invite = body(tx, &row.meta, row.json(), &mut EmbeddedUsers::default(), now)?;
        CreatedInvite { invite, accept_url: link.as_deref() }.write_json(&mut json)?;
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

fn body<'a>(
    tx: &impl Tx,
    meta: &Meta,
    own: JsonText<'a, Fields>,
    users: &mut EmbeddedUsers,
    now: Timestamp,
) -> Result<InviteBody<'a>> {
    Ok(InviteBody {
        own,
        is_expired: meta.is_expired(now),
        expires_at: meta.expires_at,
        created_by: users.find(tx, meta.created_by)?,
    })
}
