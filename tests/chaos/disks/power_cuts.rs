//! Power cuts: acknowledged writes survive completely, and no write is partial, whatever a cut loses of the
//! data that was not synced.
//!
//! One run of the service on a disk in memory is recorded. Then the power is cut after each step of the
//! recording, in many ways, without running the service again. `STEWARD_CUTS=100000` makes that many cuts.

use blake3::Hash;
use steward::testing::store::{Raw, beside};

use crate::prelude::*;
use crate::support::day::REQUESTS;
use crate::support::sim::{self, Access, DiskState, EIO, Event, Fault};

const CACHE: usize = 1 << 20;

/// Returns a hash over all values of the file.
pub fn dump(store: &Store) -> Hash {
    let snapshot = store.snapshot().expect("an open file");
    let mut hasher = blake3::Hasher::new();
    for table in Table::ALL {
        hasher.update(table.name().as_bytes());
        let mut visit = |key: &[u8], payload: &[u8]| {
            for part in [key, payload] {
                hasher.update(&part.len().to_be_bytes());
                hasher.update(part);
            }
            Ok(std::ops::ControlFlow::Continue(()))
        };
        snapshot.raw_walk(*table, &[], 0, Order::Ascending, &mut visit).expect("readable");
    }
    hasher.finalize()
}

/// A recorded run of the service: its disk accesses and the states that it acknowledged.
struct Run {
    workspace: Workspace,
    disk: SimFileSystem,
    /// The acknowledged states, each with the number of disk accesses before its acknowledgment.
    acknowledged: Vec<(usize, Hash)>,
    /// The states that reached the disk, in order, each with the number of disk accesses until then.
    states: Vec<(usize, Hash)>,
    /// The states whose sync failed, each with the number of disk accesses before that.
    tried: Vec<(usize, Hash)>,
    /// How many requests failed because of a failed sync.
    refused: usize,
}

/// The outcomes of the cuts.
#[derive(Debug, Default)]
struct Tally {
    made: usize,
    absent: usize,
    again: usize,
    checked: usize,
}

impl Run {
    async fn begin() -> Self {
        let disk = SimFileSystem::recording();
        let (mut config, _) = with_clock();
        config.file_system = Arc::new(disk.clone());
        let workspace = Workspace::with(config).await;
        let (acknowledged, states, tried) = (Vec::new(), Vec::new(), Vec::new());
        let mut run = Self { workspace, disk, acknowledged, states, tried, refused: 0 };
        run.acknowledge();
        run
    }

    fn store(&self) -> &Store {
        self.workspace.app.store()
    }

    /// Records the current state as acknowledged.
    fn acknowledge(&mut self) {
        let state = dump(self.store());
        self.acknowledged.push((self.disk.position(), state));
    }

    /// Makes the requests of a day. After a refused request, waits until the service is ready again.
    async fn requests(&mut self, number: usize, mut before: impl FnMut(&SimFileSystem, usize)) {
        let workspace = self.workspace.clone();
        let mut day = SampleWorkload::new(&workspace, number);
        for at in 0..REQUESTS {
            before(&self.disk, at);
            let Some(answer) = day.request(at).await else { continue };
            if answer.status == 503 {
                self.refused += 1;
                eventually("the service is ready again", || self.store().ready().then_some(()))
                    .await;
                continue;
            }
            assert!((200..300).contains(&answer.status), "{at}: {} {}", answer.status, answer.body);
            self.acknowledge();
        }
    }

    /// Stops the service and finds out when each state reached the disk.
    async fn end(mut self) -> Self {
        self.workspace.assert_file_valid().await;
        self.workspace.app.close().await;
        let mut world = DiskState::default();
        for (at, event) in self.disk.trace().iter().enumerate() {
            if matches!(event, Event::FailedSync(..)) {
                let state = self.sound(&world, None).await;
                self.tried.push((at, state));
            }
            world.apply(event);
            let counts = matches!(event, Event::Sync(_) | Event::SyncFolder);
            if counts && world.holds(&self.workspace.path()) {
                let last = self.states.last().map(|(_, state)| *state);
                let state = self.sound(&world, last).await;
                if last != Some(state) {
                    self.states.push((at + 1, state));
                }
            }
        }
        for (done, state) in &self.acknowledged {
            let synced = self.states.iter().find(|(_, known)| known == state);
            assert!(synced.is_some_and(|(at, _)| at <= done), "acknowledged before it was on disk");
        }
        self
    }

    /// Returns the state of the file when everything written is on disk. Checks the file, unless the state is
    /// `known`.
    async fn sound(&self, world: &DiskState, known: Option<Hash>) -> Hash {
        let store = self.open(&SimFileSystem::holding(world.whole())).expect("a file that opens");
        let state = dump(&store);
        if known != Some(state) {
            assert_eq!(problems(&store).await, [""; 0]);
        }
        store.close().await;
        state
    }

    fn open(&self, disk: &SimFileSystem) -> Result<Store, String> {
        sim::open(disk, &self.workspace.path(), CACHE).map_err(|error| error.to_string())
    }

