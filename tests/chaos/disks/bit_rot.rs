//! Bit rot: one flipped bit of the file never causes an invented response. The response is right, an error that
//! names the damaged value, or lacks a value whose absence `check` and the scrub report. A flipped pointer to an
//! older page of the same table shows older values, which `check` reports.
//!
//! `STEWARD_FLIPS=100000` flips that many bits.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use steward::testing::store::{OpenError, Raw};

use crate::prelude::*;
use crate::support::day::REQUESTS;
use crate::support::sim::{self, DiskState};

const CACHE: usize = 1 << 20;

type Values = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// Returns the places of a text in the file.
fn places_of(text: &[u8], bytes: &[u8]) -> Vec<usize> {
    let places = 0..bytes.len() - text.len();
    places.filter(|at| bytes[*at..].starts_with(text)).collect()
}

/// Creates a workspace and makes two days of requests, so that it contains almost every kind of record.
async fn lived_in(mut config: Config) -> (Workspace, SimFileSystem) {
    let disk = SimFileSystem::default();
    config.file_system = Arc::new(disk.clone());
    let workspace = Workspace::with(config).await;
    for number in 0..2 {
        let mut day = SampleWorkload::new(&workspace, number);
        for at in 0..REQUESTS {
            day.request(at).await.expect("a request").ok();
        }
    }
    let export = json!({
        "name": "Kept", "interval": "hour", "project_id": workspace.made.project_id,
        "destination": { "type": "NoOp", "config": {} },
    });
    workspace.owner.post(&workspace.organization("batch_exports/"), export).await.ok();
    let domain = json!({ "domain": "kept.example" });
    workspace.owner.post(&workspace.organization("domains/"), domain).await.ok();
    (workspace, disk)
}

/// Formats a key as messages do.
fn hex(key: &[u8]) -> String {
    let digits = b"0123456789abcdef";
    let pair =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(digits[usize::from(digit)]));
    key.iter().take(64).flat_map(pair).collect()
}

/// Returns every value that walks find, and whether a walk failed.
fn walk(store: &Store) -> (Values, bool) {
    let (mut values, mut broke) = (Values::new(), false);
    for table in Table::ALL {
        let mut visit = |key: &[u8], payload: &[u8]| {
            values.insert((*table, key.to_vec()), payload.to_vec());
            Ok(ControlFlow::Continue(()))
        };
        let walked = catch_unwind(AssertUnwindSafe(|| {
            store.snapshot()?.raw_walk(*table, &[], 0, Order::Ascending, &mut visit)
        }));
        broke |= !matches!(walked, Ok(Ok(())));
    }
    (values, broke)
}

/// The outcomes of the flips.
#[derive(Debug, Default)]
struct Tally {
    flips: usize,
    refused: usize,
    right: usize,
    damaged: usize,
    absent: usize,
    panicked: usize,
    scrubbed: usize,
    older: usize,
}

/// Asserts that unexpected values are the older values of a page that the file no longer uses, and that `check`
/// reports the damage.
async fn assert_older(store: Store, older: &[Vec<u8>], bytes: &[u8]) {
    for value in older.iter().filter(|value| !value.is_empty()) {
        let stored = bytes.windows(value.len()).any(|stored| stored == value.as_slice());
        assert!(stored, "a value appeared that the file never contained");
    }
    let report = store.check(record_registry(), Progress::silent()).await;
    store.close().await;
    let is_told = report.is_err() || report.is_ok_and(|report| report.problem_count > 0);
    assert!(is_told, "older values appeared, and the check reports nothing");
}

