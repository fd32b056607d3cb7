//! What the API shows of sessions, and what sessions declare about their records. The activity log does not cover them.

use crate::ids::{ApiKeyId, SessionId};
use crate::input::choices;
use crate::resources::api_keys::ApiKey;
use crate::resources::shared::prelude::*;

use super::session_text::check_live;
use super::{BY_USER, BoundKey, Fields, Meta, Session, SignInLink, SignInRequest, remove_all};

choices! {
    /// The values of `source`.
    pub struct Source: &'static str = ["key", "link", "mail"];
}

/// The API key that a session is bound to.
#[derive(Serialize, ToSchema)]
pub struct SessionKey {
    /// The id of the key.
    id: ApiKeyId,
    /// The name of the key.
    label: String,
    /// The first four characters of the key's value, `...`, and the last four.
    mask_value: String,
}

output! {
    /// A console session.
    pub struct SessionBody<'a> as Session {
        /// The id of the session.
        id: SessionId,
        /// When the session was created.
        created_at: Timestamp,
        /// When the session was last used, to within ten minutes.
        last_used_at: Timestamp,
        /// When the session ends at the latest. It ends earlier if it is not used for 12 hours.
        expires_at: Timestamp,
        /// The beginning of the `User-Agent` of the browser that signed in.
        user_agent: &'a str as String,
        /// The address of the browser that signed in.
        ip_address: String,
        /// What created the session: an API key, to which it stays bound, a sign-in link, or a sign-in mail.
        source: &'static str as Source,
        /// The API key. Null for a session that a link or a mail created, and for callers without the scope
        /// `personal_api_key:read`.
        key: Option<SessionKey>,
        /// Whether the request was made in this session.
        current: bool,
    }
}

/// Returns the live sessions of a user, newest first, as a JSON array. [`create_for_key`](super::create_for_key) limits
/// their number. `current` is the session of the request, and `sees_keys` whether the caller may see API keys.
pub fn list(
    tx: &dyn Raw,
    user: UserId,
    current: Option<SessionId>,
    sees_keys: bool,
    now: Timestamp,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    Array::write(&mut out, |array| {
        tx.walk(&BY_USER, &user, Window::all(Order::Descending), |row| {
            let Session { meta, fields } = row.into_record()?;
            if check_live(tx, meta.clone(), now)?.is_none() {
                return Ok(());
            }
            array.push(SessionBody {
                id: meta.id,
                created_at: meta.created_at,
                last_used_at: meta.last_used_at,
                expires_at: meta.expires_at,
                user_agent: &fields.user_agent,
                ip_address: fields.ip_address.to_string(),
                source: source(&meta, &fields),
                key: meta
                    .bound_key
                    .filter(|_| sees_keys)
                    .map_or(Ok(None), |bound| find_key(tx, &bound))?,
                current: current == Some(meta.id),
            })
        })
    })?;
    Ok(out)
}

fn source(meta: &Meta, fields: &Fields) -> &'static str {
    match (&meta.bound_key, fields.is_by_mail) {
        (Some(_), _) => "key",
        (None, false) => "link",
        (None, true) => "mail",
    }
}

fn find_key(tx: &dyn Raw, bound: &BoundKey) -> Result<Option<SessionKey>> {
    let key = tx.find::<ApiKey>(&bound.id)?;
    Ok(key.map(|ApiKey { meta, fields }| SessionKey {
        id: meta.id,
        label: fields.label,
        mask_value: fields.mask_value,
    }))
}

/// The records of sessions. Backups and exports leave their tables out.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Session>().redacted(Redaction::Whole).deleted_with_account(remove_all),
    &record::<SignInLink>().redacted(Redaction::Whole),
    &record::<SignInRequest>().redacted(Redaction::Whole),
];
