//! The mails of a test run: kept in memory instead of sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::json;
use url::Url;
use utoipa::ToSchema;

use crate::base::time::Timestamp;
use crate::ids::OutboxMessageId;
use crate::mail::compose::{MailContent, MailKind, to_ascii_address};
use crate::mail::transport::{MailAddress, MailTransport, SendError};

use super::faults::Faults;

/// The sender of all mails.
const FROM: &str = "Steward <steward@example.com>";
/// The maximum number of mails that are kept, the newest.
const MAX_MAILS: usize = 10_000;

/// A mail as it would leave.
#[derive(Serialize, ToSchema)]
#[schema(as = TestMail)]
pub(super) struct Mail {
    /// The place of the mail in the order of sending, from 1.
    pub(super) number: u64,
    /// When it was sent.
    pub(super) at: Timestamp,
    /// The address of its recipient, in ASCII.
    pub(super) to: String,
    /// The sender.
    from: &'static str,
    /// The subject.
    pub(super) subject: String,
    /// The body as plain text.
    pub(super) text: String,
    /// What it is about.
    kind: MailKind,
    /// Where its reader is to go.
    links: Links,
}

/// The link in a mail, taken apart.
#[derive(Default, Serialize, ToSchema)]
struct Links {
    /// The page that accepts the invite.
    #[serde(skip_serializing_if = "Option::is_none")]
    accept_url: Option<String>,
    /// The token of the invite.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// The page that signs the user in.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in_url: Option<String>,
    /// The code that signs the user in.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

impl Links {
    fn of(content: &MailContent) -> Self {
        let Some(link) = &content.link else { return Self::default() };
        let url = Url::parse(link).ok();
        if content.kind == MailKind::SignIn {
            let code = url.and_then(|url| url.fragment().map(str::to_owned));
            return Self { sign_in_url: Some(link.clone()), code, ..Self::default() };
        }
        let token = url.and_then(|url| {
            url.query_pairs().find(|(name, _)| name == "token").map(|(_, value)| value.into_owned())
        });
        Self { accept_url: Some(link.clone()), token, ..Self::default() }
    }
}

/// The mails up to a moment.
#[derive(Clone, Default)]
pub(super) struct MailLog {
    mails: VecDeque<Arc<Mail>>,
    sent: u64,
}

/// What mails are handed over to.
pub(super) struct Mails {
    log: Mutex<MailLog>,
    faults: Arc<Faults>,
}

impl Mails {
    pub(super) fn new(faults: &Arc<Faults>) -> Self {
        Self { log: Mutex::default(), faults: Arc::clone(faults) }
    }

    fn log(&self) -> MutexGuard<'_, MailLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the mails up to now.
    pub(super) fn save(&self) -> MailLog {
        self.log().clone()
    }

    /// Puts the mails back to those of an earlier moment.
    pub(super) fn put_back(&self, log: &MailLog) {
        self.log().clone_from(log);
    }

    /// Returns how many mails were handed over.
    pub(super) fn count(&self) -> u64 {
        self.log().sent
    }

    /// Returns the mails to an address, or all, oldest first.
    pub(super) fn list(&self, to: Option<&str>) -> Vec<Arc<Mail>> {
        self.log().mails.iter().filter(|mail| mail.is_to(to)).cloned().collect()
    }

    /// Forgets the mails to an address, or all.
    pub(super) fn clear(&self, to: Option<&str>) {
        self.log().mails.retain(|mail| !mail.is_to(to));
    }
}

impl Mail {
    /// Returns what the mail is about, as responses name it.
    pub(super) fn kind(&self) -> String {
        json!(self.kind).as_str().unwrap_or_default().to_owned()
    }

    /// Returns the parts of the link in the mail by their names.
    pub(super) fn links(&self) -> Vec<(String, String)> {
        let links = json!(self.links);
        let parts = links.as_object().into_iter().flatten();
        parts.filter_map(|(name, part)| Some((name.clone(), part.as_str()?.to_owned()))).collect()
    }

    fn is_to(&self, to: Option<&str>) -> bool {
        let written =
            |to: &str| to_ascii_address(to).map_or_else(|| to.to_owned(), |to| to.to_string());
        to.is_none_or(|to| written(to).eq_ignore_ascii_case(&self.to))
    }
}

impl MailTransport for Mails {
    fn server(&self) -> String {
        "memory".to_owned()
    }

    fn send<'m>(
        &'m self,
        _: OutboxMessageId,
        to: MailAddress,
        message: &'m MailContent,
        now: Timestamp,
    ) -> BoxFuture<'m, Result<String, SendError>> {
        let to = to.to_string();
        if let Some(refused) = self.faults.of_mail(&to) {
            return async { Err(refused) }.boxed();
        }
        let mut log = self.log();
        log.sent += 1;
        let mail = Mail {
            number: log.sent,
            at: now,
            to,
            from: FROM,
            subject: message.subject.clone(),
            text: message.text.clone(),
            kind: message.kind,
            links: Links::of(message),
        };
        log.mails.push_back(Arc::new(mail));
        if log.mails.len() > MAX_MAILS {
            log.mails.pop_front();
        }
        async { Ok("250 kept in memory".to_owned()) }.boxed()
    }
}
