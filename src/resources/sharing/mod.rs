//! Sharing a dashboard publicly: whether it has a page that opens without a key, and under which token
//! (API document, Sharing configuration; decisions §4, Sharing; facts-dashboards §11).

pub mod body;
pub mod http;
mod page;
mod tokens;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Result;
use crate::etag::Versioned;
use crate::ids::{DashboardId, ProjectId};
use crate::input;
use crate::input::{Flag, Parsed};
use crate::json::Object;
use crate::resources::organizations::Organization;
use crate::resources::projects;
use crate::store::{
    Index, Indexed, Key, Order, Owner, Record, Reference, Secrecy, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

pub use tokens::{TokenHash, Tokens};

/// How long a replaced token still opens the page.
const GRACE: Duration = Duration::from_mins(5);

/// Whether a dashboard has a public page. There is none for a dashboard that never had one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharing {
    /// What rules decide by.
    pub head: Head,
    /// What answers show of it.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The dashboard's project.
    pub project: ProjectId,
    /// The dashboard.
    pub dashboard: DashboardId,
    /// The number of its token; each one is used once.
    pub serial: u64,
    /// The token that opens the page, while there is one.
    pub token: Option<TokenHash>,
    /// The token before it, and when it ends. One that was replaced twice is gone at once.
    pub replaced: Option<(TokenHash, Timestamp)>,
}

/// What answers show of it, besides the token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = SharingFixed)]
pub struct Shown {
    /// When it was first enabled.
    pub created_at: Option<Timestamp>,
    /// Whether there is a public page.
    pub enabled: bool,
}

/// Whose sharing is meant.
type Of = (ProjectId, DashboardId);

/// By the token, which was not replaced.
pub const BY_TOKEN: Index<Sharing, (TokenHash, bool)> =
    Index::unique(Table::SharingTokens, |sharing| Some((sharing.head.token?, false)));
/// In the same table: by the one before it, which was.
pub const BY_REPLACED: Index<Sharing, (TokenHash, bool)> =
    Index::unique(Table::SharingTokens, |sharing| Some((sharing.head.replaced?.0, true)));

impl Record for Sharing {
    const TABLE: Table = Table::Sharing;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_TOKEN, &BY_REPLACED];
    type Key = Of;
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Of {
        (self.head.project, self.head.dashboard)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        Owner::leading(tx, Table::Dashboards, &self.key())
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference { table: Table::Dashboards, key: self.key().encoded() }]
    }
}

/// What the file knows of tokens is in no export without secrets. Under another signing secret other tokens open
/// the same pages.
pub const SECRECY: Secrecy<Sharing> = Secrecy::Head {
    hide: |head| (head.token, head.replaced) = (None, None),
    anew: |sharing, secret| {
        let tokens = Tokens::new(secret)?;
        sharing.head.token = sharing.shown.enabled.then(|| sharing.head.hash(&tokens));
        Ok(())
    },
};

input! {
    /// What may be changed of a dashboard's sharing.
    pub struct SharingPatch {
        /// Whether there is a public page.
        enabled: Flag,
    }
}

/// The dashboard's sharing as it is stored, or as it is before it was ever enabled.
fn get(tx: &impl Tx, of: Of) -> Result<Sharing> {
    let (project, dashboard) = of;
    let unset = || Sharing {
        head: Head { project, dashboard, serial: 0, token: None, replaced: None },
        shown: Shown::default(),
    };
    Ok(tx.find(&of)?.unwrap_or_else(unset))
}

/// Enables or disables the public page; answers whether there is one since, or nothing where nothing
/// changed. Enabling keeps the token that was shown before. Disabling ends it for good: it is never the
/// dashboard's token again.
///
/// # Errors
/// 400 for a field.
pub fn update(
    tx: &mut WriteTx<'_>,
    tokens: &Tokens,
    of: Of,
    patch: &Parsed<SharingPatch>,
    now: Timestamp,
) -> Result<Option<bool>> {
    let mut sharing = get(tx, of)?;
    let enabled = patch.get()?.enabled.unwrap_or(sharing.shown.enabled);
    if enabled == sharing.shown.enabled {
        return Ok(None);
    }
    sharing.shown.enabled = enabled;
    if enabled {
        sharing.shown.created_at.get_or_insert(now);
    } else {
        sharing.head.serial += 1;
    }
    sharing.head.replaced = None;
    sharing.head.token = enabled.then(|| sharing.head.hash(tokens));
    tx.put(&sharing)?;
    Ok(Some(enabled))
}

