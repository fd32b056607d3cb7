//! Users' accounts, and the links that sign a user in to the console.

use serde_json::{Value, json};

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::ids::UserId;
use crate::input::{Input, require_object};
use crate::resources::members::{self, Membership};
use crate::resources::users::{self, NewUser, User};
use crate::resources::{roles, sessions};
use crate::store::{Snapshot, Tx, continue_if};

use super::{UserOptions, get_user, list};

pub(super) async fn create_user(app: &App, options: UserOptions) -> Result<Value> {
    let UserOptions { email, first_name, last_name, organization, level, existing } = options;
    let sent = json!({ "email": email, "first_name": first_name, "last_name": last_name });
    let new = NewUser::parse(&require_object(sent)?)?;
    let seed = app.seed();
    app.operate(move |tx, now| {
        let mut rng = seed.rng();
        let user = match users::find_by_email(tx, &new.email)? {
            Some(user) if existing => user,
            Some(user) => {
                require_known(tx, "email", &user, existing)?;
                return Err(Error::field(
                    "email",
                    "unique",
                    "user with this email already exists; pass --existing to use that user.",
                ));
            }
            None => users::create(tx, &new, &mut rng, now)?,
        };
        let membership = match organization {
            Some(organization) => {
                let id = user.meta.id;
                let member = members::create(tx, organization, id, level, &mut rng, now)?;
                tx.log_about::<Membership>(&(organization, id));
                roles::give_default(tx, &member, &mut rng, now)?;
                Some(member.id)
            }
            None => None,
        };
        Ok(json!({
            "id": user.meta.id,
            "uuid": user.meta.uuid,
            "email": user.fields.email,
            "membership_id": membership,
        }))
    })
    .await
}

pub(super) fn list_users(tx: &Snapshot) -> Result<Value> {
    list(tx, |User { meta, fields }| {
        let organizations: Vec<_> = members::organizations_of(tx, meta.id)?
            .into_iter()
            .map(|member| json!({ "id": member.organization, "level": member.level.as_str() }))
            .collect();
        Ok(json!({
            "id": meta.id,
            "uuid": meta.uuid,
            "email": fields.email,
            "first_name": fields.first_name,
            "last_name": fields.last_name,
            "is_active": meta.is_active,
            "is_email_verified": fields.is_email_verified,
            "link_account": link_account(tx, meta.id)?,
            "organizations": organizations,
        }))
    })
}

/// Returns when an unverified account was created and which user sent its invite, or null if the address is verified.
fn link_account(tx: &impl Tx, user: UserId) -> Result<Value> {
    let Some(account) = users::find_unproven(tx, user)? else { return Ok(Value::Null) };
    let inviter = match account.invited_by {
        Some(inviter) => tx.find::<User>(&inviter)?.map(|inviter| inviter.fields.email),
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
        user.meta.is_active = active;
        tx.log_about::<User>(&user.meta.id);
        tx.put(&user)?;
        if !active {
            sessions::remove_all(tx, user.meta.id)?;
        }
        members::set_listed(tx, &user)?;
        roles::set_listed(tx, user.meta.id)?;
        Ok(json!({ "id": user.meta.id, "email": user.fields.email, "is_active": active }))
    })
    .await
}

/// Rejects a user whose address is unverified, unless the operator passes `--existing`: a stranger may have created
/// the account with an invite's link.
pub(super) fn require_known(tx: &impl Tx, attr: &str, user: &User, existing: bool) -> Result<()> {
    let Some(account) = users::find_unproven(tx, user.meta.id)?.filter(|_| !existing) else {
        return Ok(());
    };
    let (email, since) = (&user.fields.email, account.at.minute());
    let detail = format!(
        "There is an unverified user {email} since {since}: an invite's link created the account. \
         Pass --existing to use that user."
    );
    Err(Error::field(attr, "unverified", detail))
}

/// The path of the page that asks before it signs in. The code follows in the fragment, which browsers do not send.
const ENTER: &str = "/console/enter/";

pub(super) async fn create_link(
    app: &App,
    email: Option<&str>,
    is_operator: bool,
    existing: bool,
) -> Result<Value> {
    let config = app.config();
    if !config.console.is_on() {
        let text = "the console is off; start the server with --console on";
        return Err(Error::invalid("console_off", text));
    }
    let tx = app.store().snapshot()?;
    let user = match email {
        Some(email) => get_user(&*tx, email)?,
        None => only_active_user(&*tx)?,
    };
    require_known(&*tx, "email", &user, existing)?;
    drop(tx);
    let link = app.create_sign_in_link(user.meta.id, is_operator).await?;
    Ok(json!({
        "url": format!("{}{ENTER}#{}", config.console_base(), link.code),
        "email": user.fields.email,
        "operator": is_operator,
        "expires_at": link.expires_at,
    }))
}

/// Returns the only active user, for a command that names none.
fn only_active_user(tx: &impl Tx) -> Result<User> {
    let mut active = Vec::new();
    tx.walk_from(&users::BY_EMAIL, &(), &(), |row| {
        if row.meta.is_active {
            active.push(row.into_record()?);
        }
        Ok(continue_if(active.len() < 2))
    })?;
    match (active.pop(), active.is_empty()) {
        (Some(user), true) => Ok(user),
        (Some(_), false) => {
            let text = "there is more than one active user; pass EMAIL, the address of the user to sign in";
            Err(Error::field("email", "required", text))
        }
        (None, _) => Err(Error::not_found_as("There is no active user.")),
    }
}
