//! The user that a path names.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::base::error::{Error, Result};
use crate::http::routes::PathParameter;
use crate::ids::{UUID_PATTERN, UserId, UserUuid};
use crate::input::Schema;
use crate::resources::users;
use crate::store::Tx;

/// The user that a path names.
#[derive(Debug, Clone, Copy)]
pub enum PathUser {
    /// `@me`: the caller.
    Caller,
    /// The user with this UUID.
    Uuid(UserUuid),
}

impl PathUser {
    /// Returns the user.
    ///
    /// # Errors
    /// 404 if there is none.
    pub fn resolve(self, tx: &impl Tx, caller: UserId) -> Result<UserId> {
        match self {
            Self::Uuid(uuid) => tx.lookup(&users::BY_UUID, &uuid)?.ok_or_else(Error::not_found),
            Self::Caller => Ok(caller),
        }
    }
}

impl PathParameter for PathUser {
    const NAME: &'static str = "user__uuid";
    const DESCRIPTION: &'static str = "The user's UUID, or `@me` for yourself.";

    fn schema() -> RefOr<Schema> {
        let pattern = format!("^(@me|{UUID_PATTERN})$");
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }

    fn parse(text: &str) -> Result<Self> {
        match text {
            "@me" => Ok(Self::Caller),
            uuid => uuid.parse().map(Self::Uuid).map_err(|_| Error::not_found()),
        }
    }
}