/// Replaces the token; answers whether there is a public page, which the old token opens a while longer.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn refresh(tx: &mut WriteTx<'_>, tokens: &Tokens, of: Of, now: Timestamp) -> Result<bool> {
    let mut sharing = get(tx, of)?;
    sharing.head.serial += 1;
    let old = sharing.head.token.take();
    sharing.head.replaced = old.map(|old| (old, now.plus(GRACE)));
    sharing.head.token = old.map(|_| sharing.head.hash(tokens));
    tx.put(&sharing)?;
    Ok(sharing.shown.enabled)
}

/// Gives every dashboard with a public page a new token, under a key of the data file that is itself new: no old one
/// opens anything any more. Answers which dashboards these are. Pages of removed projects are left to the sweeper:
/// nothing opens them.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn renew(tx: &mut WriteTx<'_>, tokens: &Tokens) -> Result<Vec<Of>> {
    let mut open = Vec::new();
    tx.scan::<Sharing, _>(&(), Window::all(Order::Ascending), |row| {
        if row.head.token.is_some() {
            open.push((row.head.project, row.head.dashboard));
        }
        Ok(())
    })?;
    let mut renewed = Vec::with_capacity(open.len());
    for of in open {
        if projects::find_by_id(tx, of.0)?.is_some() {
            let mut sharing = get(tx, of)?;
            sharing.head.serial += 1;
            sharing.head.replaced = None;
            sharing.head.token = Some(sharing.head.hash(tokens));
            tx.put(&sharing)?;
            renewed.push(of);
        }
    }
    Ok(renewed)
}

impl Head {
    /// What its token is looked up by.
    fn hash(&self, tokens: &Tokens) -> TokenHash {
        tokens.hash(&tokens.token(self.dashboard, self.serial))
    }

    /// Whether what was looked up by this hash opens the page.
    fn opens(&self, hash: TokenHash, now: Timestamp) -> bool {
        self.token == Some(hash) || self.replaced.is_some_and(|(old, end)| old == hash && now < end)
    }
}

/// The dashboard whose public page a token opens. Where its project or organization was removed, none does,
/// whether or not the sweeper has come.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn find_open(
    tx: &impl Tx,
    tokens: &Tokens,
    presented: &str,
    now: Timestamp,
) -> Result<Option<Of>> {
    let hash = tokens.hash(presented);
    let of = match tx.lookup(&BY_TOKEN, &(hash, false))? {
        None => tx.lookup(&BY_REPLACED, &(hash, true))?,
        found => found,
    };
    let Some(of) = of else { return Ok(None) };
    let opens = tx.head::<Sharing>(&of)?.is_some_and(|sharing| sharing.opens(hash, now));
    let Some(project) = projects::find_by_id(tx, of.0)?.filter(|_| opens) else { return Ok(None) };
    Ok(tx.exists::<Organization>(&project.organization)?.then_some(of))
}

/// The Sharing configuration of the API document. While the page is off it shows the token that enabling would
/// give, to callers who may share the dashboard, with a key that may: others would hold it when the page opens.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn body(tx: &impl Tx, tokens: &Tokens, of: Of, may_share: bool) -> Result<Versioned> {
    let Sharing { head, shown } = get(tx, of)?;
    let is_shown = shown.enabled || may_share;
    let token = is_shown.then(|| tokens.token(head.dashboard, head.serial));
    let mut json = Vec::with_capacity(128);
    Object::begin(&mut json)
        .field("created_at", &shown.created_at)?
        .field("enabled", &shown.enabled)?
        .field("access_token", &token)?
        .end();
    Ok(Versioned { version: tx.version::<Sharing>(&of)?, json })
}
