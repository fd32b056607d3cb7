//! What the mails about invites and joining say (decisions §4, Invite). They are composed when they are
//! sent, from what is so then.

use askama::Template;

use crate::error::{Error, Result};
use crate::ids::{InviteId, OrganizationId, UserId};
use crate::mail::compose::{Compose, Composed, Message, one_line};
use crate::mail::outbox::{About, Letter};
use crate::resources::invites::{self, Links};
use crate::resources::members::{self, Membership};
use crate::resources::organizations::Organization;
use crate::resources::users::{self, User};
use crate::store::{Order, Snapshot, Tx, Window};
use crate::time::Timestamp;

/// Composes the mails about invites and joining.
pub struct Letters {
    /// Makes the links in them.
    pub links: Links,
}

impl Compose for Letters {
    fn compose(&self, tx: &Snapshot, letter: &Letter, now: Timestamp) -> Result<Composed> {
        match &letter.about {
            About::Invite { invite, .. } => self.invitation(tx, *invite, now),
            About::Joining { user } => announcement(tx, letter.organization, *user),
            About::Joined { user, to } => joined(tx, letter.organization, *user, to),
            About::TakenOver { user, since, .. } => {
                taken_over(tx, letter.organization, *user, *since, letter.written_at)
            }
        }
    }
}

/// What the mail to an invite's address says.
struct Invitation {
    first_name: String,
    inviter: String,
    organization: String,
    message: Option<String>,
    expires_at: String,
    url: String,
}

#[derive(Template)]
#[template(path = "signup/letters/invite.txt")]
struct InvitationText<'i> {
    it: &'i Invitation,
}

#[derive(Template)]
#[template(path = "signup/letters/invite.html")]
struct InvitationHtml<'i> {
    it: &'i Invitation,
}

impl Letters {
    fn invitation(&self, tx: &Snapshot, id: InviteId, now: Timestamp) -> Result<Composed> {
        let Some(invite) = invites::find_by_id(tx, id)?.filter(|it| !it.head.is_expired(now))
        else {
            return Ok(Composed::Moot);
        };
        let organization: Organization = tx.get(&invite.head.organization)?;
        let inviter = match invite.head.created_by {
            Some(user) => tx.find::<User>(&user)?.map(|user| name(&user)),
            None => None,
        };
        let it = Invitation {
            first_name: one_line(&invite.shown.first_name),
            inviter: inviter.unwrap_or_else(|| "An administrator".to_owned()),
            organization: one_line(&organization.shown.name),
            message: invite.shown.message.filter(|message| !message.is_empty()),
            expires_at: invite.head.expires_at.minute(),
            url: self.links.to_mail(id),
        };
        let subject = format!("{} invites you to {}", it.inviter, it.organization);
        message(subject, &InvitationText { it: &it }, &InvitationHtml { it: &it })
    }
}

/// The letters to the organization's admins and owners, but not to the one who joined.
fn announcement(tx: &Snapshot, organization: OrganizationId, user: UserId) -> Result<Composed> {
    let mut letters = Vec::new();
    let all = Window::all(Order::Ascending);
    tx.walk(&members::BY_JOINING, &organization, all, |row| {
        let Membership { user: other, level, .. } = row.head;
        if level.administers() && other != user {
            let to = tx.get::<User>(&other)?.shown.email;
            letters.push(About::Joined { user, to });
        }
        Ok(())
    })?;
    Ok(Composed::Letters(letters))
}

/// What the mail to those who run an organization says when someone has joined it.
struct Joined {
    name: String,
    email: String,
    organization: String,
}

#[derive(Template)]
#[template(path = "signup/letters/joined.txt")]
struct JoinedText<'j> {
    it: &'j Joined,
}

#[derive(Template)]
#[template(path = "signup/letters/joined.html")]
struct JoinedHtml<'j> {
    it: &'j Joined,
}

/// Nothing, where meanwhile the newcomer has left, the one to be told no longer runs the organization, or it
/// wants no such mails any more.
fn joined(tx: &Snapshot, id: OrganizationId, newcomer: UserId, to: &str) -> Result<Composed> {
    let organization = tx.find::<Organization>(&id)?;
    let organization = organization.filter(|it| it.shown.is_member_join_email_enabled);
    let told = match users::find_by_email(tx, to)? {
        Some(user) => members::find_listed(tx, id, user.head.id)?,
        None => None,
    };
    let told = told.filter(|member| member.level.administers());
    let newcomer = members::find(tx, id, newcomer)?;
    let (Some(organization), Some(newcomer), Some(_)) = (organization, newcomer, told) else {
        return Ok(Composed::Moot);
    };
    let user: User = tx.get(&newcomer.user)?;
    let it = Joined {
        name: name(&user),
        email: user.shown.email,
        organization: one_line(&organization.shown.name),
    };
    let subject = format!("{} has joined {}", it.name, it.organization);
    message(subject, &JoinedText { it: &it }, &JoinedHtml { it: &it })
}

/// What the mail to the owner of an address says when they have taken over the account that a link had made
/// for it.
struct TakenOver {
    email: String,
    organization: Option<String>,
    since: String,
    at: String,
}

#[derive(Template)]
#[template(path = "signup/letters/taken_over.txt")]
struct TakenOverText<'t> {
    it: &'t TakenOver,
}

#[derive(Template)]
#[template(path = "signup/letters/taken_over.html")]
struct TakenOverHtml<'t> {
    it: &'t TakenOver,
}

/// It is told whatever has become of the organization meanwhile.
fn taken_over(
    tx: &Snapshot,
    organization: OrganizationId,
    user: UserId,
    since: Timestamp,
    at: Timestamp,
) -> Result<Composed> {
    let Some(user) = tx.find::<User>(&user)? else { return Ok(Composed::Moot) };
    let organization = tx.find::<Organization>(&organization)?;
    let it = TakenOver {
        email: user.shown.email,
        organization: organization.map(|organization| one_line(&organization.shown.name)),
        since: since.minute(),
        at: at.minute(),
    };
    let subject = format!("You have taken over the account of {}", it.email);
    message(subject, &TakenOverText { it: &it }, &TakenOverHtml { it: &it })
}

/// What a user is called: by name where they have one, else by address.
fn name(user: &User) -> String {
    let full = format!("{} {}", user.shown.first_name, user.shown.last_name);
    match full.trim() {
        "" => user.shown.email.clone(),
        name => one_line(name),
    }
}

fn message(subject: String, text: &impl Template, html: &impl Template) -> Result<Composed> {
    let text = text.render().map_err(Error::internal)?;
    let html = html.render().map_err(Error::internal)?;
    Ok(Composed::Message(Message { subject, text, html }))
}
