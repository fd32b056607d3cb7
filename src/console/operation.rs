//! The operations of the API that pages send.

use axum::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::http::routes::{RouteSpec, RouteTable};

/// The characters of a segment that are not encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'@');

/// An operation of the API with the values of the parameters in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    id: &'static str,
    values: Vec<String>,
}

impl Operation {
    /// Names an operation by its `operationId` in the OpenAPI document. `values` replace the parameters of its path, in
    /// the order of the path.
    pub(super) fn new<const N: usize>(id: &'static str, values: [&str; N]) -> Self {
        Self { id, values: values.map(str::to_owned).to_vec() }
    }

    /// Returns the row of the route table.
    pub(super) fn spec<'t>(&self, table: &'t RouteTable) -> Result<&'t RouteSpec> {
        let found = table.specs().iter().find(|spec| spec.operation == self.id);
        found.ok_or_else(|| Error::internal(format!("the API has no operation {}", self.id)))
    }

    /// Returns the method and the path.
    pub(super) fn target(&self, table: &RouteTable) -> Result<(Method, String)> {
        let spec = self.spec(table)?;
        let mut values = self.values.iter();
        let segments = spec.path.split('/').map(|segment| {
            let value = if segment.starts_with('{') { values.next() } else { None };
            value.map_or_else(
                || segment.to_owned(),
                |value| utf8_percent_encode(value, SEGMENT).to_string(),
            )
        });
        let path = segments.collect::<Vec<_>>().join("/");
        if path.contains('{') || values.next().is_some() {
            return Err(Error::internal(format!("{} has other path parameters", self.id)));
        }
        Ok((spec.method.clone(), path))
    }

    /// Returns the schema of the request body, or null if the operation has none.
    pub(super) fn body_schema(&self, table: &RouteTable) -> Result<Value> {
        let body = self.spec(table)?.body.as_ref();
        Ok(body.map_or(Value::Null, |body| json!((body.schema)())))
    }
}

/// A request that changes something. Not `Debug`, because the body may contain secrets.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) operation: Operation,
    pub(super) body: Option<Value>,
    /// The version that the object must have, for `If-Match`.
    pub(super) version: Option<String>,
    /// The `Idempotency-Key` of a POST.
    pub(super) key: Option<String>,
}

impl Write {
    /// Creates a request without a body.
    pub(super) fn new<const N: usize>(id: &'static str, values: [&str; N]) -> Self {
        Self { operation: Operation::new(id, values), body: None, version: None, key: None }
    }

    /// Sets the body.
    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets the `Idempotency-Key`, unless it is empty. Other methods than POST ignore it.
    pub(super) fn once(mut self, key: &str) -> Self {
        self.key = (!key.is_empty()).then(|| key.to_owned());
        self
    }
}
