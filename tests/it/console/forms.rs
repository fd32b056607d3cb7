//! What all forms share: errors beside their field, nothing typed is lost, and changes of others. The profile is the example.

use futures_util::{StreamExt, poll};
use regex::Regex;

use crate::support::ClosedFile;
use crate::support::crawler::{crawl, make_objects};
use crate::support::prelude::*;

const PROFILE: &str = "/console/profile/";
const NEW_INSIGHT: &str = "/console/projects/1/insights/new/";

#[tokio::test]
async fn form_sends_only_what_was_changed() {
    let workspace = Workspace::new().await;
    let settings = json!({ "first_name": "Ada", "notification_settings": { "a": [1] } });
    workspace.owner.patch(ME, settings).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let form = owner.open(PROFILE, "Profile").await.form("form");
    assert_eq!(form.value("first_name"), "Ada");
    assert_eq!(form.value("notification_settings"), "{\n  \"a\": [\n    1\n  ]\n}");
    let before = workspace.owner.get(ME).await.ok();
    owner.submit(&form).await.assert_leads_to("/console/profile/?done=profile-saved");
    assert_eq!(workspace.owner.get(ME).await.ok(), before, "nothing was changed");
    let changed = form.with("last_name", "Lovelace").with("role_at_organization", "data");
    let shown = owner.submit(&changed.clone().with("_show", "command")).await;
    let command = shown.command();
    let body = r#"'{"last_name":"Lovelace","role_at_organization":"data"}'"#;
    assert!(command.contains(body), "{command}");
    assert!(command.starts_with("curl -X PATCH "), "{command}");
    assert_eq!(shown.form("form").value("last_name"), "Lovelace");
    assert_eq!(owner.submit(&changed).await.location(), "/console/profile/?done=profile-saved");
    let after = workspace.owner.get(ME).await.ok();
    assert_eq!([&after["last_name"], &after["role_at_organization"]], ["Lovelace", "data"]);
    owner.get("/console/profile/?done=profile-saved").await.assert_has(&["<p>Profile saved.</p>"]);
    assert!(!owner.get("/console/profile/?done=profile-evil").await.html.contains("data-notice"));
}

#[tokio::test]
async fn profile_is_text_for_a_session_that_cannot_change_it() {
    let workspace = Workspace::new().await;
    let mut reader = Visitor::with_scopes(&workspace, OWNER, &["user:read"]).await;
    let page = reader.open(PROFILE, "Profile").await;
    let reason = "API key missing required scope &#39;user:write&#39;";
    assert!(page.between("<div class=\"note\">", "</div>").contains(reason), "{}", page.html);
    page.assert_lacks(&["id=\"form\""]);
    let refused = reader.post(PROFILE, &[("first_name", "Ada")]).await.showing(403, "Profile");
    assert_eq!(refused.form("form").value("first_name"), "Ada");
}

