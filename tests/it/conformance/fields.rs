//! The fields of all schemas, by the section of the page that shows them.

use crate::support::prelude::*;

use super::schema_words::{describe, referred};

/// The section of the schemas that several tags use, of pages and of errors.
pub const SHARED: &str = "Shared";

/// The members of one name in the schemas of a section.
pub struct Field {
    pub name: &'static str,
    pub in_responses: Types,
    pub in_requests: Types,
}

/// Types in words, each with the schemas whose member has it.
pub type Types = Vec<(String, Vec<&'static str>)>;

impl Field {
    /// Returns the names that the evidence has for this field: `Domain.domain`, `DomainFields.domain`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let types = self.in_responses.iter().chain(&self.in_requests);
        types.flat_map(|(_, schemas)| schemas).map(|schema| format!("{schema}.{}", self.name))
    }
}

fn schemas() -> &'static Map<String, Value> {
    contract().document["components"]["schemas"].as_object().expect("schemas")
}

/// Returns the members of a schema and of the schemas that it combines.
fn members(schema: &'static Value) -> impl Iterator<Item = (&'static String, &'static Value)> {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    std::iter::once(schema).chain(parts).filter_map(|it| it["properties"].as_object()).flatten()
}

/// Returns the schema of a field such as `Domain.domain`.
pub fn member(name: &str) -> Option<&'static Value> {
    let (schema, member) = name.split_once('.')?;
    members(schemas().get(schema)?).find(|(name, _)| *name == member).map(|(_, schema)| schema)
}

fn is_required(schema: &Value, member: &str) -> bool {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut lists = std::iter::once(schema).chain(parts).filter_map(|it| it["required"].as_array());
    lists.any(|list| list.iter().any(|name| name == member))
}

/// Collects the names of the schemas that `value` refers to.
fn collect_referred(value: &'static Value, found: &mut Vec<&'static str>) {
    match value {
        Value::String(text) => found.extend(referred(text)),
        Value::Array(items) => items.iter().for_each(|item| collect_referred(item, found)),
        Value::Object(members) => members.values().for_each(|it| collect_referred(it, found)),
        _ => {}
    }
}

/// Which operations use a schema.
#[derive(Default)]
struct Use {
    /// The tags whose operations name the schema, itself or in a page.
    named_by: BTreeSet<&'static str>,
    /// The tags whose operations reach the schema through others.
    reached_by: BTreeSet<&'static str>,
    is_sent: bool,
    is_returned: bool,
}

impl Use {
    fn section(&self) -> &'static str {
        let tags = if self.named_by.is_empty() { &self.reached_by } else { &self.named_by };
        match Vec::from_iter(tags).as_slice() {
            [tag] => tag,
            _ => SHARED,
        }
    }
}

fn is_page(schema: &str) -> bool {
    schema.starts_with("Paginated")
}

/// Adds the schemas that `value` reaches to `uses`.
fn add_uses(
    uses: &mut BTreeMap<&'static str, Use>,
    value: &'static Value,
    tag: &'static str,
    is_sent: bool,
) {
    let mut found = Vec::new();
    collect_referred(value, &mut found);
    let mut queue: Vec<_> = found.into_iter().map(|name| (name, true)).collect();
    let mut seen = BTreeSet::new();
    while let Some((name, is_named)) = queue.pop() {
        if !seen.insert((name, is_named)) {
            continue;
        }
        let entry = uses.entry(name).or_default();
        let tags = if is_named { &mut entry.named_by } else { &mut entry.reached_by };
        tags.insert(tag);
        entry.is_sent |= is_sent;
        entry.is_returned |= !is_sent;
        let mut found = Vec::new();
        collect_referred(&schemas()[name], &mut found);
        queue.extend(found.into_iter().map(|inner| (inner, is_named && is_page(name))));
    }
}

/// Returns the uses of all schemas in requests and successful responses.
fn uses() -> BTreeMap<&'static str, Use> {
    let mut uses = BTreeMap::new();
    for operation in contract().operations() {
        let told = operation.told();
        let tag = told["tags"][0].as_str().expect("a tag");
        add_uses(&mut uses, &told["requestBody"], tag, true);
        for (_, response) in operation.successes() {
            add_uses(&mut uses, response, tag, false);
        }
    }
    uses
}

/// Returns the fields of each section, in the order of the document.
pub fn fields() -> BTreeMap<&'static str, Vec<Field>> {
    let uses = uses();
    let mut sections: BTreeMap<&str, Vec<Field>> = BTreeMap::new();
    for (schema, told) in schemas() {
        let usage = uses.get(schema.as_str()).filter(|_| !is_page(schema));
        let fields = sections.entry(usage.map_or(SHARED, Use::section)).or_default();
        for (name, member) in members(told) {
            let field = named(fields, name);
            let words = describe(member);
            if usage.is_some_and(|usage| usage.is_sent) {
                let required = if is_required(told, name) { "required " } else { "" };
                add_type(&mut field.in_requests, format!("{required}{words}"), schema);
            }
            // Pages and errors are only returned.
            if usage.is_none_or(|usage| usage.is_returned) {
                add_type(&mut field.in_responses, words, schema);
            }
        }
    }
    sections
}

/// Returns the field of this name, which is added if it is new.
fn named<'f>(fields: &'f mut Vec<Field>, name: &'static str) -> &'f mut Field {
    let at = fields.iter().position(|field| field.name == name).unwrap_or_else(|| {
        fields.push(Field { name, in_responses: Vec::new(), in_requests: Vec::new() });
        fields.len() - 1
    });
    &mut fields[at]
}

fn add_type(types: &mut Types, words: String, schema: &'static str) {
    match types.iter_mut().find(|(known, _)| *known == words) {
        Some((_, schemas)) => schemas.push(schema),
        None => types.push((words, vec![schema])),
    }
}
