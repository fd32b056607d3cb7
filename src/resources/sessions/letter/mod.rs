//! The mail that signs a user in. It contains no text of any user.

use std::net::IpAddr;

use askama::Template;

use crate::error::{Error, Result};
use crate::mail::compose::MailContent;
use crate::time::Timestamp;

use super::mail_code::MailCode;

/// What the mail says.
pub struct SignInLetter<'l> {
    /// The scheme and host of the service.
    pub service: &'l str,
    /// The URL of the page that takes the code.
    pub page: &'l str,
    /// The code.
    pub code: &'l MailCode,
    /// The address of the browser that asked.
    pub ip_address: IpAddr,
    /// When the code expires.
    pub expires_at: Timestamp,
}

/// The variables of the mail.
struct Variables<'l> {
    service: &'l str,
    url: String,
    code: String,
    ip_address: IpAddr,
    expires_at: String,
}

#[derive(Template)]
#[template(path = "sessions/letter/sign_in.txt")]
struct SignInText<'l> {
    it: &'l Variables<'l>,
}

#[derive(Template)]
#[template(path = "sessions/letter/sign_in.html")]
struct SignInHtml<'l> {
    it: &'l Variables<'l>,
}

impl SignInLetter<'_> {
    /// Renders the mail. The code stands in the fragment of the link, which browsers do not send.
    ///
    /// # Errors
    /// 500 if a template fails.
    pub fn render(&self) -> Result<MailContent> {
        let Self { service, page, code, ip_address, expires_at } = *self;
        let code = code.grouped();
        let url = format!("{page}#{code}");
        let it = Variables { service, url, code, ip_address, expires_at: expires_at.minute() };
        let text = SignInText { it: &it }.render().map_err(Error::internal)?;
        let html = SignInHtml { it: &it }.render().map_err(Error::internal)?;
        Ok(MailContent { subject: "Sign in to Steward".to_owned(), text, html })
    }
}
