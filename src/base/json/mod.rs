//! Builds JSON text from parts, for example from a record's stored JSON and the fields that depend on the caller, and parses
//! JSON from outside.

mod null_members;
pub mod output;
mod read;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::marker::PhantomData;

use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::base::error::{Error, Result};

pub use null_members::null_members;
pub(crate) use output::output;
pub use output::{JsonText, WriteJson, WriteMembers, WrittenBy};
pub use read::{RESERVED_NAME, deserialize_storable, has_reserved_name, parse};

/// The most bytes that the items of a list may have when another one is added. The text of a page is in memory.
const MAX_ITEMS_BYTES: usize = 64 << 20;

/// The characters that change the direction of text, in which displayed JSON could disguise its content. Then others that
/// are shown as nothing or as a line break.
const INVISIBLE: &str = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\
                         \u{ad}\u{200b}\u{2028}\u{2029}\u{feff}";

/// Escapes the characters in JSON text that change the direction of text, or that are shown as nothing or as a line break, except
/// joiners, which letters and emoji need. The value stays the same.
#[must_use]
pub fn escape_invisible(json: String) -> String {
    let is_invisible = |one: char| {
        INVISIBLE.contains(one) || matches!(one, '\u{7f}'..='\u{9f}' | '\u{2060}'..='\u{2064}')
    };
    if !json.contains(is_invisible) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for one in json.chars() {
        if is_invisible(one) {
            // Writing to a string cannot fail.
            let _written = write!(escaped, "\\u{:04x}", u32::from(one));
        } else {
            escaped.push(one);
        }
    }
    escaped
}

/// A JSON object that is appended to a buffer.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    /// Appends an object with the members of `value`.
    pub fn write(value: impl WriteMembers, out: &'o mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        let mut object = Self { out, empty: true };
        value.write_members(&mut object)?;
        object.out.push(b'}');
        Ok(())
    }

    /// Adds the members of `object`, which must be the text of a JSON object.
    pub fn members(&mut self, object: &[u8]) {
        let members =
            object.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default();
        if !members.is_empty() {
            if !self.empty {
                self.out.push(b',');
            }
            self.out.extend_from_slice(members);
            self.empty = false;
        }
    }

    /// Adds a member. `name` is the text `,"name":`, after the text of constant members if there are any.
    pub fn member(&mut self, name: &'static str, value: impl WriteJson) -> Result<()> {
        self.constants(name);
        value.write_json(self.out)
    }

    /// Adds members whose text is constant, each after a comma.
    #[inline]
    pub fn constants(&mut self, members: &'static str) {
        if !members.is_empty() {
            let text = members.as_bytes().get(usize::from(self.empty)..);
            self.out.extend_from_slice(text.unwrap_or_default());
            self.empty = false;
        }
    }
}

/// The items of a JSON array, separated by commas, without the brackets.
#[derive(Default)]
pub struct JsonItems(Vec<u8>);

impl JsonItems {
    /// Creates a list without items that has room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds an item.
    ///
    /// # Errors
    /// 400 if the items before it are too large together; the errors of the item.
    pub fn push(&mut self, item: impl WriteJson) -> Result<()> {
        if self.0.len() > MAX_ITEMS_BYTES {
            let detail =
                "A page has about 64 MiB at most. Ask for fewer objects with this parameter.";
            return Err(Error::field("limit", "limit_reached", detail));
        }
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        item.write_json(&mut self.0)
    }

    /// Returns the text of the items.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A JSON array that is appended to a buffer.
pub struct Array<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Array<'o> {
    /// Appends an array of the items that `add` pushes.
    pub fn write(out: &'o mut Vec<u8>, add: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        out.push(b'[');
        let mut array = Self { out, empty: true };
        add(&mut array)?;
        array.out.push(b']');
        Ok(())
    }

    /// Adds an item.
    pub fn push(&mut self, item: impl WriteJson) -> Result<()> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        item.write_json(self.out)
    }
}

/// The schema of a value that is either an `A` or a `B`.
pub struct Either<A, B>(PhantomData<fn() -> (A, B)>);

impl<A: ToSchema, B: ToSchema> PartialSchema for Either<A, B> {
    fn schema() -> RefOr<Schema> {
        let one = OneOfBuilder::new().item(Ref::from_schema_name(A::name()));
        one.item(Ref::from_schema_name(B::name())).into()
    }
}

impl<A: ToSchema, B: ToSchema> ToSchema for Either<A, B> {
    fn name() -> Cow<'static, str> {
        format!("{}Or{}", A::name(), B::name()).into()
    }

    fn schemas(found: &mut Vec<(String, RefOr<Schema>)>) {
        found.push((A::name().into_owned(), A::schema()));
        A::schemas(found);
        found.push((B::name().into_owned(), B::schema()));
        B::schemas(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_page_are_limited() {
        let item = vec![b' '; MAX_ITEMS_BYTES];
        let mut items = JsonItems::default();
        items.push(JsonText::<()>::new(&item)).expect("within the limit");
        items.push(JsonText::<()>::new(b"{}")).expect("within the limit");
        let refused = items.push(JsonText::<()>::new(b"{}")).expect_err("over the limit");
        assert_eq!((refused.status(), refused.attr()), (400, Some("limit")));
    }
}
