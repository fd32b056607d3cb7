//! The outbox: mails that wait to be sent, durable like everything else.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ids::{InviteId, LetterId, OrganizationId, UserId};
use crate::store::{Index, Indexed, Record, Table, WriteTx};
use crate::time::Timestamp;

/// A mail that waits to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    /// Its id; an invite's letter has the invite's own.
    pub id: LetterId,
    /// The organization in whose name it is sent.
    pub organization: OrganizationId,
    /// What it tells.
    pub about: About,
    /// When it was written.
    pub written_at: Timestamp,
    /// When it is to be sent, or sent again.
    pub due_at: Timestamp,
    /// How often it was tried in vain.
    pub attempts: u32,
}

/// What a letter tells, and to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum About {
    /// To an invite's address: how to join.
    Invite {
        /// The invite.
        invite: InviteId,
        /// Its address.
        to: String,
    },
    /// To each of the organization's admins and owners: who joined. Becomes a letter to each of them.
    Joining {
        /// Who joined.
        user: UserId,
    },
    /// To one of them.
    Joined {
        /// Who joined.
        user: UserId,
        /// The address.
        to: String,
    },
}

/// The letters in the order in which they are due.
pub const BY_DUE: Index<Letter, Timestamp> =
    Index::many(Table::OutboxByDue, |letter| Some(letter.due_at));

impl Record for Letter {
    const TABLE: Table = Table::Outbox;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_DUE];
    type Key = LetterId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> LetterId {
        self.id
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }
}

/// Puts a letter into the outbox, to be sent at once.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn post(
    tx: &mut WriteTx<'_>,
    id: LetterId,
    organization: OrganizationId,
    about: About,
    now: Timestamp,
) -> Result<()> {
    tx.put(&Letter { id, organization, about, written_at: now, due_at: now, attempts: 0 })
}

/// Takes a letter back that was not sent yet, if it was not.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn withdraw(tx: &mut WriteTx<'_>, id: LetterId) -> Result<()> {
    tx.remove::<Letter>(&id).map(drop)
}
