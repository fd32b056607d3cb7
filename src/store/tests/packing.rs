//! Packed tables: entries in blocks, in comparison with a plain map.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A packed table.
const PACKED: Table = Table::ActivityByItem;

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
fn walked(
    tx: &impl Raw,
    span: (&[u8], Option<&[u8]>),
    skip: usize,
    order: Order,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut note = |key: &[u8], payload: &[u8]| {
        seen.push((key.to_vec(), payload.to_vec()));
        Ok(if seen.len() == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    tx.raw_between(PACKED, span, skip, order, &mut note).expect("a sound table");
    seen
}

fn assert_shows(tx: &impl Raw, model: &Model, skip: usize, ends: &[Vec<u8>; 2]) {
    let (from, until) = (ends[0].as_slice(), ends[1].as_slice());
    for span in [(&[][..], None), (from, None), (&[][..], Some(until)), (from, Some(until))] {
        let within = |(key, _): &(&Vec<u8>, &Vec<u8>)| {
            key.as_slice() >= span.0 && span.1.is_none_or(|until| key.as_slice() < until)
        };
        let entries =
            || model.iter().filter(within).map(|(key, value)| (key.clone(), value.clone()));
        let upwards: Vec<_> = entries().skip(skip).take(20).collect();
        assert_eq!(walked(tx, span, skip, Order::Ascending), upwards);
        let downwards: Vec<_> = entries().rev().skip(skip).take(20).collect();
        assert_eq!(walked(tx, span, skip, Order::Descending), downwards);
    }
    for key in model.keys().chain(ends) {
        assert_eq!(tx.get_raw(PACKED, key).expect("read").as_ref(), model.get(key));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn packed_table_shows_the_same_as_a_map(
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
                    tx.put_raw(PACKED, &key, &payload);
                    model.insert(key, payload);
                }
                Step::Remove(key) => {
                    tx.remove_raw(PACKED, &key);
                    model.remove(&key);
                }
                Step::Apply => tx.apply().expect("applied"),
            }
        }
        assert_shows(&tx, &model, skip, &ends);
        tx.finish().expect("applied");
        transaction.commit().expect("committed");
        let snapshot = Snapshot::begin(&database).expect("a read");
        assert_shows(&snapshot, &model, skip, &ends);
        let mut each = Model::new();
        let mut note = |key: &[u8], payload: Result<&[u8]>| {
            each.insert(key.to_vec(), payload?.to_vec());
            Ok(())
        };
        snapshot.each(PACKED, &mut note).expect("a sound table");
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
    assert_eq!(walked(&*snapshot, (&[], None), 0, Order::Ascending).len(), 20);
    assert!(snapshot.len(PACKED).expect("read") <= 2);
}
