//! Tests of sign-in links: they work once, for minutes, and for one user.

use steward::testing::error::Error;
use steward::testing::resources::sessions::SignInLink;

use crate::support::prelude::*;

#[track_caller]
fn assert_invalid(refused: Option<Error>) {
    let refused = refused.expect("an error");
    assert_eq!((refused.status(), refused.code()), (401, "authentication_failed"));
    assert_eq!(refused.detail(), "The sign-in link is invalid, has expired or was used.");
}

/// Asserts that the code neither shows its user nor signs in.
async fn assert_unusable(workspace: &Workspace, code: &str) {
    assert_invalid(workspace.app.find_sign_in_link(code).err());
    assert_invalid(workspace.app.sign_in_with_link(code, browser(), None).await.err());
}

async fn new_code(workspace: &Workspace) -> String {
    workspace.app.create_sign_in_link(workspace.made.user_id, false).await.expect("a link").code
}

fn stored(workspace: &Workspace) -> usize {
    workspace.records::<SignInLink>(&()).len()
}

#[tokio::test]
async fn sign_in_link_shows_its_user_and_signs_in_once() {
    let workspace = Workspace::new().await;
    let code = new_code(&workspace).await;
    assert_eq!(code.len(), 44);
    for _ in 0..2 {
        let user = workspace.app.find_sign_in_link(&code).expect("a user");
        assert_eq!((user.email.as_str(), user.first_name.as_str()), (OWNER, "Olga"));
    }
    let text = workspace.app.sign_in_with_link(&code, browser(), None).await.expect("a session");
    assert_eq!(SignedIn::of(&workspace, text.encode()).client.get(ME).await.ok()["email"], OWNER);
    assert_unusable(&workspace, &code).await;
    assert_unusable(&workspace, "").await;
    assert_unusable(&workspace, "A".repeat(44).as_str()).await;
    assert_eq!(stored(&workspace), 0);
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uses_of_a_sign_in_link_create_one_session() {
    let workspace = Workspace::new().await;
    let code = new_code(&workspace).await;
    let uses = (0..8).map(|_| {
        let (app, code) = (workspace.app.clone(), code.clone());
        tokio::spawn(async move { app.sign_in_with_link(&code, browser(), None).await.is_ok() })
    });
    let done = join_all(uses).await;
    assert_eq!(done.into_iter().filter(|used| *used.as_ref().expect("no panic")).count(), 1);
    assert_eq!(super::listed(&workspace.owner).await.len(), 1);
}

#[tokio::test]
async fn sign_in_link_expires_after_five_minutes() {
    let (workspace, clock) = Workspace::timed().await;
    let code = new_code(&workspace).await;
    clock.advance(Duration::from_secs(299));
    assert!(workspace.app.find_sign_in_link(&code).is_ok());
    clock.advance(Duration::from_secs(1));
    assert_unusable(&workspace, &code).await;
}

#[tokio::test]
async fn sixth_sign_in_link_of_a_user_replaces_the_first() {
    let (workspace, clock) = Workspace::timed().await;
    let mut codes = Vec::new();
    for _ in 0..6 {
        clock.advance(Duration::from_secs(1));
        codes.push(new_code(&workspace).await);
    }
    assert_unusable(&workspace, &codes[0]).await;
    for code in &codes[1..] {
        assert!(workspace.app.find_sign_in_link(code).is_ok());
    }
    assert_eq!(stored(&workspace), 5);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn sign_in_links_of_a_deactivated_user_are_deleted() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let id = serde_json::from_value(ann.get(ME).await.ok()["id"].clone()).expect("an id");
    let code = workspace.app.create_sign_in_link(id, false).await.expect("a link").code;
    workspace.set_active(ANN, false).await;
    assert_unusable(&workspace, &code).await;
    assert_eq!(stored(&workspace), 0);
    let refused = workspace.app.create_sign_in_link(id, false).await.err().expect("an error");
    assert_eq!((refused.status(), refused.detail()), (400, "The user is deactivated."));
}

#[tokio::test]
async fn only_sessions_of_operator_links_are_operator_sessions() {
    let workspace = Workspace::new().await;
    let user = workspace.made.user_id;
    for is_operator in [true, false] {
        let link = workspace.app.create_sign_in_link(user, is_operator).await.expect("a link");
        let text =
            workspace.app.sign_in_with_link(&link.code, browser(), None).await.expect("a session");
        let session = workspace.app.verify_session(&text.encode()).expect("a session");
        assert_eq!(session.is_operator, is_operator);
    }
    let session = sign_in(&workspace, &workspace.made.api_key).await;
    assert!(!workspace.app.verify_session(&session.text).expect("a session").is_operator);
}

/// Creates a link as `steward console` does.
async fn console_link(
    workspace: &Workspace,
    email: Option<&str>,
    existing: bool,
) -> Result<Value, Error> {
    let email = email.map(str::to_owned);
    let operation = Operation::ConsoleLink { email, is_operator: true, existing };
    perform(&workspace.app, operation, Progress::silent()).await
}

#[tokio::test]
async fn console_command_creates_a_link_for_the_only_active_user_or_the_named_one() {
    let (workspace, _) = Workspace::timed().await;
    let made = console_link(&workspace, None, false).await.expect("a link");
    let url = made["url"].as_str().expect("a link").to_owned();
    let code = url.strip_prefix("http://steward.localhost:8000/console/enter/#").expect("a code");
    let expected = json!({
        "url": url, "email": OWNER, "operator": true, "expires_at": "2023-11-14T22:18:20Z",
    });
    assert_eq!(made, expected);
    let text = workspace.app.sign_in_with_link(code, browser(), None).await.expect("a session");
    assert!(workspace.app.verify_session(&text.encode()).expect("a session").is_operator);

    workspace.member("ann", Level::Member).await;
    let refused = console_link(&workspace, None, false).await.expect_err("two users");
    assert_eq!((refused.status(), refused.attr()), (400, Some("email")));
    let text = "there is more than one active user; pass EMAIL, the address of the user to sign in";
    assert_eq!(refused.detail(), text);
    let made = console_link(&workspace, Some("ANN@corp.example"), false).await.expect("a link");
    assert_eq!(made["email"], ANN);
    let refused = console_link(&workspace, Some("bob@x.example"), false).await.expect_err("nobody");
    assert_eq!((refused.status(), refused.detail()), (404, "There is no user bob@x.example."));

    for email in [ANN, OWNER] {
        workspace.set_active(email, false).await;
        let refused = console_link(&workspace, Some(ANN), false).await;
        assert_eq!(refused.expect_err("deactivated").detail(), "The user is deactivated.");
        if let Ok(made) = console_link(&workspace, None, false).await {
            assert_eq!(made["email"], OWNER, "the only active user");
        }
    }
    let refused = console_link(&workspace, None, false).await.expect_err("nobody");
    assert_eq!((refused.status(), refused.detail()), (404, "There is no active user."));
}

#[tokio::test]
async fn console_command_refuses_an_unverified_account_of_a_link_unless_it_is_named_so() {
    let workspace = Workspace::new().await;
    let offer = offer(&workspace, "ann@x.example", 1).await;
    let joined = offer.accept(&workspace.anonymous(), json!({ "first_name": "Ann" })).await;
    assert_eq!(joined.status, 201);
    let refused =
        console_link(&workspace, Some("ann@x.example"), false).await.expect_err("refused");
    assert_eq!((refused.status(), refused.code()), (400, "unverified"));
    let made = console_link(&workspace, Some("ann@x.example"), true).await.expect("a link");
    assert_eq!(made["email"], "ann@x.example");
}

#[tokio::test]
async fn console_command_fails_if_the_console_is_off() {
    let workspace = Workspace::configured(|config| config.console = Switch::Off).await;
    let refused = console_link(&workspace, None, false).await.expect_err("no console");
    let text = "the console is off; start the server with --console on";
    assert_eq!((refused.code(), refused.detail()), ("console_off", text));
    assert_eq!(stored(&workspace), 0);
}

#[tokio::test]
async fn rotation_of_the_secrets_ends_sessions_and_sign_in_links() {
    let workspace = Workspace::new().await;
    let (code, session) = (new_code(&workspace).await, sign_in_by_link(&workspace).await);
    workspace.run_operation(Operation::SecretsRotate).await;
    assert_ended(&session.client.get(ME).await);
    assert!(workspace.app.verify_session(&session.text).is_err());
    assert_unusable(&workspace, &code).await;
    assert_eq!(stored(&workspace), 0);
    assert_eq!(workspace.owner.get(ME).await.status, 200);
    assert_eq!(sign_in_by_link(&workspace).await.client.get(ME).await.status, 200);
    workspace.assert_file_valid().await;
}
