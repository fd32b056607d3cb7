//! A form that the browser has sent, and the request that it becomes.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::base::error::{Error, Result};
use crate::console::api::{Operation, Versioned, Write};
use crate::console::headers::status_of;
use crate::console::visit::{SHOW, SignedIn};

use super::field::{Field, Named, merge_fields};
use super::property::NotJson;
use super::{BEFORE, Form, FormSpec, ONCE, VERSION};

/// The value of the button that shows what a Markdown becomes.
const PREVIEW: &str = "preview";

/// The maximum number of checked boxes of a field.
const MAX_CHECKED: usize = 1000;

/// What became of a form: the body of the response if the request succeeded, or null if there was nothing to change;
/// otherwise the form with which the page is shown again.
type Outcome = Result<Value, Box<Form>>;

/// Returns the part of an object that a form shows.
type View = Box<dyn Fn(Value) -> Value + Send + Sync>;

/// A form that the browser has sent.
pub(in crate::console) struct SubmittedForm {
    pub(in crate::console) form: Form,
    operation: Operation,
    /// The body of the request. A page may add to it.
    pub(in crate::console) body: Map<String, Value>,
    /// Whether the user wants to see what a Markdown becomes, instead of sending the request.
    is_preview: bool,
    view: Option<View>,
    /// The objects of a request that sends a list.
    items: Option<Items>,
}

/// The objects of a request that sends a list.
struct Items {
    /// The field that errors of an object stand beside.
    field: &'static str,
    /// What names each object in errors, and its own members.
    objects: Vec<(String, Map<String, Value>)>,
}

impl Items {
    /// Returns the name of the object that an error is about, and the rest of its `attr`.
    fn locate<'a>(&'a self, attr: &'a str) -> Option<(&'a str, &'a str)> {
        let (index, rest) = attr.split_once("__")?;
        let (name, _) = self.objects.get(index.parse::<usize>().ok()?)?;
        Some((name, if rest == "non_field_errors" { self.field } else { rest }))
    }
}

impl FormSpec {
    /// Reads the form that the browser has sent.
    pub(in crate::console) fn sent(
        &'static self,
        request: &SignedIn,
        operation: Operation,
        action: &str,
    ) -> Result<SubmittedForm> {
        let sent = &request.visit.form;
        let mut form = self.empty(request, &operation, action)?;
        form.is_sent = true;
        let version = sent.value(VERSION);
        form.version = (!version.is_empty()).then(|| version.to_owned());
        form.before = serde_json::from_str(sent.value(BEFORE)).unwrap_or_default();
        let once = sent.value(ONCE);
        if !once.is_empty() {
            once.clone_into(&mut form.once);
        }
        for field in &mut form.fields {
            let name = field.input.name;
            // Checkboxes send a value each, and a text area sends lines.
            field.text = if field.is_lines() || field.is_boxes() {
                sent.values(name).collect::<Vec<_>>().join("\n")
            } else {
                sent.value(name).to_owned()
            };
            if field.is_boxes() && field.text.lines().nth(MAX_CHECKED).is_some() {
                field.text = field.text.lines().take(MAX_CHECKED).collect::<Vec<_>>().join("\n");
                field.error = Some(format!("Choose at most {MAX_CHECKED} values."));
            }
        }
        let is_preview = sent.value(SHOW) == PREVIEW;
        let body = Map::new();
        let mut read = SubmittedForm { form, operation, body, is_preview, view: None, items: None };
        read.fill_body();
        Ok(read)
    }
}

