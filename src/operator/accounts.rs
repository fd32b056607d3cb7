//! What an operator does with users.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, UserId};
use crate::resources::members::{self, Level};
use crate::resources::users::{self, NewUser, User};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Snapshot, Tx};

use super::{EVERYTHING, get_user};

pub(super) async fn create_user(
    app: &App,
    new: NewUser,
    join: Option<(OrganizationId, Level)>,
    existing: bool,
) -> Result<Value> {
    let seed = Seed::take();
    app.operate(move |tx, now| {
        let mut draw = seed.draw();
        let user = match users::find_by_email(tx, &new.email)? {
            Some(user) if existing => user,
            Some(user) => {
                require_known(tx, "email", &user, existing)?;
                return Err(Error::field(
                    "email",
                    "unique",
                    "user with this email already exists; --existing takes that one.",
                ));
            }
            None => users::create(tx, &new, &mut draw, now)?,
        };
        let membership = match join {
            Some((organization, level)) => {
                Some(members::create(tx, organization, user.head.id, level, &mut draw, now)?.id)
            }
            None => None,
        };
        Ok(json!({
            "id": user.head.id,
            "uuid": user.head.uuid,
            "email": user.shown.email,
            "membership_id": membership,
        }))
    })
    .await
}

pub(super) fn list_users(tx: &Snapshot) -> Result<Value> {
    let mut results = Vec::new();
    tx.scan::<User, _>(&(), EVERYTHING, |row| {
        let User { head, shown } = row.into_record()?;
        let organizations: Vec<_> = members::organizations_of(tx, head.id)?
            .into_iter()
            .map(|member| json!({ "id": member.organization, "level": member.level.word() }))
            .collect();
        results.push(json!({
            "id": head.id,
            "uuid": head.uuid,
            "email": shown.email,
            "first_name": shown.first_name,
            "last_name": shown.last_name,
            "is_active": head.is_active,
            "is_email_verified": shown.is_email_verified,
            "link_account": link_account(tx, head.id)?,
            "organizations": organizations,
        }));
        Ok(())
    })?;
    Ok(json!({ "results": results }))
}

/// Since when the account exists and who invited it, if only a link made it; null otherwise.
fn link_account(tx: &impl Tx, user: UserId) -> Result<Value> {
    let Some(account) = users::find_unproven(tx, user)? else { return Ok(Value::Null) };
    let inviter = match account.invited_by {
        Some(inviter) => tx.find::<User>(&inviter)?.map(|inviter| inviter.shown.email),
        None => None,
    };
    Ok(json!({
        "created_at": account.at,
        "organization": account.organization,
        "invited_by": inviter,
    }))
}

pub(super) async fn set_active(app: &App, email: String, active: bool) -> Result<Value> {
    app.operate(move |tx, _| {
        let mut user = get_user(tx, &email)?;
        user.head.is_active = active;
        tx.put(&user)?;
        members::set_listed(tx, &user)?;
        Ok(json!({ "id": user.head.id, "email": user.shown.email, "is_active": active }))
    })
    .await
}

/// Keeps the operator from giving something by an address to a stranger who created an account for it by a link.
pub(super) fn require_known(tx: &impl Tx, attr: &str, user: &User, existing: bool) -> Result<()> {
    let Some(account) = users::find_unproven(tx, user.head.id)?.filter(|_| !existing) else {
        return Ok(());
    };
    let (email, since) = (&user.shown.email, account.at.minute());
    let detail = format!(
        "There is an unverified user {email} since {since}: an invite's link made the account, and nobody has proven \
         the address. --existing takes that user."
    );
    Err(Error::field(attr, "unverified", detail))
}
