//! Tests of the single writer: fairness between tenants, large responses, expensive copies, and stored responses.

use std::sync::mpsc;

use futures_util::FutureExt;
use steward::testing::error::Result;
use steward::testing::idempotency::{
    self, IdempotencyRequest, IdempotentResponse, MAX_RESPONSES_PER_REQUESTER, StoredBodyPart,
    StoredObjectRef, StoredResponse,
};
use steward::testing::ids::RequesterId;
use tokio::task::JoinHandle;

use crate::prelude::*;
use crate::support::idempotency::{post_once, stored};

/// Blocks the writer until the sender is used or dropped. Returns when the writer waits.
pub(super) async fn hold(store: &Store) -> (JoinHandle<Result<()>>, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel();
    let (released, store) = (Mutex::new(released), store.clone());
    let is_held = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&is_held);
    let held = tokio::spawn(async move {
        let wait = move |_: &mut WriteTx<'_>| {
            begun.store(true, Ordering::SeqCst);
            let _ = released.lock().expect("one holder").recv();
            Ok(())
        };
        store.write(wait).await
    });
    eventually("the writer is held", || is_held.load(Ordering::SeqCst).then_some(())).await;
    (held, release)
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_writes_of_one_organization_delay_another_only_briefly() {
    const GREEDY: u64 = 500;
    let workspace = Workspace::new().await;
    let store = workspace.app.store();
    let (held, release) = hold(store).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut queued: Vec<_> = (0..=GREEDY)
        .map(|number| {
            let (order, user) = (Arc::clone(&order), 1 + number / GREEDY);
            let ran = move |_: &mut WriteTx<'_>| {
                order.lock().expect("the order").push(user);
                Ok(())
            };
            Box::pin(store.write_for(Some(Consumer::User(user)), ran))
        })
        .collect();
    assert!(queued.iter_mut().all(|write| write.now_or_never().is_none()));
    release.send(()).expect("held");
    held.await.expect("no panic").expect("released");
    for write in queued {
        write.await.expect("served");
    }
    let order = order.lock().expect("the order");
    let before = order.iter().position(|user| *user == 2).expect("it ran");
    assert!(before < 10, "{before} of {GREEDY} writes of another tenant ran first");
}

/// Adds this many texts of 4,000 characters to a dashboard.
pub(super) async fn fill(caller: &TestClient, one: &str, count: usize) {
    for _ in 0..count.div_ceil(200) {
        let tiles = vec![json!({ "text": { "body": "x".repeat(4_000) } }); count.min(200)];
        caller.patch(one, json!({ "tiles": tiles })).await.ok();
    }
}

/// Both requests start at once, and nothing orders their last steps. If the writer rendered the large response, that
/// response would be first in each round. So one round of many that ends the other way is enough.
#[tokio::test]
async fn write_does_not_wait_for_a_preceding_large_response() {
    let workspace = Workspace::new().await;
    let (eve, hers) = workspace.outsider("eve").await;
    let light = format!("/api/projects/{}/dashboards/", hers["project_id"]);
    let (_, heavy) = make(&workspace, &workspace.owner, json!({})).await;
    fill(&workspace.owner, &heavy, 400).await;
    for round in 0..50 {
        let answered = Mutex::new(Vec::new());
        let note = |who| answered.lock().expect("the order").push(who);
        let large = async {
            let sent = json!({ "name": format!("Heavy {round}") });
            let answer = workspace.owner.patch(&heavy, sent).await;
            note("large");
            answer.ok();
        };
        let small = async {
            let answer = eve.post(&light, json!({ "name": "Light" })).await;
            note("small");
            answer.ok();
        };
        tokio::join!(large, small);
        if answered.into_inner().expect("the order") == ["small", "large"] {
            let tiles = json!([{ "type": "TEXT", "body": "x" }]);
            from_tiles(&workspace.owner, &workspace, tiles).await.ok();
            let refused = workspace.app.store().metrics(0).refused;
            assert_eq!(refused, 0, "an update with a large response is no refused write");
            return;
        }
    }
    panic!("the large response was first in each round");
}

