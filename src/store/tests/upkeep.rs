//! Indexes, counts and versions compared with a model, over writes that are kept and writes that are undone.

use std::ops::ControlFlow;

use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

type Model = BTreeMap<(u64, u64), (u64, Thing)>;

#[derive(Debug, Clone)]
enum Step {
    Put(Thing),
    Touch(u64, u64),
    Remove(u64, u64),
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stays,
    Refused,
    Panics,
}

fn steps() -> impl Strategy<Value = Step> {
    let thing = (0u64..2, 0u64..5, option::of(0u64..4), option::of("[ab]{0,2}"), "[xy]?");
    prop_oneof![
        3 => thing.prop_map(|(owner, id, code, rank, note)| {
            Step::Put(Thing { meta: Meta { owner, id, code, rank }, note })
        }),
        1 => (0u64..2, 0u64..5).prop_map(|(owner, id)| Step::Touch(owner, id)),
        1 => (0u64..2, 0u64..5).prop_map(|(owner, id)| Step::Remove(owner, id)),
    ]
}

fn writes() -> impl Strategy<Value = Vec<(Vec<Step>, End)>> {
    let end = prop_oneof![3 => Just(End::Stays), 1 => Just(End::Refused), 1 => Just(End::Panics)];
    vec((vec(steps(), 0..8), end), 1..6)
}

impl Step {
    /// Applies the step to the model. A `Put` that a unique index refuses and a `Touch` of a missing record
    /// do nothing.
    fn imagine(&self, model: &mut Model) {
        match self {
            Self::Remove(owner, id) => {
                model.remove(&(*owner, *id));
            }
            Self::Touch(owner, id) => {
                if let Some((version, _)) = model.get_mut(&(*owner, *id)) {
                    *version += 1;
                }
            }
            Self::Put(thing) => {
                let takes = |(key, (_, other)): (&(u64, u64), &(u64, Thing))| {
                    *key != thing.key() && other.meta.code == thing.meta.code
                };
                if thing.meta.code.is_some() && model.iter().any(takes) {
                    return;
                }
                let (version, before) = model.get(&thing.key()).cloned().unzip();
                if before.as_ref() != Some(thing) {
                    let version = version.unwrap_or(0) + 1;
                    model.insert(thing.key(), (version, thing.clone()));
                }
            }
        }
    }

    fn perform(&self, tx: &mut WriteTx<'_>) -> Result<()> {
        match self {
            Self::Remove(owner, id) => tx.remove::<Thing>(&(*owner, *id)).map(drop),
            Self::Touch(owner, id) => match tx.bump_version::<Thing>(&(*owner, *id)) {
                Err(error) if error.status() == 404 => Ok(()),
                other => other,
            },
            Self::Put(thing) => match tx.put(thing) {
                Err(error) if error.cause().is_some_and(|text| text.contains("second record")) => {
                    Ok(())
                }
                other => other,
            },
        }
    }
}

async fn write(store: &Store, steps: Vec<Step>, end: End) -> Result<()> {
    let rule = move |tx: &mut WriteTx<'_>| {
        steps.iter().try_for_each(|step| step.perform(tx))?;
        match end {
            End::Stays => Ok(()),
            End::Refused => Err(Error::denied("no")),
            End::Panics => panic!("a rule that panics"),
        }
    };
    store.write(rule).await
}

/// Asserts that every way of reading the file agrees with the model.
fn assert_shows(tx: &Snapshot, model: &Model) -> Result<()> {
    let everything = Window { offset: 0, limit: usize::MAX, order: Order::Ascending };
    let mut fields = Model::new();
    tx.scan::<Thing, _>(&(), everything, |row| {
        let version = row.version;
        let thing = row.into_record()?;
        fields.insert(thing.key(), (version, thing));
        Ok(())
    })?;
    assert_eq!(&fields, model);
    for owner in 0..2 {
        let metas = model.values().map(|(_, thing)| &thing.meta);
        let mut of_owner: Vec<_> = metas.filter(|meta| meta.owner == owner).collect();
        assert_eq!(tx.count::<Thing>(&owner)?, of_owner.len() as u64);
        of_owner.retain(|meta| meta.rank.is_some());
        of_owner.sort_by_key(|meta| (&meta.rank, meta.id));
        let ranked: Vec<_> = of_owner.iter().map(|meta| meta.id).collect();
        for order in [Order::Ascending, Order::Descending] {
            let mut expected = ranked.clone();
            if order == Order::Descending {
                expected.reverse();
            }
            let expected: Vec<_> = expected.into_iter().skip(1).take(2).collect();
            for index in [&BY_RANK, &WHOLE_BY_RANK] {
                let mut walked = Vec::new();
                let window = Window { offset: 1, limit: 2, order };
                tx.walk(index, &owner, window, |row| {
                    let version = row.version;
                    let thing = row.into_record()?;
                    assert_eq!(model.get(&thing.key()), Some(&(version, thing.clone())));
                    walked.push(thing.meta.id);
                    Ok(())
                })?;
                assert_eq!(walked, expected);
            }
        }
        let keys: Vec<_> = ranked.iter().map(|id| (owner, *id)).collect();
        assert_eq!(tx.keys(&BY_RANK, &owner, usize::MAX)?, keys);
    }
    for code in 0..4 {
        let holder = model.values().find(|(_, thing)| thing.meta.code == Some(code));
        assert_eq!(tx.lookup(&BY_CODE, &code)?, holder.map(|(_, thing)| thing.key()));
    }
    Ok(())
}

