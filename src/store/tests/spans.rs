//! Walks of a part of a table or index, from one key to another.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;

fn ranked((owner, id, rank): (u64, u64, String)) -> Thing {
    let meta = Meta { owner, id, code: None, rank: Some(rank) };
    Thing { meta, note: String::new() }
}

/// Returns a visitor that notes the ids of its rows and breaks after `most` of them.
fn noting(
    ids: &mut Vec<u64>,
    most: usize,
) -> impl FnMut(Row<'_, Thing>) -> Result<ControlFlow<()>> {
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
            tx.scan_between(&from, &until, order, noting(&mut found, most)).expect("read");
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
        tx.walk_down(&BY_RANK, &span.start, &span.end, noting(&mut found, most)).expect("read");
        let sorted: BTreeSet<_> = all.iter().map(|(owner, id, rank)| ((*owner, rank.clone()), *id)).collect();
        let within = sorted.iter().rev().filter(|(key, _)| span.contains(key));
        let wanted: Vec<u64> = within.map(|(_, id)| *id).take(most).collect();
        prop_assert_eq!(found, wanted);
    }
}
