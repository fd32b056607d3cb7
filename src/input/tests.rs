//! Tests of declared inputs.

use proptest::prelude::*;
use serde_json::json;

use super::testing::{any_json, assert_read_again, error_parts, read_field};
use super::*;
use crate::base::patch::Patch;

crate::input! {
    /// Where to.
    struct Target {
        r#type: Required<Name<8>>,
        port: Integer<1, 65535>,
    }
}

crate::input! {
    /// Every way to declare a field.
    /// On two lines.
    struct Sample {
        /// A title.
        title: Nullable<Text<5>>,
        pinned: Flag,
        tags: Tags,
        owner: Required<Email>,
        target: Nested<Target>,
        targets: ListOf<Nested<Target>, 2>,
    }
}

crate::input! {
    /// Fields of two stored objects.
    struct Change {
        title: Nullable<Text<5>> => shown,
        pinned: Flag => shown,
        color: Choice<Colors> => style,
        tags: Nullable<ListOf<Text<5>, 3>> => style,
        owner: Email => _,
    }
    fn apply_to(shown: &mut Shown, style: &mut Style);
}

crate::input! {
    /// Only a name counts.
    struct Lenient {
        name: Text<5>,
    }
    ignored: [tags, r#type]
}

struct Colors;
impl Choices for Colors {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["red", "blue"];
}

struct Shown {
    title: Option<String>,
    pinned: bool,
}

struct Style {
    color: String,
    tags: Vec<String>,
}

fn refusal(body: Value) -> (&'static str, String, Option<String>) {
    error_parts(&Sample::parse(&require_object(body).unwrap()).unwrap_err())
}

#[test]
fn first_invalid_field_in_declaration_order_is_reported() {
    let cases = [
        (
            json!({"pinned": "maybe", "title": "longer"}),
            ("max_length", "Ensure this field has no more than 5 characters.", "title"),
        ),
        (json!({"tags": null, "pinned": null}), ("null", "This field may not be null.", "pinned")),
        (json!({"tags": ["a", true]}), ("invalid_input", "Not a valid string.", "tags__1")),
        (json!({}), ("required", "This field is required.", "owner")),
        (json!({"owner": null}), ("null", "This field may not be null.", "owner")),
        (
            json!({"owner": "a@b.io", "target": 5}),
            (
                "invalid_input",
                "Invalid data. Expected a dictionary, but got int.",
                "target__non_field_errors",
            ),
        ),
        (
            json!({"owner": "a@b.io", "target": {"port": 1}}),
            ("required", "This field is required.", "target__type"),
        ),
        (
            json!({"owner": "a@b.io", "targets": [{"type": "S3"}, {"type": "S3", "port": 0}]}),
            ("min_value", "Ensure this value is greater than or equal to 1.", "targets__1__port"),
        ),
    ];
    for (body, (code, detail, attr)) in cases {
        assert_eq!(refusal(body), (code, detail.to_owned(), Some(attr.to_owned())));
    }
}

#[test]
fn absent_null_and_set_fields_are_distinguished() {
    let parse = |body| Sample::parse(&require_object(body).unwrap()).unwrap();
    let absent = parse(json!({"owner": "a@b.io", "unknown": 1}));
    assert_eq!((absent.title, absent.pinned, absent.tags), (Patch::Absent, None, None));
    assert!(absent.target.is_none() && absent.targets.is_none());
    assert_eq!(absent.owner, "a@b.io");
    let sent = parse(json!({
        "owner": "a@b.io", "title": null, "pinned": "on",
        "target": {"type": "S3", "port": "80"}, "targets": [],
    }));
    assert_eq!((sent.title, sent.pinned), (Patch::Null, Some(true)));
    let target = sent.target.unwrap();
    assert_eq!((target.r#type.as_str(), target.port), ("S3", Some(80)));
    let trimmed = parse(json!({"owner": "a@b.io", "title": " x "}));
    assert_eq!(trimmed.title, Patch::Value("x".to_owned()));
}

#[test]
fn sent_fields_replace_the_stored_ones() {
    let applied = |body| {
        let mut shown = Shown { title: Some("old".to_owned()), pinned: true };
        let mut style = Style { color: "red".to_owned(), tags: vec!["a".to_owned()] };
        let change = Change::parse(&require_object(body).unwrap()).unwrap();
        change.apply_to(&mut shown, &mut style);
        (shown.title, shown.pinned, style.color, style.tags)
    };
    let (title, color, tags) = (Some("old".to_owned()), "red".to_owned(), vec!["a".to_owned()]);
    assert_eq!(applied(json!({"owner": "a@b.io"})), (title, true, color, tags));
    let all = json!({"title": null, "pinned": false, "color": "blue", "tags": null});
    assert_eq!(applied(all), (None, false, "blue".to_owned(), Vec::new()));
    let (title, tags) = (Some("new".to_owned()), vec!["b".to_owned()]);
    let some = applied(json!({"title": "new", "tags": ["b"]}));
    assert_eq!(some, (title, true, "red".to_owned(), tags));
}

#[test]
fn ignored_members_are_only_in_the_schema() {
    let sent = json!({"name": "a", "tags": 5, "type": []});
    assert_eq!(Lenient::parse(&require_object(sent).unwrap()).unwrap().name.unwrap(), "a");
    let schema = serde_json::to_value(Lenient::schema()).unwrap();
    assert_eq!(schema["properties"]["type"], json!({"description": "Ignored."}));
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["name", "tags", "type"]);
}

#[test]
fn input_schema_matches_the_declared_fields() {
    assert_eq!(Sample::NAME, "Sample");
    let (plain, filled) = (r"^[^\x00]*$", r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$");
    let target = json!({
        "type": "object", "description": "Where to.",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": filled},
            "port": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 65535},
        },
    });
    let expected = json!({
        "type": "object",
        "description": "Every way to declare a field.\nOn two lines.",
        "required": ["owner"],
        "properties": {
            "title": {"type": ["string", "null"], "description": "A title.", "maxLength": 5, "pattern": plain},
            "pinned": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 255, "pattern": plain}, "maxItems": 200},
            "owner": {"type": "string", "format": "idn-email", "maxLength": 254},
            "target": target,
            "targets": {"type": "array", "items": target, "maxItems": 2},
        },
    });
    let schema = serde_json::to_value(Sample::schema()).unwrap();
    assert_eq!(schema, expected);
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["title", "pinned", "tags", "owner", "target", "targets"]);
}

