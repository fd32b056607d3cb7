//! The answer of the DNS for a domain that is not verified.

use serde::Deserialize;

use crate::console::pages::object::ObjectPath;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The TXT record that verifies a domain, and what the DNS answers now.
#[derive(Deserialize)]
pub(super) struct Lookup {
    pub(super) name: String,
    pub(super) expected: String,
    pub(super) found: Vec<String>,
    pub(super) matches: bool,
    pub(super) error: Option<String>,
}

/// The wizard of a domain.
pub(super) enum Wizard {
    /// The session may not look the record up.
    Refused,
    /// The record cannot be looked up now.
    Unavailable(String),
    Asked(Lookup),
}

impl Wizard {
    /// Looks the record up. The look-up has a deadline and a queue for each organization.
    ///
    /// # Errors
    /// The errors of the API, except refusals and full queues.
    pub(super) async fn load(request: &SignedIn, domain: &ObjectPath) -> Result<Self> {
        match request.api.get_if_allowed(&domain.api("lookup/")).await {
            Ok(Some(lookup)) => Ok(Self::Asked(lookup)),
            Ok(None) => Ok(Self::Refused),
            Err(error) if error.status() == 503 => Ok(Self::Unavailable(error.detail().to_owned())),
            Err(error) => Err(error),
        }
    }
}

impl Lookup {
    /// Returns what the DNS answers, in words.
    pub(super) fn answer(&self) -> String {
        match (&self.error, self.matches, self.found.len()) {
            (Some(error), _, _) => error.clone(),
            (None, true, _) => "The record is there. You can verify the domain now.".to_owned(),
            (None, false, 0) => "There is no such record yet.".to_owned(),
            (None, false, 1) => {
                "There is 1 TXT record of this name, with another value.".to_owned()
            }
            (None, false, count) => {
                format!("There are {count} TXT records of this name, and none has the value.")
            }
        }
    }
}
