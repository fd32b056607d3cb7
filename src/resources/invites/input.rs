//! What is sent to invite somebody.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::input;
use crate::input::{Choice, Email, Flag, JsonObject, Kind, Nullable, Parsed, Required, Text};
use crate::resources::members::{Level, Levels, Membership};
use crate::time::Timestamp;

use super::Shown;
use super::project_access::Accesses;

/// How many invites one request may make.
pub(super) const MAX_AT_ONCE: usize = 20;

input! {
    /// An invite to make.
    pub struct InviteFields {
        /// Whom to invite.
        target_email: Required<Email>,
        /// What to call them.
        first_name: Text<30>,
        /// The level at which they join: 1 member, 8 admin, 15 owner.
        level: Choice<Levels>,
        /// What to tell them, as plain text.
        message: Nullable<Text<1000>>,
        /// The private projects that they get access to.
        private_project_access: Nullable<Accesses>,
        /// Whether to send a mail.
        send_email: Flag,
        /// Whether to take over what a pending invite for the same address gives.
        combine_pending_invites: Flag,
    }
}

/// An invite to make. Whether its level is within the inviter's own is asked before its fields are looked at.
#[derive(Debug, Clone)]
pub struct NewInvite {
    level: Option<Level>,
    /// Its fields.
    pub fields: Parsed<InviteFields>,
}

impl NewInvite {
    /// The invite that a body asks for.
    pub fn of(sent: &JsonObject) -> Self {
        let level = sent.get("level").and_then(|level| Choice::<Levels>::read(level).ok());
        Self { level, fields: Parsed::of(sent) }
    }

    /// Lets nobody invite above their own level.
    ///
    /// # Errors
    /// 403 where it is above.
    pub fn require_level_within(&self, caller: &Membership) -> Result<()> {
        if self.level.is_some_and(|level| level > caller.level) {
            return Err(Error::denied(
                "You cannot invite a user with a higher permission level than your own.",
            ));
        }
        Ok(())
    }
}

/// The invites that one body asks for: an array of them, or a single one.
#[derive(Debug, Clone)]
pub struct NewInvites(Result<Vec<NewInvite>>);

impl NewInvites {
    /// The invites that a body asks for.
    pub fn of(sent: Value) -> Self {
        Self(read_all(sent))
    }

    /// The invites, 1 to 20.
    ///
    /// # Errors
    /// 400 for a body that is neither an array nor an object, for an empty or too long array, and for an
    /// element that is no object.
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
    if items.len() > MAX_AT_ONCE {
        let detail = format!("A maximum of {MAX_AT_ONCE} invites can be sent in a single request.");
        return Err(Error::invalid("max_length", detail));
    }
    let numbered = items.into_iter().enumerate();
    numbered
        .map(|(index, item)| match input::object(item) {
            Ok(sent) => Ok(NewInvite::of(&sent)),
            Err(error) => Err(at(index, error)),
        })
        .collect()
}

/// The same refusal, reported at the element's index.
pub(super) fn at(index: usize, error: Error) -> Error {
    match (error.status(), error.attr()) {
        (400, Some(_)) => error.within(&index.to_string()),
        (400, None) => error.within("non_field_errors").within(&index.to_string()),
        _ => error,
    }
}

/// The stored form of what was sent.
pub(super) fn shown(fields: InviteFields, id: InviteId, sends_mail: bool, now: Timestamp) -> Shown {
    let InviteFields {
        target_email,
        first_name,
        level,
        message,
        private_project_access,
        send_email,
        combine_pending_invites,
    } = fields;
    let send_email = send_email.unwrap_or(true);
    Shown {
        id,
        target_email,
        first_name: first_name.unwrap_or_default(),
        emailing_attempt_made: sends_mail && send_email,
        level: level.unwrap_or(Level::Member),
        created_at: now,
        updated_at: now,
        message: message.value(),
        private_project_access: private_project_access.value().unwrap_or_default(),
        send_email,
        combine_pending_invites: combine_pending_invites.unwrap_or(false),
    }
}
