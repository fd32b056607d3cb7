//! Lists with ranks compared with plain lists, over writes that are kept and writes that are undone. The buckets are
//! small, so that few rows divide them.

mod batches;
mod damage;

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use redb::Database;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::super::engine::definition;
use super::super::ranking::RankBuilder;
use super::super::record_registry::{RecordRegistry, RecordType, RecordTypeOf};
use super::super::sealed::seal;
use super::super::{
    CheckReport, Index, Key, Order, Progress, Redaction, Row, Snapshot, Store, Tx, Window, WriteTx,
    impl_record,
};
use super::layout::{Height, state};
use super::*;
use crate::error::{Error, Result};
use crate::secret::Seed;

const LIMITS: Limits =
    Limits { build_from: 12, keep_from: 6, max_parts: 4, min_skip: 0, rows_per_build: 5 };

/// A record in two lists: of all records by name, and of the shown records by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Item {
    owner: u64,
    id: u64,
    shown: bool,
}

static SHOWN: RankedList = RankedList {
    limits: LIMITS,
    ..RankedList::of_records(Table::Insights, 8, |payload| {
        Row::<Item>::visit(payload, |row| Ok(row.meta.shown))
    })
};

impl_record!(Item {
    table: Insights,
    key: |item| -> (u64, u64) { (item.owner, item.id) },
    counts: [|item| item.shown.then(|| item.owner.encoded())],
    ranked: &SHOWN,
    owner: |_, _| Ok(None),
});

/// A record in a list that is an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    owner: u64,
    id: u64,
    name: Option<String>,
}

static BY_NAME: Index<Named, (u64, String)> =
    Index::covering(Table::DashboardsByName, |named| Some((named.owner, named.name.clone()?)));
static BY_NAME_RANKED: RankedList = RankedList {
    limits: LIMITS,
    ..RankedList::of_index(Table::DashboardsByName, Table::Dashboards, 8)
};

impl_record!(Named {
    table: Dashboards,
    key: |named| -> (u64, u64) { (named.owner, named.id) },
    indexes: [&BY_NAME],
    // The count of another tenant shares the table of counts.
    counts: [
        |named| named.name.is_some().then(|| named.owner.encoded()),
        |named| Some((named.owner, named.id).encoded()),
    ],
    ranked: &BY_NAME_RANKED,
    owner: |_, _| Ok(None),
});

const RECORD_TYPES: &[&dyn RecordType] =
    &[&RecordTypeOf::<Item>(Redaction::Open), &RecordTypeOf::<Named>(Redaction::Open)];

fn registry() -> RecordRegistry {
    RecordRegistry { record_types: RECORD_TYPES.to_vec(), is_pending: |_, _| Ok(false) }
}

#[derive(Debug, Clone)]
enum Step {
    /// Shows or hides items with these ids, and names as many records.
    Put(u64, Vec<u64>, bool),
    /// Removes what has these ids.
    Remove(u64, Vec<u64>),
}

#[derive(Debug, Clone)]
enum Round {
    /// Writes that may share a batch, each with whether it is kept.
    Writes(Vec<(Step, bool)>),
    /// Builds one part of the ranks of an owner.
    BuildPart(u64),
    BuildAll,
}

type Model = BTreeMap<(u64, u64), bool>;

impl Step {
    fn imagine(&self, model: &mut Model) {
        match self {
            Self::Put(owner, ids, shown) => {
                model.extend(ids.iter().map(|id| ((*owner, *id), *shown)));
            }
            Self::Remove(owner, ids) => {
                model.retain(|key, _| key.0 != *owner || !ids.contains(&key.1));
            }
        }
    }

    fn perform(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        match self {
            Self::Put(owner, ids, shown) => ids.iter().try_for_each(|id| {
                tx.put(&Item { owner: *owner, id: *id, shown: *shown })?;
                tx.put(&Named { owner: *owner, id: *id, name: shown.then(|| name(*id)) })
            }),
            Self::Remove(owner, ids) => ids.iter().try_for_each(|id| {
                tx.remove::<Item>(&(*owner, *id))?;
                tx.remove::<Named>(&(*owner, *id)).map(drop)
            }),
        }
    }
}

/// Names in another order than the ids, some of them equal.
fn name(id: u64) -> String {
    format!("{:03}", id * 7919 % 101 / 2)
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let ids = prop_oneof![
        vec(0u64..120, 1..4),
        (0u64..120, 1u64..60).prop_map(|(first, count)| (first..first + count).collect()),
    ];
    let step = (0u64..2, ids, 0u8..4).prop_map(|(owner, ids, kind)| match kind {
        0 => Step::Remove(owner, ids),
        1 => Step::Put(owner, ids, false),
        _ => Step::Put(owner, ids, true),
    });
    let round = prop_oneof![
        6 => vec((step, prop::bool::weighted(0.8)), 1..5).prop_map(Round::Writes),
        2 => (0u64..2).prop_map(Round::BuildPart),
        1 => Just(Round::BuildAll),
    ];
    vec(round, 1..14)
}

struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> (Self, Store) {
        let scratch = Self { folder: tempfile::tempdir().expect("a folder") };
        let mut rng = Seed::generate().rng();
        let created = Store::create(&scratch.path(), 0, &mut rng, |_, _| Ok(()));
        let (store, ()) = created.expect("a data file");
        (scratch, store)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("steward.redb")
    }

    fn open(&self) -> Store {
        Store::open(&self.path(), 0).expect("a data file")
    }

    /// Changes the ranks of the closed file without the store.
    fn change_ranks(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &'static [u8], &'static [u8]>),
    ) {
        let database = Database::open(self.path()).expect("the file");
        let transaction = database.begin_write().expect("a transaction");
        change(&mut transaction.open_table(definition(Table::Ranks)).expect("the table"));
        transaction.commit().expect("committed");
    }
}

async fn write(store: &Store, step: Step, is_kept: bool) {
    let rule = move |tx: &mut WriteTx<'_>| {
        step.perform(tx)?;
        if is_kept { Ok(()) } else { Err(Error::denied("no")) }
    };
    assert_eq!(store.write(rule).await.is_ok(), is_kept);
}

async fn build_part(store: &Store, owner: u64) {
    let tenant = owner.encoded();
    let rule = move |tx: &mut WriteTx<'_>| {
        tx.build_ranks(&SHOWN, &tenant)?;
        tx.build_ranks(&BY_NAME_RANKED, &tenant)
    };
    store.write(rule).await.expect("a part of the ranks");
}

async fn build_all(store: &Store) {
    RankBuilder::new(&registry()).build(store).await.expect("all ranks");
}

async fn check(store: &Store) -> CheckReport {
    store.check(registry(), Progress::silent()).await.expect("a checked file")
}

fn shown_ids(tx: &Snapshot, owner: u64, window: Window) -> Vec<u64> {
    let mut ids = Vec::new();
    let walked = tx.scan_ranked::<Item, _>(
        &owner,
        window,
        |meta| meta.shown,
        |row| {
            ids.push(row.meta.id);
            Ok(())
        },
    );
    walked.expect("a readable list");
    ids
}

fn ids_by_name(tx: &Snapshot, owner: u64, window: Window) -> Vec<u64> {
    let mut ids = Vec::new();
    let walked = tx.walk(&BY_NAME, &owner, window, |row| {
        ids.push(row.meta.id);
        Ok(())
    });
    walked.expect("a readable list");
    ids
}

/// Asserts that each page of both lists is the one of the model.
fn assert_pages(tx: &Snapshot, model: &Model) {
    for owner in 0..2 {
        let rows = model.iter().filter(|(key, shown)| key.0 == owner && **shown);
        let mut by_id: Vec<u64> = rows.map(|(key, _)| key.1).collect();
        let mut by_name = by_id.clone();
        by_name.sort_by_key(|id| (name(*id), *id));
        for order in [Order::Ascending, Order::Descending] {
            for offset in 0..by_id.len() + 2 {
                let window = Window { offset, limit: 3, order };
                let page =
                    |ids: &[u64]| ids.iter().copied().skip(offset).take(3).collect::<Vec<_>>();
                assert_eq!(shown_ids(tx, owner, window), page(&by_id), "{window:?}");
                assert_eq!(ids_by_name(tx, owner, window), page(&by_name), "{window:?}");
            }
            by_id.reverse();
            by_name.reverse();
        }
    }
}

fn assert_ranks_are_right(tx: &Snapshot) {
    let mut report = CheckReport::default();
    let lists: Vec<_> = registry().ranked().collect();
    super::check(tx, &lists, &mut report).expect("a readable file");
    assert_eq!(report.problems, [""; 0]);
}

fn state_of(tx: &Snapshot, list: &RankedList, owner: u64) -> Option<State> {
    state(tx, list, &owner.encoded()).expect("a readable state")
}

/// Asserts that a tenant has ranks if its list is long, and none if it is short.
fn assert_states(tx: &Snapshot, model: &Model) {
    for (list, owner) in
        [&SHOWN, &BY_NAME_RANKED].into_iter().flat_map(|list| [(list, 0), (list, 1)])
    {
        let rows = model.iter().filter(|(key, shown)| key.0 == owner && **shown).count() as u64;
        let state = state_of(tx, list, owner);
        assert!(rows < LIMITS.build_from || state == Some(State::Complete), "{state:?}");
        assert!(rows >= LIMITS.keep_from || state.is_none(), "{state:?}");
    }
}

