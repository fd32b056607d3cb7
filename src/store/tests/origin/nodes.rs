//! Several nodes of one origin.

use futures_util::FutureExt;

use super::*;
use crate::store::changes::batch_diff::CommitsOf;
use crate::store::origin::trouble::Trouble;
use crate::store::values::position::OriginRow;

#[tokio::test]
async fn acknowledged_write_shows_in_the_next_read_on_every_node() {
    let (shared, store, other) = Shared::with_two_nodes();
    for id in 1..=10 {
        let (writer, reader) = if id % 2 == 0 { (&store, &other) } else { (&other, &store) };
        assert_eq!(add_thing(writer).await.expect("a write"), id);
        let fresh = reader.fresh().await.expect("a fresh state");
        assert_eq!(fresh.get::<Thing>(&(1, id)).expect("a read"), thing(id));
    }
    shared.assert_same(&store).await;
    shared.assert_same(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_three_nodes_at_once_are_each_done_once() {
    let (shared, store) = Shared::new();
    let nodes = [store, shared.open("b").expect("a node"), shared.open("c").expect("a node")];
    let mut writers = Vec::new();
    for writer in 0..12 {
        let node = nodes[writer % nodes.len()].clone();
        writers.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..10 {
                ids.push(add_thing(&node).await.expect("a write"));
            }
            ids
        }));
    }
    let mut ids = Vec::new();
    for writer in writers {
        ids.extend(writer.await.expect("a task"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=120).collect::<Vec<_>>());
    for node in &nodes {
        shared.assert_same(node).await;
    }
}

#[tokio::test]
async fn access_version_changes_with_the_rows_of_another_node() {
    let (_shared, store, other) = Shared::with_two_nodes();
    let before = other.fresh().await.expect("a fresh state").access_version();
    store.write(|tx| tx.put(&Owner { id: 9 })).await.expect("a write");
    assert_ne!(before, other.fresh().await.expect("a fresh state").access_version());
}

#[tokio::test]
async fn write_reads_what_another_node_wrote_and_not_what_it_knew() {
    let (_shared, store, other) = Shared::with_two_nodes();
    // Both nodes read the number, so that both keep it for later writes.
    for _ in 0..2 {
        add_thing(&store).await.expect("a write");
        add_thing(&other).await.expect("a write");
    }
    store.write(|tx| tx.put(&Thing { note: "new".to_owned(), ..thing(1) })).await.expect("a write");
    other.refresh().await.expect("a fresh state");
    let note = other.write(|tx| Ok(tx.get::<Thing>(&(1, 1))?.note)).await.expect("a read");
    assert_eq!(note, "new");
}

#[tokio::test]
async fn new_secret_reaches_another_node_before_a_state_with_it() {
    let (_shared, store, other) = Shared::with_two_nodes();
    let (tell, told) = mpsc::channel();
    let watched = other.clone();
    other.on_new_secret(move |secret| {
        let shown = watched.signing_secret()?;
        let _ = tell.send((shown.parts().1.copied(), secret.parts().1.copied()));
        Ok(())
    });
    let renew = Seed::generate();
    store.write(move |tx| tx.renew_secret(&mut renew.rng()).map(drop)).await.expect("a write");
    other.refresh().await.expect("a fresh state");
    let (shown, given) = told.try_recv().expect("the listener was called");
    assert_eq!(shown, None);
    assert_eq!(given, store.signing_secret().expect("a secret").parts().1.copied());
    assert!(given.is_some());
}

#[tokio::test]
async fn watcher_is_called_with_the_state_of_another_node_before_a_read_returns_it() {
    let (_shared, store, other) = Shared::with_two_nodes();
    let (tell, called) = mpsc::channel();
    let note = move |tx: &Snapshot| {
        let _ = tell.send(tx.count::<Thing>(&1_u64).expect("a count"));
        Ok(())
    };
    other.before_shown(&[Table::Domains, Table::Projects], CommitsOf::OtherNodes, note.clone());
    other.before_shown(&[Table::Domains], CommitsOf::OtherNodes, note);
    other.refresh().await.expect("a fresh state");
    for count in 1..=3 {
        add_thing(&store).await.expect("a write");
        other.refresh().await.expect("a fresh state");
        assert_eq!(called.try_recv(), Ok(count));
    }
    // Neither this node's own writes nor other tables concern the watcher.
    add_thing(&other).await.expect("a write");
    store.write(|tx| tx.put(&Owner { id: 9 })).await.expect("a write");
    other.refresh().await.expect("a fresh state");
    assert!(called.try_recv().is_err());
}

#[tokio::test]
async fn watcher_of_all_nodes_is_called_for_own_commits_too() {
    let (_shared, store, other) = Shared::with_two_nodes();
    let (tell, called) = mpsc::channel();
    other.before_shown(&[Table::Projects], CommitsOf::AllNodes, move |tx| {
        let _ = tell.send(tx.count::<Thing>(&1_u64)?);
        Ok(())
    });
    for (count, writer) in (1..).zip([&store, &other]) {
        add_thing(writer).await.expect("a write");
        other.refresh().await.expect("a fresh state");
        assert_eq!(called.try_recv(), Ok(count));
    }
    assert!(called.try_recv().is_err());
}

