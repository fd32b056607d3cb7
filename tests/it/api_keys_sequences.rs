//! A key under any sequence of what it, its descendants and its owner do with keys: no value that it or they came to
//! opens more than was held when it was made, and no stronger key is touched (decisions §2, Issuing).

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use serde_json::{Value, json};
use steward::ids::UserId;
use steward::resources::api_keys::list;
use steward::time::Timestamp;

use crate::api_keys_http::{CURRENT, KEYS, at, holder, make};
use crate::api_keys_limits::World;
use crate::support::Caller;

const SCOPES: [&[&str]; 6] = [
    &["*"],
    &["personal_api_key:write"],
    &["personal_api_key:write", "dashboard:read"],
    &["personal_api_key:write", "dashboard:write", "user:read"],
    &["dashboard:read"],
    &["user:read", "dashboard:write"],
];
/// What an operation may need.
const NEEDED: [&str; 6] = [
    "dashboard:read",
    "dashboard:write",
    "user:read",
    "personal_api_key:read",
    "personal_api_key:write",
    "organization:write",
];
/// Ends that a key may be given: one minute after the beginning, and a bit less and more.
const ENDS: [&str; 3] =
    ["2023-11-14T22:13:50Z", "2023-11-14T22:14:20Z", "2023-11-14T22:14:20.000001Z"];

/// What is sent, or held at first: scopes, organizations, projects and an end, by their numbers; the first two of
/// the limits are an empty list and null, and what is beyond the last is left out.
type Limits = (usize, usize, usize, usize);
/// Who of those that the key came to, what, with which of the user's keys, and what is sent.
type Step = (usize, u8, usize, Limits);
/// What a key opens: what meets which scope, where, and until when.
type Opened = BTreeSet<(&'static str, String, i64)>;

/// Somebody with a value.
struct Held {
    caller: Caller,
    /// What it may open at the most.
    within: Opened,
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..SCOPES.len() + 1, 0..7_usize, 0..9_usize, 0..ENDS.len() + 2)
}

fn body(world: &World, (scopes, organizations, projects, end): Limits) -> Value {
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let mut sent = json!({});
    let ends = [Value::Null].into_iter().chain(ENDS.map(|end| json!(end)));
    let choices = [
        ("scopes", SCOPES.iter().map(|scopes| json!(scopes)).collect::<Vec<_>>(), scopes),
        (
            "scoped_organizations",
            vec![json!([]), json!(null), json!([one]), json!([two]), json!([one, two])],
            organizations,
        ),
        (
            "scoped_teams",
            vec![
                json!([]),
                json!(null),
                json!([web]),
                json!([shop]),
                json!([far]),
                json!([web, shop]),
                json!([web, far]),
            ],
            projects,
        ),
        ("expires_at", ends.collect(), end),
    ];
    for (name, mut values, number) in choices {
        if number < values.len() {
            sent[name] = values.swap_remove(number);
        }
    }
    sent
}

/// All that a key as it is shown may do: the scopes it meets, where, and until when.
fn opens(world: &World, key: &Value) -> Opened {
    let ((one, [web, shop]), (two, [far, rest])) = (&world.one, &world.two);
    let list = |name: &str| key[name].as_array().expect("a list").clone();
    let (scopes, organizations, projects) =
        (list("scopes"), list("scoped_organizations"), list("scoped_teams"));
    let meets = |needed: &str| {
        let writes = needed.replace(":read", ":write");
        scopes.iter().any(|held| *held == "*" || *held == needed || *held == writes.as_str())
    };
    let among = |id: &Value| organizations.is_empty() || organizations.contains(id);
    let mut places = vec![("the user".to_owned(), true)];
    places.push(("anywhere".to_owned(), organizations.is_empty() && projects.is_empty()));
    for id in [one, two] {
        places.push((format!("organization {id}"), projects.is_empty() && among(id)));
    }
    for (organization, id) in [(one, web), (one, shop), (two, far), (two, rest)] {
        let named = projects.is_empty() || projects.contains(id);
        places.push((format!("project {id}"), named && among(organization)));
    }
    let end = key["expires_at"].as_str().and_then(Timestamp::parse);
    let end = end.map_or(i64::MAX, Timestamp::micros);
    let moments = ENDS.iter().filter_map(|end| Timestamp::parse(end)).map(Timestamp::micros);
    let moments: Vec<i64> = moments.chain([i64::MAX]).filter(|moment| *moment <= end).collect();
    let mut open = Opened::new();
    for needed in NEEDED.into_iter().filter(|needed| meets(needed)) {
        for (place, _) in places.iter().filter(|(_, open)| *open) {
            open.extend(moments.iter().map(|moment| (needed, place.clone(), *moment)));
        }
    }
    open
}

/// The user's keys as they are shown, read from the file: any key of theirs may be ended by a stronger one.
fn keys(world: &World) -> Vec<Value> {
    let tx = world.workspace.app.store().snapshot().expect("a snapshot");
    let listed = list(&*tx, UserId(1)).expect("read");
    serde_json::from_slice(&listed).expect("an array")
}

