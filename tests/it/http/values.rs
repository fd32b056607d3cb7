//! Texts and free-form JSON in bodies: which texts are required, may be null or may be blank, and how large both may be.

use crate::support::prelude::*;

/// What a field accepts besides texts that are not blank.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing. POST and PUT require the field.
    Required,
    /// Nothing.
    Name,
    /// Blank texts.
    Text,
    /// Blank texts and null.
    Nullable,
}

/// The name of a field with a text, the maximum number of its characters, and its kind.
type TextField = (&'static str, usize, Kind);

/// Returns values that the field refuses.
fn refused((name, most, kind): TextField) -> Vec<(Value, Refusal)> {
    let long = Refusal::at_most(name, &format!("{most} characters"));
    let nul = "Null characters are not allowed.";
    let nul = Refusal::new(name, "null_characters_not_allowed", nul);
    let mut refused = vec![(json!("ä".repeat(most + 1)), long), (json!("a\0b"), nul)];
    let others = each(json!([true, {}, ["a"]])).into_iter();
    refused.extend(others.map(|value| (value, Refusal::not_text(name))));
    if kind != Kind::Nullable {
        refused.push((json!(null), Refusal::null(name)));
    }
    if matches!(kind, Kind::Required | Kind::Name) {
        let blank = Refusal::new(name, "blank", "This field may not be blank.");
        refused.extend(["", " \t\n"].map(|value| (json!(value), blank.clone())));
    }
    refused
}

/// Returns values that the field accepts, each with what it is stored as. The names of roles are
/// unique, so objects get different `letter`s and numbers.
fn accepted((_, most, kind): TextField, letter: &str, number: Value) -> Vec<(Value, Value)> {
    let longest = letter.repeat(most);
    let odd = format!("{letter} <b>\"\\ \u{1}\u{7f}\u{202e}");
    let mut accepted = vec![
        (json!(format!(" \t{longest}\n")), json!(longest)),
        (json!(odd), json!(odd)),
        (number.clone(), json!(number.to_string())),
    ];
    if matches!(kind, Kind::Text | Kind::Nullable) {
        accepted.push((json!("   "), json!("")));
    }
    if kind == Kind::Nullable {
        accepted.push((json!(null), json!(null)));
    }
    accepted
}

/// Returns the object at `path`, or the number of objects in the list at `path`.
async fn stored(caller: &TestClient, path: &str) -> Value {
    let body = caller.get(path).await.ok();
    if let Some(list) = body["results"].as_array().or(body.as_array()) {
        return json!(list.len());
    }
    body
}

/// Asserts what each request accepts and refuses in these fields. `new` is the body that creates an object.
async fn assert_texts(
    caller: &TestClient,
    new: &Value,
    requests: &[(Method, &str)],
    fields: &[TextField],
) {
    for field in fields {
        let (name, _, kind) = *field;
        for (method, path) in requests {
            let creates = method == Method::POST;
            let base = if creates { new.clone() } else { json!({}) };
            let with = |value: Value| {
                let mut sent = base.clone();
                sent[name] = value;
                sent
            };
            let before = stored(caller, path).await;
            let mut cases: Vec<_> = refused(*field)
                .into_iter()
                .map(|(value, refusal)| (with(value), refusal))
                .collect();
            if kind == Kind::Required && method != Method::PATCH {
                let mut lacking = base.clone();
                lacking.as_object_mut().expect("an object").remove(name);
                cases.push((lacking, Refusal::required(name)));
            }
            caller.assert_refusals(method.clone(), path, cases).await;
            assert_eq!(stored(caller, path).await, before, "{method} {path} {name}");
            let (letter, number) = if creates { ("ä", json!(5)) } else { ("😀", json!(1.5)) };
            for (value, shown) in accepted(*field, letter, number) {
                let (body, one) = if creates {
                    caller.create(path, with(value)).await
                } else {
                    let answer = caller.send(method.clone(), path, Some(with(value))).await;
                    (answer.ok(), (*path).to_owned())
                };
                assert_eq!(body[name], shown, "{method} {path}");
                assert_eq!(caller.get(&one).await.ok()[name], shown, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn texts_are_required_trimmed_and_limited() {
    let (workspace, owner) = Workspace::owned().await;
    let me = [(Method::PATCH, ME)];
    let names = [("first_name", 150, Kind::Text), ("last_name", 150, Kind::Text)];
    assert_texts(&owner, &json!({}), &me, &names).await;
    let named = json!({ "name": "x" });
    let key = json!({ "label": "x", "scopes": ["*"] });
    let nullable = |name: &'static str, most: usize| (name, most, Kind::Nullable);
    let of_project = vec![
        ("name", 200, Kind::Name),
        nullable("product_description", 1000),
        nullable("slack_incoming_webhook", 500),
    ];
    let of_dashboard = vec![nullable("name", 400), ("description", 16_384, Kind::Text)];
    let of_insight = ["name", "derived_name", "description"].map(|name| nullable(name, 400));
    for (list, new, fields) in [
        ("/api/organizations/".to_owned(), named.clone(), vec![("name", 64, Kind::Required)]),
        (workspace.organization("roles/"), named, vec![("name", 200, Kind::Required)]),
        ("/api/personal_api_keys/".to_owned(), key, vec![("label", 40, Kind::Required)]),
        (workspace.organization("projects/"), json!({}), of_project),
        (workspace.project("batch_exports/"), nowhere("x"), vec![("name", 400, Kind::Required)]),
        (workspace.dashboards(""), json!({}), of_dashboard),
        (workspace.project("insights/"), json!({}), of_insight.to_vec()),
    ] {
        let (_, one) = owner.create(&list, new.clone()).await;
        let mut requests = vec![(Method::POST, list.as_str()), (Method::PATCH, one.as_str())];
        if list.ends_with("/roles/") {
            requests.push((Method::PUT, one.as_str()));
        }
        assert_texts(&owner, &new, &requests, &fields).await;
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn free_form_fields_have_limited_size_and_depth() {
    let (workspace, owner) = Workspace::owned().await;
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    let of_size = |bytes: usize| json!({ "k": "a".repeat(bytes - r#"{"k":""}"#.len()) });
    for (list, names) in [
        (workspace.dashboards(""), ["filters", "variables"]),
        (workspace.project("insights/"), ["filters", "query"]),
    ] {
        let (_, one) = owner.create(&list, json!({})).await;
        for name in names {
            let before = owner.get(&one).await.ok();
            let cases = [
                (json!({ name: of_size(32_769) }), Refusal::at_most(name, "32768 bytes of JSON")),
                (json!({ name: nested(33) }), Refusal::at_most(name, "32 nested containers")),
            ];
            // A new dashboard has no variables.
            if name != "variables" {
                owner.assert_refusals(Method::POST, &list, cases.clone()).await;
            }
            owner.assert_refusals(Method::PATCH, &one, cases).await;
            owner.get(&one).await.assert_is(200, before);
            for value in [of_size(32_768), nested(32)] {
                assert_eq!(owner.patch(&one, json!({ name: value })).await.ok()[name], value);
            }
        }
    }
}
