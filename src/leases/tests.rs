//! Tests of who gets a lease.

use std::collections::BTreeMap;

use tempfile::TempDir;
use tokio::sync::watch as channel;

use crate::base::secret::Seed;
use crate::base::time::{Clock, MAX_CLOCK_DIFFERENCE, ManualClock};
use crate::store::Store;
use crate::store::file_system::OsFileSystem;

use super::*;

const START: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);
const SECOND: Duration = Duration::from_secs(1);

fn holder(number: u128) -> Holder {
    Holder { node: "web".to_owned(), process: Uuid::from_u128(number) }
}

/// A data file with leases.
struct Leases {
    store: Store,
    _folder: TempDir,
}

impl Leases {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("steward.redb");
        let (disk, mut rng) = (OsFileSystem::shared(), Seed::generate().rng());
        let created = Store::create(disk, &path, 0, &mut rng, |_, _| Ok(()));
        Self { store: created.expect("a data file").0, _folder: folder }
    }

    /// Claims the lease of mail, and returns who has it and when it ends.
    async fn claim(&self, number: u128, now: Timestamp) -> (u128, Timestamp) {
        let claimed = self.store.write(move |tx| claim(tx, Duty::Mail, &holder(number), now));
        let lease = claimed.await.expect("a lease");
        (lease.holder.process.as_u128(), lease.expires_at)
    }
}

#[tokio::test]
async fn lease_has_one_holder_until_it_expires() {
    let leases = Leases::new();
    let end = START.plus(LEASE_TIME);
    assert_eq!(leases.claim(1, START).await, (1, end));
    assert_eq!(leases.claim(2, START).await, (1, end));
    assert_eq!(leases.claim(2, end.minus(SECOND)).await, (1, end));
    assert_eq!(leases.claim(2, end).await, (2, end.plus(LEASE_TIME)));
    assert_eq!(leases.claim(1, end).await, (2, end.plus(LEASE_TIME)));
}

#[tokio::test]
async fn holder_renews_its_lease_only_when_that_is_due() {
    let leases = Leases::new();
    let (_, end) = leases.claim(1, START).await;
    let due = START.plus(RENEWAL_AGE);
    assert_eq!(leases.claim(1, due.minus(SECOND)).await, (1, end));
    assert_eq!(leases.claim(1, due).await, (1, due.plus(LEASE_TIME)));
}

#[tokio::test]
async fn released_lease_is_free_at_once() {
    let leases = Leases::new();
    leases.claim(1, START).await;
    for number in [2, 1] {
        leases.store.write(move |tx| release(tx, &holder(number))).await.expect("a write");
    }
    assert_eq!(leases.claim(2, START).await.0, 2);
    leases.store.write(|tx| release(tx, &holder(1))).await.expect("a write");
    assert_eq!(leases.claim(1, START).await.0, 2, "only the holder releases a lease");
}

#[tokio::test]
async fn lease_of_a_clock_that_was_years_ahead_does_not_count() {
    let leases = Leases::new();
    leases.claim(1, START.plus(MAX_CLOCK_DIFFERENCE)).await;
    assert_eq!(leases.claim(2, START).await.0, 1, "the clocks may differ as much");
    leases.claim(1, START.plus(MAX_CLOCK_DIFFERENCE).plus(LEASE_TIME)).await;
    assert_eq!(leases.claim(2, START).await.0, 2);
}

#[tokio::test]
async fn worker_with_a_lease_that_ends_soon_waits_for_its_renewal() {
    let (show, shown) = channel::channel(HeldLeases::default());
    let mut lease = LeaseWatch { held: Some((Duty::Mail, shown)) };
    assert!(!lease.is_held_for(Duration::ZERO, START));
    let shows = |end: Timestamp| {
        show.send_modify(|held| held.ends = BTreeMap::from([(Duty::Mail, end)]));
    };
    shows(START.plus(SECOND * 30));
    assert!(lease.is_held_for(SECOND * 29, START) && !lease.is_held_for(SECOND * 30, START));
    let clock = Clock::Manual(ManualClock::at(START));
    let waiting = tokio::spawn(async move { lease.wait_until_held_for(SECOND * 30, &clock).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    shows(START.plus(SECOND * 31));
    assert!(waiting.await.expect("a task"));
    let mut other = LeaseWatch { held: Some((Duty::Maintenance, show.subscribe())) };
    drop(show);
    let clock = Clock::Manual(ManualClock::at(START));
    assert!(!other.wait_until_held_for(Duration::ZERO, &clock).await);
}

#[tokio::test]
async fn data_file_needs_no_lease_and_gets_none() {
    let leases = Leases::new();
    let clock = Clock::Manual(ManualClock::at(START));
    let renewal = LeaseRenewal::start(&leases.store, &clock, &[Duty::Mail]);
    let mut lease = renewal.watch(Duty::Mail);
    assert!(lease.is_held_for(LEASE_TIME, Timestamp::MAX));
    assert!(lease.wait_until_held_for(LEASE_TIME, &clock).await);
    renewal.stop().await;
    assert_eq!(list(&*leases.store.snapshot().expect("open")).expect("a read"), []);
}
