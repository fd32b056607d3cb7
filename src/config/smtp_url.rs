//! Where the mail server is, as `--smtp-url` says.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// An SMTP server and how to reach it. It may hold a password: Debug leaves it out.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl(Url);

impl FromStr for SmtpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        Ok(Self(url))
    }
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpUrl({}://{})", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}