impl SubmittedForm {
    /// Sets what the form shows of the object that the operation changes. Otherwise that is the object itself.
    pub(in crate::console) fn with_view(
        mut self,
        view: impl Fn(Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        self.view = Some(Box::new(view));
        self
    }

    /// Refuses a field. The form is then shown again instead of sent.
    pub(in crate::console) fn set_error(&mut self, name: &str, error: &str) {
        let found = self.form.fields.iter_mut().find(|field| field.input.name == name);
        if let Some(field) = found {
            field.error = Some(error.to_owned());
        }
    }

    /// Returns the text of a field.
    pub(in crate::console) fn text(&self, name: &str) -> &str {
        let found = self.form.fields.iter().find(|field| field.input.name == name);
        found.map_or("", |field| &field.text)
    }

    /// Sends a list: the body once for each of these objects, with the members of the object. An error of an object names
    /// it, and stands beside its field or else beside `field`.
    pub(in crate::console) fn repeat(
        &mut self,
        field: &'static str,
        objects: Vec<(String, Map<String, Value>)>,
    ) {
        self.items = Some(Items { field, objects });
    }

    /// Returns a request for each object of the list, which another operation takes.
    pub(in crate::console) fn each<const N: usize>(
        &self,
        id: &'static str,
        values: [&str; N],
    ) -> Vec<Write> {
        let objects = self.items.iter().flat_map(|items| &items.objects);
        let write = |(index, (_, own)): (usize, &(String, Map<String, Value>))| {
            let once = format!("{}-{index}", self.form.once);
            Write::new(id, values).body(self.body_of(own)).once(&once)
        };
        objects.enumerate().map(write).collect()
    }

    /// Returns the form if its request would succeed. Otherwise returns the form to show again.
    ///
    /// # Errors
    /// 401 if the session has ended, and errors of the service.
    pub(in crate::console) async fn check(
        self,
        request: &SignedIn,
    ) -> Result<Result<Self, Box<Form>>> {
        if self.form.fields.iter().any(|field| field.error.is_some()) {
            return Ok(Err(self.again(StatusCode::BAD_REQUEST)));
        }
        let write = Write { key: None, ..self.write() };
        match request.api.dry_run(&write).await? {
            None => Ok(Ok(self)),
            Some(error) => Ok(Err(self.refused(&error))),
        }
    }

    /// Reads the fields into the body. A text that is not JSON becomes the error of its field.
    fn fill_body(&mut self) {
        self.body.clear();
        for field in &mut self.form.fields {
            let before = self.form.before.get(field.input.name);
            let value = match value(field, before, self.form.spec.is_change) {
                Ok(value) => value,
                Err(NotJson { detail, position }) => {
                    field.refuse(detail.to_owned(), position);
                    None
                }
            };
            field.is_changed = value.is_some() || field.error.is_some();
            if let Some(value) = value {
                insert(&mut self.body, field.input.name, value);
            }
        }
    }

    /// Sends the request. A request without changes is not sent.
    ///
    /// # Errors
    /// 401 if the session has ended, and errors of the service.
    pub(in crate::console) async fn send(mut self, request: &SignedIn) -> Result<Outcome> {
        if self.is_preview {
            self.form.fields.iter_mut().for_each(Field::fill_preview);
            return Ok(Err(self.again(StatusCode::OK)));
        }
        self.require_values();
        if self.form.fields.iter().any(|field| field.error.is_some()) {
            return Ok(Err(self.again(StatusCode::BAD_REQUEST)));
        }
        if self.form.spec.is_change && self.body.is_empty() {
            return Ok(Ok(Value::Null));
        }
        match request.api.write(&self.write()).await {
            Ok(body) => Ok(Ok(body)),
            Err(error) if error.status() == 412 => self.merge(request).await,
            Err(error) if error.status() == 401 || error.status() == 500 => Err(error),
            Err(error) => Ok(Err(self.refused(&error))),
        }
    }

    /// Refuses fields without a value that the page requires.
    fn require_values(&mut self) {
        let is_missing = |field: &&mut Field| {
            field.input.is_required && field.is_required && field.text.trim().is_empty()
        };
        for field in self.form.fields.iter_mut().filter(is_missing) {
            field.error.get_or_insert_with(|| "This field is required.".to_owned());
        }
    }

    /// Returns the body of an object with members of its own.
    fn body_of(&self, own: &Map<String, Value>) -> Value {
        let mut object = self.body.clone();
        object.extend(own.clone());
        Value::Object(object)
    }

    fn write(&self) -> Write {
        let body = match &self.items {
            None => Value::Object(self.body.clone()),
            Some(items) => items.objects.iter().map(|(_, own)| self.body_of(own)).collect(),
        };
        Write {
            operation: self.operation.clone(),
            body: Some(body),
            version: self.form.version.clone(),
            key: Some(self.form.once.clone()),
        }
    }

    /// Returns the form with the error of the API beside its field.
    pub(in crate::console) fn refused(mut self, error: &Error) -> Box<Form> {
        let attr = error.attr();
        let located = self.items.as_ref().zip(attr).and_then(|(all, attr)| all.locate(attr));
        let (attr, detail) = match located {
            Some((name, attr)) => (Some(attr.to_owned()), format!("{name}: {}", error.detail())),
            None => (attr.map(str::to_owned), error.detail().to_owned()),
        };
        if let Some(field) = attr.as_deref().and_then(|attr| self.named(attr)) {
            field.refuse(detail, error.position());
        } else {
            let prefix = attr.map_or(String::new(), |attr| format!("{attr}: "));
            self.form.error = Some(format!("{prefix}{detail}"));
        }
        self.form.retry_after = error.retry_after();
        // A key that was used for another body would refuse the corrected form. After other errors, the same request may
        // still have been done.
        if !matches!(error.status(), 429 | 500..) {
            self.form.once = super::once_key();
        }
        self.again(status_of(error))
    }

    /// Returns the field that the `attr` of an error names most exactly. An error of an object with several fields belongs
    /// to none of them.
    fn named(&mut self, attr: &str) -> Option<&mut Field> {
        let fields = self.form.fields.iter_mut();
        let mut named: Vec<_> =
            fields.filter_map(|field| Some((field.is_named(attr)?, field))).collect();
        named.sort_by_key(|(how, _)| *how);
        let is_shared =
            named.len() > 1 && named.first().is_some_and(|(how, _)| *how == Named::Above);
        let (_, field) = named.into_iter().next().filter(|_| !is_shared)?;
        Some(field)
    }

    /// Fills the form from the object as it is now, except for what the form changes.
    async fn merge(mut self, request: &SignedIn) -> Result<Outcome> {
        let (_, path) = self.operation.target(&request.api.table)?;
        let Versioned { body, version } = request.api.get_versioned(&path).await?;
        let body = match &self.view {
            Some(view) => view(body),
            None => body,
        };
        let now = self.form.spec.before(&body);
        let before = std::mem::replace(&mut self.form.before, now);
        let now = &self.form.before;
        let fields = &mut self.form.fields;
        self.form.differences = merge_fields(fields, &before, now);
        self.form.version = version;
        self.fill_body();
        if self.body.is_empty() {
            return Ok(Ok(Value::Null));
        }
        if self.form.differences.is_empty() {
            let text = "Something else about this has changed since you opened the page. Send the form again.";
            self.form.error = Some(text.to_owned());
        }
        Ok(Err(self.again(StatusCode::PRECONDITION_FAILED)))
    }

    fn again(mut self, status: StatusCode) -> Box<Form> {
        self.form.status = status;
        let wrong = self.form.fields.iter_mut().find(|field| field.error.is_some());
        if let Some(field) = wrong {
            field.has_focus = true;
        }
        Box::new(self.form)
    }
}

/// Returns the value that a field sends, or `None` if it sends none.
fn value(field: &Field, before: Option<&Value>, is_change: bool) -> Result<Option<Value>, NotJson> {
    let text = field.text.replace("\r\n", "\n");
    if !is_change {
        let is_sent = !text.trim().is_empty() || field.is_flag();
        return is_sent.then(|| field.property.read(&text)).transpose();
    }
    let shown = before.map_or(String::new(), |value| field.property.show(value));
    if text == field.as_sent(&shown) {
        return Ok(None);
    }
    let value = field.property.read(&text)?;
    Ok((before != Some(&value)).then_some(value))
}

/// Inserts a value at a dotted name. The only index in it is 0, that of an array with one object.
fn insert(body: &mut Map<String, Value>, name: &str, value: Value) {
    let Some((first, rest)) = name.split_once('.') else {
        body.insert(name.to_owned(), value);
        return;
    };
    let (below, rest) = match rest.strip_prefix("0.") {
        Some(rest) => (body.entry(first).or_insert_with(|| json!([{}])).get_mut(0), rest),
        None => (Some(body.entry(first).or_insert_with(|| json!({}))), rest),
    };
    if let Some(Value::Object(below)) = below {
        insert(below, rest, value);
    }
}
