//! `/api/projects/:project_id/dashboards/:dashboard_id/collaborators/`: who may edit a restricted
//! dashboard.

use crate::dashboards::access::BEGAN;
use crate::support::prelude::*;

const LOWEST: &str = "Cannot add collaborators to a dashboard on the lowest restriction level.";
const STAYS: &str = "Cannot remove collaborators from a dashboard on the lowest restriction level.";
const ONLY_EDIT: &str = "Only edit access can be explicitly specified currently.";
const NOBODY: &str = "User does not exist.";
const OUTSIDE: &str = "Cannot add collaborators that have no access to the project.";
const INHERENT: &str = "Cannot add collaborators that already have inherent access (the dashboard owner or a project admins).";
const TWICE: &str = "User already is a collaborator.";

/// A scene whose dashboard is restricted to collaborators.
async fn restricted() -> Scene {
    let scene = Scene::new().await;
    scene.restrict(37).await;
    scene
}

async fn uuid(caller: &TestClient) -> Value {
    caller.get(ME).await.ok()["uuid"].clone()
}

impl Scene {
    fn collaborators(&self) -> String {
        format!("{}collaborators/", self.one)
    }

    async fn add(&self, caller: &TestClient, who: &TestClient) -> TestResponse {
        let sent = json!({ "user_uuid": uuid(who).await, "level": 37 });
        caller.post(&self.collaborators(), sent).await
    }

    async fn remove(&self, caller: &TestClient, who: &TestClient) -> TestResponse {
        let who = uuid(who).await;
        caller.delete(&format!("{}{}/", self.collaborators(), who.as_str().expect("a uuid"))).await
    }

    /// The collaborators, as the owner sees them.
    async fn listed(&self) -> Vec<Value> {
        let list = self.owner().get(&self.collaborators()).await.ok();
        list.as_array().expect("an array").iter().map(|row| row["user_uuid"].clone()).collect()
    }
}

/// The expected collaborator, added at this time. `id` is new for each collaborator.
async fn shown(scene: &Scene, id: &Value, who: &TestClient, moment: &str) -> Value {
    json!({
        "id": id, "dashboard_id": scene.id, "user": embedded(who).await, "level": 37,
        "added_at": moment, "updated_at": moment, "user_uuid": uuid(who).await,
    })
}