const TOO_HEAVY: &str = "Ensure the tiles have no more than 1048576 bytes of JSON in total.";

#[tokio::test]
async fn copying_a_dashboard_counts_the_layouts_of_its_tiles() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let texts = vec![json!({ "text": { "body": "x" } }); 40];
    let shown = owner.patch(&one, json!({ "tiles": texts })).await.ok();
    let ids: Vec<_> =
        shown["tiles"].as_array().expect("tiles").iter().map(|tile| &tile["id"]).collect();
    let wide = json!({ "sm": { "note": "x".repeat(30_000) } });
    for half in ids.chunks(20) {
        let laid_out: Value = half.iter().map(|id| json!({ "id": id, "layouts": wide })).collect();
        owner.patch(&one, json!({ "tiles": laid_out })).await.ok();
    }
    let before = std::fs::metadata(workspace.path()).expect("the data file").len();
    let copies = workspace.dashboards("");
    let shallow = owner.post(&copies, json!({ "use_dashboard": id })).await;
    shallow.assert_invalid("use_dashboard", "max_length", TOO_HEAVY);
    let deep = json!({ "use_dashboard": id, "duplicate_tiles": true });
    owner.post(&copies, deep).await.assert_invalid("duplicate_tiles", "max_length", TOO_HEAVY);
    let after = std::fs::metadata(workspace.path()).expect("the data file").len();
    assert_eq!(before, after, "a failed copy must not grow the data file");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn dashboard_with_one_thousand_small_tiles_can_be_copied() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let layouts = json!({ "sm": { "x": 0, "y": 0, "w": 6, "h": 5 }, "xs": { "x": 0, "y": 0 } });
    let text = json!({ "text": { "body": "x" }, "layouts": layouts, "color": "blue" });
    owner.patch(&one, json!({ "tiles": vec![text; 1_000] })).await.ok();
    let copy = owner.post(&workspace.dashboards(""), json!({ "use_dashboard": id })).await.ok();
    assert_eq!(copy["tiles"].as_array().map(Vec::len), Some(1_000));
    workspace.assert_file_valid().await;
}

