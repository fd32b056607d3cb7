//! The first steps of a new workspace. They are shown until all are done, or until the user dismisses them.

use axum::http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::console::api::{Operation, Write};
use crate::console::headers::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::HOME;

const DISMISS: &str = "/console/steps/dismiss/";

const USER: &str = "/api/users/@me/";
const UPDATE_USER: &str = "users_partial_update";

/// The name of the first organization until somebody changes it.
const FIRST_NAME: &str = "My organization";
/// The member of `has_seen_product_intro_for` of a user who dismissed the steps.
const DISMISSED: &str = "console_first_steps";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, DISMISS, dismiss);
}

pub(super) struct Step {
    pub(super) text: &'static str,
    pub(super) href: String,
    pub(super) is_done: bool,
}

/// The first steps.
pub(super) struct Steps {
    steps: [Step; 3],
    pub(super) may_dismiss: bool,
}

impl Steps {
    /// Loads the steps. Returns `None` if all are done, if the user dismissed them, or if the session may not do one of
    /// them. `invites` and `keys` are the numbers of open invites and of the user's keys.
    pub(super) async fn load(
        request: &SignedIn,
        organization: &str,
        invites: u64,
        keys: usize,
    ) -> Result<Option<Self>> {
        #[derive(Deserialize)]
        struct User {
            has_seen_product_intro_for: Option<Map<String, Value>>,
        }
        #[derive(Deserialize)]
        struct Organization {
            name: String,
            member_count: u64,
        }
        for operation in [
            Operation::new("organizations_partial_update", [organization]),
            Operation::new("invites_create", [organization]),
            Operation::new("personal_api_keys_create", []),
        ] {
            if !request.api.may(&operation).await? {
                return Ok(None);
            }
        }
        let path = format!("/api/organizations/{organization}/");
        let (Some(user), Some(found)) = (
            request.api.get_if_allowed::<User>(USER).await?,
            request.api.get_if_allowed::<Organization>(&path).await?,
        ) else {
            return Ok(None);
        };
        let seen = user.has_seen_product_intro_for.unwrap_or_default();
        let base = format!("/console/organizations/{organization}/");
        let step = |text, href, is_done| Step { text, href, is_done };
        let steps = [
            step("Name the organization", format!("{base}settings/"), found.name != FIRST_NAME),
            step(
                "Invite a colleague",
                format!("{base}invites/"),
                found.member_count > 1 || invites > 0,
            ),
            step("Create a key for a program", "/console/keys/new/".to_owned(), keys > 1),
        ];
        if seen.contains_key(DISMISSED) || steps.iter().all(|step| step.is_done) {
            return Ok(None);
        }
        let may_dismiss = request.api.may(&Operation::new(UPDATE_USER, [])).await?;
        Ok(Some(Self { steps, may_dismiss }))
    }

    pub(super) const fn all(&self) -> &[Step] {
        &self.steps
    }
}

/// Keeps with the user that the steps are dismissed.
async fn dismiss(request: SignedIn) -> PageResult {
    let user = request.api.get_versioned(USER).await?;
    let seen = user.body.get("has_seen_product_intro_for").and_then(Value::as_object);
    let mut seen = seen.cloned().unwrap_or_default();
    seen.insert(DISMISSED.to_owned(), Value::Bool(true));
    let write = Write::new(UPDATE_USER, []).body(json!({ "has_seen_product_intro_for": seen }));
    request.api.write(&Write { version: user.version, ..write }).await?;
    Ok(see_other(HOME)?)
}
