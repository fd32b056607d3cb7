//! The document uses only forms of JSON Schema that client generators understand.

use crate::support::prelude::*;

fn document() -> &'static Value {
    &contract().document
}

fn schema(name: &str) -> &'static Value {
    &document()["components"]["schemas"][name]
}

/// Collects every object within `value`, with its location.
fn objects<'v>(value: &'v Value, place: &str, out: &mut Vec<(String, &'v Value)>) {
    match value {
        Value::Object(members) => {
            out.push((place.to_owned(), value));
            for (name, member) in members {
                objects(member, &format!("{place}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                objects(item, &format!("{place}/{at}"), out);
            }
        }
        _ => {}
    }
}

/// Returns the schemas of the document that have this keyword with a value that `read` accepts.
fn having<'v, T>(
    keyword: &str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Vec<(String, &'v Value, T)>
where
    'static: 'v,
{
    let mut all = Vec::new();
    objects(document(), "", &mut all);
    let found: Vec<_> = all
        .into_iter()
        .filter_map(|(place, it)| read(it.get(keyword)?).map(|value| (place, it, value)))
        .collect();
    assert!(!found.is_empty(), "{keyword} is nowhere");
    found
}

#[test]
fn schemas_have_only_forms_that_client_generators_understand() {
    let types =
        |it: &Value| it.as_array().cloned().or_else(|| it.is_string().then(|| vec![it.clone()]));
    for (place, schema, types) in having("type", types) {
        assert_eq!(types.contains(&json!("array")), schema.get("items").is_some(), "{place}");
    }
    for (place, _, values) in having("enum", Value::as_array) {
        let is_text = values.iter().filter(|it| it.is_string()).count();
        let is_number = values.iter().filter(|it| it.is_i64()).count();
        assert!(is_text == 0 || is_number == 0, "{place}: {values:?}");
        assert!(values.len() <= 100, "{place}: {}", values.len());
    }
    for keyword in ["anyOf", "oneOf"] {
        for (place, schema, branches) in having(keyword, Value::as_array) {
            assert!(schema.get("type").is_none(), "{place}");
            let typed =
                |it: &Value| ["type", "$ref", "allOf"].iter().any(|name| it.get(name).is_some());
            assert!(branches.iter().all(typed), "{place}");
        }
    }
    for (place, parameter, ()) in having("in", |it| (it == "header").then_some(())) {
        assert_eq!(parameter["schema"]["type"], "string", "{place}");
        assert!(parameter["schema"].get("anyOf").is_none(), "{place}");
    }
    let contents = having("content", Value::as_object);
    let mut seen = 0;
    for (place, _, content) in contents {
        for (media, told) in content.iter().filter(|(media, _)| media.ends_with("+json")) {
            assert_eq!(told["schema"], json!({ "type": "object" }), "{place}: {media}");
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
    for name in ["ProjectFields", "Project"] {
        let timezone = &schema(name)["properties"]["timezone"];
        assert_eq!(timezone["type"], "string", "{name}");
        assert_eq!(timezone["examples"][0], "Europe/Berlin", "{name}");
        assert!(timezone["description"].as_str().is_some_and(|it| it.contains("IANA")), "{name}");
        assert!(timezone.get("enum").is_none(), "{name}");
    }
}

#[test]
fn destination_schema_has_a_discriminator_named_after_the_service() {
    for body in ["BatchExportFields", "OrganizationBatchExportFields"] {
        let destination = &schema(body)["properties"]["destination"];
        let discriminator = &destination["discriminator"];
        assert_eq!(discriminator["propertyName"], "type");
        let mapping = discriminator["mapping"].as_object().expect("a mapping");
        let places: BTreeSet<Option<&str>> = mapping.values().map(Value::as_str).collect();
        let branches = destination["oneOf"].as_array().expect("alternatives");
        assert_eq!(branches.iter().map(|it| it["$ref"].as_str()).collect::<BTreeSet<_>>(), places);
        assert_eq!(mapping.len(), 7);
        for (service, place) in mapping {
            assert_eq!(*place, json!(format!("#/components/schemas/{service}Destination")));
            let one = schema(&format!("{service}Destination"));
            assert_eq!(one["properties"]["type"]["enum"], json!([service]));
            assert_eq!(one["required"], json!(["type", "config"]));
        }
    }
    // A PATCH keeps omitted fields, so the type of the destination is not required.
    let patch = &schema("BatchExportPatch")["properties"]["destination"];
    assert_eq!(patch.get("required"), None);
}

#[test]
fn secret_destination_keys_are_write_only() {
    const SECRETS: [(&str, &[&str]); 7] = [
        ("S3", &["aws_access_key_id", "aws_secret_access_key"]),
        ("Snowflake", &["user", "password", "private_key", "private_key_passphrase"]),
        ("Postgres", &["user", "password"]),
        ("Redshift", &["user", "password"]),
        ("BigQuery", &["private_key", "private_key_id", "token_uri", "client_email"]),
        ("HTTP", &["token"]),
        ("NoOp", &[]),
    ];
    for (service, secrets) in SECRETS {
        let config = &schema(&format!("{service}Destination"))["properties"]["config"];
        let keys = config["properties"].as_object().expect("keys");
        let written = keys.iter().filter(|(_, key)| key["writeOnly"] == true);
        let written: Vec<_> = written.map(|(name, _)| name.as_str()).collect();
        assert_eq!(written, secrets, "{service}");
    }
}

#[tokio::test]
async fn log_filter_parameters_accept_exactly_the_documented_values() {
    let entry = &schema("ActivityLog")["properties"];
    let workspace = Workspace::new().await;
    for (path, operation) in [
        ("/api/organizations/@current/activity_log/", "organizations_activity_log_list"),
        ("/api/projects/@current/activity_log/", "activity_log_list"),
    ] {
        let parameters = contract()
            .operations()
            .iter()
            .map(|it| contract().document.pointer(&it.pointer).expect("an operation"))
            .find(|it| it["operationId"] == operation)
            .expect("the operation")["parameters"]
            .as_array()
            .expect("parameters");
        for (name, member) in [("scope", "scope"), ("scopes", "scope"), ("activity", "activity")] {
            let told = parameters.iter().find(|it| it["name"] == name).expect("a parameter");
            assert_eq!(told["schema"]["items"]["enum"], entry[member]["enum"]);
            for value in entry[member]["enum"].as_array().expect("values") {
                let value = value.as_str().expect("a text").replace(' ', "%20");
                workspace.owner.get(&format!("{path}?{name}={value}")).await.ok();
            }
            let refused = workspace.owner.get(&format!("{path}?{name}=Nothing")).await;
            refused.assert_invalid(name, "invalid_choice", "\"Nothing\" is not a valid choice.");
        }
    }
}
