//! The types of values in a destination's configuration.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::input::{Choices, FieldType, Name, Schema, Text, WebUrl};

/// A text of at most `MAX` characters, which may be blank. Spaces are kept, because it may be a password. A number is
/// not accepted as text. Errors have the codes of [`Text`].
pub(super) struct Exact<const MAX: usize>;

impl<const MAX: usize> FieldType for Exact<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let not_text = || Error::invalid("invalid_input", "Not a valid string.");
        let text = value.as_str().ok_or_else(not_text)?;
        if text.contains('\0') {
            let detail = "Null characters are not allowed.";
            return Err(Error::invalid("null_characters_not_allowed", detail));
        }
        if text.chars().count() > MAX {
            let detail = format!("Ensure this field has no more than {MAX} characters.");
            return Err(Error::invalid("max_length", detail));
        }
        Ok(text.to_owned())
    }

    fn schema() -> Schema {
        Text::<MAX>::schema()
    }
}

/// An [`Exact`] text that must not be blank.
pub(super) struct Filled<const MAX: usize>;

impl<const MAX: usize> FieldType for Filled<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Exact::<MAX>::read(value)?;
        require_filled(&text)?;
        Ok(text)
    }

    fn schema() -> Schema {
        Name::<MAX>::schema()
    }
}

/// A [`WebUrl`] that must not be blank.
pub(super) struct FilledUrl;

impl FieldType for FilledUrl {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let url = WebUrl::<2048>::read(value)?;
        require_filled(&url)?;
        Ok(url)
    }

    fn schema() -> Schema {
        let mut schema = WebUrl::<2048>::schema();
        if let Schema::Object(url) = &mut schema {
            url.min_length = Some(1);
        }
        schema
    }
}

fn require_filled(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("blank", "This field may not be blank."));
    }
    Ok(())
}

/// Declares the choices of enumerated keys.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident [$($choice:literal),*];)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl Choices for $name {
            type Value = &'static str;
            const ALL: &'static [&'static str] = &[$($choice),*];
        }
    )*};
}

choices! {
    /// S3's `file_format`.
    FileFormats ["JSONLines", "Parquet"];
    /// S3's `compression`, for all file formats together.
    Compressions ["gzip", "brotli", "zstd", "lz4", "snappy"];
    /// Snowflake's `authentication_type`.
    Authentications ["password", "keypair"];
    /// Redshift's `properties_data_type`.
    PropertyTypes ["varchar", "super"];
}
