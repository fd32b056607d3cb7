//! Input/output errors at every disk access: each response is a success whose change stays, or a 503 without
//! a partial change, and the service recovers by itself.
//!
//! Each request of a day is repeated. First its first disk access fails, then its second, and so on, until
//! the request makes no further access. `STEWARD_FAULTS=all` makes every access fail instead of a sample, and
//! `STEWARD_FAULTS=few` takes a smaller sample.

use crate::disks::power_cuts::dump;
use crate::prelude::*;
use crate::support::day::QUICK_REQUESTS;
use crate::support::sim::{self, Access, EIO, ENOSPC, EROFS, Fault};

/// How many workspaces run concurrently: each waits for its file most of the time.
const SIDE_BY_SIDE: usize = 7;

/// More accesses than any request makes.
const ENOUGH: usize = 2_000;

/// A workspace on a disk that can fail.
struct Faulty {
    workspace: Workspace,
    disk: SimFileSystem,
    /// The acknowledged dashboards by path, each with its version.
    known: BTreeMap<String, (u64, Value)>,
    /// The last refused request, if it is being retried.
    tried: Option<usize>,
    /// How many accesses had failed when the service was last ready.
    seen: u64,
    tally: Tally,
}

/// The outcomes of the faults.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    faults: usize,
    refused: usize,
    /// How often the service reported that it is not ready.
    unready: usize,
    /// How often a refused change was done nevertheless.
    done: usize,
}

impl Faulty {
    async fn new() -> Self {
        let disk = SimFileSystem::default();
        // Nothing but requests and what follows from them uses the disk while this clock stands still.
        let (mut config, _) = with_clock();
        config.file_system = Arc::new(disk.clone());
        // Every read goes to the file.
        config.page_cache = 0;
        let workspace = Workspace::with(config).await;
        let (known, tally) = (BTreeMap::new(), Tally::default());
        Self { workspace, disk, known, tried: None, seen: 0, tally }
    }

    async fn recover(&mut self) {
        let workspace = self.workspace.clone();
        let ready = workspace.anonymous().get("/_readyz").await;
        if ready.status != 200 {
            ready.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
            self.tally.unready += 1;
        }
        // A failed read makes the writer look at the file, and open it again. The writer does so before the next write.
        let list = workspace.dashboards("?limit=1");
        eventually_async("the service is ready and reads again", async || {
            let store = workspace.app.store();
            if !store.ready() || store.write(|_| Ok(())).await.is_err() {
                return None;
            }
            let read = workspace.owner.get(&list).await;
            if read.status != 200 {
                read.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
            }
            (read.status == 200).then_some(())
        })
        .await;
        self.seen = self.disk.fired();
    }

    /// Makes a request with `faults`, and looks at the result after they are over. Returns `None` if the day
    /// has no such request now, else whether no fault happened.
    async fn strike(
        &mut self,
        day: &mut SampleWorkload<'_>,
        at: usize,
        faults: Vec<Fault>,
    ) -> Option<bool> {
        self.disk.fail(faults, (self.tally.faults * 7 + at) as u64);
        let answer = day.request(at).await?;
        // A fault may also happen after the previous request, in background work.
        let struck = self.disk.fired() > self.seen;
        match answer.status {
            200..300 => {}
            503 => answer.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None),
            // The refused previous attempt was done nevertheless.
            400 | 404 => assert_eq!(self.tried, Some(at), "{}", answer.body),
            status => panic!("{at}: {status} {}", answer.body),
        }
        self.tried =
            (answer.status == 503).then_some(at).or(self.tried.filter(|tried| *tried == at));
        if struck {
            self.tally.faults += 1;
            self.tally.refused += usize::from(answer.status == 503);
            self.recover().await;
        } else {
            assert_ne!(answer.status, 503, "{at}: refused without a fault");
        }
        self.disk.fail([], 0);
        self.look(day, answer.status == 503).await;
        Some(!struck)
    }

    /// Asserts that all known dashboards are unchanged, or, after a refused request, changed completely or
    /// not at all.
    async fn look(&mut self, day: &SampleWorkload<'_>, refused: bool) {
        for path in day.dashboards() {
            let found = self.read(&path).await;
            let before = self.known.get(&path);
            if found.status == 404 {
                // The dashboard was deleted, or a refused request deletes it.
                continue;
            }
            let now = (found.version(), found.ok());
            if let Some(before) = before.filter(|_| refused) {
                assert!(now.0 == before.0 || now.0 == before.0 + 1, "{path}: unexpected version");
                assert!(now.0 != before.0 || now.1 == before.1, "{path} is partially changed");
                self.tally.done += usize::from(now.0 != before.0);
            }
            self.known.insert(path, now);
        }
    }

    /// Reads what is stored. The service notices a fault in background work a moment later, and opens the file again.
    async fn read(&self, path: &str) -> TestResponse {
        eventually_async("it is read", async || {
            let found = self.workspace.owner.get(path).await;
            (found.status != 503).then_some(found)
        })
        .await
    }

    /// Asserts that everything that the service shows is on disk.
    async fn end(self) -> Tally {
        self.workspace.assert_file_valid().await;
        self.workspace.app.close().await;
        let world = self.disk.world();
        let open = async |world| {
            let disk = SimFileSystem::holding(world);
            let store = sim::open(&disk, &self.workspace.path(), 0).expect("a store");
            let held = dump(&store);
            store.close().await;
            held
        };
        let shown = open(world.shown()).await;
        let on_disk = open(world.after_power_cut(&mut TestRng(seed()))).await;
        assert!(on_disk == shown, "the service showed a state that is not on disk");
        self.tally
    }
}

