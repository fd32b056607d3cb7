//! Fills every text of every object: the texts are the properties in the schemas of the API, so that a new one is filled as
//! soon as the API declares it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use steward::testing::router::routes;

use super::Workspace;
use super::contract::{Operation, contract};
use super::objects::Objects;

/// Deeper properties are not filled.
const MAX_DEPTH: usize = 8;

/// Returns the texts to try for the property with this schema and this number, in their order.
pub type Candidates = fn(schema: &Value, number: usize) -> Vec<String>;

/// What became of the texts.
#[derive(Debug, Default)]
pub struct Filled {
    /// The texts that the API stores and returns, each with the operation and the property that took it.
    pub stored: Vec<(String, String)>,
    /// The operations and the properties that took none of their texts.
    pub refused: BTreeSet<String>,
}

/// Sends each operation that creates or changes something with a text in each of its properties.
pub async fn fill(workspace: &Workspace, objects: &Objects, candidates: Candidates) -> Filled {
    let mut filled = Filled::default();
    let mut count = 0;
    for operation in contract().operations() {
        let is_write = ["post", "put", "patch"].contains(&operation.method.as_str());
        // A sign-up needs the token of a mail. The names of users are filled without it.
        if !is_write || operation.path.starts_with("/api/signup/") {
            continue;
        }
        let schema = &operation.told()["requestBody"]["content"]["application/json"]["schema"];
        let mut variant = 0;
        loop {
            let mut body = Body::of(example(objects, operation), candidates, variant, count);
            body.read(schema, &[], 0);
            count += body.leaves.len();
            let variants = body.variants;
            body.send(workspace, objects, operation, &mut filled).await;
            variant += 1;
            if variant >= variants {
                break;
            }
        }
    }
    filled
}

/// Returns the example of an operation's body.
fn example(objects: &Objects, operation: &Operation) -> Value {
    let table = routes();
    let row = table.specs().iter().find(|row| {
        row.path == operation.path && row.method.as_str().eq_ignore_ascii_case(&operation.method)
    });
    row.map_or_else(|| json!({}), |row| objects.example(row))
}

/// A property that takes a text.
struct Leaf {
    path: Vec<String>,
    /// Whether no response contains the text.
    is_secret: bool,
    /// The values that were not refused yet, the next one first.
    values: Vec<(String, Value)>,
}

/// A body with texts.
struct Body {
    example: Value,
    leaves: Vec<Leaf>,
    /// Members that replace those of the example in this variant.
    fixed: Vec<(Vec<String>, Value)>,
    /// Required members that are no texts, for where the example has none.
    defaults: Vec<(Vec<String>, Value)>,
    candidates: Candidates,
    /// Which of the alternatives of a schema is sent.
    variant: usize,
    /// The number of alternatives.
    variants: usize,
    /// The number of the first leaf.
    first: usize,
}

impl Body {
    fn of(example: Value, candidates: Candidates, variant: usize, first: usize) -> Self {
        let (leaves, fixed, defaults) = (Vec::new(), Vec::new(), Vec::new());
        Self { example, leaves, fixed, defaults, candidates, variant, variants: 1, first }
    }

    /// Adds the leaves of a schema at this path.
    fn read(&mut self, schema: &Value, path: &[&str], depth: usize) {
        let schema = resolve(schema);
        if depth > MAX_DEPTH || schema["readOnly"] == true {
            return;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.read(part, path, depth + 1);
        }
        let either = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
        let either: Vec<_> =
            either.into_iter().flatten().filter(|one| one["type"] != "null").collect();
        if !either.is_empty() {
            self.variants = self.variants.max(either.len());
            let one = resolve(either[self.variant % either.len()]);
            if one["properties"].is_object() {
                self.fixed.push((owned(path), json!({})));
            }
            return self.read(one, path, depth + 1);
        }
        if let Some(properties) = schema["properties"].as_object() {
            let required = schema["required"].as_array();
            for (name, property) in properties {
                let path = [path, &[name.as_str()]].concat();
                if required.is_some_and(|required| required.contains(&json!(name))) {
                    self.defaults.extend(default(property).map(|value| (owned(&path), value)));
                }
                self.read(property, &path, depth + 1);
            }
        } else if let Some([only]) = schema["enum"].as_array().map(Vec::as_slice) {
            self.fixed.push((owned(path), only.clone()));
        } else if schema["enum"].is_null() {
            self.read_value(schema, path, depth);
        }
    }

