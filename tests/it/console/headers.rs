//! The headers of pages and files.

use crate::support::prelude::*;

use super::access::path_of;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types steward";

fn assert_headers(page: &Page) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.headers[name], value, "{name}");
    }
    let permissions = page.headers["permissions-policy"].to_str().expect("text");
    let allowed: Vec<_> =
        permissions.split(", ").filter(|feature| !feature.ends_with("=()")).collect();
    assert_eq!(allowed, ["clipboard-write=(self)"]);
}

#[tokio::test]
async fn every_page_has_the_security_headers() {
    let workspace = Workspace::new().await;
    let (nobody, owner) = (Visitor::new(&workspace), Visitor::owner(&workspace).await);
    let project = workspace.made.project_id;
    for (visitor, path) in [
        (&nobody, "/console/"),
        (&nobody, "/console/sign_in/"),
        (&nobody, "/console/enter/"),
        (&owner, "/console/sessions/"),
        (&owner, &*format!("/console/projects/{project}/dashboards/")),
        (&owner, "/console/health/"),
        (&owner, "/console/no/such/page"),
    ] {
        let page = visitor.get(path).await;
        assert_headers(&page);
        assert_eq!(page.headers["content-security-policy"], POLICY);
        page.assert_lacks(&[" style=", " onclick=", "<script>"]);
    }
    assert_headers(&nobody.fetch(Method::GET, "/console/", &[("host", "evil.example")], "").await);
}

#[tokio::test]
async fn other_methods_have_the_headers_of_pages_and_need_a_host_of_the_service() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let table = routes();
    for row in table.pages() {
        let path = path_of(row, &workspace);
        let of_path = table.pages().iter().filter(|other| other.path == row.path);
        let mut allowed: Vec<_> = of_path.map(|row| row.method.as_str()).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        allowed.push("OPTIONS");
        for method in [Method::OPTIONS, Method::POST, Method::PUT, Method::DELETE] {
            if method != Method::OPTIONS && allowed.contains(&method.as_str()) {
                continue;
            }
            let page = owner.fetch(method.clone(), &path, &[], "").await;
            assert_headers(&page);
            assert_eq!(page.headers["content-security-policy"], POLICY);
            assert_eq!(page.headers["allow"], allowed.join(", "), "{path}");
            if method == Method::OPTIONS {
                assert_eq!(page.status, 204, "{path}");
            } else {
                page.assert_shows(405, "The request is not valid");
            }
            let page = owner.fetch(method, &path, &[("host", "rebound.example")], "").await;
            page.assert_shows(421, "Unknown host name");
            assert_headers(&page);
        }
    }
}

#[tokio::test]
async fn positions_of_tiles_are_the_only_inline_style() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let made = workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    let path =
        format!("/console/projects/{}/dashboards/{}/", workspace.made.project_id, made["id"]);
    let page = owner.get(&path).await;
    assert_headers(&page);
    let policy = page.headers["content-security-policy"].to_str().expect("text");
    let hash = policy.split("style-src 'self' 'sha256-").nth(1).expect("a hash");
    let (hash, rest) = hash.split_once('\'').expect("its end");
    assert_eq!(hash.len(), 44);
    assert_eq!(format!("default-src 'none'; script-src 'self'; style-src 'self'{rest}"), POLICY);
    assert_eq!(page.between("<style>", "</style>"), "@media (min-width:56.01rem){}");
}

#[tokio::test]
async fn files_are_immutable_only_under_their_version() {
    let workspace = Workspace::new().await;
    let nobody = Visitor::new(&workspace);
    let page = nobody.get("/console/sign_in/").await;
    let urls: Vec<_> =
        page.html.split('"').filter(|text| text.starts_with("/console/assets/")).collect();
    let icon = urls.iter().find(|url| url.contains("icons.svg")).expect("icons");
    let icon = icon.split('#').next().expect("the file");
    for (url, media) in urls[..3].iter().copied().chain([icon]).zip([
        "text/css; charset=utf-8",
        "text/javascript; charset=utf-8",
        "text/javascript; charset=utf-8",
        "image/svg+xml",
    ]) {
        let file = nobody.get(url).await;
        assert_eq!((file.status, &file.headers["content-type"]), (200, &media.parse().unwrap()));
        assert_eq!(file.headers["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
        assert_eq!(file.headers["cross-origin-resource-policy"], "same-origin");
        let policy = "default-src 'none'; frame-ancestors 'none'";
        assert_eq!(file.headers["content-security-policy"], policy);
        for unversioned in [url.split('?').next().expect("a path").to_owned(), format!("{url}0")] {
            assert_eq!(nobody.get(&unversioned).await.headers["cache-control"], "no-cache");
        }
    }
    nobody.get("/console/assets/mod.rs").await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn origins_that_may_call_the_api_may_not_read_the_console() {
    let mut config = Config::default();
    config.cors_origins = vec!["https://app.example".to_owned()];
    let workspace = Workspace::with(config).await;
    let owner = Visitor::owner(&workspace).await;
    let origin = [("origin", "https://app.example")];
    for path in ["/console/sessions/", "/console/sign_in/"] {
        let page = owner.fetch(Method::GET, path, &origin, "").await;
        assert_eq!(page.headers.get("access-control-allow-origin"), None, "{path}");
        assert_headers(&page);
    }
    let preflight = [origin[0], ("access-control-request-method", "POST")];
    for path in ["/console/sign_in/", "/console/", "/console"] {
        let page = owner.fetch(Method::OPTIONS, path, &preflight, "").await;
        assert_eq!(page.headers.get("access-control-allow-origin"), None, "{path}");
        assert_headers(&page);
    }
    let api = owner.fetch(Method::GET, "/api/schema/", &origin, "").await;
    assert_eq!(api.headers["access-control-allow-origin"], "https://app.example");
}
