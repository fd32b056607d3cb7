//! Requests that are refused with status 400, as tables: what is sent, and the expected error.

use axum::http::Method;
use serde_json::{Value, json};

use super::TestClient;

/// The expected error of an invalid request.
#[derive(Debug, Clone)]
pub struct Refusal {
    attr: Option<String>,
    code: &'static str,
    detail: String,
}

impl Refusal {
    /// An error of one field.
    pub fn new(attr: &str, code: &'static str, detail: impl Into<String>) -> Self {
        Self { attr: Some(attr.to_owned()), code, detail: detail.into() }
    }

    /// A field whose value is not accepted.
    pub fn invalid(attr: &str, detail: impl Into<String>) -> Self {
        Self::new(attr, "invalid_input", detail)
    }

    /// A field whose value is no text.
    pub fn not_text(attr: &str) -> Self {
        Self::invalid(attr, "Not a valid string.")
    }

    /// A field with more than `most`, such as `"400 characters"`.
    pub fn at_most(attr: &str, most: &str) -> Self {
        Self::new(attr, "max_length", format!("Ensure this field has no more than {most}."))
    }

    /// A required field that is absent.
    pub fn required(attr: &str) -> Self {
        Self::new(attr, "required", "This field is required.")
    }

    /// A field that is null.
    pub fn null(attr: &str) -> Self {
        Self::new(attr, "null", "This field may not be null.")
    }

    /// A field with the id of an object that does not exist.
    pub fn unknown(attr: &str, id: &str) -> Self {
        Self::new(attr, "does_not_exist", format!("Invalid pk \"{id}\" - object does not exist."))
    }

    /// An error of the body as a whole.
    pub fn of_body(code: &'static str, detail: impl Into<String>) -> Self {
        Self { attr: None, code, detail: detail.into() }
    }
}

impl TestClient {
    /// Sends each body, and asserts its whole error.
    pub async fn assert_refusals(
        &self,
        method: Method,
        path: &str,
        cases: impl IntoIterator<Item = (Value, Refusal)>,
    ) {
        for (sent, Refusal { attr, code, detail }) in cases {
            let answer = self.send(method.clone(), path, Some(sent.clone())).await;
            let error =
                json!({ "type": "validation_error", "code": code, "detail": detail, "attr": attr });
            assert_eq!((answer.status, &answer.body), (400, &error), "{method} {path} {sent}");
        }
    }
}

/// Returns the elements of a JSON array: `each(json!([1, "x", null]))`.
pub fn each(array: Value) -> Vec<Value> {
    let Value::Array(elements) = array else { panic!("{array} is no array") };
    elements
}

/// Returns the rows of a table in JSON: `rows(json!([["a", 1], ["b", null]]))`.
pub fn rows<const N: usize>(table: Value) -> Vec<[Value; N]> {
    each(table).into_iter().map(|row| each(row).try_into().expect("a whole row")).collect()
}
