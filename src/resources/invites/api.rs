//! What the API reads and shows of invites, and what invites declare about their records.

use crate::ids::InviteId;
use crate::input::{Choice, Email, Flag, Nullable, Required, Text, require_object};
use crate::resources::members::{Level, Membership};
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};

use super::project_access::{self, ProjectAccessList};
use super::{
    BY_SERIAL, Fields, Invite, InviteKey, InviteLinks, InviteMail, Meta, delete_created_by,
};

/// The maximum number of invites in a request.
pub(super) const MAX_PER_REQUEST: usize = 20;

input! {
    /// The invite to create.
    pub struct InviteFields {
        /// The address of the person to invite.
        target_email: Required<Email>,
        /// The name to greet the person with.
        first_name: Text<30>,
        /// The level of the new member: 1 member, 8 admin, 15 owner.
        level: Choice<Level>,
        /// A message for the person, as plain text.
        message: Nullable<Text<1000>>,
        /// The private projects that the new member may access.
        private_project_access: Nullable<ProjectAccessList>,
        /// Whether to send the invite by mail. Default true.
        send_email: Flag,
        /// Whether the new invite also grants what a pending invite for the same address grants.
        combine_pending_invites: Flag,
    }
}

/// An invite to create. Its level is checked before its other fields, so it is parsed separately.
#[derive(Debug, Clone)]
pub struct NewInvite {
    level: Option<Level>,
    /// The fields of the invite.
    pub fields: Parsed<InviteFields>,
}

impl NewInvite {
    /// Parses a request body.
    pub fn of(sent: &JsonObject) -> Self {
        let level = sent.get("level").and_then(|level| Choice::<Level>::read(level).ok());
        Self { level, fields: Parsed::new(sent) }
    }

    /// Checks that the level is not above the caller's own.
    ///
    /// # Errors
    /// 403 if the level is above the caller's.
    pub fn require_level_within(&self, caller: &Membership) -> Result<()> {
        if self.level.is_some_and(|level| level > caller.level) {
            return Err(Error::denied(
                "You cannot invite a user with a higher permission level than your own.",
            ));
        }
        Ok(())
    }
}

/// Parses the 1 to 20 invites to create with one request: an array, or a single object.
///
/// # Errors
/// 400 if the body is neither an array nor an object, if the array is empty or too long, or if an element is not an
/// object.
pub(super) fn read_all(sent: Value) -> Result<Vec<NewInvite>> {
    let items = match sent {
        Value::Array(items) => items,
        one @ Value::Object(_) => vec![one],
        _ => {
            return Err(invalid("This endpoint needs an array of data for bulk invite creation."));
        }
    };
    if items.is_empty() {
        return Err(Error::invalid("empty", "This list may not be empty."));
    }
    if items.len() > MAX_PER_REQUEST {
        let detail =
            format!("A maximum of {MAX_PER_REQUEST} invites can be sent in a single request.");
        return Err(Error::invalid("max_length", detail));
    }
    let numbered = items.into_iter().enumerate();
    numbered
        .map(|(index, item)| match require_object(item) {
            Ok(sent) => Ok(NewInvite::of(&sent)),
            Err(error) => Err(at_index(index, error)),
        })
        .collect()
}

/// Adds the index of the element to an error, as in `0__level`.
pub(super) fn at_index(index: usize, error: Error) -> Error {
    match (error.status(), error.attr()) {
        (400, Some(_)) => error.with_attr_prefix(&index.to_string()),
        (400, None) => {
            error.with_attr_prefix("non_field_errors").with_attr_prefix(&index.to_string())
        }
        _ => error,
    }
}

/// Returns the stored fields of a new invite.
pub(super) fn fields_of(
    new: InviteFields,
    id: InviteId,
    sends_mail: bool,
    now: Timestamp,
) -> Fields {
    let send_email = new.send_email.unwrap_or(true);
    Fields {
        id,
        target_email: new.target_email,
        first_name: new.first_name.unwrap_or_default(),
        emailing_attempt_made: sends_mail && send_email,
        level: new.level.unwrap_or(Level::Member),
        created_at: now,
        updated_at: now,
        message: new.message.value(),
        private_project_access: new.private_project_access.value().unwrap_or_default(),
        send_email,
        combine_pending_invites: new.combine_pending_invites.unwrap_or(false),
    }
}

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

/// Lists the invites of the caller's organization. Returns the total and the items in `window` as the items of a JSON
/// array, without projects that the caller may not see.
pub fn list(
    tx: &dyn Raw,
    caller: &Membership,
    window: Window,
    now: Timestamp,
) -> Result<(u64, Vec<u8>)> {
    let (mut items, mut users) = (JsonItems::default(), EmbeddedUsers::default());
    let count = walk_page(tx, &BY_SERIAL, &caller.organization, window, |row| {
        let visible = visible_to(tx, &row, caller)?;
        let own = visible.as_deref().map_or_else(|| row.json(), JsonText::new);
        items.push(body(tx, &row.meta, own, &mut users, now)?)
    })?;
    Ok((count, items.into_bytes()))
}

/// Returns the stored fields without projects that the member may not see, or `None` if no project has to be removed.
fn visible_to(tx: &dyn Raw, row: &Row<'_, Invite>, member: &Membership) -> Result<Option<Vec<u8>>> {
    if member.level.is_admin() {
        return Ok(None);
    }
    let mut fields: Fields = parse_fields(row)?;
    let all = std::mem::take(&mut fields.private_project_access);
    let count = all.len();
    fields.private_project_access = project_access::visible_to(tx, member, all)?;
    if fields.private_project_access.len() == count {
        return Ok(None);
    }
    serde_json::to_vec(&fields).map(Some).map_err(Error::internal)
}

/// Returns the JSON of a new invite, with its link if no mail was queued and the caller passes `links`.
///
/// # Errors
/// 404 if the invite does not exist.
pub(super) fn created(
    tx: &dyn Raw,
    key: InviteKey,
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
    tx: &dyn Raw,
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

/// The records of invites.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Invite>()
        .logged()
        .deleted_with_organization()
        .deleted_with_member(delete_created_by)
        .numbered(|invite| invite.meta.serial)
        .names_users(|invite, visit| invite.meta.created_by.iter_mut().for_each(visit)),
    &record::<InviteMail>().deleted_with_organization(),
];

/// The entry shows who created the invite, because any member may delete or replace it.
impl Loggable for Invite {
    const SCOPE: &'static str = "OrganizationInvite";
    const LOG_ALL_FIELDS: bool = true;

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        Ok(Some(row.meta.address.clone()))
    }

    fn fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([
            ("target_email".to_owned(), json!(row.meta.address)),
            ("level".to_owned(), json!(row.meta.level)),
            ("created_by".to_owned(), json!(users::find_email(tx, row.meta.created_by)?)),
        ]))
    }
}
