//! The text of a mail, and the mail in the format of the internet (MIME).

use std::time::{Duration, SystemTime};

use askama::Template;
use lettre::address::Address;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use serde::Serialize;
use url::Host;
use utoipa::ToSchema;

use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::ids::OutboxMessageId;
use crate::store::{Snapshot, WriteTx};

use super::outbox::{Notification, OutboxMessage};

/// The reason of an attempt that failed before the mail server was involved. The cause is for the operator only.
pub(super) const NOT_COMPOSED: &str = "The mail could not be composed.";

/// What a mail is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// An invite to an organization.
    Invite,
    /// A new member, for the admins of the organization.
    Joined,
    /// An account that its owner has taken over.
    TakenOver,
    /// The code that signs a user in to the console.
    SignIn,
    /// A test of the mail configuration.
    Test,
}

/// The text of a mail. Any text is allowed: the subject is cleaned before it becomes a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailContent {
    /// What it is about.
    pub kind: MailKind,
    /// Where its reader is to go. The body contains this URL, too.
    pub link: Option<String>,
    /// The subject, in one line.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The same body as HTML.
    pub html: String,
}

impl MailContent {
    /// Renders the templates of a mail.
    ///
    /// # Errors
    /// 500 if a template fails.
    pub fn render(
        (kind, subject): (MailKind, String),
        link: Option<String>,
        text: &impl Template,
        html: &impl Template,
    ) -> Result<Self> {
        let text = text.render().map_err(Error::internal)?;
        let html = html.render().map_err(Error::internal)?;
        Ok(Self { kind, link, subject, text, html })
    }
}

/// What became of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The mail server accepted the mail.
    Sent,
    /// An attempt failed, for this reason. Another one follows.
    Failed(String),
    /// No attempt follows, for this reason.
    GivenUp(&'static str),
}

/// Composes mails, and learns what became of them. The module of a mail's subject matter implements it.
pub trait ComposeMail: Send + Sync + 'static {
    /// Composes the mail of an outbox message.
    ///
    /// # Errors
    /// 503 if the file cannot be read at the moment. Any other error counts as a failed attempt.
    fn compose(
        &self,
        tx: &Snapshot,
        outbox_message: &OutboxMessage,
        now: Timestamp,
    ) -> Result<Composed>;

    /// Stores what became of a mail, in the transaction that updates the outbox. May run twice. `message` is the
    /// outbox message before the attempt. Mails that were cancelled during the attempt are not reported.
    fn record(
        &self,
        tx: &mut WriteTx<'_>,
        message: &OutboxMessage,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<()>;
}

/// The result of composing an outbox message.
#[derive(Debug, Clone, PartialEq)]
pub enum Composed {
    /// Send this mail.
    Content(MailContent),
    /// Replace the message with one for each of these: it was an announcement to several recipients.
    Replace(Vec<Notification>),
    /// Send nothing: the message is obsolete.
    Obsolete,
}

/// Reduces a text to one line: white space, control characters and direction marks become single spaces.
pub fn to_single_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() || is_layout(c) { ' ' } else { c };
    let line: String = text.chars().map(plain).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a character separates lines or paragraphs, or marks a direction.
fn is_layout(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// The maximum length of a subject, in characters.
const MAX_SUBJECT_LENGTH: usize = 200;

/// Formats a mail as text and HTML, in ASCII. The Message-ID derives from `id`, so a second attempt has the same one.
pub(super) fn format_mail(
    id: OutboxMessageId,
    from: &Mailbox,
    to: &Address,
    message: &MailContent,
    now: Timestamp,
) -> Result<Vec<u8>, lettre::error::Error> {
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let mail = lettre::Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to.clone()))
        .subject(subject(&message.subject))
        .date(SystemTime::UNIX_EPOCH + Duration::from_millis(now.millis()))
        .message_id(Some(format!("<{id}@{}>", from.email.domain())))
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .multipart(
            MultiPart::alternative()
                .singlepart(part(ContentType::TEXT_PLAIN, &message.text))
                .singlepart(part(ContentType::TEXT_HTML, &message.html)),
        )?;
    Ok(mail.formatted())
}

/// Always uses quoted-printable, so that the server needs no 8-bit extension and a lone carriage return cannot end a
/// line.
fn part(content_type: ContentType, text: &str) -> SinglePart {
    SinglePart::builder()
        .header(content_type)
        .header(ContentTransferEncoding::QuotedPrintable)
        .body(text.to_owned())
}

