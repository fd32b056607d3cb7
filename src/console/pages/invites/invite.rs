//! An invite with the state of its mail.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::model::{Invite, List, Person};
use crate::console::visit::SignedIn;
use crate::console::words::level_name;
use crate::error::Result;

/// The state of the mail of an invite.
#[derive(Deserialize)]
pub(super) struct Mail {
    invite: String,
    state: String,
    pub(super) sent_at: Option<String>,
    attempts: u64,
    pub(super) next_attempt_at: Option<String>,
    pub(super) last_error: Option<String>,
}

/// An invite on the page.
pub(super) struct Row {
    pub(super) invite: Invite,
    /// The state of the mail; `None` if there is no mail.
    pub(super) mail: Option<Mail>,
    /// The projects that the invite gives access to.
    pub(super) projects: Vec<String>,
    /// Whether the session may create the same invite again.
    pub(super) may_repeat: bool,
    pub(super) may_delete: bool,
    /// The `Idempotency-Key` of the same invite again.
    pub(super) once: String,
}

impl Invite {
    pub(super) fn level_name(&self) -> &'static str {
        level_name(self.level)
    }

    /// Returns the name of the creator.
    pub(super) fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }

    /// Returns the projects in words, with their levels.
    pub(super) fn projects(&self, names: &HashMap<u64, String>) -> Vec<String> {
        let named = self.private_project_access.iter().map(|access| {
            let name = names.get(&access.id).cloned();
            let name = name.unwrap_or_else(|| format!("Project {}", access.id));
            let level = match &access.level {
                Value::String(word) => word.clone(),
                number => number.as_u64().map_or_else(String::new, |number| {
                    level_name(u8::try_from(number).unwrap_or_default()).to_lowercase()
                }),
            };
            format!("{name}: {level}")
        });
        named.collect()
    }

    /// Returns the request body that creates the same invite again, as JSON.
    pub(super) fn again(&self) -> String {
        let access = self.private_project_access.iter();
        let access: Vec<_> =
            access.map(|access| json!({ "id": access.id, "level": access.level })).collect();
        let body = json!({
            "target_email": self.target_email,
            "first_name": self.first_name,
            "level": self.level,
            "message": self.message,
            "private_project_access": access,
            "send_email": self.send_email,
        });
        body.to_string()
    }
}

/// Loads the states of the mails of a page of invites, by invite. Invites without a mail are left out.
///
/// # Errors
/// The errors of the API.
pub(super) async fn load_mails(
    request: &SignedIn,
    organization: &str,
    (limit, offset): (u64, u64),
) -> Result<HashMap<String, Mail>> {
    let path =
        format!("/api/organizations/{organization}/invites/mail/?limit={limit}&offset={offset}");
    let found: List<Mail> = request.api.get(&path).await?;
    let mails = found.results.into_iter().filter(|mail| mail.state != "none");
    Ok(mails.map(|mail| (mail.invite.clone(), mail)).collect())
}

impl Mail {
    /// Returns the state in words, and the class of its tag.
    pub(super) fn words(&self) -> (String, &'static str) {
        let (words, class) = match self.state.as_str() {
            "queued" if self.attempts == 1 => ("Waits after 1 attempt", "warn"),
            "queued" if self.attempts > 1 => {
                return (format!("Waits after {} attempts", self.attempts), "warn");
            }
            "queued" => ("Waits to be sent", ""),
            "sending" => ("Being sent", ""),
            "sent" => ("Sent", "good"),
            "failed" => ("Failed", "bad"),
            "none" => ("Not mailed", ""),
            _ => ("Unknown", ""),
        };
        (words.to_owned(), class)
    }
}
