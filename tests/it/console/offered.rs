//! What pages offer: every link leads somewhere, and no control is refused.
//!
//! The test reads pages as a crawler does, from the start page on, and presses every button it finds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex::Regex;

use crate::support::Workspace;
use crate::support::console::{FilledForm, Visitor};
use crate::support::objects::Objects;

/// The pages of one shape that are read: the same page with other ids or filters shows nothing new.
const PAGES_OF_A_SHAPE: usize = 2;

/// The pages and forms that a browser finds.
#[derive(Default)]
struct Found {
    /// The shapes of the pages that were read, each with an example.
    pages: BTreeMap<String, String>,
    /// The forms by the shape of their action, with the page that has them.
    forms: BTreeMap<String, (String, FilledForm)>,
}

/// Returns a path with its ids and values replaced.
fn shape(path: &str) -> String {
    let ids =
        Regex::new(r"/(?:[0-9]+|[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_]{22,})/").expect("a pattern");
    let values = Regex::new(r"=[^&]*").expect("a pattern");
    values.replace_all(&ids.replace_all(&ids.replace_all(path, "/:id/"), "/:id/"), "=").into_owned()
}

async fn crawl(visitor: &Visitor) -> Found {
    let (mut found, mut seen) = (Found::default(), BTreeMap::<String, BTreeSet<String>>::new());
    let mut waiting = VecDeque::from(["/console/".to_owned()]);
    while let Some(path) = waiting.pop_front() {
        let read = seen.entry(shape(&path)).or_default();
        if read.len() >= PAGES_OF_A_SHAPE || !read.insert(path.clone()) {
            continue;
        }
        let page = visitor.get(&path).await;
        if page.status == 303 {
            waiting.push_back(page.location().to_owned());
            continue;
        }
        assert_eq!(page.status, 200, "{path}: {}", page.html);
        found.pages.entry(shape(&path)).or_insert_with(|| path.clone());
        let links = page.links().into_iter().filter(|link| link.starts_with("/console/"));
        waiting.extend(links.filter(|link| !link.starts_with("/console/assets/")));
        for form in page.forms() {
            found.forms.entry(shape(&form.action)).or_insert_with(|| (path.clone(), form));
        }
    }
    found
}

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
    let is_key = action.starts_with("/console/keys/");
    action == "/console/sign_out/" || is_key && is_destructive(action)
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
    Objects::make(&workspace, "corp").await;
    let mut owner = Visitor::with_link(&workspace, true).await;
    let found = press_everything(&mut owner, "owner").await;
    assert!(found.pages.len() > 8 && found.forms.len() > 2, "{:?}", found.pages);
}

#[tokio::test]
async fn members_are_offered_only_what_they_may() {
    let workspace = Workspace::new().await;
    Objects::make(&workspace, "corp").await;
    let read = ["dashboard:read", "project:read", "organization:read", "user:read"];
    for scopes in [&["*"][..], &read] {
        let member = workspace.key("corp@corp.example", scopes).await;
        let key = member.key.as_deref().expect("a key");
        let mut member = Visitor::with_key(&workspace, key).await;
        press_everything(&mut member, &format!("a member with {scopes:?}")).await;
    }
}
