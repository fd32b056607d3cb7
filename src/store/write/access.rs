//! The tables that authorization reads, and the version of their content.
//!
//! Most writes change none of these tables. So the result of a check stays valid until the version changes, and a request
//! need not read the same records as the request before it.

use crate::base::error::{Error, Result};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::raw::{KeySpan, Raw, Visit, VisitValue};
use crate::store::values::schema::{Table, count_key};

use super::WriteTx;

impl Table {
    /// Whether authorization with an API key reads this table.
    pub(in crate::store) const fn decides_access(self) -> bool {
        matches!(
            self,
            Self::Users
                | Self::ApiKeys
                | Self::Organizations
                | Self::Memberships
                | Self::MembershipsByUser
                | Self::Projects
                | Self::ProjectsById
                | Self::ProjectsPrivate
                | Self::Grants
                | Self::GrantsByUser
                | Self::GrantsByRole
                | Self::Roles
                | Self::RoleMemberships
                | Self::RoleMembershipsByUser
        )
    }
}

/// A state of the file whose access tables have a version.
pub trait AccessVersion: Raw {
    /// Returns the version of the tables that authorization reads. States with the same version have the same content in
    /// these tables. Returns `None` if a write may have changed them since the last commit.
    fn access_version(&self) -> Option<u64>;
}

impl AccessVersion for Snapshot {
    fn access_version(&self) -> Option<u64> {
        Some(self.access_version)
    }
}

impl AccessVersion for WriteTx<'_> {
    fn access_version(&self) -> Option<u64> {
        self.access_version
    }
}

/// A transaction that reads only the tables whose changes move the [`AccessVersion`]. Reading any other table fails, so a
/// result that is computed from it depends on nothing else.
pub struct AccessTables<'t, X>(pub &'t X);

impl<X: Raw> Raw for AccessTables<'_, X> {
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        if !(table == Table::Counts && counts_access_table(key)) {
            require_access_table(table)?;
        }
        self.0.raw_get(table, key, visit)
    }

    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()> {
        require_access_table(table)?;
        self.0.raw_between(table, span, visit)
    }

    fn as_dyn(&self) -> &dyn Raw {
        self
    }
}

/// Whether this key of [`Table::Counts`] counts the records of a table that authorization reads. Such a count changes only
/// with the table.
fn counts_access_table(key: &[u8]) -> bool {
    let mut tables = Table::ALL.iter().filter(|table| table.decides_access());
    tables.any(|table| key.starts_with(&count_key(*table, &[])))
}

fn require_access_table(table: Table) -> Result<()> {
    if table.decides_access() {
        return Ok(());
    }
    Err(Error::internal(format_args!("{}: not a table of authorization", table.name())))
}
