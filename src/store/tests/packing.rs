//! Tables in comparison with a plain map, packed ones with their entries in blocks. Walks of a part of a table or index.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A packed table.
const PACKED: Table = Table::ActivityByItem;
/// A packed table and another one.
const TABLES: [Table; 2] = [PACKED, Table::Outbox];

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of one entry, or the end of a batch.
#[derive(Debug, Clone)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Apply,
}

/// Keys with few distinct beginnings, so that they share some and many are equal.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    (0u8..3, 0u8..40, 0u8..2).prop_map(|(tenant, id, rest)| {
        [&[tenant; 16][..], &[id], &[rest][..usize::from(rest)]].concat()
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let payloads = prop_oneof![
        3 => vec(any::<u8>(), 0..40),
        1 => vec(any::<u8>(), 600..700),
        1 => Just(vec![0; 5_000]),
    ];
    prop_oneof![
        6 => (keys(), payloads).prop_map(|(key, payload)| Step::Put(key, payload)),
        // As in an index, whose payload is the end of its key.
        2 => keys().prop_map(|key| Step::Put(key.clone(), key[10..].to_vec())),
        3 => keys().prop_map(Step::Remove),
        1 => Just(Step::Apply),
    ]
}

/// Returns what a walk shows.
fn walked(tx: &impl Raw, table: Table, span: KeySpan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut note = |key: &[u8], payload: &[u8]| {
        seen.push((key.to_vec(), payload.to_vec()));
        Ok(if seen.len() == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    tx.raw_between(table, span, &mut note).expect("a sound table");
    seen
}

fn assert_shows(tx: &impl Raw, table: Table, model: &Model, skip: usize, ends: &[Vec<u8>; 2]) {
    let (from, until) = (ends[0].as_slice(), ends[1].as_slice());
    let all = KeySpan { from: &[], until: None, skip, order: Order::Ascending };
    let spans = [
        all,
        KeySpan { from, ..all },
        KeySpan { until: Some(until), ..all },
        KeySpan { from, until: Some(until), ..all },
    ];
    for span in spans {
        let within = |(key, _): &(&Vec<u8>, &Vec<u8>)| {
            key.as_slice() >= span.from && span.until.is_none_or(|until| key.as_slice() < until)
        };
        let entries =
            || model.iter().filter(within).map(|(key, value)| (key.clone(), value.clone()));
        let upwards: Vec<_> = entries().skip(skip).take(20).collect();
        assert_eq!(walked(tx, table, span), upwards);
        let downwards: Vec<_> = entries().rev().skip(skip).take(20).collect();
        let span = KeySpan { order: Order::Descending, ..span };
        assert_eq!(walked(tx, table, span), downwards);
    }
    for key in model.keys().chain(ends) {
        assert_eq!(tx.get_raw(table, key).expect("read").as_ref(), model.get(key));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn tables_show_the_same_as_a_map(
        table in prop::sample::select(TABLES.to_vec()),
        steps in vec(steps(), 0..120),
        skip in 0usize..6,
        ends in [keys(), keys()],
    ) {
        let scratch = Scratch::empty();
        let database = Database::create(scratch.path()).expect("a file");
        let transaction = begin(&database).expect("a transaction");
        let mut tx = WriteTx::new(&transaction);
        tx.create_tables().expect("tables");
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Put(key, payload) => {
                    tx.put_raw(table, &key, &payload);
                    model.insert(key, payload);
                }
                Step::Remove(key) => {
                    tx.remove_raw(table, &key);
                    model.remove(&key);
                }
                Step::Apply => tx.apply().expect("applied"),
            }
        }
        assert_shows(&tx, table, &model, skip, &ends);
        tx.finish().expect("applied");
        transaction.commit().expect("committed");
        let snapshot = Snapshot::begin(&database).expect("a read");
        assert_shows(&snapshot, table, &model, skip, &ends);
        let mut each = Model::new();
        let mut note = |key: &[u8], payload: Result<&[u8]>| {
            each.insert(key.to_vec(), payload?.to_vec());
            Ok(())
        };
        snapshot.each(table, &mut note).expect("a sound table");
        prop_assert_eq!(each, model);
    }
}

/// A batch of new entries is stored in few values.
#[tokio::test]
async fn entries_of_one_batch_share_values() {
    let (_scratch, store) = Scratch::new();
    let write = |tx: &mut WriteTx<'_>| {
        for id in 0..100u64 {
            let key = [&[7; 40][..], &id.to_be_bytes()].concat();
            tx.put_raw(PACKED, &key, &key[8..]);
        }
        Ok(())
    };
    store.write(write).await.expect("written");
    let snapshot = store.snapshot().expect("open");
    let all = KeySpan { from: &[], until: None, skip: 0, order: Order::Ascending };
    assert_eq!(walked(&*snapshot, PACKED, all).len(), 20);
    assert!(snapshot.len(PACKED).expect("read") <= 2);
}

fn ranked((owner, id, rank): (u64, u64, String)) -> Thing {
    let meta = Meta { owner, id, code: None, rank: Some(rank) };
    Thing { meta, note: String::new() }
}

/// Returns a visitor that notes the ids of its rows and breaks after `most` of them.
fn notes(ids: &mut Vec<u64>, most: usize) -> impl FnMut(Row<'_, Thing>) -> Result<ControlFlow<()>> {
    move |row| {
        ids.push(row.meta.id);
        Ok(if ids.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn range_scan_returns_the_records_within_its_bounds(
        things in proptest::collection::btree_map((0_u64..3, 0_u64..6), "[ab\\x00]{0,2}", 0..12),
        from in (0_u64..3, 0_u64..6),
        until in (0_u64..3, 0_u64..6),
        ranks in ("[ab\\x00]{0,2}", "[ab\\x00]{0,2}"),
        most in 1_usize..20,
    ) {
        let (_scratch, store) = Scratch::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let all: Vec<_> = things.iter().map(|((owner, id), rank)| (*owner, *id, rank.clone())).collect();
        let put = all.clone();
        let write = store.write(move |tx| put.iter().cloned().try_for_each(|one| tx.put(&ranked(one))));
        runtime.block_on(write).expect("things");
        let tx = store.snapshot().expect("a snapshot");

        for order in [Order::Ascending, Order::Descending] {
            let mut found = Vec::new();
            tx.scan_between(&from, &until, order, notes(&mut found, most)).expect("read");
            let within = all.iter().filter(|(owner, id, _)| (from..until).contains(&(*owner, *id)));
            let mut wanted: Vec<u64> = within.map(|(_, id, _)| *id).collect();
            if order == Order::Descending {
                wanted.reverse();
            }
            wanted.truncate(most);
            prop_assert_eq!(found, wanted);
        }

        let span = (from.0, ranks.0)..(until.0, ranks.1);
        let mut found = Vec::new();
        tx.walk_down(&BY_RANK, &span.start, &span.end, notes(&mut found, most)).expect("read");
        let sorted: BTreeSet<_> = all.iter().map(|(owner, id, rank)| ((*owner, rank.clone()), *id)).collect();
        let within = sorted.iter().rev().filter(|(key, _)| span.contains(key));
        let wanted: Vec<u64> = within.map(|(_, id)| *id).take(most).collect();
        prop_assert_eq!(found, wanted);
    }
}
