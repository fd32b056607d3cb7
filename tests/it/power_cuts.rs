//! Power cuts: what was acknowledged is whole, and nothing is half, whatever a cut leaves of what was not synced.
//!
//! One run of the service on a disk in memory is recorded; then the disk is cut at each of its steps, in many
//! ways, without running the service again. `STEWARD_CUTS=100000` makes that many cuts.

use std::time::Instant;

use blake3::Hash;
use serde_json::json;
use steward::config::Config;
use steward::resources::checks;
use steward::state::App;
use steward::store::{Order, Progress, Raw, Store, Table};
use tempfile::TempDir;

use crate::support::day::{Day, REQUESTS};
use crate::support::sim::{Dice, Event, SimDisk, World};
use crate::support::{Caller, Workspace};

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
    trace: Vec<Event>,
    /// How much was done when something had been acknowledged, and what the file was to hold from then on.
    acknowledged: Vec<(usize, Hash)>,
}

impl Run {
    async fn of(days: usize) -> Self {
        let disk = SimDisk::traced();
        let mut config = Config::default();
        config.disk = std::sync::Arc::new(disk.clone());
        let workspace = Workspace::with(config).await;
        let store = workspace.app.store().clone();
        let mut acknowledged = vec![(disk.position(), dump(&store))];
        for day in 0..days {
            let mut day = Day::new(&workspace, day);
            for at in 0..REQUESTS {
                let answer = day.request(at).await.expect("what it is about was made");
                assert!(
                    (200..300).contains(&answer.status),
                    "{at}: {} {}",
                    answer.status,
                    answer.body
                );
                let state = dump(&store);
                acknowledged.push((disk.position(), state));
            }
        }
        workspace.check().await;
        workspace.app.close().await;
        Self { workspace, trace: disk.trace(), acknowledged }
    }

    fn open(&self, disk: &SimDisk) -> Store {
        let opened =
            Store::open_on(std::sync::Arc::new(disk.clone()), &self.workspace.path(), CACHE);
        opened.expect("a cut leaves a file that opens")
    }

    /// The states that were on disk, one after the other, each with how much was done by then.
    async fn states(&self) -> Vec<(usize, Hash)> {
        let (mut world, mut states) = (World::default(), Vec::new());
        for (at, event) in self.trace.iter().enumerate() {
            world.apply(event);
            let counts = matches!(event, Event::Sync(_) | Event::SyncFolder);
            if !counts || !world.holds(&self.workspace.path()) {
                continue;
            }
            let store = self.open(&SimDisk::holding(world.whole()));
            let state = dump(&store);
            if states.last().is_none_or(|(_, last)| *last != state) {
                assert_clean(&store).await;
                states.push((at + 1, state));
            }
            store.close().await;
        }
        states
    }
}

async fn assert_clean(store: &Store) {
    let found = store.check(checks(), Progress::unheard()).await.expect("checked");
    assert_eq!(found.problems, [""; 0]);
}

#[tokio::test]
async fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged_and_leaves_nothing_half() {
    let begun = Instant::now();
    let run = Run::of(2).await;
    let path = run.workspace.path();
    let states = run.states().await;
    println!("recorded: {} steps, {} states, {:?}", run.trace.len(), states.len(), begun.elapsed());
    for (done, state) in &run.acknowledged {
        let synced = states.iter().find(|(_, known)| known == state);
        assert!(synced.is_some_and(|(at, _)| at <= done), "acknowledged before it was on disk");
    }
    let (cuts, begun) = (cuts(3000), Instant::now());
    let (mut made, mut absent, mut again, mut checked) = (0, 0, 0, 0);
    let mut world = World::default();
    for (at, event) in run.trace.iter().enumerate() {
        world.apply(event);
        let done = at + 1;
        let until = cuts * done / run.trace.len();
        while made < until {
            made += 1;
            let mut dice = Dice(made as u64);
            let left = world.cut(&mut dice);
            if !left.holds(&path) {
                assert!(states[0].0 > done, "cut {made}: the file is gone");
                absent += 1;
                continue;
            }
            let disk = SimDisk::holding(left);
            let store = run.open(&disk);
            let found = dump(&store);
            let place = states
                .iter()
                .rposition(|(at, state)| *at <= done.max(states[0].0) && *state == found);
            let place = place.or_else(|| states.iter().position(|(_, state)| *state == found));
            let place = place.unwrap_or_else(|| panic!("cut {made} at {at}: half of something"));
            let least = states.iter().rposition(|(at, _)| *at <= done).unwrap_or(0);
            assert!(
                place == least || place == least + 1,
                "cut {made} at {at}: {place} for {least}"
            );
            if made % 20 == 0 {
                assert_clean(&store).await;
                checked += 1;
            }
            // The power fails again soon after the file was opened.
            let second = (made % 10 == 0).then(|| SimDisk::holding(disk.world().cut(&mut dice)));
            store.close().await;
            if let Some(disk) = second {
                let store = run.open(&disk);
                assert!(
                    dump(&store) == found,
                    "cut {made} at {at}: another state after a second cut"
                );
                store.close().await;
                again += 1;
            }
        }
    }
    println!(
        "{made} cuts (seeds 1 to {made}): {absent} left no file yet, {again} were followed by a second one, \
         {checked} were checked whole; {:?}",
        begun.elapsed()
    );
    assert!(absent > 0 && made == cuts);
}
