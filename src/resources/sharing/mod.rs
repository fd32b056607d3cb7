//! Sharing: public pages of dashboards and insights, which open with a token instead of a key. See
//! `docs/spec/sharing.md`.
//!
//! A token is derived from its object and a serial number with a subkey of the data file's signing secret.
//! It is not stored, so a GET can show it without a write. The file stores only a keyed hash, by which a token is
//! looked up. The hashes reveal no token without the signing secret, and neither does the time of a look-up.

pub mod api;
pub mod http;
pub mod page;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::auth::InProject;
use crate::base::secret::{Purpose, SigningSecret};
use crate::input::Flag;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::{Shared, level_on};
use crate::resources::dashboards::{self, tiles};
use crate::resources::organizations::Organization;
use crate::resources::projects;
use crate::resources::shared::prelude::*;
use crate::store::{Owner, key};

pub use api::RECORDS;
use api::SharingBody;

/// How long a replaced token remains valid.
const REPLACED_TOKEN_GRACE: Duration = Duration::from_mins(5);

/// The sharing configuration of an object. Stored when sharing is first enabled or its token is first
/// replaced.
pub type Sharing = RecordOf<Meta, Fields>;

/// Fields of a sharing configuration that access checks and look-ups read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The project of the object.
    pub project: ProjectId,
    /// The shared object.
    pub object: Object,
    /// The serial number of the current token. Never decreases, so no token is used twice.
    pub serial: u64,
    /// The hash of the current token; none while sharing is disabled.
    pub token: Option<TokenHash>,
    /// The hash of the previous token, and when it expires. Replacing a token twice revokes the oldest one
    /// at once.
    pub replaced: Option<(TokenHash, Timestamp)>,
}

/// The stored fields of a sharing configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fields {
    /// When sharing was first enabled.
    pub created_at: Option<Timestamp>,
    /// Whether the object has a public page.
    pub enabled: bool,
}

/// The project and the object of a sharing configuration.
pub type SharingKey = (ProjectId, Object);

/// By the current token. `false` stands for a token that was not replaced.
pub const BY_TOKEN: Index<Sharing, (TokenHash, bool)> =
    Index::unique(Table::SharingTokens, |sharing| Some((sharing.meta.token?, false)));
/// By the replaced token, in the same table. `true` stands for a token that was replaced.
pub const BY_REPLACED: Index<Sharing, (TokenHash, bool)> =
    Index::unique(Table::SharingTokens, |sharing| Some((sharing.meta.replaced?.0, true)));

impl_record!(Sharing {
    table: Sharing,
    key: |sharing| -> SharingKey { (sharing.meta.project, sharing.meta.object) },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_TOKEN, &BY_REPLACED],
    owner: |sharing, tx| {
        let Meta { project, object, .. } = sharing.meta;
        Owner::leading(tx, object.reference(project).table, &(project, object.number()))
    },
    references: |sharing| [sharing.meta.object.reference(sharing.meta.project)],
});

/// An export without secrets leaves out the hashes of tokens. An import under another signing secret
/// derives new tokens for the same pages.
const REDACTION: Redaction<Sharing> = Redaction::Meta {
    hide: |meta| (meta.token, meta.replaced) = (None, None),
    regenerate: |sharing, secret| {
        let tokens = SharingTokens::new(secret)?;
        sharing.meta.token = sharing.fields.enabled.then(|| sharing.meta.hash(&tokens));
        Ok(())
    },
};

input! {
    /// The fields of a sharing configuration that can be updated.
    pub struct SharingPatch {
        /// Whether the object has a public page. False revokes the token.
        enabled: Flag,
    }
}

/// Returns the stored configuration, or that of an object that was never shared.
fn get(tx: &dyn Raw, of: SharingKey) -> Result<Sharing> {
    let (project, object) = of;
    let unset = || Sharing {
        meta: Meta { project, object, serial: 0, token: None, replaced: None },
        fields: Fields::default(),
    };
    Ok(tx.find(&of)?.unwrap_or_else(unset))
}

