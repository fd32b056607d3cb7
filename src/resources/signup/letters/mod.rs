//! The mails about invites and new members. A mail is rendered when it is sent, from the data at that time.

use askama::Template;

use crate::ids::InviteId;
use crate::mail::compose::{
    ComposeMail, Composed, Delivery, MailContent, MailKind, to_single_line,
};
use crate::mail::outbox::{Notification, OutboxMessage};
use crate::resources::invites::{self, InviteLinks};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, User};
use crate::store::Snapshot;

/// Renders the mails about invites and new members.
pub struct InviteMails {
    /// Creates the links in the mails.
    pub links: InviteLinks,
}

impl ComposeMail for InviteMails {
    fn compose(&self, tx: &Snapshot, message: &OutboxMessage, now: Timestamp) -> Result<Composed> {
        match &message.about {
            Notification::Invite { invite, .. } => self.invitation(tx, *invite, now),
            Notification::Joining { user } => announcement(tx, message.organization, *user),
            Notification::Joined { user, to } => joined(tx, message.organization, *user, to),
            Notification::TakenOver { user, since, .. } => {
                taken_over(tx, message.organization, *user, *since, message.written_at)
            }
        }
    }

    /// Stores the state of an invite's mail. No response shows the states of other mails.
    fn record(
        &self,
        tx: &mut WriteTx<'_>,
        message: &OutboxMessage,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<()> {
        match message.about {
            Notification::Invite { invite, .. } => {
                invites::record_mail(tx, message, invite, delivery, now)
            }
            Notification::Joining { .. }
            | Notification::Joined { .. }
            | Notification::TakenOver { .. } => Ok(()),
        }
    }
}

/// The mail to an invited address, as plain text.
#[derive(Template)]
#[template(path = "signup/letters/invite.txt")]
struct Invitation {
    first_name: String,
    inviter: String,
    organization: String,
    message: Option<String>,
    expires_at: String,
    url: String,
}

#[derive(Template)]
#[template(path = "signup/letters/invite.html")]
struct InvitationHtml<'i> {
    it: &'i Invitation,
}

impl InviteMails {
    fn invitation(&self, tx: &Snapshot, id: InviteId, now: Timestamp) -> Result<Composed> {
        let Some(invite) = invites::find_by_id(tx, id)?.filter(|it| !it.meta.has_ended(now)) else {
            return Ok(Composed::Obsolete);
        };
        let organization: Organization = tx.get(&invite.meta.organization)?;
        let inviter = invite.meta.created_by.map_or(Ok(None), |user| tx.find::<User>(&user))?;
        let it = Invitation {
            first_name: to_single_line(&invite.fields.first_name),
            inviter: inviter.map_or_else(|| "An administrator".to_owned(), |user| name(&user)),
            organization: to_single_line(&organization.fields.name),
            message: invite.fields.message.filter(|message| !message.is_empty()),
            expires_at: invite.meta.expires_at.minute(),
            url: self.links.mail_link(id),
        };
        let subject = format!("{} invites you to {}", it.inviter, it.organization);
        let link = Some(it.url.clone());
        message((MailKind::Invite, subject), link, &it, &InvitationHtml { it: &it })
    }
}

/// Returns one message for each admin and owner of the organization, except the new member.
fn announcement(tx: &Snapshot, organization: OrganizationId, user: UserId) -> Result<Composed> {
    let mut letters = Vec::new();
    let all = Window::all(Order::Ascending);
    tx.walk(&members::BY_JOINING, &organization, all, |row| {
        let Membership { user: other, level, .. } = row.meta;
        if level.is_admin() && other != user {
            let to = tx.get::<User>(&other)?.fields.email;
            letters.push(Notification::Joined { user, to });
        }
        Ok(())
    })?;
    Ok(Composed::Replace(letters))
}

/// The mail to admins and owners about a new member, as plain text.
#[derive(Template)]
#[template(path = "signup/letters/joined.txt")]
struct Joined {
    name: String,
    email: String,
    organization: String,
}

#[derive(Template)]
#[template(path = "signup/letters/joined.html")]
struct JoinedHtml<'j> {
    it: &'j Joined,
}

/// Renders the mail about a new member. Skips it if the new member has left, the recipient is no longer an admin, or
/// the organization has disabled these mails.
fn joined(tx: &Snapshot, id: OrganizationId, newcomer: UserId, to: &str) -> Result<Composed> {
    let organization = tx.find::<Organization>(&id)?;
    let organization = organization.filter(|it| it.fields.is_member_join_email_enabled);
    let recipient = users::find_by_email(tx, to)?;
    let recipient =
        recipient.map_or(Ok(None), |user| members::find_listed(tx, id, user.meta.id))?;
    let recipient = recipient.filter(|member| member.level.is_admin());
    let newcomer = members::find(tx, id, newcomer)?;
    let (Some(organization), Some(newcomer), Some(_)) = (organization, newcomer, recipient) else {
        return Ok(Composed::Obsolete);
    };
    let user: User = tx.get(&newcomer.user)?;
    let it = Joined {
        name: name(&user),
        email: user.fields.email,
        organization: to_single_line(&organization.fields.name),
    };
    let subject = format!("{} has joined {}", it.name, it.organization);
    message((MailKind::Joined, subject), None, &it, &JoinedHtml { it: &it })
}

/// The mail that confirms a takeover, as plain text.
#[derive(Template)]
#[template(path = "signup/letters/taken_over.txt")]
struct TakenOver {
    email: String,
    organization: Option<String>,
    since: String,
    at: String,
}

#[derive(Template)]
#[template(path = "signup/letters/taken_over.html")]
struct TakenOverHtml<'t> {
    it: &'t TakenOver,
}

/// Renders the confirmation of a takeover. The organization may have been deleted in the meantime.
fn taken_over(
    tx: &Snapshot,
    organization: OrganizationId,
    user: UserId,
    since: Timestamp,
    at: Timestamp,
) -> Result<Composed> {
    let Some(user) = tx.find::<User>(&user)? else { return Ok(Composed::Obsolete) };
    let organization = tx.find::<Organization>(&organization)?;
    let it = TakenOver {
        email: user.fields.email,
        organization: organization.map(|organization| to_single_line(&organization.fields.name)),
        since: since.minute(),
        at: at.minute(),
    };
    let subject = format!("You have taken over the account of {}", it.email);
    message((MailKind::TakenOver, subject), None, &it, &TakenOverHtml { it: &it })
}

/// Returns the name of a user, or the address of a user without a name.
fn name(user: &User) -> String {
    let full = format!("{} {}", user.fields.first_name, user.fields.last_name);
    match full.trim() {
        "" => user.fields.email.clone(),
        name => to_single_line(name),
    }
}

fn message(
    head: (MailKind, String),
    link: Option<String>,
    text: &impl Template,
    html: &impl Template,
) -> Result<Composed> {
    MailContent::render(head, link, text, html).map(Composed::Content)
}
