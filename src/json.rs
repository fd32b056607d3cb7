//! Writing JSON objects from parts: a record's stored JSON as it stands, then what differs by caller.

use serde::Serialize;

use crate::error::{Error, Result};

/// An object under construction at the end of a buffer.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Object<'o> {
    /// Begins an object.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Adds the members of `object`, which is the text of a JSON object.
    #[must_use]
    pub fn splice(mut self, object: &[u8]) -> Self {
        let members =
            object.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default();
        if !members.is_empty() {
            self.comma();
            self.out.extend_from_slice(members);
        }
        self
    }

    /// Adds the member `name` with `value`, which is JSON text already.
    #[must_use]
    pub fn raw(mut self, name: &str, value: &[u8]) -> Self {
        self.name(name);
        self.out.extend_from_slice(value);
        self
    }

    /// Adds the member `name`, whose value `write` appends.
    ///
    /// # Errors
    /// What `write` answers.
    pub fn with(
        mut self,
        name: &str,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Self> {
        self.name(name);
        write(self.out)?;
        Ok(self)
    }

    /// Adds the member `name` with `value`.
    ///
    /// # Errors
    /// 500 when `value` has no JSON form.
    pub fn field(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        self.with(name, |out| serde_json::to_writer(out, value).map_err(Error::internal))
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push(b'}');
    }

    /// `name` is always a literal of this crate, which needs no escaping.
    fn name(&mut self, name: &str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn comma(&mut self) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
    }
}

/// The items of an array, one behind the other, without its brackets.
#[derive(Default)]
pub struct Items(Vec<u8>);

impl Items {
    /// No items yet, and room for `bytes` of them.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds an item, which `write` appends.
    ///
    /// # Errors
    /// What `write` answers.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        write(&mut self.0)
    }

    /// The text of the items.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// An array under construction at the end of a buffer.
pub struct Array<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> Array<'o> {
    /// Begins an array.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'[');
        Self { out, empty: true }
    }

    /// Adds an item, which `write` appends.
    ///
    /// # Errors
    /// What `write` answers.
    pub fn item(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write(self.out)
    }

    /// Ends the array.
    pub fn end(self) {
        self.out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_to_one_object() -> Result<()> {
        let mut out = Vec::new();
        Object::begin(&mut out)
            .splice(b"{}")
            .splice(br#"{"id":1,"name":"a\"b"}"#)
            .raw("created_by", b"null")
            .field("tags", &["x"])?
            .end();
        assert_eq!(out, br#"{"id":1,"name":"a\"b","created_by":null,"tags":["x"]}"#);
        Ok(())
    }
}
