//! Who may open a page: a row of the route table is covered as soon as the table declares it.

use steward::testing::http::PageSpec;

use crate::support::prelude::*;

pub fn path_of(page: &PageSpec, workspace: &Workspace) -> String {
    page.path
        .replace("{project_id}", &workspace.made.project_id.to_string())
        .replace("{organization_id}", &workspace.made.organization_id.to_string())
        .replace("{membership_id}", UNKNOWN)
        .replace("{id}", "1")
        .replace("{tile_id}", "1")
        .replace("{asset}", "console.css")
        .replace("{*rest}", "no/such/page")
}

#[tokio::test]
async fn every_page_requires_a_session_or_is_public() {
    let workspace = Workspace::new().await;
    let nobody = Visitor::new(&workspace);
    let key = format!("Bearer {}", workspace.made.api_key);
    let mut forged = nobody.clone();
    forged.cookie = Some("steward=AAAA.BBBB".to_owned());
    let table = routes();
    assert!(table.pages().len() > 10);
    for page in table.pages().iter().filter(|page| page.access != PageAccess::Public) {
        let path = path_of(page, &workspace);
        for (visitor, headers) in
            [(&nobody, vec![]), (&nobody, vec![("authorization", key.as_str())]), (&forged, vec![])]
        {
            if page.method == Method::GET {
                let answer = visitor.fetch(Method::GET, &path, &headers, "").await;
                let next: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
                let next =
                    if path == "/console/" { String::new() } else { format!("?next={next}") };
                assert_eq!(answer.location(), format!("/console/sign_in/{next}"));
            } else {
                let headers = [headers.as_slice(), &FORM].concat();
                let answer = visitor.fetch(page.method.clone(), &path, &headers, "").await;
                answer.assert_shows(401, "Your session has ended");
            }
        }
    }
}

#[tokio::test]
async fn operator_pages_refuse_other_sessions() {
    let workspace = Workspace::new().await;
    let sessions = [Visitor::owner(&workspace).await, Visitor::with_link(&workspace, false).await];
    let operator = Visitor::with_link(&workspace, true).await;
    let table = routes();
    let pages: Vec<_> =
        table.pages().iter().filter(|page| page.access == PageAccess::Operator).collect();
    assert!(!pages.is_empty());
    for page in pages {
        let path = path_of(page, &workspace);
        for session in &sessions {
            session.get(&path).await.assert_shows(403, "You do not have access");
        }
        assert_eq!(operator.get(&path).await.status, 200);
    }
}

#[tokio::test]
async fn console_can_be_switched_off() {
    let workspace = Workspace::configured(|config| config.console = Switch::Off).await;
    let nobody = Visitor::new(&workspace);
    for page in routes().pages() {
        let answer = nobody.fetch(page.method.clone(), &path_of(page, &workspace), &FORM, "").await;
        let body: Value = serde_json::from_str(&answer.html).expect("JSON");
        assert_eq!((answer.status, &body["detail"]), (404, &json!("API endpoint not found.")));
    }
}

#[tokio::test]
async fn foreign_host_names_are_refused_on_every_page() {
    let (workspace, visitor) = Visitor::in_new_workspace().await;
    for page in routes().pages() {
        let headers = [&[("host", "rebound.example")][..], &FORM].concat();
        let path = path_of(page, &workspace);
        let answer = visitor.fetch(page.method.clone(), &path, &headers, "").await;
        answer.assert_shows(421, "Unknown host name");
    }
}

#[tokio::test]
async fn forms_of_other_sites_change_nothing() {
    let (workspace, visitor) = Visitor::in_new_workspace().await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    for headers in [
        vec![form],
        vec![form, ("sec-fetch-site", "cross-site")],
        vec![form, ("sec-fetch-site", "same-site")],
        vec![form, ("sec-fetch-site", "none")],
        vec![form, ("origin", "null")],
        vec![form, ("origin", "http://localhost:9999")],
        vec![form, ("origin", "https://evil.example")],
    ] {
        for page in routes().pages().iter().filter(|page| page.method == Method::POST) {
            let path = path_of(page, &workspace);
            let answer = visitor.fetch(Method::POST, &path, &headers, "").await;
            answer.assert_shows(403, "You do not have access");
            assert!(!answer.headers.contains_key("set-cookie"));
        }
    }
    assert_eq!(visitor.get("/console/sessions/").await.status, 200, "the session lives");
}