const UNAVAILABLE: &str = "The service is temporarily unavailable. Try again shortly.";

fn fault(access: Access, after: usize) -> Fault {
    let errno = if after.is_multiple_of(2) { EIO } else { ENOSPC };
    Fault { access, after: after as u64, times: 1, errno }
}

/// For each request, makes one access of this kind after another fail. After access n comes access `factor` · n + `step`.
async fn every(access: Access, (factor, step): (usize, usize)) -> Tally {
    let runs = (0..SIDE_BY_SIDE).map(async |part| {
        let mut faulty = Faulty::new().await;
        let workspace = faulty.workspace.clone();
        let mut day = SampleWorkload::new(&workspace, part);
        for at in 0..QUICK_REQUESTS {
            let mut after = 0;
            while at % SIDE_BY_SIDE == part && after < ENOUGH {
                match faulty.strike(&mut day, at, vec![fault(access, after)]).await {
                    Some(false) => after = factor * after + step,
                    _ => break,
                }
            }
            if at % SIDE_BY_SIDE != part {
                faulty.strike(&mut day, at, Vec::new()).await;
            }
            assert!(after < ENOUGH, "{at} makes too many accesses");
        }
        faulty.end().await
    });
    total(runs).await
}

async fn total(runs: impl Iterator<Item = impl Future<Output = Tally>>) -> Tally {
    let mut all = Tally::default();
    for tally in join_all(runs).await {
        all.faults += tally.faults;
        all.refused += tally.refused;
        all.unready += tally.unready;
        all.done += tally.done;
    }
    all
}

fn report(what: &str, tally: Tally) {
    println!(
        "{what}: {} faults, {} requests refused with 503, {} of them done nevertheless; {} times unready",
        tally.faults, tally.refused, tally.done, tally.unready
    );
    assert!(tally.faults > 0);
}