/// Every change to what tiles show must update the stored weight of all dashboards that show it. `check` verifies it.
#[tokio::test]
async fn stored_weight_of_a_dashboard_follows_every_change() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let tiles = json!([
        { "type": "TEXT", "body": "words", "layouts": {} },
        { "type": "INSIGHT", "name": "I", "query": { "kind": "Q" }, "layouts": {} },
    ]);
    let source = from_tiles(owner, &workspace, tiles).await.ok();
    let one = workspace.dashboards(&format!("{}/", source["id"]));
    let (other, copy) = make(&workspace, owner, json!({ "use_dashboard": source["id"] })).await;
    let deep = json!({ "use_dashboard": source["id"], "duplicate_tiles": true });
    make(&workspace, owner, deep).await;
    let (text, insight) = (&source["tiles"][0]["id"], &source["tiles"][1]["id"]);
    for sent in [
        json!({ "tiles": [{ "id": text, "text": { "body": "x".repeat(3_000) } }] }),
        json!({ "tiles": [{ "id": text, "color": "red" }, { "id": insight, "deleted": true }] }),
        json!({ "tiles": [{ "id": text, "text": { "body": null } }] }),
        json!({ "tiles": [{ "id": insight, "deleted": false }] }),
        json!({ "duplicate_tiles": [{ "id": text }, { "id": insight }] }),
        json!({ "deleted": true, "delete_insights": true }),
        json!({ "deleted": false }),
    ] {
        owner.patch(&one, sent).await.ok();
        workspace.assert_file_valid().await;
    }
    let (_, empty) = make(&workspace, owner, json!({})).await;
    let to = owner.get(&empty).await.ok()["id"].clone();
    let sent = json!({ "tile": { "id": insight }, "to_dashboard": to });
    owner.patch(&format!("{one}move_tile/"), sent).await.assert_empty(200);
    owner.patch(&copy, json!({ "deleted": true, "delete_insights": true })).await.ok();
    assert!(other > 0);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn large_idempotent_response_is_stored_as_a_reference() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let query = json!({ "kind": "HogQLQuery", "query": "x".repeat(30_000) });
    let tile = json!({ "type": "INSIGHT", "name": "Heavy", "query": query, "layouts": {} });
    let sent = json!({ "template": {
        "template_name": "Heavy", "dashboard_description": "", "dashboard_filters": {},
        "tiles": vec![tile; 30],
    }});
    let path = workspace.dashboards("create_from_template_json/");
    let first = post_once(owner, &path, "one", &sent).await;
    let copies = workspace.dashboards("");
    let copy = json!({ "use_dashboard": first.body["id"] });
    let answer = post_once(owner, &copies, "two", &copy).await;
    assert_eq!((first.status, answer.status), (200, 201));
    assert!(answer.bytes.len() > 900_000);
    assert_eq!(stored::<StoredBodyPart>(&workspace), 0);
    assert_eq!(stored::<StoredObjectRef>(&workspace), 2);
    let again = post_once(owner, &path, "one", &sent).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let one = workspace.dashboards(&format!("{}/", first.body["id"]));
    again.assert_is(200, owner.get(&one).await.body);
    let one = workspace.dashboards(&format!("{}/", answer.body["id"]));
    owner.patch(&one, json!({ "name": "As it is now" })).await.ok();
    let again = post_once(owner, &copies, "two", &copy).await;
    let now = owner.get(&one).await;
    assert_eq!(again.headers["etag"], now.headers["etag"]);
    again.assert_is(201, now.body);
    owner.patch(&one, json!({ "deleted": true })).await.ok();
    post_once(owner, &copies, "two", &copy).await.assert_not_found("Not found.");
    assert_eq!(owner.get(&copies).await.ok()["count"], 1, "the copy was created twice");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn stored_responses_per_requester_are_limited_and_the_oldest_is_deleted() {
    let workspace = Workspace::new().await;
    let store = workspace.app.store();
    let request = |number: u64, by: u128| {
        let sent = IdempotencyRequest::new(["path"].into_iter(), &number.to_string(), b"{}");
        sent.to_key(RequesterId(uuid::Uuid::from_u128(by)), None, None)
    };
    let at = |number: u64| Timestamp::from_micros(number.cast_signed());
    let reply =
        IdempotentResponse { status: 201, version: Some(1), body: b"{}".to_vec(), object: None };
    let keep = move |tx: &mut WriteTx<'_>| {
        idempotency::store(tx, &request(0, 2), &reply, at(0))?;
        (0..=MAX_RESPONSES_PER_REQUESTER)
            .try_for_each(|number| idempotency::store(tx, &request(number, 1), &reply, at(number)))
    };
    store.write(keep).await.expect("kept");
    let tx = store.snapshot().expect("a snapshot");
    let is_kept =
        |number, by| idempotency::find(&*tx, &request(number, by), at(0)).expect("read").is_some();
    assert_eq!(stored::<StoredResponse>(&workspace) as u64, MAX_RESPONSES_PER_REQUESTER + 1);
    let kept = [0, 1, MAX_RESPONSES_PER_REQUESTER].map(|number| is_kept(number, 1));
    assert_eq!(kept, [false, true, true]);
    assert!(is_kept(0, 2), "the response of another requester was deleted");
    let kept = tx.count::<StoredResponse>(&RequesterId(uuid::Uuid::from_u128(1)));
    assert_eq!(kept.expect("read"), MAX_RESPONSES_PER_REQUESTER);
    drop(tx);
    workspace.assert_file_valid().await;
}
