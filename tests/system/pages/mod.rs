//! Pages in a real browser.

mod docs;
mod shared;
mod signup;

use crate::prelude::*;
use crate::support::sharing::is_unlisted;

#[tokio::test]
async fn page_policy_allows_only_its_own_style_and_script() {
    let workspace = Workspace::new().await;
    let board = Board::make(&workspace, json!({})).await;
    let shared = format!("/shared/{}/", board.enable(&workspace.owner, true).await);
    let hash = Regex::new("sha256-[A-Za-z0-9+/]{43}=").expect("a pattern");
    let script = "script-src '#'; connect-src 'self'; ";
    for (path, status, script) in [
        (shared.as_str(), 200, ""),
        ("/shared/%3Cscript%3E", 404, ""),
        ("/signup/01890000-0000-7000-8000-000000000000?token=x", 200, script),
        ("/signup/%3Cscript%3E/", 200, script),
    ] {
        let page = workspace.anonymous().get(path).await;
        assert_eq!(page.status, status);
        is_unlisted(&page);
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(page.headers["x-frame-options"], "DENY");
        let policy = page.headers["content-security-policy"].to_str().expect("text");
        let expected = format!(
            "default-src 'none'; style-src '#'; {script}base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        assert_eq!(hash.replace_all(policy, "#"), expected);
        let text = String::from_utf8(page.bytes).expect("text");
        for foreign in ["http:", "https:", "url(", "@import", "@font-face"] {
            assert!(!text.contains(foreign), "{path}: {foreign}");
        }
        assert_eq!(text.contains("<script"), !script.is_empty(), "{path}");
    }
}