#[tokio::test]
async fn error_stands_beside_its_field_and_nothing_typed_is_lost() {
    let (_workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(PROFILE).await.form("form");
    let long = "é".repeat(151);
    let sent = form.clone().with("first_name", &long).with("last_name", "<b>\"'&");
    let page = owner.submit(&sent).await.showing(400, "Profile");
    let shown = page.form("form");
    assert_eq!([shown.value("first_name"), shown.value("last_name")], [&long, "<b>\"'&"]);
    page.assert_field_error("first_name", "Ensure this field has no more than 150 characters.");
    page.assert_has(&[
        "aria-describedby=\"form-first_name-error\" aria-invalid=\"true\" autofocus",
    ]);
    let sent = form.with("notification_settings", "{x").with("theme_mode", "pink");
    let page = owner.submit(&sent).await.showing(400, "Profile");
    page.assert_field_error("notification_settings", "This is not valid JSON: line 1, column 2.");
    assert!(page.html.contains("{x\n ^</pre>"), "the place is marked: {}", page.html);
    let shown = page.form("form");
    assert_eq!([shown.value("notification_settings"), shown.value("theme_mode")], ["{x", "pink"]);
    let page = owner.submit(&shown.with("notification_settings", "{}")).await;
    page.assert_field_error("theme_mode", "&#34;pink&#34; is not a valid choice.");
}

/// Returns what a page says in its own words: without texts of people, values, commands and JSON.
fn words(page: &Page) -> String {
    let patterns =
        ["(?s)<pre.*?</pre>", "(?s)<textarea.*?</textarea>", "(?s)<bdi.*?</bdi>", "<[^>]*>"];
    patterns.iter().fold(page.html.clone(), |html, pattern| {
        Regex::new(pattern).expect("a pattern").replace_all(&html, " ").into_owned()
    })
}

#[tokio::test]
async fn pages_speak_to_people_and_not_of_requests() {
    let workspace = Workspace::new().await;
    make_objects(&workspace).await;
    let owner = Visitor::with_link(&workspace, true).await;
    let found = crawl(&owner).await;
    let mut pages: Vec<String> = found.pages.values().map(|paths| paths[0].clone()).collect();
    pages.sort();
    let hint = Regex::new("(?s)<p class=\"hint\"[^>]*>(.*?)</p>").expect("a pattern");
    for path in pages {
        let page = owner.get(&path).await;
        assert!(!words(&page).contains('`'), "{path}: {}", words(&page));
        for hint in hint.captures_iter(&page.html) {
            let said = hint[1].to_lowercase();
            for word in ["null", "ignored", "request", "patch", "as sent", "stored ones"] {
                assert!(!said.contains(word), "{path}: {word}: {}", &hint[1]);
            }
        }
    }
    let mut nobody = Visitor::new(&workspace);
    let refused = nobody.post("/console/enter/", &[("code", "x")]).await;
    assert!(!words(&refused).contains('`'), "{}", words(&refused));
    let refused = Visitor::owner(&workspace).await.get("/console/health/").await;
    assert!(!words(&refused).contains('`'), "{}", words(&refused));
}

#[tokio::test]
async fn form_of_an_older_version_is_merged_with_what_others_have_changed() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(PROFILE).await.form("form");
    workspace.owner.patch(ME, json!({ "first_name": "Grace", "theme_mode": "dark" })).await.ok();
    let mine = form.with("first_name", "Ada").with("last_name", "Lovelace");
    let page = owner.submit(&mine).await.showing(412, "Profile");
    let table = page.between("aria-label=\"Changes since you opened the page\">", "</table>");
    assert!(table.contains("<th scope=\"row\">Given name</th>"), "{table}");
    assert!(table.contains("<td dir=\"auto\">Grace</td><td dir=\"auto\">Ada</td>"), "{table}");
    assert!(table.contains("<td dir=\"auto\">dark</td><td dir=\"auto\">–</td>"), "{table}");
    let merged = page.form("form");
    let values = ["first_name", "last_name", "theme_mode"].map(|name| merged.value(name));
    assert_eq!(values, ["Ada", "Lovelace", "dark"]);
    assert_eq!(workspace.owner.get(ME).await.ok()["first_name"], "Grace");
    assert_eq!(owner.submit(&merged).await.location(), "/console/profile/?done=profile-saved");
    let after = workspace.owner.get(ME).await.ok();
    let stored = ["first_name", "last_name", "theme_mode"].map(|name| &after[name]);
    assert_eq!(stored, ["Ada", "Lovelace", "dark"]);
    // The same form again: what it wants is already stored.
    assert_eq!(owner.submit(&merged).await.location(), "/console/profile/?done=profile-saved");
}

