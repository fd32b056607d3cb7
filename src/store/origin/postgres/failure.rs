//! Why a statement failed, and what that means for the caller.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::super::{CommitOutcome, Fault};

/// Why a statement has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The time was up.
    Late,
    /// The database committed, and did not wait until a standby has the commit.
    Unconfirmed,
    /// The connection failed, or the database refused the statement.
    Sql(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl Failure {
    /// Returns the fault of a statement whose failure leaves nothing behind: a question, or part of a transaction that is
    /// not committed.
    pub(super) fn of_question(&self) -> Fault {
        match self.refused() {
            Some(error) if *error.code() == SqlState::UNDEFINED_TABLE => missing_table(error),
            Some(error) if *error.code() == SqlState::LOCK_NOT_AVAILABLE => {
                Fault::Held(text(error))
            }
            Some(error) if is_about_tables(error.code()) => not_ours(&text(error)),
            Some(error) if needs_operator(error.code()) => Fault::Refused(text(error)),
            _ => Fault::Away(self.text()),
        }
    }

    /// Returns what became of a commit that failed like this.
    ///
    /// An error of the statement rolls it back. If the connection ends, the commit may have been done.
    pub(super) fn of_commit(&self) -> Result<CommitOutcome, Fault> {
        match self.refused() {
            Some(error) if is_overtaking(error.code()) => Ok(CommitOutcome::Overtaken),
            // To try again at once would only hold up the writes that follow.
            Some(error) if *error.code() == SqlState::DISK_FULL => Err(Fault::Refused(text(error))),
            Some(_) => Err(self.of_question()),
            None => Err(Fault::Unknown(self.text())),
        }
    }

    /// Returns the fault of a session that could not begin.
    pub(super) fn of_connecting(&self) -> Fault {
        let Self::Sql(error) = self else { return Fault::Away(self.text()) };
        let is_refused = match error.as_db_error() {
            Some(error) => needs_operator(error.code()),
            None => is_refused_by_client(error),
        };
        if is_refused { Fault::Refused(self.text()) } else { Fault::Away(self.text()) }
    }

    /// Whether the failure is of this kind.
    pub(super) fn is(&self, state: &SqlState) -> bool {
        matches!(self, Self::Sql(error) if error.code() == Some(state))
    }

    /// Returns the error if the database rolled the statement back and the session goes on.
    fn refused(&self) -> Option<&DbError> {
        let Self::Sql(error) = self else { return None };
        error.as_db_error().filter(|error| error.parsed_severity() == Some(Severity::Error))
    }

    /// Returns the texts of the error and its causes. Details of the database's errors are left out: they repeat values.
    fn text(&self) -> String {
        let error = match self {
            Self::Sql(error) => error,
            Self::Late => return "no answer within the time limit".to_owned(),
            Self::Unconfirmed => {
                return "somebody ended the wait for a synchronous standby, which may lack the commit"
                    .to_owned();
            }
        };
        if let Some(error) = error.as_db_error() {
            return text(error);
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

fn text(error: &DbError) -> String {
    let known = format!("{} (SQLSTATE {})", error.message(), error.code().code());
    match way_out(error.code()) {
        Some(way_out) => format!("{known}; {way_out}"),
        None => known,
    }
}

/// What an operator can do about an error.
fn way_out(state: &SqlState) -> Option<&'static str> {
    Some(match state.code() {
        "42501" => {
            "grant it to the role of --data: GRANT SELECT, INSERT, UPDATE, DELETE ON steward_head, steward_commits, \
             steward_rows, steward_nodes; if this release changes tables, start one node with the role that owns them"
        }
        "28P01" | "28000" => {
            "correct the user or the password in --data or in the password file, or pg_hba.conf"
        }
        "3D000" => "create the database, or correct its name in --data",
        "3F000" => "create the schema, or correct the search_path of the role",
        "53300" => {
            "raise max_connections or the limit of the role: a node needs up to six connections"
        }
        "53100" => "make room on the disk of the database",
        "22021" | "22P05" => {
            "the encoding of the database lacks a character, for example one of the name of this node: choose another \
             --node, or create the database in UTF8"
        }
        "26000" | "42P05" => {
            "a pooler between this node and the database mixes sessions: let it use session mode, or connect without it"
        }
        "25006" => {
            "the server takes no writes: name its primary in --data, or correct default_transaction_read_only"
        }
        "XX001" | "XX002" => "pages of the database are damaged: restore it",
        _ => return None,
    })
}

/// Returns the fault of a statement about a table that does not exist. Without a head there is no workspace.
fn missing_table(error: &DbError) -> Fault {
    let others = ["steward_commits", "steward_rows", "steward_nodes"];
    if others.iter().any(|name| error.message().contains(name)) {
        return Fault::Refused(format!(
            "{}: the workspace has lost this table; restore the database",
            text(error)
        ));
    }
    no_workspace()
}

/// Whether this error means that another commit came first, or that this one was taken at an earlier attempt: its name
/// exists, or the database could not order it.
fn is_overtaking(state: &SqlState) -> bool {
    *state == SqlState::UNIQUE_VIOLATION
        || *state == SqlState::T_R_SERIALIZATION_FAILURE
        || *state == SqlState::T_R_DEADLOCK_DETECTED
}

/// Returns the fault of a database without a workspace.
pub(super) fn no_workspace() -> Fault {
    Fault::Refused(
        "the database holds no Steward workspace; restore it, or correct --data".to_owned(),
    )
}

/// Returns the fault of a database whose tables are not as this program creates them.
pub(super) fn not_ours(why: &str) -> Fault {
    Fault::Refused(format!(
        "the database has tables of Steward's names that Steward did not create: {why}; use another database or schema, or \
         restore this one"
    ))
}

/// Whether the statement does not fit the tables.
fn is_about_tables(state: &SqlState) -> bool {
    *state == SqlState::UNDEFINED_COLUMN
        || *state == SqlState::DATATYPE_MISMATCH
        || *state == SqlState::UNDEFINED_FUNCTION
        || *state == SqlState::WRONG_OBJECT_TYPE
        || *state == SqlState::INVALID_COLUMN_REFERENCE
        || *state == SqlState::NOT_NULL_VIOLATION
        || *state == SqlState::CHECK_VIOLATION
}

/// Whether the same statement would fail in the same way until somebody changes the configuration or the database: a
/// missing grant, a wrong password, an unknown database, tables of another program, damaged pages.
fn needs_operator(state: &SqlState) -> bool {
    const CLASSES: [&str; 9] = ["0A", "0L", "0P", "22", "28", "3D", "3F", "42", "XX"];
    CLASSES.iter().any(|class| state.code().starts_with(class))
}

/// Whether the client would refuse the same server again. The library shows the kind of an error only in its text.
fn is_refused_by_client(error: &Error) -> bool {
    let is_about_io = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let is_cut = is_about_io.is_some_and(|cause| cause.kind() != std::io::ErrorKind::InvalidData);
    match error.to_string().as_str() {
        "invalid configuration" | "authentication error" => true,
        "error performing TLS handshake" => !is_cut,
        _ => false,
    }
}
