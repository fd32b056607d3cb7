//! What pages offer: every link leads somewhere, and no control is refused.
//!
//! The test reads pages as a crawler does, from the start page on, and presses every button it finds.

use crate::support::crawler::{Found, crawl, make_objects, shape};
use crate::support::prelude::*;

/// Whether a form takes something away that other forms need.
fn is_destructive(action: &str) -> bool {
    ["delete", "remove", "leave", "revoke", "end", "sign_out", "rotate", "disable", "roll"]
        .iter()
        .any(|word| action.contains(word))
}

/// Returns when a form is pressed: after those that need what it takes away. Rules on access may take away the project, a
/// session that has ended sends nothing, and a member who has left the organization may send no other form.
fn turn(action: &str) -> u8 {
    if action.starts_with("/console/sessions/") {
        4
    } else if action.contains("/members/") && action.ends_with("/remove/") {
        3
    } else if action.contains("/access/") {
        2
    } else {
        u8::from(is_destructive(action))
    }
}

/// Whether a form may end the session that sends it.
fn ends_the_session(action: &str) -> bool {
    action == "/console/sign_out/" || action.starts_with("/console/keys/") && is_destructive(action)
}

async fn press_everything(visitor: &mut Visitor, who: &str) -> Found {
    let found = crawl(visitor).await;
    let mut forms: Vec<_> = found.forms.values().collect();
    forms.sort_by_key(|(_, form)| turn(&form.action));
    for (path, form) in forms {
        if ends_the_session(&form.action) {
            continue;
        }
        let answer = visitor.submit(form).await;
        let is_fine = matches!(answer.status, 200 | 303 | 400 | 404 | 409 | 412);
        assert!(is_fine, "{who}: {path} offers {}: {} {}", form.action, answer.status, answer.html);
        if answer.status == 303 {
            let location = answer.location().to_owned();
            let page = visitor.get(&location).await;
            assert!(matches!(page.status, 200 | 303 | 404), "{who}: {location}: {}", page.html);
        }
    }
    found
}

#[tokio::test]
async fn every_link_leads_to_a_page_and_no_offered_form_is_refused() {
    let workspace = Workspace::new().await;
    make_objects(&workspace).await;
    let mut owner = Visitor::with_link(&workspace, true).await;
    assert_eq!(unreached(&press_everything(&mut owner, "owner").await), UNREACHED);
}

/// What a page does that asks before something is lost.
const LOSSES: [&str; 3] = ["/delete/", "/revoke/", "/remove/"];

#[tokio::test]
async fn every_deletion_asks_on_a_page_of_its_own() {
    let workspace = Workspace::new().await;
    make_objects(&workspace).await;
    let owner = Visitor::with_link(&workspace, true).await;
    let found = crawl(&owner).await;
    let deletes = |path: &str| LOSSES.iter().any(|loss| path.ends_with(loss));
    let mut kinds = BTreeSet::new();
    for path in found.pages.values().map(|paths| &paths[0]).filter(|path| deletes(path)) {
        let page = owner.get(path).await;
        let form = page.between("data-question id=\"form\">", "</form>");
        let heading = page.between("<h1><bdi>", "</bdi></h1>");
        let verb = heading.split(' ').next().expect("a verb");
        assert!(["Delete", "Revoke", "Remove", "Leave"].contains(&verb), "{path}: {heading}");
        assert!(heading.ends_with('?'), "{path}: {heading}");
        let button = form.split("<button class=\"b bad\">").nth(1).expect("a button");
        assert!(button.starts_with(verb) && button.contains(">Cancel</a>"), "{path}: {form}");
        kinds.insert(shape(path));
    }
    // Dashboards, insights, exports, projects, the organization, roles, domains, invites, keys and members.
    assert_eq!(kinds.len(), 10, "{kinds:#?}");
    for (path, form) in found.forms.values().filter(|(_, form)| form.action.ends_with("/delete/")) {
        assert_eq!(*path, form.action, "only the question deletes");
    }
}

#[tokio::test]
async fn question_deletes_its_object_once_although_its_form_is_sent_twice() {
    let workspace = Workspace::new().await;
    make_objects(&workspace).await;
    let mut owner = Visitor::with_link(&workspace, true).await;
    let found = crawl(&owner).await;
    let is_question = |path: &str, form: &FilledForm| {
        path == form.action && LOSSES.iter().any(|loss| path.ends_with(loss))
    };
    let questions = found.forms.values().filter(|(path, form)| is_question(path, form));
    let mut questions: Vec<_> = questions.collect();
    questions.sort_by_key(|(_, form)| turn(&form.action));
    let mut done = 0;
    for (path, form) in questions {
        let first = owner.submit(form).await;
        // A project and an organization want their name first, and their only owner does not leave.
        if first.status == 303 {
            let again = owner.submit(form).await;
            // Whether a deleted insight was saved is not known any more.
            let (first, again) = (first.location(), again.location());
            assert!(first.starts_with(again), "{path}: {first} {again}");
            assert!(again.contains("?done="), "{path}: {again}");
            owner.get(path).await.assert_shows(404, "Not found");
            done += 1;
        }
    }
    assert!(done >= 7, "{done}");
}