#[tokio::test]
async fn watcher_is_called_when_a_batch_takes_rows_or_the_copy_is_opened_again() {
    let (_shared, store, other) = Shared::with_two_nodes();
    let (tell, called) = mpsc::channel();
    other.before_shown(&[Table::Projects], CommitsOf::OtherNodes, move |_| {
        let _ = tell.send(());
        Ok(())
    });
    add_thing(&store).await.expect("a write");
    assert_eq!(add_thing(&other).await.expect("a write"), 2);
    assert!(called.try_recv().is_ok(), "the batch was overtaken and took the rows");
    other.closed_while(|| ()).await.expect("opened again");
    assert!(called.try_recv().is_ok(), "what changed meanwhile is not known");
}

#[tokio::test]
async fn damaged_row_of_the_origin_is_named_and_not_taken() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    let key = (1_u64, 1_u64).encoded();
    let row = OriginRow { table: Table::Projects, key, sealed: Some(vec![7; 40]) };
    shared.origin.commit_as_other(&[row]);
    assert_unavailable(&store.fresh().await.map(drop));
    assert!(!store.ready());
    assert_eq!(store.snapshot().expect("open").get::<Thing>(&(1, 1)).expect("a read"), thing(1));
    let key = (1_u64, 1_u64).encoded();
    let troubles = store.troubles();
    let [(Trouble::Copy, cause)] = &troubles[..] else { panic!("{troubles:?}") };
    for part in ["projects/1", "checksum", &crate::store::values::payload::HexKey(&key).to_string()]
    {
        assert!(cause.contains(part), "{part}: {cause}");
    }
    let refused = shared.open("b").err().expect("a refusal").to_string();
    assert!(refused.contains("projects/1") && refused.contains("steward check"), "{refused}");
    let sealed = crate::store::values::payload::seal(Table::Projects, &key, b"x");
    shared.origin.commit_as_other(&[OriginRow {
        table: Table::Projects,
        key,
        sealed: Some(sealed),
    }]);
    until(|| store.ready()).await;
    assert_eq!(store.troubles(), []);
}

/// Asserts that the node lists itself alone, with this problem.
async fn assert_lists_itself(store: &Store, problem: &str) {
    let nodes = store.nodes().await.expect("what it knows").expect("a shared database");
    let [node] = &nodes[..] else { panic!("{nodes:?}") };
    assert_eq!((node.name.as_str(), node.behind, node.seen_at), ("node", None, None));
    assert!(node.problem.as_ref().is_some_and(|why| why.contains(problem)), "{node:?}");
}

#[tokio::test]
async fn node_says_why_it_does_not_serve_while_that_lasts() {
    let (shared, store) = Shared::new();
    assert_eq!(store.troubles(), []);
    shared.origin.refuse_heartbeats(true);
    store.start_heartbeat().expect("a thread");
    until(|| matches!(&store.troubles()[..], [(Trouble::Writes, why)] if why.contains("no heartbeats"))).await;
    // The database has never had a heartbeat of it.
    assert_lists_itself(&store, "no heartbeats").await;
    store.refresh().await.expect("reads go on");
    assert_unavailable(&store.write(|_| Ok(())).await);
    assert_eq!(shared.origin.confirmed(), 0, "no durable write is tried");
    shared.origin.refuse_heartbeats(false);
    until(|| store.troubles().is_empty()).await;
    store.write(|_| Ok(())).await.expect("an answer");
    shared.origin.set_away(true);
    until(|| matches!(&store.troubles()[..], [(Trouble::Reads, why)] if why.contains("the script says so"))).await;
    assert_lists_itself(&store, "the database is away").await;
    shared.origin.set_away(false);
    until(|| store.ready() && store.troubles().is_empty()).await;
}

#[tokio::test]
async fn two_nodes_of_one_name_are_noticed_by_both() {
    let (_shared, store, other) = Shared::with_two_nodes();
    // Both have the name of the script.
    store.start_heartbeat().expect("a thread");
    other.start_heartbeat().expect("a thread");
    let is_noticed = |store: &Store| matches!(&store.troubles()[..], [(Trouble::Name, _)]);
    until(|| is_noticed(&store) && is_noticed(&other)).await;
    store.refresh().await.expect("both serve");
    other.close().await;
    until(|| store.troubles().is_empty()).await;
}

#[tokio::test]
async fn reads_and_writes_fail_while_the_origin_is_away_and_then_go_on() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    shared.origin.set_away(true);
    assert_unavailable(&store.fresh().await.map(drop));
    until(|| !store.ready()).await;
    // It is known to be away, so neither waits for it.
    assert_unavailable(&store.fresh().now_or_never().expect("an answer at once").map(drop));
    let refused = add_thing(&store).await;
    assert_unavailable(&refused);
    let cause = refused.err().and_then(|error| error.cause().map(str::to_owned));
    assert_eq!(cause.as_deref(), Some("the database cannot be reached"));
    shared.origin.set_away(false);
    until(|| store.ready()).await;
    assert_eq!(add_thing(&store).await.expect("a write"), 2);
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn scrub_beside_commits_of_another_node_finds_no_problem() {
    let (_shared, store, other) = Shared::with_two_nodes();
    add_things(&other, 20).await;
    store.refresh().await.expect("a fresh state");
    let scrubbed = {
        let store = store.clone();
        tokio::spawn(async move { store.scrub(checks(), Progress::silent()).await })
    };
    // The tables grow, so without a bound a scrub that hardly runs would not come to their ends.
    for _ in 0..100 {
        add_thing(&other).await.expect("a write");
        store.refresh().await.expect("a fresh state");
        if scrubbed.is_finished() {
            break;
        }
    }
    assert_clean(&scrubbed.await.expect("a task").expect("a scrub"));
}
