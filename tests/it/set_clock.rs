//! A clock that stood ahead and was set back: what was made meanwhile has an end that is years away, and is not valid until
//! then.

use crate::support::prelude::*;

const INVITES: &str = "/api/organizations/@current/invites/";

/// What is valid for a while only.
struct Made {
    link: String,
    session: SignedIn,
    rolled: Value,
    /// Keys with an end: of a command, and of the API.
    ending: [TestClient; 2],
    invite: String,
    replaced_token: String,
}

impl Made {
    async fn now(workspace: &Workspace) -> Self {
        let owner = &workspace.owner;
        let user = workspace.made.user_id;
        let link = workspace.app.create_sign_in_link(user, false).await.expect("a link").code;
        let rolled = make_key(owner, json!({ "label": "rolled", "scopes": ["*"] })).await;
        owner.post(&at(&rolled, "roll/"), json!({ "grace_seconds": 3600 })).await.ok();
        let by_command = workspace.limited_key(OWNER, &["*"], json!({ "expires_in": 3600 })).await;
        let end = workspace.app.now().plus(Duration::from_hours(1));
        let by_api = json!({ "label": "ending", "scopes": ["*"], "expires_at": end });
        let by_api = holder(workspace, &make_key(owner, by_api).await);
        let invite = json!({ "target_email": "ann@x.example" });
        let invite = owner.post(INVITES, invite).await.ok();
        let board = owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
        let sharing = workspace.dashboards(&format!("{}/sharing/", board["id"]));
        let shared = owner.patch(&sharing, json!({ "enabled": true })).await.ok();
        owner.post(&format!("{sharing}refresh/"), json!({})).await.ok();
        Self {
            link,
            session: sign_in_by_link(workspace).await,
            rolled,
            ending: [by_command, by_api],
            invite: invite["id"].as_str().expect("an id").to_owned(),
            replaced_token: shared["access_token"].as_str().expect("a token").to_owned(),
        }
    }

    /// Returns for each thing whether it is valid.
    async fn valid(&self, workspace: &Workspace) -> [(&'static str, bool); 7] {
        let invites = workspace.owner.get(INVITES).await.ok();
        let invites = invites["results"].as_array().expect("a list").clone();
        let invite = invites.iter().find(|one| one["id"] == self.invite).expect("the invite");
        let page = format!("/shared/{}.json", self.replaced_token);
        [
            ("link", workspace.app.find_sign_in_link(&self.link).is_ok()),
            ("session", self.session.client.get(ME).await.status == 200),
            ("rolled key", holder(workspace, &self.rolled).get(ME).await.status == 200),
            ("key of a command", self.ending[0].get(ME).await.status == 200),
            ("key of the API", self.ending[1].get(ME).await.status == 200),
            ("invite", invite["is_expired"] == false),
            ("public page", workspace.anonymous().get(&page).await.status == 200),
        ]
    }
}

#[tokio::test]
async fn what_was_made_while_the_clock_stood_ahead_is_not_valid_for_years() {
    let (workspace, clock) = Workspace::timed().await;
    let right = workspace.app.now();
    for (ahead, is_valid) in
        [(Duration::from_mins(30), true), (Duration::from_hours(4 * 365 * 24), false)]
    {
        clock.set(right.plus(ahead));
        let made = Made::now(&workspace).await;
        for (what, valid) in made.valid(&workspace).await {
            assert!(valid, "{what} is valid at once");
        }
        clock.set(right);
        for (what, valid) in made.valid(&workspace).await {
            assert_eq!(valid, is_valid, "{what} of a clock that was {ahead:?} ahead");
        }
        workspace.owner.delete(&format!("{INVITES}{}/", made.invite)).await.assert_empty(204);
    }
    assert!(workspace.app.sign_in_with_link("", browser(), None).await.is_err());
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn after_the_clock_was_set_back_no_response_is_repeated_and_keys_end_and_are_recorded() {
    let (workspace, clock) = Workspace::timed().await;
    let right = workspace.app.now();
    let create = async || {
        let (path, body) = (workspace.dashboards(""), json!({ "name": "A" }));
        post_once(&workspace.owner, &path, "once", &body).await.ok()["id"].clone()
    };
    clock.set(right.plus(Duration::from_hours(24 * 365)));
    let first = create().await;
    assert_eq!(create().await, first);
    clock.set(right);
    assert_ne!(create().await, first);
    clock.set(right.plus(Duration::from_hours(24 * 365)));
    let key = make_key(&workspace.owner, json!({ "label": "endless", "scopes": ["*"] })).await;
    clock.set(right);
    let old = holder(&workspace, &key);
    assert_eq!(old.get(ME).await.status, 200);
    workspace.owner.post(&at(&key, "roll/"), json!({ "grace_seconds": 60 })).await.ok();
    assert_eq!(old.get(ME).await.status, 200);
    clock.advance(Duration::from_mins(1));
    assert_eq!(old.get(ME).await.status, 401);
    let key = make_key(&workspace.owner, json!({ "label": "used", "scopes": ["*"] })).await;
    clock.set(right.plus(Duration::from_hours(24 * 365)));
    assert_eq!(holder(&workspace, &key).get(ME).await.status, 200);
    clock.set(right);
    let shown = async || workspace.owner.get(&at(&key, "")).await.ok()["last_used_at"].clone();
    loop {
        assert_eq!(holder(&workspace, &key).get(ME).await.status, 200);
        if shown().await == json!(right) {
            break;
        }
        tokio::task::yield_now().await;
    }
}
