//! Power cuts: what was acknowledged is whole, and nothing is half, whatever a cut leaves of what was not synced.
//!
//! One run of the service on a disk in memory is recorded; then the disk is cut at each of its steps, in many
//! ways, without running the service again. `STEWARD_CUTS=100000` makes that many cuts.

use std::sync::Arc;
use std::time::Instant;

use blake3::Hash;
use steward::config::Config;
use steward::resources::checks;
use steward::store::{Order, Progress, Raw, Store, Table, beside};

use crate::support::day::{Day, REQUESTS};
use crate::support::sim::{self, Access, Dice, EIO, Event, Fault, SimDisk, World};
use crate::support::{Workspace, eventually};

const CACHE: usize = 1 << 20;

/// What all values of the file come to.
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
        snapshot
            .raw_between(*table, (&[], None), 0, Order::Ascending, &mut visit)
            .expect("readable");
    }
    hasher.finalize()
}

/// How many cuts are made: `default`, unless the environment says more.
fn cuts(default: usize) -> usize {
    let told = std::env::var("STEWARD_CUTS").ok();
    told.map_or(default, |told| told.parse().expect("STEWARD_CUTS is a number"))
}

/// A run of the service, all that it did to the disk, and what it acknowledged meanwhile.
struct Run {
    workspace: Workspace,
    disk: SimDisk,
    /// How much was done when something had been acknowledged, and what the file was to hold from then on.
    acknowledged: Vec<(usize, Hash)>,
    /// The states that were on disk, one after the other, each with how much was done by then.
    states: Vec<(usize, Hash)>,
    /// The states that were to be on disk when a sync failed, each with how much was done before that.
    tried: Vec<(usize, Hash)>,
    /// How many requests were refused for a failed sync.
    refused: usize,
}

/// What came of the cuts.
#[derive(Debug, Default)]
struct Tally {
    made: usize,
    absent: usize,
    again: usize,
    checked: usize,
}

impl Run {
    async fn begin() -> Self {
        let disk = SimDisk::traced();
        let mut config = Config::default();
        config.disk = Arc::new(disk.clone());
        let workspace = Workspace::with(config).await;
        let (acknowledged, states, tried) = (Vec::new(), Vec::new(), Vec::new());
        let mut run = Self { workspace, disk, acknowledged, states, tried, refused: 0 };
        run.acknowledge();
        run
    }

    fn store(&self) -> &Store {
        self.workspace.app.store()
    }

    /// What is there now was acknowledged.
    fn acknowledge(&mut self) {
        let state = dump(self.store());
        self.acknowledged.push((self.disk.position(), state));
    }

    /// Makes the requests of a day; where one is refused, waits until the service is ready again.
    async fn requests(&mut self, number: usize, mut before: impl FnMut(&SimDisk, usize)) {
        let workspace = self.workspace.clone();
        let mut day = Day::new(&workspace, number);
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

    /// Ends the service, and finds out what was on disk when.
    async fn end(mut self) -> Self {
        self.workspace.check().await;
        self.workspace.app.close().await;
        let mut world = World::default();
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

    /// What the file holds once all is on disk; unless that is `known`, it has to hold together.
    async fn sound(&self, world: &World, known: Option<Hash>) -> Hash {
        let store = self.open(&SimDisk::holding(world.whole())).expect("what is synced opens");
        let state = dump(&store);
        if known != Some(state) {
            assert_eq!(problems(&store).await, [""; 0]);
        }
        store.close().await;
        state
    }

    fn open(&self, disk: &SimDisk) -> Result<Store, String> {
        sim::open(disk, &self.workspace.path(), CACHE).map_err(|error| error.to_string())
    }

    /// Cuts the power so many times, spread over all that was done, where `happens` says what of that reached
    /// the disk; tells what was lost or is half.
    async fn cut(&self, cuts: usize, happens: fn(&Event) -> bool) -> Result<Tally, String> {
        let trace = self.disk.trace();
        let (mut world, mut tally) = (World::default(), Tally::default());
        for (at, event) in trace.iter().enumerate() {
            if happens(event) {
                world.apply(event);
            }
            while tally.made < cuts * (at + 1) / trace.len() {
                tally.made += 1;
                let cut = self.cut_once(&world, at + 1, &mut tally).await;
                cut.map_err(|what| format!("cut {} after step {at}: {what}", tally.made))?;
            }
        }
        Ok(tally)
    }

    async fn cut_once(&self, world: &World, done: usize, tally: &mut Tally) -> Result<(), String> {
        let mut dice = Dice(tally.made as u64);
        let left = world.cut(&mut dice);
        if !left.holds(&self.workspace.path()) {
            tally.absent += 1;
            let published = self.states.first().is_none_or(|(at, _)| *at <= done);
            return if published { Err("the file is gone".to_owned()) } else { Ok(()) };
        }
        let disk = SimDisk::holding(left);
        let store = self.open(&disk)?;
        let found = dump(&store);
        // What was synced, or what is being synced.
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
        // The power fails again soon after the file was opened.
        let second = tally.made.is_multiple_of(10).then(|| disk.world().cut(&mut dice));
        store.close().await;
        if let Some(second) = second {
            tally.again += 1;
            let store = self.open(&SimDisk::holding(second))?;
            let same = dump(&store) == found;
            store.close().await;
            return if same { Ok(()) } else { Err("another state after a second cut".to_owned()) };
        }
        Ok(())
    }
}

async fn problems(store: &Store) -> Vec<String> {
    store.check(checks(), Progress::unheard()).await.expect("checked").problems
}

fn report(what: &str, run: &Run, tally: &Tally, begun: Instant) {
    println!(
        "{what}: {} cuts (seeds 1 to {}) over {} steps of the disk and {} states; {} before there was a file, {} \
         followed by a second cut, {} checked whole; {} requests refused; {:?}",
        tally.made,
        tally.made,
        run.disk.position(),
        run.states.len(),
        tally.absent,
        tally.again,
        tally.checked,
        run.refused,
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged_and_leaves_nothing_half() {
    let begun = Instant::now();
    let mut run = Run::begin().await;
    run.requests(0, |_, _| ()).await;
    let copy = beside(&run.workspace.path(), "restoring");
    let made = run.store().backup(copy, checks(), Progress::unheard()).await;
    made.expect("a backup");
    run.requests(1, |_, _| ()).await;
    run.store().compact(&Progress::unheard()).await.expect("compacted");
    run.acknowledge();
    run.store().restore("now".to_owned()).await.expect("restored");
    run.acknowledge();
    run.requests(2, |_, _| ()).await;
    let run = run.end().await;
    let tally = run.cut(cuts(3000), |_| true).await.expect("nothing is lost");
    report("power cuts", &run, &tally, begun);
    assert!(tally.absent > 0 && tally.again > 0 && tally.checked > 0 && run.refused == 0);
}

/// What a failed sync leaves is written anew elsewhere, and cuts come before, meanwhile and after.
#[tokio::test]
async fn a_power_cut_after_a_failed_sync_loses_nothing_that_was_acknowledged() {
    let begun = Instant::now();
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
    let tally = run.cut(cuts(700), |_| true).await.expect("nothing is lost");
    report("power cuts after failed syncs", &run, &tally, begun);
    assert!(run.refused >= 10, "{}", run.refused);
}

/// The test above can fail: it catches a disk that does not do what it says.
#[tokio::test]
async fn a_disk_that_ignores_syncs_is_caught() {
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
