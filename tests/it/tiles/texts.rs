//! Texts on tiles: create, update and share them.

use crate::support::bodies;
use crate::support::prelude::*;
use crate::tiles::with_insight;

/// The expected tile with a text that `user` wrote at the test's time. `changes` apply to the text.
fn text_tile(tile: &Value, user: &Value, changes: Value) -> Value {
    let text = bodies::text(user, json!({"id": tile["text"]["id"]}));
    bodies::tile(json!({"id": tile["id"], "text": bodies::changed(text, changes)}))
}

#[tokio::test]
async fn new_text_has_its_creator_and_no_last_modifier() {
    let (workspace, _) = at_the_moment().await;
    let ann = workspace.member("ann", Level::Member).await;
    let user = embedded(&ann).await;
    for (sent, body) in [
        (json!({"body": "# Hi\n\n<b>there</b> 😀"}), json!("# Hi\n\n<b>there</b> 😀")),
        (json!({"body": null}), json!(null)),
        (json!({"body": "", "id": null}), json!("")),
        (json!({"created_by": {"id": workspace.made.user_id}, "body": 5}), json!("5")),
        (json!({"unknown": 1}), json!(null)),
        (json!({"body": "é".repeat(4000), "team": 7}), json!("é".repeat(4000))),
    ] {
        let (_, one) = make(&workspace, &ann, json!({})).await;
        let answer = ann.patch(&one, json!({"tiles": [{"text": sent}]})).await;
        let tile = answer.body["tiles"][0].clone();
        assert!(tile["id"].is_u64() && tile["text"]["id"].is_u64(), "{tile}");
        let expected = text_tile(&tile, &user, json!({ "body": body }));
        assert_eq!(answer.ok()["tiles"], json!([expected]));
        assert_eq!(shown(&ann, &one).await, [expected]);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn updated_text_keeps_its_creator_and_shows_the_last_modifier() {
    let (workspace, owner) = at_the_moment().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (writer, other) = (embedded(&owner).await, embedded(&ann).await);
    let (_, one) = make(&workspace, &owner, json!({})).await;
    let made = owner.patch(&one, json!({"tiles": [{"text": {"body": "a"}}]})).await.ok();
    let tile = made["tiles"][0].clone();
    let (id, text) = (tile["id"].clone(), tile["text"]["id"].clone());
    for (sent, body) in [
        (json!({"id": id, "text": {"id": text, "body": "b", "created_by": writer}}), json!("b")),
        (json!({"id": id, "text": {"id": text, "body": "c"}}), json!("c")),
        (json!({"id": id, "text": {"body": "d", "created_by": other}}), json!("d")),
        (json!({"text": {"id": text, "body": " e "}}), json!("e")),
        (json!({"id": id, "text": {"id": text}}), json!("e")),
        (json!({"id": id, "text": {"id": text, "body": null}}), json!(null)),
    ] {
        let expected = text_tile(&tile, &writer, json!({"body": body, "last_modified_by": other}));
        let answer = ann.patch(&one, json!({"tiles": [sent.clone()]})).await;
        assert_eq!(answer.ok()["tiles"], json!([expected]), "{sent}");
        assert_eq!(shown(&owner, &one).await, [expected], "{sent}");
    }
    // A change without `text` does not touch the text.
    let sent = json!({"tiles": [{"id": id, "color": "red"}]});
    let tiles = owner.patch(&one, sent).await.ok()["tiles"].clone();
    assert_eq!(tiles[0]["color"], "red");
    assert_eq!(tiles[0]["text"]["last_modified_by"], json!(other));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_text_tile_stays_deleted_until_it_is_restored() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make(&workspace, &owner, json!({})).await;
    let tile = put_texts(&owner, &one, &["a"]).await[0].clone();
    let gone = json!({"tiles": [{"id": tile["id"], "deleted": true}]});
    assert_eq!(owner.patch(&one, gone).await.ok()["tiles"], json!([]));
    let changed = json!({"tiles": [{"id": tile["id"], "text": {"body": "b"}}]});
    assert_eq!(owner.patch(&one, changed).await.ok()["tiles"], json!([]));
    let back = json!({"tiles": [{"text": {"id": tile["text"]["id"]}, "deleted": false}]});
    let back = owner.patch(&one, back).await.ok();
    assert_eq!(back["tiles"][0]["id"], tile["id"]);
    assert_eq!(back["tiles"][0]["text"]["body"], "b");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invalid_text_is_rejected() {
    let (workspace, owner, (_, one), insight) = with_insight().await;
    let tiles = put_texts(&owner, &one, &["a", "b"]).await;
    let before = owner.get(&one).await.ok();
    let own = &tiles[0]["id"];
    let too_long =
        || Refusal::new("text__body", "max_length", "Text body cannot exceed 4000 characters");
    let gone = || Refusal::invalid("text", "Text tile not found.");
    let no_null = "Null characters are not allowed.";
    let nul = Refusal::new("tiles__0__text__body", "null_characters_not_allowed", no_null);
    let no_number = Refusal::invalid("tiles__0__text__id", "A valid integer is required.");
    let either = "A tile shows either an insight or a text.";
    let others = json!({"id": tiles[1]["text"]["id"], "body": "x"});
    let cases = [
        (json!({"text": {"body": "a".repeat(4001)}}), too_long()),
        (json!({"id": own, "text": {"body": "😀".repeat(4001)}}), too_long()),
        (json!({"text": {"body": true}}), Refusal::not_text("tiles__0__text__body")),
        (json!({"text": {"body": [1]}}), Refusal::not_text("tiles__0__text__body")),
        (json!({"text": {"body": "a\u{0}"}}), nul),
        (json!({"text": {"id": "x"}}), no_number),
        (json!({"text": {"id": 999_999, "body": "x"}}), gone()),
        (json!({"text": {"id": -1}}), gone()),
        (json!({"id": own, "text": others}), gone()),
        (json!({"id": insight, "text": others}), gone()),
        (json!({"id": insight, "text": {"body": "x"}}), Refusal::invalid("tiles__0__text", either)),
        (json!({"id": 999_999, "text": {"body": "x"}}), Refusal::unknown("tiles__0__id", "999999")),
    ];
    let cases = cases.map(|(tile, refusal)| (json!({"tiles": [tile], "name": "x"}), refusal));
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    owner.get(&one).await.assert_is(200, before);
    workspace.assert_file_valid().await;
}

/// A caller who may view but not edit a dashboard copies it, and changes the text on the copy.
#[tokio::test]
async fn changing_a_copy_does_not_change_a_dashboard_without_edit_access() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    put_texts(&owner, &one, &["good", "gone"]).await;
    let tiles = shown_of(&owner, &one, "/id").await;
    owner.patch(&one, json!({ "tiles": [{ "id": tiles[1], "deleted": true }] })).await.ok();
    let (_, copy) = make(&workspace, &ann, json!({ "use_dashboard": id })).await;
    let copied = shown_of(&ann, &copy, "/id").await[0].clone();
    let change = |body: &str| json!({ "tiles": [{ "id": copied, "text": { "body": body } }] });
    // While Ann may edit both dashboards, a change shows on both.
    ann.patch(&copy, change("better")).await.ok();
    assert_eq!(shown_of(&owner, &one, "/text/body").await, ["better"]);

    owner.patch(&one, json!({ "restriction_level": 37 })).await.ok();
    ann.patch(&copy, change("defaced")).await.ok();
    assert_eq!(shown_of(&owner, &one, "/text/body").await, ["better"]);
    let own = shown_of(&ann, &copy, "/text").await[0].clone();
    assert_eq!([&own["body"], &own["created_by"]["email"]], ["defaced", ANN]);
    // From now on, the copy has its own text.
    ann.patch(&copy, change("again")).await.ok();
    assert_eq!(shown_of(&ann, &copy, "/text/id").await, [own["id"].clone()]);

    // The text of a deleted dashboard does not change either, so a restored dashboard shows it as before.
    let (_, second) = make(&workspace, &ann, json!({ "use_dashboard": id })).await;
    owner.patch(&one, json!({ "deleted": true })).await.ok();
    let tile = shown_of(&ann, &second, "/id").await[0].clone();
    let sent = json!({ "tiles": [{ "id": tile, "text": { "body": "meanwhile" } }] });
    ann.patch(&second, sent).await.ok();
    owner.patch(&one, json!({ "deleted": false })).await.ok();
    assert_eq!(shown_of(&owner, &one, "/text/body").await[0], "better");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn text_change_applies_to_at_most_one_hundred_other_dashboards() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    put_texts(&owner, &one, &["first"]).await;
    let tile = shown_of(&owner, &one, "/id").await[0].clone();
    let change = |body: &str| json!({ "tiles": [{ "id": tile, "text": { "body": body } }] });
    let mut last = String::new();
    for _ in 0..100 {
        last = make(&workspace, &owner, json!({ "use_dashboard": id })).await.1;
    }
    owner.patch(&one, change("on all")).await.ok();
    assert_eq!(shown_of(&owner, &last, "/text/body").await, ["on all"]);
    make(&workspace, &owner, json!({ "use_dashboard": id })).await;
    owner.patch(&one, change("on one")).await.ok();
    assert_eq!(shown_of(&owner, &last, "/text/body").await, ["on all"]);
    assert_eq!(shown_of(&owner, &one, "/text/body").await, ["on one"]);
    workspace.assert_file_valid().await;
}
