//! Tests of `GET /api/organizations/:organization_id/invites/:id/mail/`, with a mail server.

use steward::testing::resources::invites::InviteMail;

use crate::support::prelude::*;
use crate::support::smtp::Setup;

const START: &str = "2023-11-14T22:13:20Z";
const UNREACHABLE: &str = "The connection to the mail server failed.";

/// A workspace with a mail server and a manual clock.
struct Scene {
    server: MailServer,
    workspace: Workspace,
    clock: ManualClock,
}

impl Scene {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(configure: impl FnOnce(&mut Config)) -> Self {
        let server = MailServer::start();
        let (config, clock) = with_clock();
        let mut config = with_server(config, &server);
        configure(&mut config);
        Self { server, workspace: Workspace::with(config).await, clock }
    }

    /// Creates an invite with its mail, and returns its path.
    async fn invite(&self, to: &str) -> String {
        path(&self.workspace, &self.made(json!({ "target_email": to })).await)
    }

    async fn made(&self, sent: Value) -> Value {
        invite(&self.workspace.owner, &self.workspace, sent).await
    }

    async fn state(&self, path: &str) -> Value {
        self.workspace.owner.get(&format!("{path}mail/")).await.ok()
    }

    /// Returns the stored states.
    fn stored(&self) -> Vec<InviteMail> {
        self.workspace.records(&())
    }

    /// Waits until one mail of the workspace has this many attempts, and the last one has this outcome.
    async fn tried(&self, attempts: u32, is_sent: bool) {
        let done =
            |mail: &InviteMail| mail.attempts == attempts && mail.sent_at.is_some() == is_sent;
        let what = format!("attempt {attempts}");
        eventually(&what, || self.stored().iter().any(done).then_some(())).await;
    }
}

fn path(workspace: &Workspace, made: &Value) -> String {
    invites(workspace, &format!("{}/", made["id"].as_str().expect("an id")))
}

/// Returns the state of a mail that was queued at the start.
fn mail(state: &str, attempts: u32) -> Value {
    json!({
        "state": state, "queued_at": START, "sent_at": null, "attempts": attempts,
        "next_attempt_at": null, "last_error": null,
    })
}

fn queued(attempts: u32, next: &str, error: &str) -> Value {
    with(mail("queued", attempts), json!({ "next_attempt_at": next, "last_error": error }))
}

fn sent(attempts: u32, at: &str) -> Value {
    with(mail("sent", attempts), json!({ "sent_at": at }))
}

fn failed(attempts: u32, error: &str) -> Value {
    with(mail("failed", attempts), json!({ "last_error": error }))
}

fn without_mail(state: &str) -> Value {
    with(mail(state, 0), json!({ "queued_at": null }))
}

#[tokio::test]
async fn invite_without_a_mail_has_the_state_none() {
    let scene = Scene::new().await;
    let made = scene.made(json!({ "target_email": "ann@x.example", "send_email": false })).await;
    assert_eq!(scene.state(&path(&scene.workspace, &made)).await, without_mail("none"));
    let plain = Workspace::new().await;
    let made = invite(&plain.owner, &plain, json!({ "target_email": "ann@x.example" })).await;
    let state = plain.owner.get(&format!("{}mail/", path(&plain, &made))).await;
    state.assert_is(200, without_mail("none"));
    assert!(!state.headers.contains_key("etag"), "{:?}", state.headers);
}

