//! Tests that a value never gives more access than the key had that created it, whatever the value's key gets later.

use crate::api_keys::limits::World;
use crate::support::prelude::*;

const PLACES: &str = "scoped_organizations, scoped_teams";

/// Asserts that an update failed because it gives more than the key had that created a value.
#[track_caller]
fn held_less(answer: &TestResponse, fields: &str) {
    let text = "A value of this API key was created by a key with less access";
    answer.assert_denied(&format!("{text}: {fields}. Roll the key without a grace period first."));
}

async fn dashboards(by: &TestClient, project: &Value) -> u16 {
    by.get(&format!("/api/projects/{project}/dashboards/")).await.status
}

#[tokio::test]
async fn weaker_key_gains_nothing_by_rotating_a_key_that_is_later_widened() {
    let world = World::new().await;
    let ((_, [web, shop]), (two, _)) = (&world.one, &world.two);
    let owner = &world.workspace.owner;
    let sent = json!({
        "label": "broken", "scopes": ["dashboard:read"], "scoped_teams": [web],
        "scoped_organizations": [two],
    });
    let key = make_key(owner, sent).await;
    let weak = world.key(&["*"], json!({"projects": [shop]})).await;
    let rolled = holder(&world.workspace, &roll(&weak, &key, 86_400).await);
    let mend = json!({"scoped_organizations": []});
    held_less(&owner.patch(&at(&key, ""), mend.clone()).await, PLACES);
    assert_eq!(dashboards(&rolled, web).await, 403);
    // Rolling the key, as the error recommends, helps and revokes the value that the weaker key created.
    roll(owner, &key, 60).await;
    held_less(&owner.patch(&at(&key, ""), mend.clone()).await, PLACES);
    let again = holder(&world.workspace, &roll(owner, &key, 0).await);
    owner.patch(&at(&key, ""), mend).await.ok();
    assert_eq!(dashboards(&again, web).await, 200);
    rolled.get(CURRENT).await.is_bad_key();
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn created_key_cannot_get_more_access_than_its_grantor_had() {
    let world = World::new().await;
    let ((one, [web, shop]), _) = (&world.one, &world.two);
    let owner = &world.workspace.owner;
    let limits = json!({"projects": [web], "expires_in": 60});
    let maker = world.key(&["personal_api_key:write", "dashboard:write"], limits).await;
    let child = make_key(&maker, json!({"label": "x", "scopes": ["dashboard:read"]})).await;
    for (more, fields) in [
        (json!({"scopes": ["dashboard:read", "user:read"]}), "scopes"),
        (json!({"scopes": ["*"]}), "scopes"),
        (json!({"scoped_teams": [web, shop]}), PLACES),
        (json!({"scoped_teams": []}), PLACES),
        (json!({"scoped_teams": [], "scoped_organizations": [one]}), PLACES),
        (json!({"expires_at": null}), "expires_at"),
    ] {
        held_less(&owner.patch(&at(&child, ""), more).await, fields);
    }
    // The key may get what its creator had, and an additional limit.
    let sent = json!({"scopes": ["dashboard:write"], "label": "y", "scoped_organizations": [one]});
    owner.patch(&at(&child, ""), sent).await.ok();
    // A later change of the creator does not count until the creator rolls the key.
    let own = maker.get(CURRENT).await.ok();
    owner.patch(&at(&own, ""), json!({"scoped_teams": [], "expires_at": null})).await.ok();
    let more = json!({"scoped_teams": [web, shop]});
    held_less(&maker.patch(&at(&child, ""), more.clone()).await, PLACES);
    roll(&maker, &child, 0).await;
    maker.patch(&at(&child, ""), more.clone()).await.ok();
    // The limit applies even after the creator was deleted.
    owner.delete(&at(&own, "")).await.assert_empty(204);
    held_less(&owner.patch(&at(&child, ""), json!({"scopes": ["*"]})).await, "scopes");
    owner.patch(&at(&child, ""), more).await.ok();
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn keys_created_by_a_stronger_key_or_the_operator_can_be_widened_at_once() {
    let world = World::new().await;
    let owner = &world.workspace.owner;
    let (one, [web, _]) = &world.one;
    let sent = json!({
        "label": "x", "scopes": ["user:read"], "scoped_teams": [web],
        "scoped_organizations": [one], "expires_at": "2024-01-01",
    });
    let made = make_key(owner, sent).await;
    let limits = json!({"organizations": [one], "projects": [web], "expires_in": 60});
    let by_operator = world.key(&["user:read"], limits).await.get(CURRENT).await.ok();
    let more = json!({
        "scopes": ["*"], "scoped_teams": [], "scoped_organizations": [], "expires_at": null,
    });
    for key in [&made, &by_operator] {
        owner.patch(&at(key, ""), more.clone()).await.ok();
    }
    // The same holds after the owner's key rolled them.
    for key in [&made, &by_operator] {
        owner.patch(&at(key, ""), json!({"scopes": ["user:read"]})).await.ok();
        roll(owner, key, 60).await;
        owner.patch(&at(key, ""), more.clone()).await.ok();
    }
}

#[tokio::test]
async fn errors_about_grantors_are_hidden_from_keys_that_cannot_grant_the_change() {
    let world = World::new().await;
    let maker = world.key(&["personal_api_key:write", "user:read"], json!({})).await;
    let key = make_key(&maker, json!({"label": "x", "scopes": ["user:read"]})).await;
    let text = "This API key cannot grant more access than it has: scopes.";
    maker.patch(&at(&key, ""), json!({"scopes": ["*"]})).await.assert_denied(text);
    let max = world.workspace.member("max", Level::Owner).await;
    max.patch(&at(&key, ""), json!({"scopes": ["*"]})).await.assert_not_found("Not found.");
}
