//! The token that a path names.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;

use crate::error::Result;
use crate::http::routes::PathParameter;
use crate::input::Schema;

/// The path's `{token}`, unchecked.
pub struct PathToken(pub String);

impl PathParameter for PathToken {
    const NAME: &'static str = "token";
    const DESCRIPTION: &'static str =
        "The token of the public page. With the suffix `.json` the response is JSON.";

    fn schema() -> RefOr<Schema> {
        String::schema()
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(Self(text.to_owned()))
    }
}