    fn read_value(&mut self, schema: &Value, path: &[&str], depth: usize) {
        let is = |name: &str| {
            let types = &schema["type"];
            types == name || types.as_array().is_some_and(|types| types.contains(&json!(name)))
        };
        let (is_object, is_array) = (is("object"), is("array"));
        let items = resolve(&schema["items"]);
        if is_array && !is_object && (items["type"].is_string() || items["properties"].is_object())
        {
            return self.read(items, &[path, &["0"]].concat(), depth + 1);
        }
        let wrap = |text: String| {
            let values = match (is_object, is_array) {
                (true, _) => vec![json!({ &text: [text], "kind": text })],
                (false, true) => vec![json!([text]), json!([{ "type": "TEXT", "body": text }])],
                (false, false) => vec![json!(text)],
            };
            values.into_iter().map(move |value| (text.clone(), value))
        };
        if !path.is_empty() && (is_object || is_array || is("string")) {
            let number = self.first + self.leaves.len();
            let values = (self.candidates)(schema, number).into_iter().flat_map(wrap).collect();
            let is_secret = schema["writeOnly"] == true;
            self.leaves.push(Leaf { path: owned(path), is_secret, values });
        }
    }

    fn json(&self) -> Value {
        let mut body = self.example.clone();
        for (path, value) in &self.fixed {
            set(&mut body, path, value.clone());
        }
        for leaf in &self.leaves {
            if let Some((_, value)) = leaf.values.first() {
                set(&mut body, &leaf.path, value.clone());
            }
        }
        for (path, value) in &self.defaults {
            let (name, parent) = path.split_last().expect("a name");
            let parent: String = parent.iter().flat_map(|name| ["/", name.as_str()]).collect();
            let parent = body.pointer_mut(&parent).filter(|parent| parent.is_object());
            if let Some(parent) = parent.filter(|parent| parent.get(name).is_none()) {
                parent[name] = value.clone();
            }
        }
        body
    }

    /// Sends the body until it is accepted. A text that is refused is replaced by the next one for its property.
    async fn send(
        mut self,
        workspace: &Workspace,
        objects: &Objects,
        operation: &Operation,
        filled: &mut Filled,
    ) {
        self.leaves.retain(|leaf| !leaf.values.is_empty());
        let path = objects.fill(&operation.path);
        let method: axum::http::Method = operation.method.to_uppercase().parse().expect("a method");
        while !self.leaves.is_empty() {
            let answer = workspace.owner.send(method.clone(), &path, Some(self.json())).await;
            if answer.status < 300 {
                break;
            }
            let Some(at) = self.culprit(&answer.body).filter(|_| answer.status == 400) else {
                let leaves = self.leaves.drain(..);
                filled.refused.extend(leaves.map(|leaf| name(operation, &leaf.path)));
                return;
            };
            let leaf = &mut self.leaves[at];
            leaf.values.remove(0);
            if leaf.values.is_empty() {
                filled.refused.insert(name(operation, &leaf.path));
                self.leaves.remove(at);
            }
        }
        for leaf in self.leaves.into_iter().filter(|leaf| !leaf.is_secret) {
            filled.stored.push((name(operation, &leaf.path), leaf.values[0].0.clone()));
        }
    }

    /// Returns the leaf that an error is about: the one with the longest common path, or the one whose text it repeats.
    fn culprit(&self, error: &Value) -> Option<usize> {
        let Some(attr) = error["attr"].as_str() else {
            let detail = error["detail"].as_str()?;
            let start = |leaf: &Leaf| leaf.values[0].0.chars().take(30).collect::<String>();
            return self.leaves.iter().position(|leaf| detail.contains(&start(leaf)));
        };
        let is_list = self.leaves.iter().any(|leaf| leaf.path[0] == "0");
        let attr = if is_list { attr } else { attr.trim_start_matches("0__") };
        let named: Vec<&str> = attr.split("__").collect();
        let common = |leaf: &Leaf| {
            leaf.path.iter().zip(&named).take_while(|(own, named)| own == *named).count()
        };
        let leaves = self.leaves.iter().enumerate();
        let found = leaves.max_by_key(|(_, leaf)| (common(leaf), usize::MAX - leaf.path.len()));
        found.filter(|(_, leaf)| common(leaf) > 0).map(|(at, _)| at)
    }
}

/// Returns a value for a required member that is no text.
fn default(schema: &Value) -> Option<Value> {
    let schema = resolve(schema);
    if let Some(choices) = schema["enum"].as_array() {
        return choices.first().cloned();
    }
    match schema["type"].as_str()? {
        "integer" => Some(schema["minimum"].as_u64().unwrap_or(1).into()),
        "boolean" => Some(false.into()),
        _ => None,
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|&name| name.to_owned()).collect()
}

fn name(operation: &Operation, path: &[String]) -> String {
    format!("{} {}", operation.name(), path.join("."))
}

fn resolve(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(place) => contract().document.pointer(&place[1..]).expect("what is referred to"),
        None => schema,
    }
}

/// Sets a member of nested objects and lists, which it creates.
fn set(body: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *body = value;
        return;
    };
    if first == "0" {
        if body.as_array().is_none_or(Vec::is_empty) {
            *body = json!([null]);
        }
        return set(&mut body[0], rest, value);
    }
    if !body.is_object() {
        *body = Value::Object(Map::new());
    }
    set(&mut body[first.as_str()], rest, value);
}