/// Enables or disables the public page.
///
/// Enabling uses the token that was shown before. Disabling revokes the token for good.
///
/// # Errors
/// 400 for an invalid field; 403 if the page would show an insight that the caller may not view.
pub fn update(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    tokens: &SharingTokens,
    of: SharingKey,
    patch: &Parsed<SharingPatch>,
    now: Timestamp,
) -> Result<()> {
    let mut sharing = get(tx, of)?;
    let enabled = patch.get()?.enabled.unwrap_or(sharing.fields.enabled);
    if enabled == sharing.fields.enabled {
        return Ok(());
    }
    sharing.fields.enabled = enabled;
    if enabled {
        if let Object::Dashboard(id) = of.1 {
            tiles::require_view_of_all(tx, tenant, id)?;
        }
        sharing.fields.created_at.get_or_insert(now);
    } else {
        sharing.meta.serial += 1;
    }
    sharing.meta.replaced = None;
    sharing.meta.token = enabled.then(|| sharing.meta.hash(tokens));
    put(tx, &sharing)
}

/// Replaces the token. The old token expires after 5 minutes.
pub fn rotate(
    tx: &mut WriteTx<'_>,
    tokens: &SharingTokens,
    of: SharingKey,
    now: Timestamp,
) -> Result<()> {
    let mut sharing = get(tx, of)?;
    sharing.meta.serial += 1;
    let old = sharing.meta.token.take();
    sharing.meta.replaced = old.map(|old| (old, now.plus(REPLACED_TOKEN_GRACE)));
    sharing.meta.token = old.map(|_| sharing.meta.hash(tokens));
    put(tx, &sharing)
}

/// Stores the configuration, and moves the version of a dashboard, which shows whether it is shared.
fn put(tx: &mut WriteTx<'_>, sharing: &Sharing) -> Result<()> {
    tx.put(sharing)?;
    match sharing.meta.object {
        Object::Dashboard(id) => {
            dashboards::set_shared(tx, &(sharing.meta.project, id), sharing.fields.enabled)
        }
        Object::Insight(_) => Ok(()),
    }
}

/// Replaces the tokens of all public pages after the signing secret was rotated, and returns their
/// number. All old tokens are revoked.
///
/// Skips pages of deleted projects: they no longer open, and a background task deletes
/// them.
pub fn rotate_all(tx: &mut WriteTx<'_>, tokens: &SharingTokens) -> Result<usize> {
    let open: Vec<SharingKey> =
        collect::<Sharing, _, _>(tx, &(), |meta| meta.token.map(|_| (meta.project, meta.object)))?;
    let mut renewed = 0;
    for of in open {
        if projects::find_by_id(tx, of.0)?.is_some() {
            let mut sharing = get(tx, of)?;
            sharing.meta.serial += 1;
            sharing.meta.replaced = None;
            sharing.meta.token = Some(sharing.meta.hash(tokens));
            put(tx, &sharing)?;
            renewed += 1;
        }
    }
    Ok(renewed)
}

impl Meta {
    /// Returns the hash of the current token.
    fn hash(&self, tokens: &SharingTokens) -> TokenHash {
        tokens.hash(&tokens.token(self.object, self.serial))
    }

    /// Returns whether the token with this hash opens the page.
    fn opens(&self, hash: TokenHash, now: Timestamp) -> bool {
        let is_in_grace = |end: Timestamp| end.is_end_of_current(REPLACED_TOKEN_GRACE, now);
        self.token == Some(hash)
            || self.replaced.is_some_and(|(old, end)| old == hash && is_in_grace(end))
    }
}

/// Returns the object whose public page a token opens. Returns `None` if the project or organization was
/// deleted, even if the page's record still exists.
pub fn find_open(
    tx: &dyn Raw,
    tokens: &SharingTokens,
    presented: &str,
    now: Timestamp,
) -> Result<Option<SharingKey>> {
    let hash = tokens.hash(presented);
    let of = match tx.lookup(&BY_TOKEN, &(hash, false))? {
        None => tx.lookup(&BY_REPLACED, &(hash, true))?,
        found => found,
    };
    let Some(of) = of else { return Ok(None) };
    let opens = tx.meta::<Sharing>(&of)?.is_some_and(|sharing| sharing.opens(hash, now));
    let Some(project) = projects::find_by_id(tx, of.0)?.filter(|_| opens) else { return Ok(None) };
    Ok(tx.exists::<Organization>(&project.organization)?.then_some(of))
}