    /// Cuts the power `cuts` times, first after the first step, then spread over the recording. Only events for which `happens` returns true
    /// reach the disk. Fails if an acknowledged write is lost or a write is partial.
    async fn cut(&self, cuts: usize, happens: fn(&Event) -> bool) -> Result<Tally, String> {
        let (trace, seed) = (self.disk.trace(), seed());
        let (mut world, mut tally) = (DiskState::default(), Tally::default());
        for (at, event) in trace.iter().enumerate() {
            if happens(event) {
                world.apply(event);
            }
            while tally.made < (cuts * (at + 1)).div_ceil(trace.len()) {
                tally.made += 1;
                let dice = TestRng((seed << 32) + tally.made as u64);
                let cut = self.cut_once(&world, at + 1, dice, &mut tally).await;
                cut.map_err(|what| format!("cut {} after step {at}: {what}", tally.made))?;
            }
        }
        Ok(tally)
    }

    async fn cut_once(
        &self,
        world: &DiskState,
        done: usize,
        mut dice: TestRng,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let left = world.after_power_cut(&mut dice);
        if !left.holds(&self.workspace.path()) {
            tally.absent += 1;
            let published = self.states.first().is_none_or(|(at, _)| *at <= done);
            return if published { Err("the file is gone".to_owned()) } else { Ok(()) };
        }
        let disk = SimFileSystem::holding(left);
        let store = self.open(&disk)?;
        let found = dump(&store);
        // Either the last synced state, or the state whose sync is under way.
        let synced = self.states.iter().rposition(|(at, _)| *at <= done).unwrap_or(0);
        let next = self.states.iter().skip(synced).take(2).map(|(_, state)| state);
        let tried = self.tried.iter().find(|(at, _)| *at >= done).map(|(_, state)| state);
        if !next.chain(tried).any(|state| *state == found) {
            return Err(format!("neither state {synced} nor the next one"));
        }
        if tally.made.is_multiple_of(20) {
            tally.checked += 1;
            if let Some(problem) = problems(&store).await.first() {
                return Err(problem.clone());
            }
        }
        // The power fails again soon after the file is opened.
        let second = tally.made.is_multiple_of(10).then(|| disk.world().after_power_cut(&mut dice));
        store.close().await;
        if let Some(second) = second {
            tally.again += 1;
            let store = self.open(&SimFileSystem::holding(second))?;
            let same = dump(&store) == found;
            store.close().await;
            return if same {
                Ok(())
            } else {
                Err("a different state after a second cut".to_owned())
            };
        }
        Ok(())
    }
}

async fn problems(store: &Store) -> Vec<String> {
    store.check(record_registry(), Progress::silent()).await.expect("checked").problems
}

fn report(what: &str, run: &Run, tally: &Tally) {
    println!(
        "{what}: {} cuts over {} steps of the disk and {} states; {} before there was a file, {} followed by a second cut, \
         {} checked whole; {} requests refused",
        tally.made,
        run.disk.position(),
        run.states.len(),
        tally.absent,
        tally.again,
        tally.checked,
        run.refused
    );
}

#[tokio::test]
async fn power_cut_at_any_moment_loses_no_acknowledged_write() {
    let mut run = Run::begin().await;
    run.requests(0, |_, _| ()).await;
    let copy = beside(&run.workspace.path(), "restoring");
    run.store().backup(copy, record_registry(), Progress::silent()).await.expect("a backup");
    run.requests(1, |_, _| ()).await;
    run.store().compact(&Progress::silent()).await.expect("compacted");
    run.acknowledge();
    run.requests(3, |_, _| ()).await;
    run.store().compact_in_place(&Progress::silent()).await.expect("compacted");
    run.acknowledge();
    run.store().restore("now".to_owned()).await.expect("restored");
    run.acknowledge();
    run.requests(2, |_, _| ()).await;
    let run = run.end().await;
    let tally = run.cut(size("STEWARD_CUTS", 3000), |_| true).await.expect("nothing lost");
    report("power cuts", &run, &tally);
    assert!(tally.absent > 0 && tally.again > 0 && tally.checked > 0 && run.refused == 0);
}

/// A failed sync makes the service rewrite the file. The cuts happen before, during and after the rewrite.
#[tokio::test]
async fn power_cut_after_a_failed_sync_loses_no_acknowledged_write() {
    let mut run = Run::begin().await;
    for number in 0..2 {
        run.requests(number, |disk, at| {
            let after = (at as u64 / 3) % 2;
            let fault = Fault { access: Access::Sync, after, times: 1, errno: EIO };
            disk.fail((at % 3 == 0).then_some(fault), (number * REQUESTS + at) as u64);
        })
        .await;
    }
    let run = run.end().await;
    let tally = run.cut(size("STEWARD_CUTS", 700), |_| true).await.expect("nothing lost");
    report("power cuts after failed syncs", &run, &tally);
    assert!(run.refused >= 10, "{}", run.refused);
}

/// Proves that the tests above can fail: they detect a disk that ignores syncs.
#[tokio::test]
async fn disk_that_ignores_syncs_is_detected() {
    let mut run = Run::begin().await;
    run.requests(0, |_, _| ()).await;
    let run = run.end().await;
    let honest = run.cut(200, |_| true).await;
    assert!(honest.is_ok(), "{honest:?}");
    let lost = run.cut(200, |event| !matches!(event, Event::Sync(_))).await;
    println!("without syncs: {lost:?}");
    assert!(lost.is_err());
    let lost = run.cut(200, |event| !matches!(event, Event::SyncFolder)).await;
    assert!(lost.is_err_and(|what| what.ends_with("the file is gone")));
}