/// Returns a form beyond the limits of pages that are open to everybody: 24 KB, because each letter takes six bytes, and 200
/// fields.
async fn large_form(visitor: &Visitor) -> FilledForm {
    let query = json!({ "kind": "HogQLQuery", "query": "я".repeat(4000) });
    let form = visitor.get(NEW_INSIGHT).await.form("form");
    let form = form.with("name", "Visitors").with("description", "\nTwo\nlines <&>");
    let form = form.with("query", &query.to_string());
    (0..200).fold(form, |form, number| form.and("other", &number.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn large_form_is_kept_whole_while_the_file_is_closed_and_without_a_session() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = large_form(&owner).await;
    let closed = ClosedFile::of(&workspace).await;
    let kept = owner.submit(&form).await.showing(503, "Nothing was saved").form("form");
    assert_eq!((&kept.action, &kept.fields), (&form.action, &form.fields));
    owner.get(PROFILE).await.assert_shows(503, "Temporarily unavailable");
    closed.open().await;
    assert!(owner.submit(&kept).await.location().ends_with("?done=insight-created"));
    owner.post("/console/sign_out/", &[]).await;
    let kept = owner.submit(&form).await.showing(401, "Your session has ended").form("form");
    assert_eq!((&kept.action, &kept.fields), (&form.action, &form.fields));
    let mut again = Visitor::owner(&workspace).await;
    assert!(again.submit(&kept).await.location().ends_with("?done=insight-created"));
}

#[tokio::test]
async fn large_forms_without_a_session_use_no_memory_of_those_with_one() {
    let workspace = Workspace::configured(|config| config.transfer_memory = 1024 * 1024).await;
    let mut owner = Visitor::owner(&workspace).await;
    // The form and its fields take less than a quarter of the memory. Beside an unfinished one they take more.
    let text = "a".repeat(80 * 1024);
    let large = [("a", &*text)];
    let started = stream::iter([Ok::<_, Infallible>(format!("a={text}"))]).chain(stream::pending());
    let stranger = workspace.anonymous();
    let started = Body::from_stream(started);
    let mut unfinished = Box::pin(stranger.fetch(Method::POST, PROFILE, &FORM, started));
    assert!(poll!(unfinished.as_mut()).is_pending());
    assert!(workspace.app.transfer_memory().used() > 80 * 1024);

    let mut nobody = Visitor::new(&workspace);
    assert_eq!(nobody.post(PROFILE, &large).await.status, 503);
    owner.post(PROFILE, &large).await.assert_leads_to("/console/profile/?done=profile-saved");
    drop(unfinished);
    nobody.post(PROFILE, &large).await.assert_shows(401, "Your session has ended");
}

#[tokio::test]
async fn limits_of_forms_are_larger_with_a_session() {
    let (_workspace, mut owner) = Visitor::in_new_workspace().await;
    let fields: Vec<_> = (0..5001).map(|_| ("a", "1")).collect();
    owner.post(PROFILE, &fields[..5000]).await.location();
    let page = owner.post(PROFILE, &fields).await.showing(400, "The request is not valid");
    page.assert_has(&["The form has more than 5000 fields."]);
    let page = owner.post(PROFILE, &[("first_name", &"a".repeat(1024 * 1024))]).await;
    assert_eq!(page.status, 413);
    let page = owner.post("/console/sign_in/", &fields[..101]).await;
    page.assert_shows(400, "The request is not valid");
    let page = owner.post("/console/sign_in/", &[("key", &"a".repeat(16 * 1024))]).await;
    assert_eq!(page.status, 413);
}

#[tokio::test]
async fn form_beyond_a_limit_is_kept_for_later() {
    let (mut config, _) = with_clock();
    config.rate_limits = vec!["12/h".parse().expect("a rate")];
    let workspace = Workspace::with(config).await;
    let mut owner = Visitor::owner(&workspace).await;
    let form = owner.get(PROFILE).await.form("form").with("first_name", "Ada <&>");
    let mut page = owner.submit(&form).await;
    for _ in 0..12 {
        page = owner.submit(&form).await;
    }
    page.assert_shows(429, "Nothing was saved");
    assert!(page.headers.contains_key("retry-after"));
    let kept = page.form("form");
    assert_eq!((kept.action.as_str(), kept.value("first_name")), (PROFILE, "Ada <&>"));
    owner.get(PROFILE).await.assert_shows(429, "Too many requests");
}