/// What the owner does by the first key of all, sent on purpose: nobody else comes to what it is answered.
async fn tend(world: &World, key: &Value, what: u8, limits: Limits) -> Result<(), TestCaseError> {
    let owner = &world.workspace.owner;
    let answer = match what {
        0 => {
            let all = json!({
                "scopes": ["*"], "scoped_teams": [], "scoped_organizations": [], "expires_at": null,
            });
            owner.patch(&at(key, ""), all).await
        }
        1..=4 => owner.patch(&at(key, ""), body(world, limits)).await,
        _ => {
            let grace = json!({"grace_seconds": 30 * u64::from(what % 2)});
            owner.post(&at(key, "roll/"), grace).await
        }
    };
    let expected = [200, 400, 401, 403].contains(&answer.status);
    prop_assert!(expected, "{}: {}", answer.status, answer.body);
    Ok(())
}

/// What somebody who came to a value does; the value that they come to by that.
async fn take(
    world: &World,
    caller: &Caller,
    key: &Value,
    (what, limits): (u8, Limits),
) -> Result<Option<Caller>, TestCaseError> {
    let mut sent = body(world, limits);
    let answer = match what {
        0..=3 => {
            sent["label"] = json!("made");
            caller.post(KEYS, sent).await
        }
        4..=7 => caller.patch(&at(key, ""), sent).await,
        8 | 9 => {
            let grace = json!({"grace_seconds": 30 * u64::from(what % 2)});
            caller.post(&at(key, "roll/"), grace).await
        }
        _ => caller.delete(&at(key, "")).await,
    };
    let expected = [200, 201, 204, 400, 401, 403].contains(&answer.status);
    prop_assert!(expected, "{}: {}", answer.status, answer.body);
    let value = answer.body["value"].as_str();
    Ok(value.map(|value| world.workspace.with_key(value)))
}

/// The user's keys that hold more than is opened here, without the moment of their last use.
fn stronger(world: &World, within: &Opened) -> Vec<Value> {
    let mut all = keys(world);
    all.retain(|key| !opens(world, key).is_subset(within));
    for key in &mut all {
        key["last_used_at"] = Value::Null;
    }
    all
}

/// What the caller's key opens, while the value works.
async fn opened_by(world: &World, caller: &Caller) -> Option<Opened> {
    let shown = caller.get(CURRENT).await;
    (shown.status == 200).then(|| opens(world, &shown.body))
}

/// Keys of the owner's, one of which opens nothing and one of which ends soon.
async fn world_of_keys() -> World {
    let world = World::new().await;
    let ((one, [web, shop]), (two, _)) = (&world.one, &world.two);
    world.key(&["*"], json!({"organizations": [one]})).await;
    world.key(&["dashboard:write"], json!({"projects": [web]})).await;
    world.key(&["dashboard:read"], json!({"organizations": [two], "projects": [shop]})).await;
    world.key(&["dashboard:read"], json!({"expires_in": 5})).await;
    world
}

async fn try_out(first: Limits, steps: Vec<Step>) -> Result<usize, TestCaseError> {
    let world = world_of_keys().await;
    let own = world.workspace.owner.get(CURRENT).await.ok()["id"].clone();
    let mut sent = body(&world, first);
    sent["label"] = json!("first");
    if sent.get("scopes").is_none() {
        sent["scopes"] = json!(["personal_api_key:write"]);
    }
    let made = make(&world.workspace.owner, sent).await;
    let first = Held { caller: holder(&world.workspace, &made), within: opens(&world, &made) };
    let mut held = vec![first];
    for step in steps {
        let (who, what, which, limits) = step;
        let mut all = keys(&world);
        all.retain(|key| what < 11 || key["id"] != own);
        let Some(key) = all.get(which % all.len().max(1)) else { continue };
        let caller = held[who % held.len()].caller.clone();
        match what {
            0..=10 => {
                let before = opened_by(&world, &caller).await.unwrap_or_default();
                let untouched = stronger(&world, &before);
                let came_to = take(&world, &caller, key, (what, limits)).await?;
                prop_assert_eq!(stronger(&world, &before), untouched, "{:?}", step);
                held.extend(came_to.map(|caller| Held { caller, within: before }));
            }
            11..=17 => tend(&world, key, what - 11, limits).await?,
            _ => world.clock.advance(Duration::from_secs(7)),
        }
        // What the owner gives to the first key is given to its first value, which the owner's key made.
        let given = opened_by(&world, &held[0].caller).await.filter(|_| what > 10);
        held[0].within.extend(given.into_iter().flatten());
        for Held { caller, within } in &held {
            let open = opened_by(&world, caller).await.unwrap_or_default();
            let more: Vec<_> = open.difference(within).collect();
            prop_assert!(more.is_empty(), "{step:?} gave {more:?}");
        }
    }
    world.workspace.check().await;
    Ok(held.len() - 1)
}

#[test]
fn no_sequence_of_what_is_done_with_keys_gives_a_value_more_than_was_held_when_it_was_made() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner =
        TestRunner::new(Cases { cases: 16, failure_persistence: None, ..Cases::default() });
    let step = (0..8_usize, 0..20_u8, 0..16_usize, limits());
    let came_to = std::cell::Cell::new(0);
    let ran = runner.run(&(limits(), prop::collection::vec(step, 1..40)), |(first, steps)| {
        came_to.set(came_to.get() + runtime.block_on(try_out(first, steps))?);
        Ok(())
    });
    ran.expect("every sequence");
    assert!(came_to.get() > 0, "no key made or rolled any");
}
