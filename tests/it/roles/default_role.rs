//! The default role of an organization, which users get when they join it.

use steward::testing::resources::activity::Fields;

use crate::support::prelude::*;

async fn set_default(workspace: &Workspace, role: &Value) -> Value {
    let sent = json!({ "default_role_id": role });
    workspace.owner.patch(&workspace.organization(""), sent).await.ok()
}

async fn members_of(workspace: &Workspace, role: &str) -> Vec<Value> {
    let list = workspace.owner.get(&format!("{role}role_memberships/")).await.ok();
    column(&list, "user").iter().map(|user| user["email"].clone()).collect()
}

#[tokio::test]
async fn default_role_is_set_shown_and_cleared() {
    let (workspace, clock) = Workspace::timed().await;
    let (owner, organization) = (&workspace.owner, workspace.organization(""));
    let (role, path) = add_role(&workspace, "Analysts").await;
    let (second, other) = add_role(&workspace, "Billing").await;
    let before = owner.get(&organization).await.ok();
    assert_eq!(before["default_role_id"], Value::Null);

    clock.advance(Duration::from_mins(1));
    let set = set_default(&workspace, &role["id"]).await;
    let mut expected = before.clone();
    expected["default_role_id"] = role["id"].clone();
    expected["updated_at"] = json!("2023-11-14T22:14:20Z");
    assert_eq!(set, expected);
    owner.get(&organization).await.assert_is(200, expected.clone());
    assert_eq!(owner.get(ME).await.ok()["organization"], expected);
    let is_default = async |path: &str| owner.get(path).await.ok()["is_default"].clone();
    assert_eq!((is_default(&path).await, is_default(&other).await), (json!(true), json!(false)));
    let listed = owner.get(&workspace.organization("roles/")).await.ok();
    assert_eq!(column(&listed, "is_default"), [true, false]);

    // Sending the same role again, or other fields, changes nothing.
    clock.advance(Duration::from_mins(1));
    assert_eq!(set_default(&workspace, &role["id"]).await, expected);
    let tags = async || [owner.get(&path).await.tag(), owner.get(&organization).await.tag()];
    let known = tags().await;
    owner.patch(&organization, json!({ "name": "Corp" })).await.assert_is(200, expected);
    assert_eq!(tags().await, known);

    set_default(&workspace, &second["id"]).await;
    assert_eq!((is_default(&path).await, is_default(&other).await), (json!(false), json!(true)));
    assert_eq!(set_default(&workspace, &Value::Null).await["default_role_id"], Value::Null);
    assert_eq!((is_default(&path).await, is_default(&other).await), (json!(false), json!(false)));
    let both = json!({ "name": "Both", "default_role_id": role["id"] });
    let both = owner.patch(&organization, both).await.ok();
    assert_eq!((&both["name"], &both["default_role_id"]), (&json!("Both"), &role["id"]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn default_role_must_be_a_role_of_the_organization() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let theirs = in_organization(&foreign, "roles/");
    let (foreign, _) = eve.create(&theirs, json!({ "name": "Theirs" })).await;
    let (gone, gone_path) = add_role(&workspace, "Gone").await;
    workspace.owner.delete(&gone_path).await.assert_empty(204);
    let organization = workspace.organization("");
    for id in [&json!(UNKNOWN), &foreign["id"], &gone["id"]] {
        let sent = json!({ "default_role_id": id, "name": "Other" });
        let detail =
            format!("Invalid pk \"{}\" - object does not exist.", id.as_str().expect("id"));
        let refused = workspace.owner.patch(&organization, sent).await;
        refused.assert_invalid("default_role_id", "does_not_exist", &detail);
    }
    for id in [json!("Analysts"), json!(""), json!([role["id"]])] {
        let refused = workspace.owner.patch(&organization, json!({ "default_role_id": id })).await;
        refused.assert_bad("default_role_id", BAD_UUID);
    }
    ann.patch(&organization, json!({ "default_role_id": role["id"] })).await.assert_denied(TOO_LOW);
    let kept = workspace.owner.get(&organization).await.ok();
    assert_eq!((&kept["name"], &kept["default_role_id"]), (&json!("Corp"), &Value::Null));
    assert_eq!(workspace.owner.get(&path).await.ok()["is_default"], false);
}

#[tokio::test]
async fn users_get_the_default_role_when_they_join_or_return() {
    let workspace = Workspace::new().await;
    workspace.member("before", Level::Member).await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    let (_, other) = add_role(&workspace, "Billing").await;
    set_default(&workspace, &role["id"]).await;

    let ann = workspace.member("ann", Level::Member).await;
    add_to_role(&workspace, &other, ANN).await;
    ann.delete(&workspace.organization("members/@me/")).await.assert_empty(204);
    assert!(members_of(&workspace, &path).await.is_empty());
    workspace.rejoin(ANN, Level::Member).await;
    assert_eq!(members_of(&workspace, &path).await, [ANN]);
    assert!(members_of(&workspace, &other).await.is_empty());
    workspace.member("operated", Level::Member).await;
    let sent = json!({ "target_email": "linked@corp.example" });
    let offer = Offer::of(&invite(&workspace.owner, &workspace, sent).await);
    offer.accept(&workspace.anonymous(), json!({ "first_name": "Lin" })).await.ok();
    let (eve, _) = workspace.outsider("eve").await;
    let sent = json!({ "target_email": "eve@other.example" });
    Offer::of(&invite(&workspace.owner, &workspace, sent).await).accept(&eve, json!({})).await.ok();
    let expected = [ANN, "operated@corp.example", "linked@corp.example", "eve@other.example"];
    assert_eq!(members_of(&workspace, &path).await, expected);

    set_default(&workspace, &Value::Null).await;
    workspace.member("after", Level::Member).await;
    assert_eq!(members_of(&workspace, &path).await, expected);
    workspace.assert_file_valid().await;
}

/// Returns scope, activity and name of an entry.
fn summary(entry: &Entry) -> (&str, &str, Option<&str>) {
    let Fields { scope, activity, detail, .. } = &entry.fields;
    (scope, activity, detail.name.as_deref())
}

#[tokio::test]
async fn default_role_of_a_new_member_is_logged_like_a_member_that_somebody_adds() {
    let workspace = Workspace::new().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    set_default(&workspace, &role["id"]).await;
    let known = entries(&workspace).len();
    workspace.member("operated", Level::Member).await;
    let sent = json!({ "target_email": "linked@corp.example" });
    let offer = Offer::of(&invite(&workspace.owner, &workspace, sent).await);
    offer.accept(&workspace.anonymous(), json!({ "first_name": "Lin" })).await.ok();
    let list = workspace.owner.get(&format!("{path}role_memberships/")).await.ok();

    let log = entries(&workspace);
    for (number, email) in ["operated@corp.example", "linked@corp.example"].iter().enumerate() {
        let of_email = |entry: &&Entry| {
            entry.fields.scope == "RoleMembership"
                && entry.fields.detail.changes.iter().any(|change| change.after == **email)
        };
        let given: Vec<_> = log[known..].iter().filter(of_email).collect();
        assert_eq!(given.len(), 1, "{email}");
        assert_eq!(summary(given[0]), ("RoleMembership", "created", Some("Analysts")));
        assert_eq!(given[0].fields.item_id, list["results"][number]["id"]);
        let changes = &given[0].fields.detail.changes;
        let changes: Vec<_> =
            changes.iter().map(|one| (&*one.field, &one.before, &one.after)).collect();
        let (null, email) = (Value::Null, json!(email));
        assert_eq!(changes, [("role_id", &null, &role["id"]), ("user", &null, &email)]);
        let membership = &list["results"][number]["organization_member"]["id"];
        let joined = log[known..].iter().find(|entry| {
            entry.fields.scope == "OrganizationMembership" && entry.fields.item_id == *membership
        });
        let joined = joined.expect("an entry of the join");
        let made =
            |entry: &Entry| (entry.meta.user, entry.meta.created_at, entry.meta.organization);
        assert_eq!(made(given[0]), made(joined));
    }
}

#[tokio::test]
async fn deleting_the_default_role_clears_it_and_moves_the_organizations_version() {
    let (workspace, clock) = Workspace::timed().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    let (_, other) = add_role(&workspace, "Billing").await;
    set_default(&workspace, &role["id"]).await;
    let organization = workspace.organization("");
    let before = workspace.owner.get(&organization).await;
    let known = before.tag();
    workspace.owner.delete(&other).await.assert_empty(204);
    assert_eq!(workspace.owner.get(&organization).await.tag(), known);
    clock.advance(Duration::from_mins(1));
    workspace.owner.delete(&path).await.assert_empty(204);
    let shown = workspace.owner.get(&organization).await;
    let mut expected = before.body;
    expected["default_role_id"] = Value::Null;
    expected["updated_at"] = json!("2023-11-14T22:14:20Z");
    assert_eq!(shown.body, expected);
    assert_ne!(shown.tag().split('-').next(), known.split('-').next());
    workspace.member("ann", Level::Member).await;
    assert_eq!(workspace.owner.get(&workspace.organization("roles/")).await.ok()["count"], 0);
    workspace.assert_file_valid().await;
}
