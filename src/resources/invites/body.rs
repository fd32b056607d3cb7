//! How an invite is shown.

use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{InviteId, OrganizationId};
use crate::json::{self, Object};
use crate::resources::members::Membership;
use crate::resources::users::{self, Embedder};
use crate::store::{Row, Tx};
use crate::time::Timestamp;

use super::project_access;
use super::{Invite, Links, Shown};

/// An invite.
#[derive(ToSchema)]
#[schema(as = Invite)]
pub struct InviteBody {
    /// What does not depend on the moment.
    #[serde(flatten)]
    pub own: Shown,
    /// Whether it cannot be accepted any more.
    pub is_expired: bool,
    /// Who invited them.
    pub created_by: Option<users::Shown>,
}

/// An invite that was just made.
#[derive(ToSchema)]
pub struct CreatedInvite {
    /// The invite.
    #[serde(flatten)]
    pub invite: InviteBody,
    /// The link to hand over, if no mail takes it to the address; null otherwise, and never shown again. If the
    /// service sends mail, only admins and owners are shown it.
    #[schema(format = "uri")]
    pub accept_url: Option<String>,
}

/// The items of a list.
pub(super) struct Items<'l> {
    pub(super) text: json::Items,
    users: Embedder,
    caller: &'l Membership,
}

impl<'l> Items<'l> {
    /// No items yet, for this member.
    pub(super) fn of(caller: &'l Membership) -> Self {
        Self { text: json::Items::default(), users: Embedder::default(), caller }
    }

    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        row: &Row<'_, Invite>,
        now: Timestamp,
    ) -> Result<()> {
        let visible = visible_to(tx, row, self.caller)?;
        self.text.push(|out| {
            let own = visible.as_deref().unwrap_or(row.shown);
            begin(tx, row, own, &mut self.users, now, out)?.end();
            Ok(())
        })
    }
}

/// The invite's own fields without access to projects that the member may not see; none where nothing is left out.
fn visible_to(tx: &impl Tx, row: &Row<'_, Invite>, member: &Membership) -> Result<Option<Vec<u8>>> {
    if member.level.administers() {
        return Ok(None);
    }
    let mut shown: Shown = serde_json::from_slice(row.shown).map_err(Error::internal)?;
    let all = std::mem::take(&mut shown.private_project_access);
    let count = all.len();
    shown.private_project_access = project_access::visible_to(tx, member, all)?;
    if shown.private_project_access.len() == count {
        return Ok(None);
    }
    serde_json::to_vec(&shown).map(Some).map_err(Error::internal)
}

/// The answer to the invite's making: only there is the link shown, and only where no mail takes it to the
/// address and `links` are given.
pub(super) fn created(
    tx: &impl Tx,
    key: (OrganizationId, InviteId),
    links: Option<&Links>,
    now: Timestamp,
) -> Result<Versioned> {
    let mut json = Vec::with_capacity(1024);
    let invite: Invite = tx.get(&key)?;
    let link = links.filter(|_| !invite.shown.emailing_attempt_made);
    let link = link.map(|links| links.to_hand_over(key.1));
    let version = tx.view::<Invite, _>(&key, |row| {
        begin(tx, &row, row.shown, &mut Embedder::default(), now, &mut json)?
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
    users: &mut Embedder,
    now: Timestamp,
    out: &'o mut Vec<u8>,
) -> Result<Object<'o>> {
    Object::begin(out)
        .splice(own)
        .field("is_expired", &row.head.is_expired(now))?
        .with("created_by", |out| users.write(tx, row.head.created_by, out))
}