/// Renders the sharing configuration.
///
/// While the page is disabled, only a caller who may share the object, with a key that allows it, gets
/// the token. Any other caller could keep the token until the page is enabled.
pub fn body(
    tx: &dyn Raw,
    tokens: &SharingTokens,
    of: SharingKey,
    may_share: bool,
) -> Result<Versioned> {
    let Sharing { meta, fields } = get(tx, of)?;
    let is_shown = fields.enabled || may_share;
    let body = SharingBody {
        created_at: fields.created_at,
        enabled: fields.enabled,
        access_token: is_shown.then(|| tokens.token(meta.object, meta.serial)),
    };
    Ok(Versioned::new(tx.version::<Sharing>(&of)?, body.to_json(128)?))
}

/// A live object, and the caller's rights on its public page.
pub struct Shareable {
    /// The key of its sharing configuration.
    pub key: SharingKey,
    /// Whether the caller may share the object: editors may.
    pub can_share: bool,
    level: AccessLevel,
}

impl Shareable {
    /// Finds the object in the project. As in PostHog, a restriction of the dashboards that show an insight does not
    /// decide who may share the insight.
    ///
    /// # Errors
    /// 404 if the object does not exist or is deleted.
    pub fn find<R: Shared + Loggable>(
        tx: &dyn Raw,
        tenant: &InProject,
        named: &R::Ref,
    ) -> Result<Self> {
        let project = tenant.project.id;
        let meta = R::find_live(tx, project, named)?.ok_or_else(not_found::<R>)?;
        let level = level_on::<R>(tx, tenant, &meta)?;
        let is_editor = level.require(AccessLevel::Editor).is_ok();
        let can_share = is_editor && R::lets_edit(tx, tenant, &meta)?;
        Ok(Self { key: (project, R::shared(&meta).object), can_share, level })
    }

    /// Checks that the caller may view the object.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_view(&self) -> Result<()> {
        self.level.require(AccessLevel::Viewer)
    }

    /// Checks that the caller may share the object, and returns the key of its sharing configuration. As in PostHog,
    /// the error's text is the same whether an access rule or a restriction denies it.
    ///
    /// # Errors
    /// 403 if the caller may not.
    pub fn require_share(self) -> Result<SharingKey> {
        if self.can_share {
            return Ok(self.key);
        }
        let kind = self.key.1.kind().as_str();
        Err(Error::denied(format!("You don't have edit permissions for this {kind}.")))
    }
}

/// Returns the 404 of the routes of sharing for an object of type `R`.
pub fn not_found<R: Loggable>() -> Error {
    Error::not_found_as(format!("{} not found.", R::SCOPE))
}

/// Length of a token in bytes. Base64 makes 30 characters of them, as in PostHog.
const TOKEN_BYTES: usize = 22;

/// Derives and hashes tokens. Clones share the key, and [`SharingTokens::renew`] changes it for all of them.
#[derive(Clone)]
pub struct SharingTokens(Arc<ArcSwap<Hmac<Sha256>>>);

impl SharingTokens {
    /// Derives the subkey for tokens from the signing secret.
    pub fn new(secret: &SigningSecret) -> Result<Self> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(subkey(secret)?))))
    }

    /// Replaces the subkey with that of a new signing secret.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.0.store(Arc::new(subkey(secret)?));
        Ok(())
    }

    /// Returns the token of an object with this serial number: 30 characters of `[A-Za-z0-9_-]`.
    pub fn token(&self, object: Object, serial: u64) -> String {
        let bytes = self.mac(b"token", &[&object.encoded(), &serial.encoded()]);
        BASE64_URL_SAFE_NO_PAD.encode(bytes.get(..TOKEN_BYTES).unwrap_or_default())
    }

    /// Returns the keyed hash by which a token is looked up.
    pub fn hash(&self, token: &str) -> TokenHash {
        TokenHash(self.mac(b"look-up", &[token.as_bytes()]))
    }

    /// No purpose may be a prefix of another. Otherwise a token could equal the hash of another token.
    fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::clone(&self.0.load());
        mac.update(purpose);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

fn subkey(secret: &SigningSecret) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(&secret.subkey(Purpose::Sharing)?).map_err(Error::internal)
}

/// A keyed hash of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TokenHash([u8; 32]);

impl Key for TokenHash {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        key::take_bytes(input).map(Self)
    }
}
