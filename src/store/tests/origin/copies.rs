//! Copies: made, made again, refused.

use super::*;

#[tokio::test]
async fn second_workspace_cannot_be_founded() {
    let (shared, store) = Shared::new();
    let refused = shared.found_workspace("b").expect_err("a refusal");
    assert!(matches!(refused, OpenError::HasWorkspace(_)), "{refused}");
    store.close().await;
    assert!(!shared.path("b").exists());
}

#[tokio::test]
async fn copy_is_made_from_all_rows_and_continues_from_its_position() {
    let (shared, store) = Shared::new();
    add_things(&store, 3).await;
    let other = shared.open("b").expect("a second node");
    shared.assert_same(&other).await;
    other.close().await;
    add_thing(&store).await.expect("a write");
    let other = shared.open("b").expect("the second node again");
    assert_eq!(other.snapshot().expect("open").position, shared.position());
    shared.assert_same(&other).await;
}

#[tokio::test]
async fn copy_that_lost_its_last_commits_in_a_crash_catches_up() {
    let (shared, store) = Shared::new();
    let before = std::fs::read(shared.path("a")).expect("the bytes");
    add_things(&store, 5).await;
    store.close().await;
    std::fs::write(shared.path("a"), before).expect("written");
    let store = shared.open("a").expect("the node again");
    shared.assert_same(&store).await;
    assert_eq!(add_thing(&store).await.expect("a write"), 6);
}

#[tokio::test]
async fn damaged_copy_is_kept_under_another_name_and_made_anew() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    store.close().await;
    let mut bytes = std::fs::read(shared.path("a")).expect("the bytes");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(shared.path("a"), &bytes).expect("written");
    let store = shared.open("a").expect("the node again");
    shared.assert_same(&store).await;
    assert_eq!(std::fs::read(shared.path("a.damaged")).expect("the damaged copy"), bytes);
}

#[tokio::test]
async fn copy_of_another_past_is_made_anew() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    let before = shared.position().seq;
    add_thing(&store).await.expect("a write that a failover loses");
    store.close().await;
    shared.origin.rewind(before);
    let store = shared.open("a").expect("the node again");
    shared.assert_same(&store).await;
    assert!(names_in(shared.folder.path()).contains(&"a.forked".to_owned()));
    assert_eq!(add_thing(&store).await.expect("a write"), 2);
}

#[tokio::test]
async fn failover_that_loses_commits_is_noticed_by_an_open_copy() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    let before = shared.position().seq;
    add_thing(&store).await.expect("a write that a failover loses");
    shared.origin.rewind(before);
    let other = shared.open("b").expect("a second node");
    assert_eq!(add_thing(&other).await.expect("a write"), 2);
    until(|| store.snapshot().is_ok_and(|now| now.position == shared.position())).await;
    shared.assert_same(&store).await;
    assert_eq!(add_thing(&store).await.expect("a write"), 3);
}

#[tokio::test]
async fn missing_history_costs_no_more_than_one_copy() {
    let (shared, store, other) = Shared::with_two_nodes();
    let made = |store: &Store| store.origin_metrics().expect("a shared database").copies_made;
    let before = (made(&store), made(&other));
    for round in 1..=3 {
        shared.origin.forget_commits();
        for node in [&store, &other] {
            node.refresh().await.expect("nothing is lacking");
        }
        add_thing(&store).await.expect("a write");
        add_thing(&store).await.expect("a write");
        until(|| other.snapshot().is_ok_and(|now| now.position == shared.position())).await;
        assert_eq!((made(&store), made(&other)), (before.0, before.1 + round));
        add_thing(&other).await.expect("a write");
        shared.assert_same(&store).await;
        shared.assert_same(&other).await;
    }
}

#[tokio::test]
async fn copy_behind_the_horizon_is_made_anew() {
    let (shared, store) = Shared::new();
    store.close().await;
    let other = shared.open("b").expect("a second node");
    add_thing(&other).await.expect("a write");
    shared.origin.trim(0).expect("trimmed");
    let store = shared.open("a").expect("the first node again");
    shared.assert_same(&store).await;
}

/// Lets another node add things while the node `a` takes no more than two rows in one question. Returns its store again if it
/// was open meanwhile.
async fn behind(many: u64, few: u64, is_open: bool) -> (Shared, Store) {
    let (shared, store) = Shared::new();
    add_things(&store, many).await;
    let other = shared.open("b").expect("a second node");
    if !is_open {
        store.close().await;
    }
    shared.origin.limit_changes(2);
    other
        .write(move |tx| {
            for _ in 0..few {
                let id = tx.next_number(Table::Projects)?;
                tx.put(&thing(id))?;
            }
            Ok(())
        })
        .await
        .expect("a write");
    let store = if is_open { store } else { shared.open("a").expect("the node again") };
    until(|| store.ready() && store.snapshot().is_ok_and(|now| now.position == shared.position()))
        .await;
    shared.origin.limit_changes(usize::MAX);
    shared.assert_same(&store).await;
    let is_left = |name: &String| name.contains("creating") || name.contains("forked");
    let names = names_in(shared.folder.path());
    assert!(!names.iter().any(is_left), "{names:?}");
    (shared, store)
}

#[tokio::test]
async fn copy_takes_the_rows_that_it_lacks_unless_they_are_most() {
    for (many, few, made) in [(30, 5, 0), (1, 60, 1)] {
        for is_open in [true, false] {
            let (_shared, store) = behind(many, few, is_open).await;
            assert_eq!(store.origin_metrics().expect("a shared database").copies_made, made);
        }
    }
}

