//! The scrub, which reads the file in slices while others write.

use std::sync::atomic::{AtomicUsize, Ordering as AtomicOrdering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::change_feed::{ChangeFeed, ChangeWatch, CommittedChange};
use super::schema::count_key;
use super::sealed::seal;
use super::*;

/// One value in each slice.
const SMALLEST: ScrubPace = ScrubPace { slice: Duration::ZERO, pause: Duration::from_micros(50) };

async fn scrub(store: &Store) -> CheckReport {
    store.scrub(checks(), SMALLEST).await.expect("a checked file")
}

/// Pseudo-random numbers below 2^32.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 32
    }
}

/// Creates, updates, moves in indexes and deletes things and lines of owners 0 to 2. Some writes are undone.
async fn write(store: &Store, (owner, id, choice): (u64, u64, u64)) -> Result<()> {
    let rule = move |tx: &mut WriteTx<'_>| {
        for id in [id, id + 3, id + 20] {
            if choice < 3 {
                tx.remove::<Thing>(&(owner, id))?;
                tx.remove::<Line>(&(owner, id))?;
                continue;
            }
            let rank = ((choice * id) % 7).to_string();
            let line = Line { place: (owner, id), rank: rank.repeat(60) };
            tx.put(&line)?;
            let meta = Meta { owner, id, code: None, rank: Some(rank) };
            tx.put(&Thing { meta, note: "x".repeat(usize::try_from(choice).unwrap_or(0)) })?;
        }
        if choice > 5 { Err(Error::denied("no")) } else { Ok(()) }
    };
    store.write(rule).await
}

/// How many batches are written beside one scrub. A scrub that hardly runs meanwhile misses none of their changes.
const BATCHES: usize = 100;

/// Writes beside the scrubs.
struct Writing {
    /// The batches that may be written now.
    batches: Semaphore,
    /// The number of writes that were not undone.
    kept: AtomicUsize,
}

impl Writing {
    fn new() -> Self {
        Self { batches: Semaphore::new(0), kept: AtomicUsize::new(0) }
    }

    /// Writes in batches of four until the scrubs are over.
    async fn run(&self, store: &Store) {
        let mut dice = Dice(1);
        while let Ok(batch) = self.batches.acquire().await {
            batch.forget();
            let writes = [(); 4].map(|()| (dice.roll() % 3, 4 + dice.roll() % 40, dice.roll() % 8));
            let written = join_all(writes.map(|values| write(store, values))).await;
            let kept = written.iter().filter(|outcome| outcome.is_ok()).count();
            self.kept.fetch_add(kept, AtomicOrdering::Relaxed);
        }
    }

    /// Scrubs `rounds` times, and longer until `writes` writes were kept. Passes each report to `check`.
    async fn scrub(
        &self,
        store: &Store,
        (rounds, writes): (usize, usize),
        mut check: impl FnMut(CheckReport),
    ) {
        let mut round = 0;
        eventually_async("writes beside the scrubs", async || {
            self.batches.add_permits(BATCHES - self.batches.available_permits());
            check(scrub(store).await);
            round += 1;
            let is_over = round >= rounds && self.kept.load(AtomicOrdering::Relaxed) > writes;
            is_over.then_some(())
        })
        .await;
        self.batches.close();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_reports_nothing_while_the_records_change() {
    let scratch = Scratch::closed().await;
    let store = scratch.open().expect("a file that opens");
    let writing = Writing::new();
    let scrubs = writing.scrub(&store, (10, 100), |report| assert_clean(&report));
    tokio::join!(scrubs, writing.run(&store));
    let report = scrub(&store).await;
    assert_clean(&report);
    assert!(report.values > 100, "{} values", report.values);
    assert_clean(&check(&store).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_finds_a_wrong_count_of_a_tenant_that_changes_all_the_time() {
    let scratch = Scratch::closed().await;
    let count = count_key(Table::Projects, &1u64.encoded());
    scratch.behind_the_back(Table::Counts, |table| {
        let sealed = seal(Table::Counts, &count, &4u64.encoded());
        table.insert(count.as_slice(), sealed.as_slice()).expect("written");
    });
    let store = scratch.open().expect("a file that opens");
    let writing = Writing::new();
    let scrubs = writing.scrub(&store, (5, 50), |report| {
        let (found, line) = (report.problems, "counts/1: the stored count of projects/1 is ");
        assert!(found.len() == 1 && found[0].starts_with(line), "{found:?}");
    });
    tokio::join!(scrubs, writing.run(&store));
}

#[tokio::test]
async fn scrub_names_the_entry_of_no_record() {
    let scratch = Scratch::closed().await;
    let stray = BY_RANK.entry(&thing(8)).expect("a ranked thing");
    scratch.behind_the_back(Table::ProjectsPrivate, |table| {
        let sealed = seal(Table::ProjectsPrivate, &stray, &thing(1).key().encoded());
        table.insert(stray.as_slice(), sealed.as_slice()).expect("written");
    });
    let store = scratch.open().expect("a file that opens");
    let line = "projects_private/1: an entry belongs to no record";
    assert_eq!(scrub(&store).await.problems, [format!("{line}, {}", sealed::HexKey(&stray))]);
}

#[test]
fn changes_that_no_scrub_fetches_are_bounded() {
    let feed = &Arc::<ChangeFeed>::default();
    let change =
        CommittedChange { table: Table::Projects, key: vec![1], count: Some(vec![2]), delta: 1 };
    let watch = ChangeWatch::begin(Arc::clone(feed));
    feed.publish(vec![change.clone()], || Ok(())).expect("published");
    assert_eq!(watch.next_state(Table::Users, || ()).1, Some(vec![change.clone()]));
    for _ in 0..3 {
        let many = vec![change.clone(); 50_000];
        feed.publish(many, || Ok(())).expect("published");
    }
    assert_eq!(watch.next_state(Table::Users, || ()).1, None);
    drop(watch);
    feed.publish(vec![change], || Ok(())).expect("published");
    let watch = ChangeWatch::begin(Arc::clone(feed));
    assert_eq!(watch.next_state(Table::Users, || ()).1, Some(Vec::new()));
}

#[tokio::test]
async fn scrub_of_a_closed_file_is_refused() {
    let (_scratch, store) = Scratch::new();
    store.close().await;
    assert_unavailable(&store.scrub(checks(), SMALLEST).await);
}
