//! Columns of results, and numbers of commits as the database stores them.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::super::Fault;
use super::failure::not_ours;

/// Returns a column.
///
/// # Errors
/// [`Fault::Refused`] if the column has another type.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, Fault> {
    row.try_get(at).map_err(|error| not_ours(&error.to_string()))
}

/// Returns a column with a number that is not negative.
pub(super) fn number(row: &Row, at: usize) -> Result<u64, Fault> {
    let found: i64 = column(row, at)?;
    u64::try_from(found).map_err(|_| not_ours("a number is negative"))
}

/// Returns a number for a parameter. Numbers of commits never grow so large that they do not fit.
pub(super) fn parameter(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
