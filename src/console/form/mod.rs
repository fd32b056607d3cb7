//! Forms whose fields come from the request bodies of the API. A form becomes exactly one request, and what was typed is
//! shown again beside the error of a request that failed.

mod confirm;
mod field;
mod input;
mod property;
mod submitted;

use askama::{FastWritable, Template};
use axum::http::StatusCode;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::base::error::{Error, Result};

use super::api::{Operation, Versioned};
use super::assets::icon;
use super::headers::status_of;
use super::layout::{self, Frame};
use super::registry::PageResult;
use super::visit::SignedIn;
use field::{Difference, Field, MAX_OPEN_VALUE, Preview};
use property::Property;

pub(super) use confirm::{Confirm, ConfirmOption, answered_before};
pub(super) use input::{Choice, Input, Shape};
pub(super) use submitted::SubmittedForm;

/// The hidden field with the `Idempotency-Key`.
pub(super) const ONCE: &str = "_once";
/// The hidden field with the version that the form was filled from.
pub(super) const VERSION: &str = "_version";
/// The hidden field with the values that the form was filled from, as JSON.
const BEFORE: &str = "_before";

/// Returns a new `Idempotency-Key` for a form, so that a form that is sent twice is done once.
pub(super) fn once_key() -> String {
    Uuid::new_v4().to_string()
}

/// What a page says about one of its forms.
#[derive(Debug)]
pub(super) struct FormSpec {
    /// The id of the form on its page, and the prefix of the ids in it.
    pub(super) id: &'static str,
    inputs: &'static [Input],
    /// The inputs that follow.
    pub(super) more: &'static [Input],
    /// The label of the button.
    submit: &'static str,
    /// Whether the request has only the values that were changed.
    is_change: bool,
    /// The operation whose body describes the fields, for an operation whose schema does not describe them.
    pub(super) described_by: Option<&'static str>,
    /// In a union of schemas, a property and its value: they choose the schema.
    pub(super) variant: Option<(&'static str, &'static str)>,
}

impl FormSpec {
    /// A form that sends every value that is not empty.
    pub(super) const fn create(submit: &'static str, inputs: &'static [Input]) -> Self {
        let (described_by, variant) = (None, None);
        Self { id: "form", inputs, more: &[], submit, is_change: false, described_by, variant }
    }

    /// A form that is filled from an object and sends the values that were changed.
    pub(super) const fn change(submit: &'static str, inputs: &'static [Input]) -> Self {
        Self { is_change: true, ..Self::create(submit, inputs) }
    }

    /// Sets the id, for a page with several forms.
    pub(super) const fn with_id(mut self, id: &'static str) -> Self {
        self.id = id;
        self
    }