/// Opens a file with a flipped bit, reads all of it, and compares the values.
async fn flip(
    world: &DiskState,
    path: &Path,
    expected: &Values,
    (at, bit): (usize, u8),
    tally: &mut Tally,
) {
    tally.flips += 1;
    let flipped = || {
        let mut world = world.clone();
        world.bytes_mut(path)[at] ^= 1 << bit;
        sim::open(&SimFileSystem::holding(world), path, CACHE)
    };
    let store = match flipped() {
        Ok(store) => store,
        // A pointer beyond the end of the file fails like a bad disk.
        Err(
            OpenError::Damaged { .. }
            | OpenError::Foreign(_)
            | OpenError::Newer { .. }
            | OpenError::Refused(_)
            | OpenError::Io { .. },
        ) => {
            tally.refused += 1;
            return;
        }
        Err(error) => panic!("{at}.{bit}: {error}"),
    };
    let (found, broke) = walk(&store);
    let strange: BTreeSet<_> =
        found.iter().filter(|(key, value)| expected.get(key) != Some(value)).collect();
    let sampled = tally.flips.is_multiple_of(10);
    if !broke && found.len() == expected.len() && strange.is_empty() && !sampled {
        tally.right += 1;
        store.close().await;
        return;
    }
    let mut older: Vec<_> = strange.iter().map(|(_, value)| (*value).clone()).collect();
    let (mut damaged, mut absent, mut panicked) = (0, 0, 0);
    let unsure =
        |(at, value): &(&(Table, Vec<u8>), &Vec<u8>)| sampled || found.get(*at) != Some(*value);
    for ((table, key), value) in expected.iter().filter(unsure) {
        let mut read = None;
        let got = catch_unwind(AssertUnwindSafe(|| {
            store.snapshot()?.raw_get(*table, key, &mut |payload| {
                read = Some(payload.to_vec());
                Ok(())
            })
        }));
        match (got, read) {
            (Ok(Ok(())), Some(read)) if read == *value => {}
            (Ok(Ok(())), Some(read)) => older.push(read),
            (Ok(Ok(())), None) => absent += 1,
            (Ok(Err(error)), _) if error.status() == 500 => {
                let cause = error.cause().expect("a cause");
                // A block of a packed table is named by the key under which it is stored, which may be damaged itself.
                let is_packed = table.name().starts_with("activity");
                let names =
                    cause.contains(table.name()) && (is_packed || cause.contains(&hex(key)));
                assert!(names || !cause.contains("checksum mismatch"), "{at}.{bit}: {cause}");
                damaged += 1;
            }
            // redb panicked before and poisoned its handle.
            (Ok(Err(_)) | Err(_), _) => panicked += 1,
        }
    }
    store.close().await;
    let whole = !broke && damaged + absent + panicked == 0 && found == *expected;
    if absent > 0 || (!whole && tally.flips.is_multiple_of(4)) {
        let store = flipped().expect("a file that opened before");
        let scrubbed = store.scrub(record_registry(), Progress::silent()).await;
        store.close().await;
        let told = scrubbed.is_err() || scrubbed.is_ok_and(|found| found.problem_count > 0);
        assert!(told, "{at}.{bit}: {damaged} damaged, {absent} absent, and no report");
        tally.scrubbed += 1;
    }
    tally.right += usize::from(whole);
    tally.damaged += usize::from(damaged > 0);
    tally.absent += usize::from(absent > 0);
    tally.panicked += usize::from(panicked > 0);
    if !older.is_empty() {
        println!("{at}.{bit}: {} older values", older.len());
        tally.older += 1;
        assert_older(flipped().expect("a file that opened before"), &older, world.bytes(path))
            .await;
    }
}

#[tokio::test]
async fn flipped_bit_in_a_closed_file_never_gives_an_invented_value() {
    let (workspace, disk) = lived_in(Config::default()).await;
    for number in 0..60 {
        let body = json!({ "name": format!("D{number}"), "description": "x".repeat(300) });
        workspace.owner.post(&workspace.dashboards(""), body).await.ok();
    }
    let (expected, _) = walk(workspace.app.store());
    workspace.assert_file_valid().await;
    workspace.app.close().await;
    let (world, path) = (disk.world().shown(), workspace.path());
    let bytes = world.bytes(&path).to_vec();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    // redb's branch pages begin with a 2. Their first bytes point to other pages.
    let leads = |at: &usize| bytes[at & !4095] == 2 && at & 4095 < 512;
    let leading: Vec<usize> = used.iter().copied().filter(leads).collect();
    assert!(leading.len() > 200, "{}", leading.len());
    let (mut dice, mut tally) = (TestRng(seed()), Tally::default());
    // Without the first byte it is no file of redb. One of the places of the name is in a value, the others in unused pages.
    for at in [0].into_iter().chain(places_of(b"kept.example", &bytes)) {
        flip(&world, &path, &expected, (at, 0), &mut tally).await;
    }
    assert!(tally.refused > 0 && tally.damaged > 0, "{tally:?}");
    for number in 0..size("STEWARD_FLIPS", 2000) {
        let at = match number % 8 {
            0 => dice.below(320),
            1 => dice.below(bytes.len()),
            2 | 3 => leading[dice.below(leading.len())],
            _ => used[dice.below(used.len())],
        };
        let bit = u8::try_from(dice.below(8)).unwrap();
        flip(&world, &path, &expected, (at, bit), &mut tally).await;
    }
    let (all, used, values) = (bytes.len(), used.len(), expected.len());
    println!("flips in a closed file of {all} bytes ({used} not zero), {values} values: {tally:?}");
    assert!(tally.right > 0);
}