#[tokio::test]
async fn collaborator_is_added_listed_edits_and_is_removed() {
    let scene = restricted().await;
    let path = scene.collaborators();
    scene.ann.get(&path).await.assert_is(200, json!([]));
    scene.ann.patch(&scene.one, json!({ "name": "B" })).await.assert_denied(NO_EDIT);

    let added = scene.add(&scene.creator, &scene.ann).await;
    let ann = shown(&scene, &added.body["id"], &scene.ann, BEGAN).await;
    added.assert_is(201, ann.clone());
    added.body["id"].as_str().expect("an id").parse::<Uuid>().expect("a UUID");
    let changed = scene.ann.patch(&scene.one, json!({ "name": "B" })).await.ok();
    assert_eq!(changed["effective_privilege_level"], 37);

    scene.clock.advance(minute());
    let added = scene.add(scene.owner(), &scene.bob).await;
    let bob = shown(&scene, &added.body["id"], &scene.bob, "2025-01-02T03:05:05Z").await;
    added.assert_is(201, bob.clone());
    for caller in [&scene.creator, &scene.ann, &scene.max, &scene.admin, scene.owner()] {
        caller.get(&path).await.assert_is(200, json!([ann, bob]));
    }
    scene.remove(&scene.admin, &scene.ann).await.assert_empty(204);
    scene.max.get(&path).await.assert_is(200, json!([bob]));
    scene.ann.patch(&scene.one, json!({ "name": "C" })).await.assert_denied(NO_EDIT);
    scene.bob.patch(&scene.one, json!({ "name": "C" })).await.ok();
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn response_only_fields_are_ignored_in_requests() {
    let scene = restricted().await;
    let sent = json!({
        "user_uuid": uuid(&scene.ann).await, "level": "37", "id": Uuid::max(), "dashboard_id": 99,
        "user": embedded(&scene.bob).await, "added_at": "2001-01-01", "updated_at": "2001-01-01",
    });
    let added = scene.creator.post(&scene.collaborators(), sent).await;
    assert_ne!(added.body["id"], json!(Uuid::max()));
    let ann = shown(&scene, &added.body["id"], &scene.ann, BEGAN).await;
    added.assert_is(201, ann.clone());
    scene.max.get(&scene.collaborators()).await.assert_is(200, json!([ann]));
}

#[tokio::test]
async fn adding_a_collaborator_fails_with_the_first_applicable_error() {
    let scene = restricted().await;
    let (stranger, _) = scene.workspace.outsider("eve").await;
    let gone = uuid(&scene.workspace.member("off", Level::Member).await).await;
    scene.workspace.set_active("off@corp.example", false).await;
    scene.add(&scene.creator, &scene.bob).await.ok();
    let (ann, bob) = (uuid(&scene.ann).await, uuid(&scene.bob).await);
    let (eve, cleo) = (uuid(&stranger).await, uuid(&scene.creator).await);
    let (ada, owner) = (uuid(&scene.admin).await, uuid(scene.owner()).await);
    let nobody = json!(Uuid::max());

    // Rights are checked before fields.
    for sent in [json!({}), json!({ "user_uuid": ann, "level": 37 })] {
        scene.max.post(&scene.collaborators(), sent).await.assert_denied(NO_EDIT);
    }
    let of = |user: &Value, level: Value| json!({ "user_uuid": user, "level": level });
    let refused = |detail: &str| Refusal::of_body("invalid_input", detail);
    let choice = Refusal::new("level", "invalid_choice", "\"36\" is not a valid choice.");
    let cases = [
        (json!({}), Refusal::required("user_uuid")),
        (json!({ "level": 5 }), Refusal::required("user_uuid")),
        (json!({ "user_uuid": "x" }), Refusal::invalid("user_uuid", BAD_UUID)),
        (json!({ "user_uuid": nobody }), Refusal::required("level")),
        (of(&nobody, json!(36)), choice),
        (of(&nobody, json!(21)), refused(ONLY_EDIT)),
        (of(&nobody, json!(37)), refused(NOBODY)),
        (of(&gone, json!(37)), refused(NOBODY)),
        (of(&eve, json!(37)), refused(OUTSIDE)),
        (of(&cleo, json!(37)), refused(INHERENT)),
        (of(&ada, json!(37)), refused(INHERENT)),
        (of(&owner, json!("37")), refused(INHERENT)),
        (of(&bob, json!(37)), refused(TWICE)),
    ];
    scene.creator.assert_refusals(Method::POST, &scene.collaborators(), cases).await;
    // For a dashboard that everyone may edit, only the fields are checked before its restriction level.
    scene.restrict(21).await;
    let wrong = (json!({ "user_uuid": [] }), Refusal::invalid("user_uuid", BAD_UUID));
    let lowest = [(&nobody, 21), (&nobody, 37), (&ann, 37), (&cleo, 21), (&bob, 37)]
        .map(|(who, level)| (of(who, json!(level)), refused(LOWEST)));
    let cases = lowest.into_iter().chain([wrong]);
    scene.max.assert_refusals(Method::POST, &scene.collaborators(), cases).await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn values_of_the_wrong_type_are_rejected() {
    let scene = restricted().await;
    let ann = uuid(&scene.ann).await;
    let of = |user: &Value, level: &Value| json!({ "user_uuid": user, "level": level });
    let (right, null) = (json!(37), Value::Null);
    let mut cases = vec![
        (of(&null, &right), Refusal::null("user_uuid")),
        (of(&ann, &null), Refusal::null("level")),
    ];
    for (wrong, word) in [
        (json!(true), "True"),
        (json!([]), "[]"),
        (json!({}), "{}"),
        (json!(""), ""),
        (json!(-1.5), "-1.5"),
    ] {
        let choice = format!("\"{word}\" is not a valid choice.");
        cases.push((of(&wrong, &right), Refusal::invalid("user_uuid", BAD_UUID)));
        cases.push((of(&ann, &wrong), Refusal::new("level", "invalid_choice", choice)));
    }
    let list = "Invalid data. Expected a dictionary, but got list.";
    cases.push((json!([]), Refusal::of_body("invalid_input", list)));
    scene.creator.assert_refusals(Method::POST, &scene.collaborators(), cases).await;
    assert_eq!(scene.listed().await, [] as [Value; 0]);
}

#[tokio::test]
async fn removing_a_collaborator_fails_with_the_first_applicable_error() {
    let scene = restricted().await;
    scene.add(&scene.creator, &scene.ann).await.ok();
    scene.remove(&scene.bob, &scene.ann).await.assert_denied(NO_EDIT);
    let path = scene.collaborators();
    scene.bob.delete(&format!("{path}nonsense/")).await.assert_denied(NO_EDIT);
    for who in ["nonsense", UNKNOWN, "@me", "5"] {
        scene.creator.delete(&format!("{path}{who}/")).await.assert_not_found("Not found.");
    }
    scene.remove(&scene.creator, &scene.bob).await.assert_not_found("Not found.");
    scene.restrict(21).await;
    scene.remove(&scene.creator, &scene.bob).await.assert_not_found("Not found.");
    scene.remove(&scene.bob, &scene.ann).await.assert_bad_body(STAYS);
    assert_eq!(scene.listed().await, [uuid(&scene.ann).await]);
}

#[tokio::test]
async fn collaborator_can_add_others_and_remove_themselves() {
    let scene = restricted().await;
    scene.add(&scene.creator, &scene.ann).await.ok();
    scene.add(&scene.ann, &scene.bob).await.ok();
    scene.remove(&scene.ann, &scene.bob).await.assert_empty(204);
    assert_eq!(scene.ann.patch(&scene.one, json!({ "restriction_level": 21 })).await.status, 403);
    scene.ann.delete(&format!("{}@me/", scene.collaborators())).await.assert_empty(204);
    scene.add(&scene.ann, &scene.bob).await.assert_denied(NO_EDIT);
    assert_eq!(scene.listed().await, [] as [Value; 0]);
}

#[tokio::test]
async fn inactive_collaborators_are_hidden_and_former_members_deleted() {
    let scene = restricted().await;
    for who in [&scene.ann, &scene.bob] {
        scene.add(&scene.creator, who).await.ok();
    }
    let (ann, bob) = (uuid(&scene.ann).await, uuid(&scene.bob).await);
    scene.workspace.set_active(ANN, false).await;
    assert_eq!(scene.listed().await, vec![bob.clone()]);
    let sent = json!({ "user_uuid": ann, "level": 37 });
    scene.creator.post(&scene.collaborators(), sent).await.assert_bad_body(NOBODY);
    scene.workspace.set_active(ANN, true).await;
    assert_eq!(scene.listed().await, [ann.clone(), bob]);
    scene.ann.patch(&scene.one, json!({})).await.ok();

    scene.leave("bob").await;
    assert_eq!(scene.listed().await, [ann]);
    scene.workspace.rejoin("bob@corp.example", Level::Member).await;
    scene.bob.patch(&scene.one, json!({})).await.assert_denied(NO_EDIT);
    scene.add(&scene.creator, &scene.bob).await.ok();
    scene.bob.patch(&scene.one, json!({})).await.ok();
    // A collaborator whom the list leaves out can be deleted too.
    let bob = uuid(&scene.bob).await;
    scene.workspace.set_active("bob@corp.example", false).await;
    let path = format!("{}{}/", scene.collaborators(), bob.as_str().expect("a uuid"));
    scene.creator.delete(&path).await.assert_empty(204);
    scene.creator.delete(&path).await.assert_not_found("Not found.");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn private_project_collaborators_need_a_grant() {
    let scene = restricted().await;
    scene.workspace.set_private(true).await;
    scene.add(scene.owner(), &scene.ann).await.assert_bad_body(OUTSIDE);
    scene.grant("ann", "none").await;
    scene.add(scene.owner(), &scene.ann).await.assert_bad_body(OUTSIDE);
    scene.grant("ann", "member").await;
    scene.add(scene.owner(), &scene.ann).await.ok();
    scene.ann.patch(&scene.one, json!({ "name": "B" })).await.ok();
    // An admin of the project by a grant has no inherent right to edit.
    scene.grant("bob", "admin").await;
    scene.bob.patch(&scene.one, json!({ "name": "C" })).await.assert_denied(NO_EDIT);
    scene.add(scene.owner(), &scene.bob).await.ok();
    scene.bob.patch(&scene.one, json!({ "name": "C" })).await.ok();
    scene.workspace.assert_file_valid().await;
}