#[test]
fn every_page_of_a_ranked_list_is_that_of_a_plain_list() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner = TestRunner::new(ProptestConfig { cases: 48, ..ProptestConfig::default() });
    let outcome = runner.run(&rounds(), |rounds| {
        runtime.block_on(async {
            let (_scratch, store) = Scratch::new();
            let mut model = Model::new();
            for round in rounds {
                match round {
                    Round::Writes(writes) => {
                        for (step, _) in writes.iter().filter(|(_, is_kept)| *is_kept) {
                            step.imagine(&mut model);
                        }
                        join_all(
                            writes.into_iter().map(|(step, is_kept)| write(&store, step, is_kept)),
                        )
                        .await;
                    }
                    Round::BuildPart(owner) => build_part(&store, owner).await,
                    Round::BuildAll => {
                        build_all(&store).await;
                        assert_states(&store.snapshot().expect("an open file"), &model);
                    }
                }
                assert_ranks_are_right(&store.snapshot().expect("an open file"));
                assert_pages(&store.snapshot().expect("an open file"), &model);
            }
            assert_eq!(check(&store).await.problems, [""; 0]);
            store.close().await;
        });
        Ok(())
    });
    outcome.expect("ranked lists agree with plain lists");
}

/// Creates a file in which owner 1 has 100 shown items with ranks.
async fn with_ranks() -> (Scratch, Store, Model) {
    let (scratch, store) = Scratch::new();
    let (step, mut model) = (Step::Put(1, (0..100).collect(), true), Model::new());
    step.imagine(&mut model);
    write(&store, step, true).await;
    build_all(&store).await;
    assert_states(&store.snapshot().expect("an open file"), &model);
    (scratch, store, model)
}

/// Returns how many buckets or groups owner 1 has.
fn spans(store: &Store, list: &RankedList, height: Height) -> usize {
    let snapshot = store.snapshot().expect("an open file");
    let mut found = 0;
    let head = list.key(height, &1u64.encoded());
    let mut visit = |key: &[u8], _: Result<&[u8]>| {
        found += usize::from(key.starts_with(&head));
        Ok(())
    };
    snapshot.each(Table::Ranks, &mut visit).expect("a readable table");
    found
}

#[tokio::test]
async fn buckets_and_groups_are_divided_and_go_away() {
    let (_scratch, store, mut model) = with_ranks().await;
    for list in [&SHOWN, &BY_NAME_RANKED] {
        assert!((25..=60).contains(&spans(&store, list, Height::Bucket)));
        assert!((7..=30).contains(&spans(&store, list, Height::Group)));
    }
    let step = Step::Remove(1, (10..90).collect());
    step.imagine(&mut model);
    write(&store, step, true).await;
    assert!(spans(&store, &SHOWN, Height::Bucket) <= 12);
    assert_pages(&store.snapshot().expect("an open file"), &model);
    write(&store, Step::Remove(1, (0..100).collect()), true).await;
    let left = store.snapshot().expect("an open file").len(Table::Ranks);
    assert_eq!(left.expect("a number"), 0);
}

#[tokio::test]
async fn ranks_stay_when_the_file_is_opened_again_and_are_not_in_backups() {
    let (scratch, store, model) = with_ranks().await;
    let to = scratch.folder.path().join("backup.redb");
    store.backup(to.clone(), registry(), Progress::silent()).await.expect("a backup");
    store.close().await;
    let opened = scratch.open();
    assert_states(&opened.snapshot().expect("an open file"), &model);
    opened.close().await;
    let backup = Store::open(&to, 0).expect("a data file");
    let snapshot = backup.snapshot().expect("an open file");
    assert_eq!(snapshot.len(Table::Ranks).expect("a number"), 0);
    assert_pages(&snapshot, &model);
    build_all(&backup).await;
    assert_states(&backup.snapshot().expect("an open file"), &model);
    backup.close().await;
}

#[tokio::test]
async fn list_that_becomes_long_wakes_the_builder() {
    let (_scratch, store) = Scratch::new();
    let due = store.ranks_due();
    write(&store, Step::Put(1, (0..11).collect(), true), true).await;
    assert!(futures_util::FutureExt::now_or_never(due.notified()).is_none());
    write(&store, Step::Put(1, vec![11], true), true).await;
    due.notified().await;
    build_all(&store).await;
    let snapshot = store.snapshot().expect("an open file");
    assert_eq!(state_of(&snapshot, &SHOWN, 1), Some(State::Complete));
    store.close().await;
}