#[tokio::test]
async fn copy_that_lacks_most_rows_stays_until_the_new_one_is_complete() {
    let (shared, store) = Shared::new();
    store.close().await;
    let other = shared.open("b").expect("a second node");
    add_things(&other, 30).await;
    shared.origin.limit_changes(2);
    shared.origin.damage(Table::Projects, &(1_u64, 30_u64).encoded(), vec![7; 40]);
    let refused = shared.open("a").err().expect("a refusal");
    assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
    shared.origin.set_away(true);
    let store = shared.open("a").expect("the copy as it was");
    assert_eq!(store.snapshot().expect("open").position.seq, 1);
}

#[tokio::test]
async fn check_and_restore_take_what_a_turn_cannot_hand_over() {
    let (shared, store) = behind(30, 5, true).await;
    shared.origin.limit_changes(0);
    let source = CopySource::new(shared.origin.clone());
    let path = shared.path("second");
    let fs = FsHandle::new(OsFileSystem::shared());
    let known = crate::store::node::shared_database::keep(&fs, &source, &path).expect("a copy");
    add_thing(&store).await.expect("a write");
    let database = Database::open(&path).expect("a file");
    let (head, turn) =
        crate::store::origin::copy_source::take_turn(&database, &source, known).expect("a turn");
    assert_eq!(head, shared.position());
    drop(turn);
    shared.origin.limit_changes(usize::MAX);
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn data_file_is_never_taken_for_a_copy_nor_a_copy_for_a_data_file() {
    let (shared, store) = Shared::new();
    store.close().await;
    let refused = Store::open(&shared.path("a"), NO_CACHE).err().expect("a refusal");
    assert!(matches!(refused, OpenError::IsCopy(_)), "{refused}");
    let scratch = Scratch::closed().await;
    let bytes = scratch.bytes();
    std::fs::write(shared.path("b"), &bytes).expect("written");
    let refused = shared.open("b").err().expect("a refusal");
    assert!(matches!(refused, OpenError::NotACopy(_)), "{refused}");
    assert!(std::fs::read(shared.path("b")).expect("the file") == bytes);
    std::fs::write(shared.path("c"), "a text").expect("written");
    let refused = shared.open("c").err().expect("a refusal");
    assert!(matches!(refused, OpenError::Foreign(_)), "{refused}");
}

#[tokio::test]
async fn copy_opens_while_the_origin_is_away_but_shows_nothing() {
    let (shared, store) = Shared::new();
    store.close().await;
    shared.origin.set_away(true);
    assert!(matches!(shared.open("b").err(), Some(OpenError::Unreachable { .. })));
    let store = shared.open("a").expect("the node");
    assert_unavailable(&store.fresh().await.map(drop));
    shared.origin.set_away(false);
    until(|| store.ready()).await;
    shared.assert_same(&store).await;
}

#[tokio::test]
async fn copy_can_be_backed_up_while_the_origin_is_away() {
    let (shared, store) = Shared::new();
    add_things(&store, 3).await;
    store.close().await;
    shared.origin.set_away(true);
    let store = shared.open("a").expect("the node");
    let to = shared.path("backup.redb");
    let made = store.backup(to.clone(), checks(), Progress::silent()).await.expect("a backup");
    let values = store.snapshot().expect("open").values().expect("a number");
    assert_eq!(made.values, values);
    let backup = Store::open(&to, NO_CACHE).expect("a data file");
    assert_eq!(backup.snapshot().expect("open").count::<Thing>(&1_u64).expect("a count"), 3);
    assert_clean(&check(&backup).await);
}

#[tokio::test]
async fn check_fails_with_503_while_the_origin_is_away() {
    let (shared, store) = Shared::new();
    add_thing(&store).await.expect("a write");
    shared.origin.set_away(true);
    assert_unavailable(&store.check(checks(), Progress::silent()).await);
    shared.origin.set_away(false);
    until(|| store.ready()).await;
    // The origin answers the first question, and is away when the comparison needs its turn.
    shared.plan(1, Event::FailBefore);
    assert_unavailable(&store.check(checks(), Progress::silent()).await);
    assert_clean(&check(&store).await);
}

#[tokio::test]
async fn empty_database_beside_a_copy_is_refused() {
    let (shared, store) = Shared::new();
    store.close().await;
    let emptied = Shared { folder: shared.folder, origin: Arc::new(Scripted::default()) };
    let refused = emptied.open("a").err().expect("a refusal");
    assert!(refused.to_string().contains("is a copy of one"), "{refused}");
    let refused = emptied.open("b").err().expect("a refusal");
    assert!(matches!(refused, OpenError::NoWorkspace(_)), "{refused}");
}

#[tokio::test]
async fn compacted_copy_keeps_its_position_and_the_server_that_it_has_followed() {
    let (shared, store) = Shared::new();
    let primary = Primary { system: 7, timeline: 2 };
    shared.origin.remember(primary);
    add_thing(&store).await.expect("a write");
    store.compact(&Progress::silent()).await.expect("compacted");
    add_thing(&store).await.expect("a write");
    shared.assert_same(&store).await;
    store.close().await;
    for is_away in [true, false] {
        shared.origin.remember(Primary::default());
        shared.origin.set_away(is_away);
        let store = shared.open("a").expect("the node again");
        assert_eq!(shared.origin.primary(), primary);
        store.close().await;
    }
    let newer = Primary { timeline: 3, ..primary };
    shared.origin.remember(newer);
    let store = shared.open("a").expect("the node again");
    assert_eq!(shared.origin.primary(), newer, "a failover is not forgotten");
    assert!(!names_in(shared.folder.path()).iter().any(|name| name.contains("forked")));
    shared.assert_same(&store).await;
    assert!(Primary { timeline: 1, ..primary }.is_before(primary));
    assert!(!primary.is_before(primary) && !Primary { system: 8, timeline: 1 }.is_before(primary));
}