/// Whether every value in `found` is also in `right`. `found` may lack some.
fn within(found: &Value, right: &Value) -> bool {
    match (found, right) {
        (Value::Object(found), Value::Object(right)) => found
            .iter()
            .all(|(name, value)| right.get(name).is_some_and(|right| within(value, right))),
        (Value::Array(found), Value::Array(right)) => {
            found.iter().all(|one| right.iter().any(|right| within(one, right)))
        }
        (found, right) => found == right || found.is_null(),
    }
}

fn paths(workspace: &Workspace) -> Vec<String> {
    let mut paths: Vec<String> = ["", "1/", "2/", "3/", "4/", "3/sharing/", "2/access_controls/"]
        .map(|rest| workspace.dashboards(rest))
        .into();
    paths.push(workspace.access_controls());
    for rest in
        ["", "members/", "invites/", "domains/", "batch_exports/", "projects/", "activity_log/"]
    {
        paths.push(workspace.organization(rest));
    }
    paths.extend(["/api/users/@me/", "/api/personal_api_keys/"].map(str::to_owned));
    paths
}

#[tokio::test]
async fn flipped_bit_at_run_time_never_gives_a_wrong_response() {
    let (mut config, _) = with_clock();
    config.page_cache = 0;
    let (workspace, disk) = lived_in(config).await;
    let (owner, store, path) = (&workspace.owner, workspace.app.store(), workspace.path());
    let mut right = Vec::new();
    for path in paths(&workspace) {
        let answer = owner.get(&path).await;
        right.push((path, (answer.status, answer.body)));
    }
    let bytes = disk.world().bytes(&path).to_vec();
    let used: Vec<usize> = (4096..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let mut dice = TestRng(seed());
    let (mut same, mut refused, mut less, mut made) = (0, 0, 0, 0);
    for _ in 0..size("STEWARD_FLIPS", 1000_usize).div_ceil(8) {
        let (at, bit) = (used[dice.below(used.len())], dice.below(8));
        disk.with(|world| world.bytes_mut(&path)[at] ^= 1 << bit);
        made += 1;
        let mut shown_less = false;
        for (path, (status, body)) in &right {
            let found = owner.get(path).await;
            match found.status {
                _ if (found.status, &found.body) == (*status, body) => same += 1,
                500 | 503 => {
                    assert_eq!(found.body["type"], "server_error", "{}", found.body);
                    refused += 1;
                }
                401 | 403 | 404 => (shown_less, less) = (true, less + 1),
                _ => {
                    let shown = &found.body;
                    assert!(within(shown, body), "{at}.{bit} {path}: {shown} for {body}");
                    (shown_less, less) = (true, less + 1);
                }
            }
        }
        if shown_less {
            let told = store.scrub(record_registry(), Progress::silent()).await;
            let is_told = told.is_err() || told.is_ok_and(|found| found.problem_count > 0);
            assert!(is_told, "{at}.{bit}: the scrub reports nothing");
        }
        disk.with(|world| world.bytes_mut(&path)[at] ^= 1 << bit);
        // After a panic of redb the service opens the file again.
        eventually_async("the service responds as before", async || {
            let (path, (status, body)) = &right[0];
            let found = owner.get(path).await;
            (store.ready() && (found.status, &found.body) == (*status, body)).then_some(())
        })
        .await;
    }
    println!(
        "flips while the service runs: {made}, {} requests each: {same} right responses, {refused} errors, {less} incomplete \
         responses that the scrub explains",
        right.len()
    );
    workspace.assert_file_valid().await;
    assert!(same > 0);
}

#[tokio::test]
async fn scrub_finds_damage_that_requests_do_not_read() {
    let (mut config, clock) = with_clock();
    config.page_cache = 0;
    config.scrub = Some(Duration::from_hours(24));
    let disk = SimFileSystem::default();
    config.file_system = Arc::new(disk.clone());
    let workspace = Workspace::with(config).await;
    let (app, path) = (&workspace.app, workspace.path());
    let sound = eventually("a first scrub", || app.last_scrub()).await;
    assert!(sound.problems == 0 && sound.values > 20, "{sound:?}");
    let made = json!({ "name": "rots away unseen" });
    workspace.owner.post(&workspace.dashboards(""), made).await.ok();
    disk.with(|world| {
        let bytes = world.bytes_mut(&path);
        let found = places_of(b"rots away unseen", bytes);
        assert!(!found.is_empty());
        for at in found {
            bytes[at] ^= 1;
        }
    });
    assert_eq!(app.last_scrub(), Some(sound));
    clock.advance(Duration::from_hours(24));
    let found =
        eventually("a second scrub", || app.last_scrub().filter(|last| *last != sound)).await;
    assert!(found.problems > 0 && found.at == app.now(), "{found:?}");
    let list = workspace.owner.get(&workspace.dashboards("")).await;
    list.assert_error(500, "server_error", "error", "A server error occurred.", None);
}
