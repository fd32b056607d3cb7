//! Response schemas. They are derived from structs and their doc comments. This module makes them strict: every
//! field is required and no other field is allowed.

use std::mem;

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::http::paging::Page;
use crate::http::route_spec::{Cardinality, ResponseSpec};

const SCHEMAS_PATH: &str = "#/components/schemas/";

/// Returns a reference to the schema `name`.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMAS_PATH}{name}") })
}

/// Adds a schema under its name. Two different schemas must not share a name; debug builds, and so all tests, check
/// that.
pub(super) fn add_schema(schemas: &mut Map<String, Value>, name: &str, schema: &Value) {
    let held = schemas.entry(name).or_insert_with(|| schema.clone());
    debug_assert_eq!(held, schema, "{name} names two schemas");
}

/// Moves each part of a body schema that has a title into a schema of its own, named by the title.
pub(super) fn extract_titled(schemas: &mut Map<String, Value>, schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(|member| extract_titled(schemas, member));
            if let Some(Value::String(name)) = members.get("title").cloned() {
                members.shift_remove("title");
                add_schema(schemas, &name, &mem::replace(schema, reference(&name)));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| extract_titled(schemas, item)),
        _ => {}
    }
}

/// The response schemas as they were derived.
#[derive(Default)]
pub(super) struct ResponseSchemas {
    derived: Map<String, Value>,
    /// The names of the schemas of whole bodies.
    bodies: Vec<String>,
}

impl ResponseSchemas {
    /// Adds the schemas of a response, and returns the schema of its body.
    pub(super) fn add(&mut self, gives: &ResponseSpec) -> Value {
        let name = (gives.name)();
        let mut found = vec![(name.clone().into_owned(), (gives.schema)())];
        (gives.schemas)(&mut found);
        for (name, schema) in found {
            add_schema(&mut self.derived, &name, &json!(schema));
        }
        match gives.cardinality {
            Cardinality::One => self.body(&name),
            Cardinality::All => json!({ "type": "array", "items": self.body(&name) }),
            Cardinality::Page => {
                let page = format!("Paginated{name}List");
                add_schema(&mut self.derived, &page, &envelope(&name));
                self.body(&page)
            }
        }
    }

    fn body(&mut self, name: &str) -> Value {
        self.bodies.push(name.to_owned());
        reference(name)
    }

    /// Returns the strict schemas of all bodies and of the objects that they refer to. Other schemas are inlined.
    pub(super) fn finish(&self) -> Map<String, Value> {
        let mut settled = Map::new();
        let mut wanted = self.bodies.clone();
        while let Some(name) = wanted.pop() {
            if settled.contains_key(&name) {
                continue;
            }
            let schema = self.derived.get(&name).map_or_else(null, |schema| self.resolve(schema));
            referred(&schema, &mut wanted);
            settled.insert(name, schema);
        }
        settled.sort_keys();
        settled
    }

    /// Returns the schema of a parameter, which is never an object.
    pub(super) fn inline(schema: &RefOr<Schema>) -> Value {
        Self::default().resolve(&json!(schema))
    }