#[test]
fn parsed_keeps_its_error_until_get_is_called() {
    let parsed = Parsed::<Target>::new(&require_object(json!({"port": 0})).unwrap());
    let again = parsed.clone();
    for parsed in [&parsed, &parsed, &again] {
        assert_eq!(parsed.get().unwrap_err().attr(), Some("type"));
    }
    let parsed = Parsed::<Target>::new(&require_object(json!({"type": "S3"})).unwrap());
    assert_eq!(parsed.get().unwrap().r#type, "S3");
}

#[test]
fn require_object_rejects_other_json_types() {
    let dictionary = |name| format!("Invalid data. Expected a dictionary, but got {name}.");
    for (body, code, detail) in [
        (json!(null), "null", "No data provided".to_owned()),
        (json!([1]), "invalid_input", dictionary("list")),
        (json!("x"), "invalid_input", dictionary("str")),
        (json!(1), "invalid_input", dictionary("int")),
        (json!(1.5), "invalid_input", dictionary("float")),
        (json!(true), "invalid_input", dictionary("bool")),
    ] {
        assert_eq!(error_parts(&require_object(body).unwrap_err()), (code, detail, None));
    }
    assert!(require_object(json!({})).unwrap().is_empty());
    assert_eq!(python_type(&json!(null)), "NoneType");
    assert_eq!(python_type(&json!({})), "dict");
}

proptest! {
    #[test]
    fn value_that_was_read_is_read_again_unchanged(value in any_json(), rest in ".*") {
        for value in [value, json!(format!("https://a.example{rest}"))] {
            assert_read_again::<DateTime>(&value);
            assert_read_again::<Fraction>(&value);
            assert_read_again::<Email>(&value);
            assert_read_again::<Identifier>(&value);
            assert_read_again::<UuidField>(&value);
            assert_read_again::<WebUrl<200>>(&value);
            let email = read_field::<Email>(&value).ok().flatten().unwrap_or_default();
            prop_assert!(!email.contains(char::is_control));
            let url = read_field::<WebUrl<200>>(&value).ok().flatten().unwrap_or_default();
            prop_assert!(!url.contains(|c: char| c.is_ascii_control() || c == ' '));
        }
    }

    #[test]
    fn any_request_body_is_parsed_or_rejected_with_a_field_name(
        title in any_json(), pinned in any_json(), tags in any_json(),
        owner in any_json(), target in any_json(), targets in any_json(),
    ) {
        let body = json!({
            "title": title, "pinned": pinned, "tags": tags,
            "owner": owner, "target": target, "targets": targets,
        });
        if let Err(error) = Sample::parse(&require_object(body).unwrap()) {
            prop_assert_eq!(error.status(), 400);
            prop_assert!(error.attr().is_some());
        }
    }
}