/// Returns `text` as one line of limited length, without line breaks, direction marks and the start of encoded words.
fn subject(text: &str) -> String {
    let line = to_single_line(text).replace("=?", "= ?");
    if line.chars().count() <= MAX_SUBJECT_LENGTH {
        return line;
    }
    line.chars().take(MAX_SUBJECT_LENGTH - 1).chain(['…']).collect()
}

/// Converts `address` to the ASCII form that every server accepts, with the domain in Punycode. Returns `None` if the
/// local part is not ASCII.
pub fn to_ascii_address(address: &str) -> Option<Address> {
    let (local, domain) = address.rsplit_once('@')?;
    let domain = Host::parse(domain).ok()?.to_string();
    let writable = local.is_ascii() && !local.contains(|c: char| c.is_ascii_control());
    Address::new(local, domain).ok().filter(|_| writable)
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_735_787_045_678_901);

    fn formatted(subject: &str, text: &str) -> Vec<u8> {
        let message = MailContent {
            kind: MailKind::Test,
            link: None,
            subject: subject.to_owned(),
            text: text.to_owned(),
            html: format!("<p>{text}</p>"),
        };
        let from = "Küche <steward@example.org>".parse().unwrap();
        let to = Address::new("ann", "corp.example").unwrap();
        format_mail(OutboxMessageId(uuid::Uuid::nil()), &from, &to, &message, NOW).unwrap()
    }

    /// Returns the names of the headers, in order.
    fn headers(mail: &[u8]) -> Vec<String> {
        let parsed = MessageParser::new().parse(mail).expect("a mail");
        parsed.headers().iter().map(|header| header.name().to_owned()).collect()
    }

    const HEADERS: [&str; 8] = [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "Auto-Submitted",
        "MIME-Version",
        "Content-Type",
    ];

    #[test]
    fn mail_subject_is_always_a_single_header_line() {
        for (text, shown) in [
            ("You are invited to Küche & Söhne", "You are invited to Küche & Söhne".to_owned()),
            ("a\r\nBcc: eve@evil.example\r\n\r\nb", "a Bcc: eve@evil.example b".to_owned()),
            ("a\0b\u{7f}c\u{85}d", "a b c d".to_owned()),
            ("gro.\u{202e}elpmaxe\u{2066} \u{200f}x\u{2028}y", "gro. elpmaxe x y".to_owned()),
            ("=?utf-8?q?evil?= x", "= ?utf-8?q?evil?= x".to_owned()),
            ("", String::new()),
            (&"x".repeat(10_000), format!("{}…", "x".repeat(199))),
            (&"😀 ".repeat(5_000), format!("{}…", "😀 ".repeat(99) + "😀")),
        ] {
            let mail = formatted(text, "hello");
            let parsed = MessageParser::new().parse(&mail).expect("a mail");
            assert_eq!(parsed.subject().unwrap_or_default(), shown);
            assert_eq!(headers(&mail), HEADERS);
        }
    }

    #[test]
    fn mail_is_formatted_with_any_clock_value() {
        let part = String::from;
        let (kind, subject) = (MailKind::Test, part("a"));
        let message = MailContent { kind, link: None, subject, text: part("b"), html: part("c") };
        let from = "steward@example.org".parse().unwrap();
        let to = Address::new("ann", "corp.example").unwrap();
        for now in
            [Timestamp::from_micros(i64::MIN), Timestamp::from_micros(0).plus_seconds(i64::MAX)]
        {
            assert!(
                format_mail(OutboxMessageId(uuid::Uuid::nil()), &from, &to, &message, now).is_ok()
            );
        }
    }

    proptest! {
        #[test]
        fn every_mail_is_ascii_with_short_lines_and_the_same_headers(
            subject in "\\PC{0,30}|[\\x00-\\x7f]{0,30}|[\\r\\n\\x00: =?]{0,30}",
            text in "[\\PC\\r\\n\\x00.]{0,200}",
        ) {
            let mail = formatted(&subject, &text);
            prop_assert!(mail.is_ascii());
            let text = String::from_utf8(mail.clone()).unwrap();
            for line in text.split("\r\n") {
                prop_assert!(line.len() <= 998 && !line.contains(['\r', '\n', '\0']), "{line:?}");
            }
            prop_assert_eq!(headers(&mail), HEADERS);
        }
    }
}
