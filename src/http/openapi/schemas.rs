//! The schemas of what is answered. They are derived from structs, whose doc comments describe them; here
//! they become strict: every member is there, and no other.

use std::mem;

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};

use crate::http::row::{Gives, Many};

const PLACE: &str = "#/components/schemas/";

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{PLACE}{name}") })
}

/// Puts a schema under its name. Two that differ under one name would hide one another: whoever makes the
/// document with assertions on, as every test does, finds that.
pub(super) fn put(schemas: &mut Map<String, Value>, name: &str, schema: &Value) {
    let held = schemas.entry(name).or_insert_with(|| schema.clone());
    debug_assert_eq!(held, schema, "{name} names two schemas");
}

/// Puts apart what in the schema of a body has a title: it stands by itself, under that name.
pub(super) fn put_apart(schemas: &mut Map<String, Value>, schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(|member| put_apart(schemas, member));
            if let Some(Value::String(name)) = members.get("title").cloned() {
                members.shift_remove("title");
                put(schemas, &name, &mem::replace(schema, reference(&name)));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_apart(schemas, item)),
        _ => {}
    }
}

/// The schemas of answers, as they were derived.
#[derive(Default)]
pub(super) struct Answers {
    derived: Map<String, Value>,
    /// The names of those that are whole answers.
    bodies: Vec<String>,
}

impl Answers {
    /// Adds what an operation answers, and answers the schema of its body.
    pub(super) fn add(&mut self, gives: &Gives) -> Value {
        let name = (gives.name)();
        let mut found = vec![(name.clone().into_owned(), (gives.schema)())];
        (gives.schemas)(&mut found);
        for (name, schema) in found {
            put(&mut self.derived, &name, &json!(schema));
        }
        match gives.many {
            Many::One => self.body(&name),
            Many::All => json!({ "type": "array", "items": self.body(&name) }),
            Many::Page => {
                let page = format!("Paginated{name}List");
                put(&mut self.derived, &page, &envelope(&name));
                self.body(&page)
            }
        }
    }

    fn body(&mut self, name: &str) -> Value {
        self.bodies.push(name.to_owned());
        reference(name)
    }

    /// The schemas of what operations answer, and those that these refer to. What is short stands where it is used.
    pub(super) fn settled(&self) -> Map<String, Value> {
        let mut settled = Map::new();
        let mut wanted = self.bodies.clone();
        while let Some(name) = wanted.pop() {
            if settled.contains_key(&name) {
                continue;
            }
            let schema = self.derived.get(&name).map_or_else(null, |schema| self.settle(schema));
            referred(&schema, &mut wanted);
            settled.insert(name, schema);
        }
        settled.sort_keys();
        settled
    }

    /// The schema of what may stand in a path, which is never an object.
    pub(super) fn inline(schema: &RefOr<Schema>) -> Value {
        Self::default().settle(&json!(schema))
    }

    fn settle(&self, schema: &Value) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        if let Some(target) = self.target(members) {
            return if is_object(target) {
                schema.clone()
            } else {
                described(self.settle(target), members.get("description"))
            };
        }
        if let Some(other) = beside_null(members) {
            return self.or_null(other);
        }
        if is_object(schema) {
            return self.closed(schema);
        }
        let mut settled = members.clone();
        // The names of members are always text.
        settled.remove("propertyNames");
        if let Some(items) = settled.get_mut("items") {
            *items = self.settle(items);
        }
        settled.into()
    }

    fn target(&self, members: &Map<String, Value>) -> Option<&Value> {
        self.derived.get(members.get("$ref")?.as_str()?.strip_prefix(PLACE)?)
    }

    /// What may be null besides: a type more for what is short, an alternative for an object.
    fn or_null(&self, schema: &Value) -> Value {
        let mut schema = self.settle(schema);
        if let Some(members) = schema.as_object_mut()
            && let Some(Value::String(one)) = members.get("type").cloned()
        {
            members.insert("type".to_owned(), json!([one, "null"]));
            if let Some(Value::Array(values)) = members.get_mut("enum") {
                values.push(Value::Null);
            }
            return schema;
        }
        let description = schema.as_object_mut().and_then(|members| members.remove("description"));
        let alternatives = json!({ "anyOf": [schema, { "type": "null" }] });
        described(alternatives, description.as_ref())
    }

    /// An object with all members of `schema` and of what is spliced into it, in their order. All are there,
    /// those that may be null too; absent may be only what can neither be null nor is required. No other
    /// member is there.
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
            out.insert(name.clone(), self.settle(property));
        }
    }
}

fn array<'m>(members: &'m Map<String, Value>, name: &str) -> impl Iterator<Item = &'m Value> {
    members.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn null() -> Value {
    json!({ "type": "null" })
}

/// What stands beside null, where a schema is one or the other.
fn beside_null(members: &Map<String, Value>) -> Option<&Value> {
    let mut parts = array(members, "oneOf");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(one), Some(other), None) if *one == null() => Some(other),
        (Some(one), Some(other), None) if *other == null() => Some(one),
        _ => None,
    }
}

/// Whether a derived property is an `Option`, or anything at all.
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
            out.extend(place.and_then(|place| place.strip_prefix(PLACE)).map(str::to_owned));
            members.values().for_each(|member| referred(member, out));
        }
        Value::Array(items) => items.iter().for_each(|item| referred(item, out)),
        _ => {}
    }
}

/// Whether a schema is of an object whose members are known.
fn is_object(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("allOf").is_some()
}

fn described(mut schema: Value, description: Option<&Value>) -> Value {
    if let (Some(members), Some(description)) = (schema.as_object_mut(), description) {
        members.insert("description".to_owned(), description.clone());
    }
    schema
}

/// The envelope of a page of these.
fn envelope(name: &str) -> Value {
    json!({
        "type": "object",
        "description": "A page of a list.",
        "required": ["count", "next", "previous", "results"],
        "properties": {
            "count": {
                "type": "integer", "format": "int64", "minimum": 0,
                "description": "How many there are in all.",
            },
            "next": {
                "type": ["string", "null"], "format": "uri",
                "description": "The URL of the following page; null on the last.",
            },
            "previous": {
                "type": ["string", "null"], "format": "uri",
                "description": "The URL of the page before; null on the first.",
            },
            "results": { "type": "array", "items": reference(name), "maxItems": 1000 },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "Dog names two schemas")]
    fn two_schemas_of_one_name_are_found() {
        let mut schemas = Map::new();
        put(&mut schemas, "Dog", &null());
        put(&mut schemas, "Dog", &null());
        put(&mut schemas, "Dog", &json!({ "type": "object" }));
    }

    #[test]
    fn what_has_a_title_stands_by_itself() {
        let dog = json!({ "title": "Dog", "properties": { "title": { "type": "string" } } });
        let none = null();
        let mut body = json!({ "properties": { "pet": { "oneOf": [dog, none] }, "first": dog } });
        let mut schemas = Map::new();
        put_apart(&mut schemas, &mut body);
        let pet = json!({ "oneOf": [reference("Dog"), none] });
        assert_eq!(body, json!({ "properties": { "pet": pet, "first": reference("Dog") } }));
        let dog = json!({ "properties": { "title": { "type": "string" } } });
        assert_eq!(json!(schemas), json!({ "Dog": dog }));
    }
}