    fn resolve(&self, schema: &Value) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        if let Some(target) = self.target(members) {
            return if is_object(target) {
                schema.clone()
            } else {
                described(self.resolve(target), members.get("description"))
            };
        }
        if let Some(other) = beside_null(members) {
            return self.or_null(other);
        }
        if is_object(schema) {
            return self.closed(schema);
        }
        let mut settled = members.clone();
        // Names of JSON members are always strings.
        settled.remove("propertyNames");
        if let Some(items) = settled.get_mut("items") {
            *items = self.resolve(items);
        }
        settled.into()
    }

    fn target(&self, members: &Map<String, Value>) -> Option<&Value> {
        self.derived.get(members.get("$ref")?.as_str()?.strip_prefix(SCHEMAS_PATH)?)
    }

    /// Makes a schema nullable: with a second type if it is simple, with an alternative if it is an object or a choice.
    fn or_null(&self, schema: &Value) -> Value {
        let mut schema = self.resolve(schema);
        if let Some(members) = schema.as_object_mut()
            && let Some(Value::String(one)) = members.get("type").cloned()
        {
            members.insert("type".to_owned(), json!([one, "null"]));
            if let Some(Value::Array(values)) = members.get_mut("enum") {
                values.push(Value::Null);
            }
            return schema;
        }
        if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
            choices.push(null());
            return schema;
        }
        let description = schema.as_object_mut().and_then(|members| members.remove("description"));
        let alternatives = json!({ "anyOf": [schema, { "type": "null" }] });
        described(alternatives, description.as_ref())
    }

    /// Returns a strict object schema with all properties of `schema` and its `allOf` parts, in order. A property
    /// is required if it is declared so or is nullable. Additional properties are not allowed.
    fn closed(&self, schema: &Value) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.splice(schema, &mut properties, &mut required);
        let mut object = Map::new();
        object.insert("type".to_owned(), json!("object"));
        if let Some(description) = schema.get("description") {
            object.insert("description".to_owned(), description.clone());
        }
        object.insert("required".to_owned(), json!(required));
        object.insert("properties".to_owned(), properties.into());
        object.insert("additionalProperties".to_owned(), json!(false));
        object.into()
    }

    fn splice(&self, schema: &Value, out: &mut Map<String, Value>, required: &mut Vec<String>) {
        let Some(members) = schema.as_object() else { return };
        if let Some(target) = self.target(members) {
            self.splice(target, out, required);
        }
        for part in array(members, "allOf") {
            self.splice(part, out, required);
        }
        let Some(Value::Object(properties)) = members.get("properties") else { return };
        for (name, property) in properties {
            let named = array(members, "required").any(|required| required == name);
            if named || may_be_null(property) {
                required.push(name.clone());
            }
            out.insert(name.clone(), self.resolve(property));
        }
    }
}

fn array<'m>(members: &'m Map<String, Value>, name: &str) -> impl Iterator<Item = &'m Value> {
    members.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn null() -> Value {
    json!({ "type": "null" })
}

/// Returns the other alternative if a schema is a choice of two, one of them null.
fn beside_null(members: &Map<String, Value>) -> Option<&Value> {
    let mut parts = array(members, "oneOf");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(one), Some(other), None) if *one == null() => Some(other),
        (Some(one), Some(other), None) if *other == null() => Some(one),
        _ => None,
    }
}

/// Whether a derived property is an `Option` or has no type.
fn may_be_null(property: &Value) -> bool {
    let Some(members) = property.as_object() else { return false };
    let typed = ["$ref", "type", "oneOf", "allOf"].iter().any(|name| members.contains_key(*name));
    !typed || beside_null(members).is_some() || array(members, "type").any(|it| it == "null")
}

/// Adds the names of the schemas that `value` refers to.
fn referred(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let place = members.get("$ref").and_then(Value::as_str);
            out.extend(place.and_then(|place| place.strip_prefix(SCHEMAS_PATH)).map(str::to_owned));
            members.values().for_each(|member| referred(member, out));
        }
        Value::Array(items) => items.iter().for_each(|item| referred(item, out)),
        _ => {}
    }
}

/// Whether a schema is an object with known properties.
fn is_object(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("allOf").is_some()
}

fn described(mut schema: Value, description: Option<&Value>) -> Value {
    if let (Some(members), Some(description)) = (schema.as_object_mut(), description) {
        members.insert("description".to_owned(), description.clone());
    }
    schema
}

/// The schema of a page of `name` objects.
fn envelope(name: &str) -> Value {
    let mut page = json!(Page::schema());
    if let Some(items) = page.pointer_mut("/properties/results/items") {
        *items = reference(name);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "Dog names two schemas")]
    fn different_schemas_with_one_name_are_rejected() {
        let mut schemas = Map::new();
        add_schema(&mut schemas, "Dog", &null());
        add_schema(&mut schemas, "Dog", &null());
        add_schema(&mut schemas, "Dog", &json!({ "type": "object" }));
    }

    #[test]
    fn titled_schemas_become_components() {
        let dog = json!({ "title": "Dog", "properties": { "title": { "type": "string" } } });
        let none = null();
        let mut body = json!({ "properties": { "pet": { "oneOf": [dog, none] }, "first": dog } });
        let mut schemas = Map::new();
        extract_titled(&mut schemas, &mut body);
        let pet = json!({ "oneOf": [reference("Dog"), none] });
        assert_eq!(body, json!({ "properties": { "pet": pet, "first": reference("Dog") } }));
        let dog = json!({ "properties": { "title": { "type": "string" } } });
        assert_eq!(json!(schemas), json!({ "Dog": dog }));
    }
}