/// Returns the choice for `STEWARD_FAULTS`: `few`, not set, or `all`.
fn choose<T>(few: T, usual: T, all: T) -> T {
    match std::env::var("STEWARD_FAULTS").as_deref() {
        Ok("few") => few,
        Ok("all") => all,
        Ok(other) => panic!("STEWARD_FAULTS is few or all, not {other}"),
        Err(_) => usual,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_write_call_is_rejected_or_done_and_the_service_recovers() {
    report("failed writes", every(Access::Write, choose((4, 3), (1, 3), (1, 1))).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_sync_is_rejected_and_the_service_recovers() {
    let tally = every(Access::Sync, (1, 1)).await;
    report("failed syncs", tally);
    // A sync of background work may fail too. It belongs to no request, so no request is refused.
    assert!(tally.refused > tally.faults / 2, "{} of {}", tally.refused, tally.faults);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_file_growth_is_rejected_and_the_service_recovers() {
    let mut faulty = Faulty::new().await;
    let path = faulty.workspace.dashboards("");
    let body = json!({ "name": "large", "description": "x".repeat(16_000) });
    let mut made = 0;
    while faulty.tally.faults < 3 {
        faulty.disk.fail([fault(Access::SetLen, 0)], 0);
        let answer = faulty.workspace.owner.post(&path, body.clone()).await;
        if faulty.disk.fired() == faulty.seen {
            made += 1;
            answer.ok();
            continue;
        }
        answer.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
        faulty.tally.faults += 1;
        faulty.tally.refused += 1;
        faulty.recover().await;
    }
    let found = faulty.read(&path).await.ok()["count"].as_u64().expect("a count");
    // The file shrinks after a commit is on disk, so a refused change may be done.
    assert!((made..=made + 3).contains(&found), "{found} of {made}");
    faulty.tally.done = usize::try_from(found - made).expect("few");
    report("failed changes of the length", faulty.end().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_read_call_is_rejected_or_done_and_the_service_recovers() {
    report("failed reads", every(Access::Read, choose((8, 7), (2, 1), (1, 1))).await);
}

/// The disk continues to fail while the file is rewritten and opened again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_during_recovery_are_recovered_too() {
    let runs = (0..choose(2, SIDE_BY_SIDE, 4 * SIDE_BY_SIDE)).map(async |part| {
        let mut faulty = Faulty::new().await;
        let workspace = faulty.workspace.clone();
        let mut dice = TestRng(seed() + part as u64);
        let mut day = SampleWorkload::new(&workspace, part);
        for at in 0..QUICK_REQUESTS {
            let accesses =
                [Access::Write, Access::Sync, Access::SetLen, Access::Folder, Access::Read];
            let mut struck = vec![fault(Access::Sync, dice.below(2))];
            for _ in 0..=dice.below(3) {
                let access = accesses[dice.below(5)];
                let after = dice.below(if access == Access::Read { 300 } else { 30 });
                struck
                    .push(fault(access, if access == Access::Folder { after % 3 } else { after }));
            }
            faulty.strike(&mut day, at, struck).await;
            faulty.strike(&mut day, at, Vec::new()).await;
        }
        faulty.end().await
    });
    report("faults upon faults", total(runs).await);
}

/// Each access of a compaction fails once: of the copy, of its changes, and of its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failed_access_of_a_compaction_is_recovered_and_loses_nothing() {
    let mut faulty = Faulty::new().await;
    let (path, owner) = (faulty.workspace.dashboards(""), faulty.workspace.owner.clone());
    let store = faulty.workspace.app.store().clone();
    let mut made = 0;
    let (writes, others) = choose((40, 2), (9, 1), (1, 1));
    for (access, step) in [
        (Access::Folder, others),
        (Access::Sync, others),
        (Access::SetLen, others),
        (Access::Write, writes),
    ] {
        for after in (0..ENOUGH).step_by(step) {
            let name = json!({ "name": format!("{access:?} {after}") });
            // The service may have noticed a failed read only now, and refuses writes while it opens the file again.
            let created = eventually_async("a dashboard is created", async || {
                let created = owner.post(&path, name.clone()).await;
                (created.status != 503).then_some(created)
            });
            created.await.ok();
            made += 1;
            faulty.disk.fail([fault(access, after)], after as u64);
            let done = store.compact(&Progress::silent()).await;
            faulty.disk.fail([], 0);
            let refused = done.err().map(|error| error.status());
            if faulty.disk.fired() == faulty.seen {
                assert_eq!(refused, None, "{access:?} {after}: refused without a fault");
                break;
            }
            assert!(refused.is_none_or(|status| status == 503), "{access:?} {after}: {refused:?}");
            faulty.tally.faults += 1;
            faulty.tally.refused += usize::from(refused.is_some());
            faulty.recover().await;
            assert_eq!(faulty.read(&path).await.ok()["count"], json!(made), "{access:?} {after}");
        }
    }
    report("failed accesses of compactions", faulty.end().await);
}

/// Like a file system that found itself damaged: nothing can be written until an operator repairs it.
#[tokio::test]
async fn read_only_disk_rejects_writes_until_it_is_repaired() {
    let mut faulty = Faulty::new().await;
    let path = faulty.workspace.dashboards("");
    let owner = faulty.workspace.owner.clone();
    let made = owner.post(&path, json!({ "name": "before" })).await.ok();
    let never = |access| Fault { access, after: 0, times: u64::MAX, errno: EROFS };
    faulty.disk.fail([Access::Write, Access::SetLen, Access::Sync, Access::Folder].map(never), 0);
    for _ in 0..3 {
        let refused = owner.post(&path, json!({ "name": "lost" })).await;
        refused.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
        assert_eq!(faulty.workspace.anonymous().get("/_readyz").await.status, 503);
        assert_eq!(faulty.workspace.anonymous().get("/_livez").await.status, 200);
    }
    faulty.disk.fail([], 0);
    faulty.recover().await;
    let after = owner.post(&path, json!({ "name": "after" })).await.ok();
    let found = owner.get(&path).await.ok();
    let ids: Vec<_> = found["results"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&after["id"], &made["id"]]);
    faulty.end().await;
}

#[tokio::test]
async fn failed_sync_rewrites_the_file_and_leaves_no_other_files() {
    let mut faulty = Faulty::new().await;
    let (path, data) = (faulty.workspace.dashboards(""), faulty.workspace.path());
    let owner = faulty.workspace.owner.clone();
    // If the disk has no space for a second file or the rename fails, the service continues with the old
    // file. If it is unknown whether the rename took effect, the service rewrites the file once more.
    for (after, anew) in [(None, true), (Some(0), false), (Some(1), false), (Some(2), true)] {
        let before = faulty.disk.world().node(&data);
        let sync = [fault(Access::Sync, 0)];
        let folder =
            after.map(|after| Fault { access: Access::Folder, after, times: 1, errno: ENOSPC });
        faulty.disk.fail(sync.into_iter().chain(folder), 1);
        let refused = owner.post(&path, json!({ "name": "lost" })).await;
        refused.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
        faulty.recover().await;
        let world = faulty.disk.world();
        assert_eq!(world.node(&data) != before, anew, "{after:?}");
        assert_eq!(world.names().collect::<Vec<_>>(), [data.as_path()]);
    }
    owner.post(&path, json!({ "name": "kept" })).await.ok();
    assert_eq!(owner.get(&path).await.ok()["count"], 1);
    faulty.end().await;
}
