//! Parameters of lists: each is read, or the request fails with its name.

use crate::support::prelude::*;

/// Parameters that take any text.
const ANY_TEXT: [&str; 4] = ["item_id", "refresh", "search", "short_id"];
/// Parameters of pages and documents, not of the API's objects.
const NOT_OF_OBJECTS: [&str; 4] = ["format", "limit", "offset", "token"];
/// Parameters whose presence filters, whatever boolean they have.
const PRESENCE: [&str; 2] = ["favorited", "user"];

/// Returns the paths of GET routes with the names of their parameters.
fn parameters(objects: &Objects) -> Vec<(String, &'static str)> {
    let table = routes();
    let rows = table.specs().iter().filter(|row| row.method == Method::GET);
    let named = rows.flat_map(|row| {
        let path = objects.fill(row.path);
        row.query.iter().map(move |parameter| (path.clone(), parameter.name))
    });
    named.filter(|(_, name)| !NOT_OF_OBJECTS.contains(name) && *name != "v").collect()
}

fn assert_names(answer: &TestResponse, name: &str, request: &str) {
    let told = (answer.status, &answer.body["attr"], &answer.body["type"]);
    let (attr, kind) = (json!(name), json!("validation_error"));
    assert_eq!(told, (400, &attr, &kind), "{request}: {}", answer.body);
}

#[tokio::test]
async fn parameter_that_cannot_be_read_is_refused_by_its_name() {
    let workspace = Workspace::new().await;
    let objects = Objects::make(&workspace, "acme").await;
    let mut refused = 0;
    for (path, name) in parameters(&objects) {
        let values: &[&str] = match name {
            _ if ANY_TEXT.contains(&name) => continue,
            "tags" => &["%00", "[%22a%22,true]"],
            "filters_override" | "variables_override" => &["garbage", "%7B"],
            _ => {
                &["garbage", "01/01/2020", "%00", "%FF", "[", "1e2x", "2020-13-01", "-", "--1", ","]
            }
        };
        for value in values {
            for query in [format!("{name}={value}"), format!("{name}=&search=a&{name}={value}")] {
                let request = format!("{path}?{query}");
                assert_names(&workspace.owner.get(&request).await, name, &request);
                refused += 1;
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[tokio::test]
async fn blank_parameter_counts_as_absent_and_an_unknown_one_is_ignored() {
    let workspace = Workspace::new().await;
    let objects = Objects::make(&workspace, "acme").await;
    for (path, name) in parameters(&objects) {
        if name.ends_with("_override") || PRESENCE.contains(&name) && path.contains("/insights/") {
            continue;
        }
        let all = workspace.owner.get(&path).await.ok();
        for query in [format!("{name}="), format!("{name}=%20"), format!("unknown=1&{name}")] {
            let found = workspace.owner.get(&format!("{path}?{query}")).await.ok();
            let shown = |body: &Value| (body["count"].clone(), body["results"].clone());
            assert_eq!(shown(&found), shown(&all), "{path}?{query}");
        }
    }
}

#[tokio::test]
async fn script_that_deletes_what_a_misspelled_filter_finds_finds_nothing() {
    let (workspace, owner) = Workspace::owned().await;
    let list = workspace.project("insights/");
    owner.post(&list, json!({ "name": "kept" })).await.ok();
    let detail = "Datetime has wrong format. Use one of these formats instead: \
                  YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    for name in ["date_from", "date_to", "created_date_from", "created_date_to"] {
        for bad in ["01/01/2020", "garbage", "2020-01-01T00:00:00+00:00", "-7", "-7x", "dstart"] {
            owner.get(&format!("{list}?{name}={bad}")).await.assert_bad(name, detail);
        }
    }
    for good in ["2020-01-01T00:00:00%2B0000", "2020-01-01+00:00:00+%2B00:00", "20200101T000000Z"] {
        assert_eq!(owner.get(&format!("{list}?date_to={good}")).await.ok()["count"], 0, "{good}");
    }
}