    fn inputs(&self) -> impl Iterator<Item = &'static Input> {
        self.inputs.iter().chain(self.more)
    }

    /// Returns an empty form for an operation. The browser sends it to `action`, a page of the console.
    pub(super) fn empty(
        &'static self,
        request: &SignedIn,
        operation: &Operation,
        action: &str,
    ) -> Result<Form> {
        self.filled(request, operation, action, &Versioned::default())
    }

    /// Returns the form as it was sent, or else with the values of an object.
    pub(super) fn shown(
        &'static self,
        request: &SignedIn,
        operation: &Operation,
        action: &str,
        object: &Versioned,
        feedback: &mut Feedback,
    ) -> Result<Form> {
        let filled = || self.filled(request, operation, action, object);
        feedback.take(self.id).map_or_else(filled, Ok)
    }

    /// Returns the form as it was sent. If it was not, returns one with the values of an object, unless the API would refuse
    /// the operation to the session.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn offered(
        &'static self,
        request: &SignedIn,
        operation: &Operation,
        action: &str,
        object: &Versioned,
        feedback: &mut Feedback,
    ) -> Result<Option<Form>> {
        let sent = feedback.take(self.id);
        if sent.is_some() || !request.api.may(operation).await? {
            return Ok(sent);
        }
        self.filled(request, operation, action, object).map(Some)
    }

    /// Returns a form with the values of an object.
    pub(super) fn filled(
        &'static self,
        request: &SignedIn,
        operation: &Operation,
        action: &str,
        object: &Versioned,
    ) -> Result<Form> {
        let properties = self.properties(request, operation)?;
        let mut fields = Vec::new();
        for (input, (property, is_required)) in self.inputs().zip(properties) {
            let value = at(&object.body, input.name).unwrap_or(&Value::Null);
            let is_required = (is_required || input.is_required) && !self.is_change;
            let mut field = Field::of(*input, property, is_required, self.is_change);
            field.text = field.property.show(value);
            fields.push(field);
        }
        Ok(Form {
            spec: self,
            action: action.to_owned(),
            fields,
            error: None,
            retry_after: None,
            status: StatusCode::OK,
            once: once_key(),
            version: object.version.clone(),
            before: self.before(&object.body),
            is_sent: false,
            is_read_only: false,
            differences: Vec::new(),
            refusal: None,
        })
    }

    fn properties(
        &self,
        request: &SignedIn,
        operation: &Operation,
    ) -> Result<Vec<(Property, bool)>> {
        let described_by = self.described_by.map(|id| Operation::new(id, []));
        let described_by = described_by.as_ref().unwrap_or(operation);
        let schema = described_by.body_schema(&request.api.table)?;
        Ok(self.inputs().map(|input| property(&schema, input.name, self.variant)).collect())
    }

    /// Returns the values of an object that the form shows.
    fn before(&self, object: &Value) -> Map<String, Value> {
        let values = self.inputs().filter_map(|input| {
            at(object, input.name).map(|value| (input.name.to_owned(), value.clone()))
        });
        values.collect()
    }
}

/// Returns the value at a dotted name.
fn at<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    name.split('.').try_fold(object, |value, part| match part.parse::<usize>() {
        Ok(index) => value.get(index),
        Err(_) => value.get(part),
    })
}

/// Returns a property of a body's schema, and whether it is required. `variant` chooses the schema of a union.
fn property(schema: &Value, name: &str, variant: Option<(&str, &str)>) -> (Property, bool) {
    let is_chosen = |schema: &&Value| {
        let (property, value) = variant.unwrap_or_default();
        let values = schema.pointer(&format!("/properties/{property}/enum"));
        values.and_then(Value::as_array).is_some_and(|values| values.contains(&value.into()))
    };
    let mut schema = schema;
    let mut is_required = false;
    for part in name.split('.') {
        if part.parse::<usize>().is_ok() {
            schema = schema.get("items").unwrap_or(&Value::Null);
            continue;
        }
        let union = schema.get("oneOf").and_then(Value::as_array);
        schema = union.and_then(|union| union.iter().find(is_chosen)).unwrap_or(schema);
        let required = schema.get("required").and_then(Value::as_array);
        is_required = required.is_some_and(|names| names.iter().any(|name| name == part));
        let properties = schema.get("properties");
        schema = properties.and_then(|all| all.get(part)).unwrap_or(&Value::Null);
    }
    (Property::of(schema), is_required)
}

/// A form on a page.
#[derive(Template)]
#[template(path = "console/form/form.html")]
pub(super) struct Form {
    spec: &'static FormSpec,
    action: String,
    fields: Vec<Field>,
    /// The error that belongs to no field.
    error: Option<String>,
    /// The seconds after which the request may succeed.
    retry_after: Option<u32>,
    /// The status of the request that failed, or 200.
    pub(super) status: StatusCode,
    once: String,
    version: Option<String>,
    before: Map<String, Value>,
    /// Whether the values are those that the browser has sent.
    pub(super) is_sent: bool,
    /// Whether the page shows the values as text.
    pub(super) is_read_only: bool,
    /// What others have changed since the form was filled.
    differences: Vec<Difference>,
    /// Why the session cannot send the form.
    pub(super) refusal: Option<String>,
}

