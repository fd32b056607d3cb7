//! The SAML certificate of a domain in words.

use serde::Deserialize;

use crate::console::pages::object::ObjectPath;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// What the certificate says. Every member is absent if the stored text is no certificate.
#[derive(Deserialize)]
pub(super) struct Certificate {
    pub(super) subject: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) not_before: Option<String>,
    pub(super) not_after: Option<String>,
    pub(super) is_expired: Option<bool>,
}

impl Certificate {
    /// Loads what the certificate of a domain says.
    ///
    /// # Errors
    /// The errors of the API.
    pub(super) async fn load(request: &SignedIn, domain: &ObjectPath) -> Result<Self> {
        request.api.get(&domain.api("certificate/")).await
    }

    pub(super) fn is_expired(&self) -> bool {
        self.is_expired == Some(true)
    }
}
