//! Tests random sequences of operations on keys, by a key, the keys that it created, and their owner. A value must
//! never give more access than its creator had, and a weaker key must not change a stronger one.

use proptest::prelude::*;
use steward::testing::resources::api_keys::list;

use crate::api_keys::limits::World;
use crate::support::prelude::*;

const SCOPES: [&[&str]; 6] = [
    &["*"],
    &["personal_api_key:write"],
    &["personal_api_key:write", "dashboard:read"],
    &["personal_api_key:write", "dashboard:write", "user:read"],
    &["dashboard:read"],
    &["user:read", "dashboard:write"],
];
/// The scopes that an operation may need.
const NEEDED: [&str; 6] = [
    "dashboard:read",
    "dashboard:write",
    "user:read",
    "personal_api_key:read",
    "personal_api_key:write",
    "organization:write",
];
/// Expiry times: one minute after the start, one a little earlier and one a little later.
const ENDS: [&str; 3] =
    ["2023-11-14T22:13:50Z", "2023-11-14T22:14:20Z", "2023-11-14T22:14:20.000001Z"];

/// The limits in a request, or of the first key, as indices: scopes, organizations, projects and expiry. For
/// organizations and projects, the first two values are an empty list and null. An index beyond the last value omits
/// the field.
type KeyLimits = (usize, usize, usize, usize);
/// The caller among the holders of values, the operation, the target key, and the limits in the request.
type Step = (usize, u8, usize, KeyLimits);
/// The access of a key: combinations of scope, place and time.
type Opened = BTreeSet<(&'static str, String, i64)>;

/// A caller with a value.
struct Held {
    caller: TestClient,
    /// The maximum access that the value may have.
    within: Opened,
}

fn limits() -> impl Strategy<Value = KeyLimits> {
    (0..SCOPES.len() + 1, 0..7_usize, 0..9_usize, 0..ENDS.len() + 2)
}

fn body(world: &World, (scopes, organizations, projects, end): KeyLimits) -> Value {
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let mut sent = json!({});
    let ends = [Value::Null].into_iter().chain(ENDS.map(|end| json!(end)));
    let teams = json!([[], null, [web], [shop], [far], [web, shop], [web, far]]);
    let choices = [
        ("scopes", SCOPES.iter().map(|scopes| json!(scopes)).collect::<Vec<_>>(), scopes),
        ("scoped_organizations", each(json!([[], null, [one], [two], [one, two]])), organizations),
        ("scoped_teams", each(teams), projects),
        ("expires_at", ends.collect(), end),
    ];
    for (name, mut values, number) in choices {
        if number < values.len() {
            sent[name] = values.swap_remove(number);
        }
    }
    sent
}

/// Returns the access of a key, computed from its JSON.
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

/// Returns the user's keys from the data file.
fn keys(world: &World) -> Vec<Value> {
    let tx = world.workspace.app.store().snapshot().expect("a snapshot");
    serde_json::from_slice(&list(&*tx, UserId(1)).expect("read")).expect("an array")
}

/// Runs an operation of the owner with the first key. The holders of other values do not get the response.
async fn tend(
    world: &World,
    key: &Value,
    what: u8,
    limits: KeyLimits,
) -> Result<(), TestCaseError> {
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
            owner.post(&at(key, "roll/"), json!({"grace_seconds": 30 * u64::from(what % 2)})).await
        }
    };
    let expected = [200, 400, 401, 403].contains(&answer.status);
    prop_assert!(expected, "{}: {}", answer.status, answer.body);
    Ok(())
}

/// Runs an operation of a holder. Returns the value that the holder gets from it, if any.
async fn take(
    world: &World,
    caller: &TestClient,
    key: &Value,
    (what, limits): (u8, KeyLimits),
) -> Result<Option<TestClient>, TestCaseError> {
    let mut sent = body(world, limits);
    let answer = match what {
        0..=3 => {
            sent["label"] = json!("made");
            caller.post(KEYS, sent).await
        }
        4..=7 => caller.patch(&at(key, ""), sent).await,
        8 | 9 => {
            caller.post(&at(key, "roll/"), json!({"grace_seconds": 30 * u64::from(what % 2)})).await
        }
        _ => caller.delete(&at(key, "")).await,
    };
    let expected = [200, 201, 204, 400, 401, 403].contains(&answer.status);
    prop_assert!(expected, "{}: {}", answer.status, answer.body);
    let value = answer.body["value"].as_str();
    Ok(value.map(|value| world.workspace.with_key(value)))
}

/// Returns the user's keys with more access than this, without the time of last use.
fn stronger(world: &World, within: &Opened) -> Vec<Value> {
    let mut all = keys(world);
    all.retain(|key| !opens(world, key).is_subset(within));
    for key in &mut all {
        key["last_used_at"] = Value::Null;
    }
    all
}

/// Returns the access of the caller's key, if the value is valid.
async fn opened_by(world: &World, caller: &TestClient) -> Option<Opened> {
    let shown = caller.get(CURRENT).await;
    (shown.status == 200).then(|| opens(world, &shown.body))
}

/// Creates keys of the owner, including one without any access and one that expires soon.
async fn world_of_keys() -> World {
    let world = World::new().await;
    let ((one, [web, shop]), (two, _)) = (&world.one, &world.two);
    world.key(&["*"], json!({"organizations": [one]})).await;
    world.key(&["dashboard:write"], json!({"projects": [web]})).await;
    world.key(&["dashboard:read"], json!({"organizations": [two], "projects": [shop]})).await;
    world.key(&["dashboard:read"], json!({"expires_in": 5})).await;
    world
}

async fn try_out(first: KeyLimits, steps: Vec<Step>) -> Result<usize, TestCaseError> {
    let world = world_of_keys().await;
    let own = world.workspace.owner.get(CURRENT).await.ok()["id"].clone();
    let mut sent = body(&world, first);
    sent["label"] = json!("first");
    if sent.get("scopes").is_none() {
        sent["scopes"] = json!(["personal_api_key:write"]);
    }
    let made = make_key(&world.workspace.owner, sent).await;
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
        // What the owner grants to the first key, its first value gets too, because the owner's key created that value.
        let given = opened_by(&world, &held[0].caller).await.filter(|_| what > 10);
        held[0].within.extend(given.into_iter().flatten());
        for Held { caller, within } in &held {
            let open = opened_by(&world, caller).await.unwrap_or_default();
            let more: Vec<_> = open.difference(within).collect();
            prop_assert!(more.is_empty(), "{step:?} gave {more:?}");
        }
    }
    world.workspace.assert_file_valid().await;
    Ok(held.len() - 1)
}

#[test]
fn no_sequence_of_key_operations_escalates_permissions() {
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
    assert!(came_to.get() > 0, "no sequence created or rolled a key");
}