#[tokio::test]
async fn invite_mail_is_sending_then_sent_and_leaves_the_invite_unchanged() {
    let mut scene = Scene::new().await;
    let list = invites(&scene.workspace, "");
    let log = scene.workspace.organization("activity_log/");
    scene.server.next([ServerBehavior::Hold]);
    let one = scene.invite("ann@x.example").await;
    scene.server.mail().await;
    let (before, logged) =
        (scene.workspace.owner.get(&list).await.ok(), scene.workspace.owner.get(&log).await.ok());
    scene.clock.advance(Duration::from_secs(10));
    assert_eq!(scene.state(&one).await, mail("sending", 0));
    scene.server.release();
    scene.tried(1, true).await;
    assert_eq!(scene.state(&one).await, sent(1, "2023-11-14T22:13:30Z"));
    assert_eq!(scene.workspace.owner.get(&list).await.ok(), before);
    assert_eq!(scene.workspace.owner.get(&log).await.ok(), logged);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn failed_attempts_show_the_next_one_and_the_reply_without_addresses() {
    let mut scene = Scene::new().await;
    scene.server.next([
        ServerBehavior::RefuseSender,
        ServerBehavior::CutBeforeReply,
        ServerBehavior::Later,
    ]);
    let one = scene.invite("ann@x.example").await;
    scene.tried(1, false).await;
    let refused = queued(1, "2023-11-14T22:13:25Z", "550 5.7.1 <[address]> may not send");
    assert_eq!(scene.state(&one).await, refused);
    scene.clock.advance(Duration::from_secs(5));
    scene.server.mail().await;
    scene.tried(2, false).await;
    assert_eq!(scene.state(&one).await, queued(2, "2023-11-14T22:13:35Z", UNREACHABLE));
    // The second mail may have arrived, so the third waits for the limit of the mailbox.
    scene.clock.advance(Duration::from_mins(1));
    scene.server.mail().await;
    scene.tried(3, false).await;
    let later = queued(3, "2023-11-14T22:14:45Z", "451 4.3.0 come back later");
    assert_eq!(scene.state(&one).await, later);
    scene.clock.advance(Duration::from_mins(1));
    scene.server.mail().await;
    scene.tried(4, true).await;
    assert_eq!(scene.state(&one).await, sent(4, "2023-11-14T22:15:25Z"));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn replies_about_the_operators_account_are_not_shown() {
    let server = MailServer::with(Setup { user: Some(("ann", "hunter2")), ..Setup::default() });
    let (mut config, clock) = with_clock();
    config.mail.smtp_url =
        Some(format!("smtp://steward:wrong@{}", server.address).parse().expect("a URL"));
    config.mail.smtp_from = Some("steward@corp.example".to_owned());
    let scene = Scene { server, workspace: Workspace::with(config).await, clock };
    let one = scene.invite("ann@x.example").await;
    scene.tried(1, false).await;
    assert_eq!(scene.state(&one).await, queued(1, "2023-11-14T22:13:25Z", UNREACHABLE));
}

#[tokio::test]
async fn silent_mail_server_is_shown_in_words() {
    let scene = Scene::with(|config| config.mail.smtp_timeout = Duration::from_millis(150)).await;
    scene.server.next([ServerBehavior::Silent]);
    let one = scene.invite("ann@x.example").await;
    scene.tried(1, false).await;
    let late = queued(1, "2023-11-14T22:13:25Z", "The mail server did not reply in time.");
    assert_eq!(scene.state(&one).await, late);
}

#[tokio::test]
async fn mail_that_was_refused_for_three_days_has_failed_with_the_last_reply() {
    let scene = Scene::with(|config| config.invite_ttl = Duration::from_hours(200)).await;
    scene.server.refuse("ann@x.example");
    let one = scene.invite("ann@x.example").await;
    scene.tried(1, false).await;
    scene.clock.advance(Duration::from_hours(73));
    let waits = || {
        scene.workspace.app.store().snapshot().ok().and_then(|tx| {
            steward::testing::mail::queued_count(&tx).ok().filter(|count| *count == 0)
        })
    };
    eventually("the mail is given up", waits).await;
    assert_eq!(scene.state(&one).await, failed(1, "550 5.1.1 <[address]> is unknown"));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn mail_of_an_invite_that_expired_before_the_first_attempt_has_failed() {
    let mut scene = Scene::with(|config| config.invite_ttl = Duration::from_mins(1)).await;
    scene.server.next([ServerBehavior::Hold]);
    scene.invite("first@x.example").await;
    scene.server.mail().await;
    let late = scene.invite("late@x.example").await;
    let waiting = with(mail("queued", 0), json!({ "next_attempt_at": START }));
    assert_eq!(scene.state(&late).await, waiting);
    scene.clock.advance(Duration::from_mins(2));
    scene.server.release();
    // After a slow mail, the next one of the organization waits.
    eventually("both mails are finished", || {
        scene.clock.advance(Duration::from_secs(1));
        (scene.stored().len() == 2).then_some(())
    })
    .await;
    assert_eq!(scene.state(&late).await, failed(0, "The mail became obsolete before it was sent."));
    scene.server.has_no_more();
}

#[tokio::test]
async fn state_of_a_mail_is_deleted_with_its_invite() {
    let mut scene = Scene::new().await;
    let deleted = scene.invite("ann@x.example").await;
    scene.server.mail().await;
    scene.tried(1, true).await;
    scene.workspace.owner.delete(&deleted).await.assert_empty(204);
    assert_eq!(scene.stored(), []);
    scene.workspace.owner.get(&format!("{deleted}mail/")).await.assert_not_found("Not found.");

    let replaced = scene.invite("bob@x.example").await;
    scene.server.mail().await;
    scene.tried(1, true).await;
    let made = scene.made(json!({ "target_email": "bob@x.example", "send_email": false })).await;
    assert_eq!(scene.stored(), []);
    scene.workspace.owner.get(&format!("{replaced}mail/")).await.assert_not_found("Not found.");
    let fields = json!({ "first_name": "Bob" });
    Offer::of(&made).accept(&scene.workspace.anonymous(), fields).await.ok();

    // The mail about Bob goes to the owner.
    scene.server.mail().await;
    scene.invite("cat@x.example").await;
    scene.server.mail().await;
    scene.tried(1, true).await;
    scene.workspace.owner.delete(&scene.workspace.organization("")).await.assert_empty(204);
    eventually("the organization is deleted", || scene.stored().is_empty().then_some(())).await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn mail_without_a_stored_state_is_unknown_and_without_a_mail_server_has_no_next_attempt() {
    let mut scene = Scene::new().await;
    let one = scene.invite("ann@x.example").await;
    scene.server.mail().await;
    scene.tried(1, true).await;
    let key = scene.stored().first().map(|mail| (mail.organization, mail.invite)).expect("a state");
    let store = scene.workspace.app.store();
    // As after an import of the organization whose mail waited.
    scene.workspace.write(move |tx| tx.remove::<InviteMail>(&key).map(drop)).await;
    assert_eq!(scene.state(&one).await, without_mail("unknown"));

    scene.server.refuse("bob@x.example");
    let refused = scene.invite("bob@x.example").await;
    scene.tried(1, false).await;
    let mut state = queued(1, "2023-11-14T22:13:25Z", "550 5.1.1 <[address]> is unknown");
    assert_eq!(scene.state(&refused).await, state);
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("copy.redb");
    let registry = steward::testing::resources::record_registry();
    store.backup(copy.clone(), registry, Progress::silent()).await.expect("a backup");
    let app =
        App::new(Store::open(&copy, 1 << 20).expect("a file"), Config::default()).expect("an app");
    let owner = TestClient::of(router(app.clone()), &scene.workspace.made.api_key);
    state["next_attempt_at"] = Value::Null;
    owner.get(&format!("{refused}mail/")).await.assert_is(200, state);
    app.close().await;
}

#[tokio::test]
async fn members_read_the_state_of_a_mail_and_others_do_not() {
    let mut scene = Scene::new().await;
    let one = format!("{}mail/", scene.invite("ann@x.example").await);
    scene.server.mail().await;
    scene.tried(1, true).await;
    let workspace = &scene.workspace;
    let expected = workspace.owner.get(&one).await.ok();
    workspace.member("mia", Level::Member).await;
    let reader = workspace.key("mia@corp.example", &["organization_member:read"]).await;
    reader.get(&one).await.assert_is(200, expected);
    let (eve, own) = workspace.outsider("eve").await;
    eve.get(&one).await.assert_denied(NOT_ALLOWED);
    for id in [one.split('/').nth(5).expect("an id"), "nobody", &Uuid::max().to_string()] {
        let under_own = in_organization(&own, &format!("invites/{id}/mail/"));
        eve.get(&under_own).await.assert_not_found("Not found.");
    }
}

#[tokio::test]
async fn states_of_all_mails_are_listed_in_the_order_of_the_invites() {
    let mut scene = Scene::new().await;
    scene.invite("ann@x.example").await;
    scene.server.mail().await;
    scene.tried(1, true).await;
    scene.made(json!({ "target_email": "ben@x.example", "send_email": false })).await;
    let workspace = &scene.workspace;
    let list = workspace.owner.get(&invites(workspace, "")).await.ok();
    let mails = invites(workspace, "mail/");
    let answer = workspace.owner.get(&mails).await;
    assert!(!answer.headers.contains_key("etag"), "{:?}", answer.headers);
    let listed = answer.ok();
    let mut expected = Vec::new();
    for invite in list["results"].as_array().expect("a list") {
        let mut state = scene.state(&path(workspace, invite)).await;
        state["invite"] = invite["id"].clone();
        expected.push(state);
    }
    assert_eq!(expected.iter().map(|mail| &mail["state"]).collect::<Vec<_>>(), ["none", "sent"]);
    let whole = json!({ "count": 2, "next": null, "previous": null, "results": expected });
    assert_eq!(listed, whole);
    let second = workspace.owner.get(&format!("{mails}?limit=1&offset=1")).await.ok();
    assert_eq!((&second["count"], &second["results"]), (&json!(2), &json!([expected[1]])));

    workspace.member("mia", Level::Member).await.get(&mails).await.assert_is(200, whole);
    let (eve, own) = workspace.outsider("eve").await;
    assert_eq!(eve.get(&in_organization(&own, "invites/mail/")).await.ok()["count"], 0);
}