impl Form {
    /// Shows the values only, with the reason why the session cannot change them. Without a reason the form stays as it is.
    pub(super) fn refused_for(mut self, reason: Option<String>) -> Self {
        self.is_read_only |= reason.is_some();
        self.refusal = reason;
        self
    }

    /// Returns whether a button of a field precedes the button that sends the form.
    fn has_field_buttons(&self) -> bool {
        self.fields.iter().any(Field::is_markdown)
    }

    /// Offers these values in a field: checkboxes if the property is a list, otherwise a select.
    pub(super) fn with_choices(mut self, name: &str, choices: Vec<Choice>) -> Self {
        if let Some(field) = self.fields.iter_mut().find(|field| field.input.name == name) {
            field.offer(choices);
        }
        self
    }

    /// Fills a field.
    pub(super) fn with_value(mut self, name: &str, value: &Value) -> Self {
        for field in self.fields.iter_mut().filter(|field| field.input.name == name) {
            field.text = field.property.show(value);
        }
        self
    }

    /// Replaces the text below a field.
    pub(super) fn with_hint(mut self, name: &str, hint: &'static str) -> Self {
        for field in self.fields.iter_mut().filter(|field| field.input.name == name) {
            field.input.hint = hint;
        }
        self
    }

    /// Leaves out a field that has nothing to choose.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|field| field.input.name != name);
        self
    }

    fn before_json(&self) -> String {
        serde_json::to_string(&self.before).unwrap_or_default()
    }
}

/// The feedback of a page on a form or a button that was sent. A page that was only opened has none.
#[derive(Default)]
pub(super) struct Feedback {
    /// The form that has to be corrected.
    pub(super) form: Option<Form>,
    /// Why the request of a button was refused.
    pub(super) refusal: Option<Error>,
    status: StatusCode,
}

impl Feedback {
    /// Returns the form with this id, if it was sent.
    pub(super) fn take(&mut self, id: &str) -> Option<Form> {
        self.form.take_if(|form| form.spec.id == id)
    }

    /// Shows the refusal in the frame of the page, and sets the page's status.
    pub(super) fn on(self, frame: Frame) -> Frame {
        frame.with_refusal(self.refusal).with_status(self.status)
    }

    /// Shows a page with the feedback in its frame.
    ///
    /// # Errors
    /// As [`Frame::load`].
    pub(super) async fn show(
        self,
        request: &SignedIn,
        title: &str,
        page: &(dyn FastWritable + Sync),
    ) -> PageResult {
        let frame = Frame::load(request).await?.titled(title);
        Ok(layout::page(&self.on(frame), page)?)
    }
}

impl From<Box<Form>> for Feedback {
    fn from(form: Box<Form>) -> Self {
        Self { status: form.status, form: Some(*form), refusal: None }
    }
}

/// The feedback on a form that the page itself shows.
impl From<StatusCode> for Feedback {
    fn from(status: StatusCode) -> Self {
        Self { status, ..Self::default() }
    }
}

impl From<Error> for Feedback {
    fn from(refusal: Error) -> Self {
        Self { form: None, status: status_of(&refusal), refusal: Some(refusal) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::input::FieldKind;
    use super::*;

    #[test]
    fn variant_chooses_the_schema_of_a_union() {
        let one = |name: &str, config: Value| {
            json!({ "required": ["type", "config"], "properties": {
                "type": { "type": "string", "enum": [name] },
                "config": { "required": ["a"], "properties": { "a": config } },
            } })
        };
        let union =
            [one("A", json!({ "type": "boolean" })), one("B", json!({ "type": "integer" }))];
        let schema = json!({ "properties": { "target": { "oneOf": union } } });
        let found = |variant| {
            let (property, is_required) = property(&schema, "target.config.a", variant);
            (property.kind, is_required)
        };
        assert_eq!(found(Some(("type", "A"))), (FieldKind::Flag, true));
        assert_eq!(found(Some(("type", "B"))), (FieldKind::Number { min: None, max: None }, true));
        assert_eq!(found(Some(("type", "C"))), (FieldKind::Json, false));
        assert_eq!(found(None), (FieldKind::Json, false));
    }
}