/// Runs the writes, one after the other or all in one batch, and returns the result of each.
async fn run(
    store: &Store,
    writes: Vec<(Vec<Step>, End)>,
    batched: bool,
) -> Vec<(End, Result<(), u16>)> {
    let one = |(steps, end): (Vec<Step>, End)| async move {
        (end, write(store, steps, end).await.map_err(|error| error.status()))
    };
    if !batched {
        let mut ends = Vec::new();
        for write in writes {
            ends.push(one(write).await);
        }
        return ends;
    }
    let blocker = Blocker::hold(store).await;
    let (ends, released) = tokio::join!(join_all(writes.into_iter().map(one)), blocker.release());
    released.expect("released");
    ends
}

#[test]
fn indexes_counts_and_versions_follow_only_committed_writes() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (_scratch, store) = Scratch::new();
    let mut runner = TestRunner::new(ProptestConfig { cases: 32, ..ProptestConfig::default() });
    let outcome = runner.run(&(writes(), any::<bool>()), |(writes, batched)| {
        runtime.block_on(async {
            store.write(|tx| tx.remove_some::<Thing>(&(), usize::MAX)).await.expect("emptied");
            let mut model = Model::new();
            for (steps, _) in writes.iter().filter(|(_, end)| *end == End::Stays) {
                for step in steps {
                    step.imagine(&mut model);
                }
            }
            for (end, status) in run(&store, writes, batched).await {
                let expected = match end {
                    End::Stays => Ok(()),
                    End::Refused => Err(403),
                    End::Panics => Err(500),
                };
                assert_eq!(status, expected);
            }
            let snapshot = store.snapshot().expect("an open file");
            assert_shows(&snapshot, &model).expect("a readable file");
            assert_clean(&check(&store).await);
        });
        Ok(())
    });
    outcome.expect("the store agrees with the model");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn rollback_restores_all_values(
        kept in vec(steps(), 0..8),
        undone in vec(steps(), 0..16),
        numbers in 0u8..3,
    ) {
        let scratch = Scratch::empty();
        let database = Database::create(scratch.path()).expect("a file");
        let transaction = begin(&database).expect("a transaction");
        let mut tx = WriteTx::new(&transaction);
        tx.create_tables().expect("tables");
        for step in &kept {
            step.perform(&mut tx).expect("written");
        }
        tx.savepoint().expect("whole");
        let before = values(&tx);
        for step in &undone {
            step.perform(&mut tx).expect("written");
        }
        for _ in 0..numbers {
            tx.next_number(Table::Projects).expect("a number");
        }
        tx.rollback();
        prop_assert_eq!(values(&tx), before);
        prop_assert!(tx.changes().is_empty() && !tx.wrote_anything());
    }
}

/// Returns every value that a write under way reads.
fn values(tx: &WriteTx<'_>) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for table in Table::ALL {
        let mut note = |key: &[u8], payload: &[u8]| {
            all.push((*table, key.to_vec(), payload.to_vec()));
            Ok(ControlFlow::Continue(()))
        };
        tx.raw_walk(*table, &[], 0, Order::Ascending, &mut note).expect("a sound table");
    }
    all
}

#[tokio::test]
async fn putting_an_identical_record_changes_nothing() {
    let (_scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let before = dump(&store);
    let changes = store.write(|tx| tx.put(&thing(1)).map(|()| tx.changes().len())).await;
    assert_eq!(changes.expect("put again"), 0);
    assert_eq!(dump(&store), before);
}

#[tokio::test]
async fn record_changed_twice_is_one_change() {
    let (_scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&thing(1))).await.expect("put");
    let seen = store.write(|tx| {
        for note in ["a", "b"] {
            tx.put(&Thing { note: note.to_owned(), ..thing(1) })?;
        }
        let note =
            |payload: &Option<Vec<u8>>| Row::<Thing>::parse(payload.as_deref().unwrap_or_default());
        let changes = tx.changes().iter();
        changes.map(|change| Ok((note(&change.before)?.note, note(&change.after)?.note))).collect()
    });
    let seen: Vec<(String, String)> = seen.await.expect("changed");
    assert_eq!(seen, [("note 1".to_owned(), "b".to_owned())]);
}

#[tokio::test]
async fn numbers_stay_in_the_range_of_their_cell() {
    let (_scratch, store) = Scratch::new();
    let next = |tx: &mut WriteTx<'_>| tx.next_number(Table::Projects);
    // Numbers of another cell, and older ones, change nothing.
    let reserve =
        |number: u64| move |tx: &mut WriteTx<'_>| tx.reserve_number(Table::Projects, number);
    for (number, expected) in [(100_000_001, 1), (1, 2), (99_999_998, 99_999_999)] {
        store.write(reserve(number)).await.expect("noted");
        assert_eq!(store.write(next).await.expect("a number"), expected);
    }
    assert_eq!(store.write(next).await.expect("the last number"), 100_000_000);
    let refused = store.write(next).await.expect_err("no number is left");
    assert_eq!((refused.status(), refused.code()), (400, "limit_reached"));
    let found = Cell::new(1).expect("a cell");
    let cell = move |tx: &mut WriteTx<'_>| {
        tx.set_cell(found);
        Ok(())
    };
    store.write(cell).await.expect("founded");
    assert_eq!(store.write(next).await.expect("a number"), 100_000_001);
    // Versions are not ids, and never end.
    store.write(reserve(200_000_000)).await.expect("noted");
    let version = |tx: &mut WriteTx<'_>| tx.next_in_sequence(Table::Projects);
    assert_eq!(store.write(version).await.expect("a version"), 200_000_001);
}
