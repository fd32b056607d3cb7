//! The request bodies that create invites.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::input;
use crate::input::{Choice, Email, FieldType, Flag, JsonObject, Nullable, Parsed, Required, Text};
use crate::resources::members::{Level, Levels, Membership};
use crate::time::Timestamp;

use super::Fields;
use super::project_access::ProjectAccessList;

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
        level: Choice<Levels>,
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
        let level = sent.get("level").and_then(|level| Choice::<Levels>::read(level).ok());
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

/// The invites to create with one request: an array, or a single object.
#[derive(Debug, Clone)]
pub struct NewInvites(Result<Vec<NewInvite>>);

impl NewInvites {
    /// Parses a request body.
    pub fn of(sent: Value) -> Self {
        Self(read_all(sent))
    }

    /// Returns the 1 to 20 invites.
    ///
    /// # Errors
    /// 400 if the body is neither an array nor an object, if the array is empty or too long, or if an element is not an
    /// object.
    pub fn get(&self) -> Result<&[NewInvite]> {
        self.0.as_deref().map_err(Clone::clone)
    }
}

fn read_all(sent: Value) -> Result<Vec<NewInvite>> {
    let items = match sent {
        Value::Array(items) => items,
        one @ Value::Object(_) => vec![one],
        _ => {
            return Err(Error::invalid(
                "invalid_input",
                "This endpoint needs an array of data for bulk invite creation.",
            ));
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
        .map(|(index, item)| match input::require_object(item) {
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
