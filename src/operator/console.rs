//! The operator's links to the console.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::resources::users::{self, User};
use crate::state::App;
use crate::store::{Order, Tx};

use super::{accounts, get_user};

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
    accounts::require_known(&*tx, "email", &user, existing)?;
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
    tx.walk_until(&users::BY_EMAIL, &(), 0, Order::Ascending, |row| {
        if row.meta.is_active {
            active.push(row.into_record()?);
        }
        Ok(if active.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
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
