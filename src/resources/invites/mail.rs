//! The state of an invite's mail. A record of its own: mail does not change the version of an invite.

use crate::ids::{InviteId, OutboxMessageId};
use crate::mail::compose::Delivery;
use crate::mail::outbox::{self, OutboxMessage};
use crate::mail::worker::CurrentAttempt;
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;

use super::{BY_SERIAL, Fields, Invite, InviteKey};

/// What became of an invite's mail. Stored after the first attempt, and deleted with the invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteMail {
    /// The organization of the invite.
    pub organization: OrganizationId,
    /// The invite.
    pub invite: InviteId,
    /// When the mail was added to the outbox.
    pub queued_at: Timestamp,
    /// The number of attempts.
    pub attempts: u32,
    /// When the mail server accepted the mail.
    pub sent_at: Option<Timestamp>,
    /// Why the last attempt failed, or why no attempt was made.
    pub last_error: Option<String>,
}

impl_record!(InviteMail {
    table: InviteMails,
    key: |mail| -> InviteKey { (mail.organization, mail.invite) },
    owner: |mail, _| Ok(Some(mail.organization.owner())),
    references: |mail| [Reference::to::<Invite>(&(mail.organization, mail.invite))],
});

/// The states of an invite's mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum InviteMailState {
    /// The invite is not mailed.
    None,
    /// The mail waits in the outbox.
    Queued,
    /// The mail is being sent.
    Sending,
    /// The mail server accepted the mail.
    Sent,
    /// The mail was given up.
    Failed,
    /// The mail waited when its organization was exported, and did not move with it.
    Unknown,
}

output! {
    /// The state of an invite's mail.
    pub struct InviteMailBody as InviteMail {
        /// `none`: the invite is not mailed. `queued`: the mail waits in the outbox. `sending`: it is being sent. `sent`:
        /// the mail server accepted it. `failed`: it was given up. `unknown`: it waited when its organization was exported,
        /// and did not move with it.
        state: InviteMailState,
        /// When the mail was added to the outbox.
        queued_at: Option<Timestamp>,
        /// When the mail server accepted the mail.
        sent_at: Option<Timestamp>,
        /// The number of finished attempts.
        attempts: u32,
        /// When the next attempt is due. The limits on mail may delay it. Null if no attempt follows, or if the server
        /// sends no mail.
        next_attempt_at: Option<Timestamp>,
        /// Why the last attempt failed: the mail server's reply without addresses, at most 300 characters, or a sentence.
        /// Null if the mail was sent.
        last_error: Option<String>,
    }
}

output! {
    /// The state of the mail of an invite in a list.
    pub struct ListedInviteMail {
        /// ID of the invite.
        invite: InviteId,
        /// The state of its mail.
        ..mail: InviteMailBody,
    }
}

/// What the service knows about its outgoing mail besides the data file.
#[derive(Debug, Clone)]
pub struct MailService {
    /// Whether a mail server is configured.
    pub sends_mail: bool,
    /// The mails that are being sent.
    pub current: Vec<CurrentAttempt>,
}

/// Returns the JSON of the state of an invite's mail.
///
/// # Errors
/// 404 if the invite does not exist.
pub fn mail_body(tx: &dyn Raw, key: InviteKey, service: &MailService) -> Result<Vec<u8>> {
    let invite: Invite = tx.get(&key)?;
    mail_of(tx, &invite.fields, key.0, service)?.to_json(256)
}

/// Lists the states of the mails of an organization's invites, in the order of the list of invites. Returns the number of
/// invites, and the states of those in `window` as the items of a JSON array.
pub fn list_mails(
    tx: &dyn Raw,
    organization: OrganizationId,
    window: Window,
    service: &MailService,
) -> Result<(u64, Vec<u8>)> {
    let mut items = JsonItems::default();
    let count = walk_page(tx, &BY_SERIAL, &organization, window, |row| {
        let fields: Fields = row.json().parse()?;
        let mail = mail_of(tx, &fields, organization, service)?;
        items.push(ListedInviteMail { invite: fields.id, mail })
    })?;
    Ok((count, items.into_bytes()))
}

fn mail_of(
    tx: &dyn Raw,
    invite: &Fields,
    organization: OrganizationId,
    service: &MailService,
) -> Result<InviteMailBody> {
    let queued = outbox::find(tx, outbox_id(invite.id))?;
    let mail = tx.meta::<InviteMail>(&(organization, invite.id))?;
    Ok(match (queued, mail) {
        (Some(message), mail) => {
            let is_sending = service.current.contains(&(message.id, message.attempts));
            let waits = service.sends_mail && !is_sending;
            InviteMailBody {
                state: if is_sending { InviteMailState::Sending } else { InviteMailState::Queued },
                queued_at: Some(message.written_at),
                attempts: message.attempts,
                next_attempt_at: Some(message.retry_at).filter(|_| waits),
                last_error: mail.and_then(|mail| mail.last_error),
                ..NO_MAIL
            }
        }
        (None, Some(mail)) => InviteMailBody {
            state: mail.sent_at.map_or(InviteMailState::Failed, |_| InviteMailState::Sent),
            queued_at: Some(mail.queued_at),
            sent_at: mail.sent_at,
            attempts: mail.attempts,
            last_error: mail.last_error,
            ..NO_MAIL
        },
        (None, None) if invite.emailing_attempt_made => {
            InviteMailBody { state: InviteMailState::Unknown, ..NO_MAIL }
        }
        (None, None) => NO_MAIL,
    })
}

/// The state of an invite that is not mailed.
const NO_MAIL: InviteMailBody = InviteMailBody {
    state: InviteMailState::None,
    queued_at: None,
    sent_at: None,
    attempts: 0,
    next_attempt_at: None,
    last_error: None,
};

/// Stores what became of an invite's mail. An invite that was deleted with its organization gets no record.
pub fn record_mail(
    tx: &mut WriteTx<'_>,
    message: &OutboxMessage,
    invite: InviteId,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<()> {
    let key = (message.organization, invite);
    if !tx.exists::<Invite>(&key)? {
        return Ok(());
    }
    let tried = message.attempts.saturating_add(1);
    let (attempts, sent_at, last_error) = match delivery {
        Delivery::Sent => (tried, Some(now), None),
        Delivery::Failed(reason) => (tried, None, Some(reason.clone())),
        Delivery::GivenUp(reason) => {
            let last = tx.meta::<InviteMail>(&key)?.and_then(|mail| mail.last_error);
            (message.attempts, None, Some(last.unwrap_or_else(|| (*reason).to_owned())))
        }
    };
    let queued_at = message.written_at;
    let (organization, invite) = key;
    tx.put(&InviteMail { organization, invite, queued_at, attempts, sent_at, last_error })
}

/// Deletes the state of an invite's mail, and the mail if it is not yet sent.
pub(super) fn withdraw(tx: &mut WriteTx<'_>, key: InviteKey) -> Result<()> {
    outbox::cancel(tx, outbox_id(key.1))?;
    tx.remove::<InviteMail>(&key).map(drop)
}

/// Returns the id of an invite's mail in the outbox.
pub(super) fn outbox_id(id: InviteId) -> OutboxMessageId {
    OutboxMessageId(id.0)
}
