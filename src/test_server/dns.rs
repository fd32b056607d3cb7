//! What DNS look-ups find in a test run. No name server is asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::base::error::{Error, Result};
use crate::http::routes::PathParameter;
use crate::input::{Choice, ListOf, Schema, Text, choices, input};
use crate::net::dns::{LookupError, TxtRecord, TxtRecords, canonical_name};

/// The maximum number of names.
const MAX_NAMES: usize = 1000;
/// The maximum number of records of a name.
const MAX_RECORDS: usize = 100;
/// The size in bytes of the parts of a record.
const PART: usize = 255;
/// The time that an error says to have waited.
const TIMEOUT: Duration = Duration::from_secs(5);

choices! {
    /// How look-ups of a name fail.
    pub(super) struct Failure: &'static str = ["servfail", "timeout"];
}

input! {
    /// What look-ups of a name find: records, or an error.
    pub(super) struct DnsAnswer {
        /// The texts of the TXT records.
        txt: ListOf<Text<4000>, MAX_RECORDS>,
        /// How look-ups fail. A timeout answers at once, as after one.
        error: Choice<Failure>,
    }
}

/// A name and what look-ups of it find.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = TestDnsName)]
pub(super) struct DnsName {
    /// The name, in lower case.
    pub(super) name: String,
    /// The texts of its TXT records.
    pub(super) txt: Vec<String>,
    /// How look-ups of it fail, if they do.
    #[schema(value_type = Option<String>)]
    pub(super) error: Option<&'static str>,
}

/// The names that are known.
pub(super) type DnsNames = BTreeMap<String, DnsName>;

/// The answers of look-ups. A name without one has no records.
#[derive(Default)]
pub(super) struct Dns(Mutex<DnsNames>);

impl fmt::Debug for Dns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names().keys()).finish()
    }
}

impl Dns {
    fn names(&self) -> MutexGuard<'_, DnsNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all names.
    pub(super) fn save(&self) -> DnsNames {
        self.names().clone()
    }

    /// Replaces all names.
    pub(super) fn put_back(&self, names: &DnsNames) {
        self.names().clone_from(names);
    }

    /// Sets what look-ups of a name find.
    ///
    /// # Errors
    /// 400 if the answer has neither records nor an error, or both, or if there are too many names.
    pub(super) fn put(&self, RecordName(name): RecordName, answer: DnsAnswer) -> Result<()> {
        let DnsAnswer { txt, error } = answer;
        if txt.is_some() == error.is_some() {
            return Err(Error::field("txt", "invalid_input", "Send either txt or error."));
        }
        let mut names = self.names();
        if names.len() >= MAX_NAMES && !names.contains_key(&name) {
            return Err(Error::limit_reached(format!(
                "There are {MAX_NAMES} names. Delete one first."
            )));
        }
        names.insert(name.clone(), DnsName { name, txt: txt.unwrap_or_default(), error });
        Ok(())
    }

    /// Forgets a name.
    ///
    /// # Errors
    /// 404 if it is unknown.
    pub(super) fn remove(&self, RecordName(name): &RecordName) -> Result<()> {
        let unknown = || Error::not_found_as("DNS name not found.");
        self.names().remove(name).map(drop).ok_or_else(unknown)
    }

    /// Forgets all names.
    pub(super) fn clear(&self) {
        self.names().clear();
    }
}

impl TxtRecords for Dns {
    fn find(&self, name: &str) -> Result<Vec<TxtRecord>, LookupError> {
        let names = self.names();
        let Some(DnsName { txt, error, .. }) = names.get(name) else { return Ok(Vec::new()) };
        match *error {
            Some("timeout") => Err(LookupError::TimedOut(TIMEOUT)),
            Some(error) => Err(LookupError::Failed(error.to_owned())),
            None => {
                let parts =
                    |text: &String| text.as_bytes().chunks(PART).map(<[u8]>::to_vec).collect();
                Ok(txt.iter().map(parts).collect())
            }
        }
    }
}

/// The whole name of a record.
pub(super) struct RecordName(String);

impl PathParameter for RecordName {
    const NAME: &'static str = "name";
    const DESCRIPTION: &'static str = "The whole name of the record.";

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).into()
    }

    fn parse(text: &str) -> Result<Self> {
        let wrong =
            || Error::field(Self::NAME, "invalid_input", "This is not the name of a DNS record.");
        canonical_name(text).filter(|name| !name.is_empty()).map(Self).ok_or_else(wrong)
    }
}