/// The pages and actions that no page of this workspace leads to.
const UNREACHED: [&str; 6] = [
    // The script asks for it.
    "GET /console/organizations/{organization_id}/activity/news/",
    "GET /console/projects/{project_id}/activity/news/",
    // The page for unknown paths.
    "GET /console/{*rest}",
    // Offered if the DNS has the record.
    "POST /console/organizations/{organization_id}/domains/{id}/verify/",
    // Offered after a deletion.
    "POST /console/projects/{project_id}/insights/{id}/restore/",
    // Offered until there are an invite and a key.
    "POST /console/steps/dismiss/",
];

/// Returns the pages and actions of the route table that the crawler has not found.
fn unreached(found: &Found) -> Vec<String> {
    let table = routes();
    let rows = table.pages().iter().filter(|page| page.access != PageAccess::Public);
    let rows: BTreeSet<(&str, &str)> = rows.map(|page| (page.method.as_str(), page.path)).collect();
    let row_of = |method: &'static str, path: &str| {
        let matching = rows.iter().filter(|(of, row)| *of == method && matches(row, path));
        matching.min_by_key(|(_, row)| row.matches('{').count()).copied()
    };
    let pages = found.pages.values().flatten().filter_map(|path| row_of("GET", path));
    let forms = found.forms.values().filter_map(|(_, form)| row_of("POST", &form.action));
    let reached: BTreeSet<_> = pages.chain(forms).collect();
    rows.difference(&reached).map(|(method, path)| format!("{method} {path}")).collect()
}

/// Returns whether a path is one of those of a row of the route table.
fn matches(row: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (expected, found): (Vec<_>, Vec<_>) = (row.split('/').collect(), path.split('/').collect());
    let is_same =
        |(expected, found): (&&str, &&str)| expected.starts_with('{') || expected == found;
    expected.len() == found.len() && expected.iter().zip(&found).all(is_same)
}

/// The scopes of a member with all rights of the member, and of one who only reads.
const SCOPES: [&[&str]; 2] =
    [&["*"], &["dashboard:read", "project:read", "organization:read", "user:read"]];

#[tokio::test]
async fn members_are_offered_only_what_they_may() {
    for scopes in SCOPES {
        // What a member presses may end the membership.
        let workspace = Workspace::new().await;
        Objects::make(&workspace, "corp").await;
        let member = workspace.key("corp@corp.example", scopes).await;
        let mut member = Visitor::with_key(&workspace, member.key.as_deref().expect("a key")).await;
        press_everything(&mut member, &format!("a member with {scopes:?}")).await;
    }
}

/// Returns a form with something to send: a form of changes sends all its fields, places and texts are changed, and a name
/// that the form asks for is typed.
async fn filled(owner: &Visitor, path: &str, form: &FilledForm) -> FilledForm {
    let mut filled = form.clone().without("_before");
    if form.action.ends_with("/settings/delete/") {
        return filled.with("name", owner.get(path).await.between("Type <bdi>", "</bdi>"));
    }
    let adds_a_tag = form.values("action") == ["add_tag"];
    for (name, text) in &mut filled.fields {
        match name.as_str() {
            "tag" => if adds_a_tag { "new" } else { TAG }.clone_into(text),
            "name" if text.is_empty() => "x".clone_into(text),
            "tiles.0.text.body" => "x".clone_into(text),
            "w-1" => "5".clone_into(text),
            // Another level than that of the member.
            "level" if form.action.contains("/members/") => {
                if *text == "1" { "8" } else { "1" }.clone_into(text);
            }
            _ => {}
        }
    }
    if form.fields.iter().any(|(name, _)| name == "_before") {
        match filled.fields.iter_mut().find(|(name, _)| !name.starts_with('_')) {
            Some((_, text)) if text.is_empty() => "x".clone_into(text),
            Some(_) => {}
            None => filled = filled.with("access_control", "true"),
        }
    }
    filled
}

/// The tag of all dashboards.
const TAG: &str = "old";

#[tokio::test]
async fn what_is_not_offered_is_refused() {
    for (scopes, fewest) in SCOPES.into_iter().zip([20, 70]) {
        let workspace = Workspace::new().await;
        let objects = make_objects(&workspace).await;
        let dashboards = objects.fill("/api/projects/{project_id}/dashboards/");
        let found = workspace.owner.get(&dashboards).await.ok();
        for dashboard in found["results"].as_array().expect("dashboards") {
            let path = format!("{dashboards}{}/", dashboard["id"]);
            workspace.owner.patch(&path, json!({ "tags": [TAG] })).await.ok();
        }
        let owner = Visitor::with_link(&workspace, true).await;
        let all = crawl(&owner).await.buttons;
        let mut member = Visitor::with_scopes(&workspace, "corp@corp.example", scopes).await;
        let own = crawl(&member).await.buttons;
        let absent = all.iter().filter(|(name, _)| !own.contains_key(*name));
        let absent: Vec<_> = absent.collect();
        assert!(absent.len() >= fewest, "{scopes:?}: {} of {}", absent.len(), all.len());
        for (name, (path, form)) in absent {
            let form = filled(&owner, path, form).await;
            let answer = member.submit(&form).await;
            let is_refused = matches!(answer.status, 403 | 404);
            assert!(is_refused, "{scopes:?}: {name} of {path}: {} {form:?}", answer.status);
        }
    }
}
