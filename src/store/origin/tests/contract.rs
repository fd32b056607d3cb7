//! What every origin promises. Each promise is a function, called for each origin.

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::store::values::schema::FORMAT;

macro_rules! promises {
    ($($promise:ident,)*) => {
        mod on_postgres {
            $(
                #[test]
                #[ignore = "needs PostgreSQL"]
                fn $promise() {
                    super::$promise(&super::Nodes::on_postgres());
                }
            )*
        }

        mod on_the_origin_in_memory {
            $(
                #[test]
                fn $promise() {
                    super::$promise(&super::Nodes::scripted());
                }
            )*
        }
    };
}

promises! {
    founded_workspace_has_the_rows_and_the_first_commit,
    only_the_first_of_two_nodes_founds_a_workspace,
    database_without_a_workspace_has_no_head_and_no_rows,
    copy_gets_the_last_value_of_each_row_that_changed,
    new_copy_gets_no_removed_rows,
    new_copy_gets_the_rows_and_the_head_of_one_moment,
    commit_on_an_older_state_is_overtaken_and_changes_nothing,
    commit_on_another_past_is_overtaken,
    commit_of_a_known_name_is_overtaken,
    commits_are_found_by_name,
    copy_that_lacks_nothing_needs_no_history,
    of_two_nodes_that_commit_at_once_one_is_overtaken,
    large_commit_is_applied_whole,
    commit_without_rows_is_a_commit,
    turn_shows_what_changed_and_commits,
    turn_hands_over_many_rows,
    extended_turn_replaces_rows_and_commits_nothing_else,
    commit_of_another_node_waits_for_the_turn_to_end,
    dropped_turn_changes_nothing_and_lets_others_go_on,
    turn_does_not_commit_on_an_older_state,
    copy_of_another_past_is_forked,
    copy_before_the_horizon_is_forked_and_later_ones_catch_up,
    replaced_rows_are_all_rows_and_every_copy_is_forked,
    failing_copy_gets_its_own_error_back,
    heartbeat_shows_the_node,
}

fn founded_workspace_has_the_rows_and_the_first_commit(nodes: &Nodes) {
    let position = found(&*nodes.a, &[put("a", "1"), put("b", "2")]);
    assert_eq!(position.seq, 1);
    let head = nodes.b.head().expect("an answer").expect("a workspace");
    assert_eq!((head.position, head.horizon, head.format), (position, 1, FORMAT));
    assert!(!head.workspace.is_nil());
    assert_eq!(all(&*nodes.b), (vec![put("a", "1"), put("b", "2")], position));
    assert_eq!(since(&*nodes.b, position).expect("an answer"), (Vec::new(), position));
}

fn only_the_first_of_two_nodes_founds_a_workspace(nodes: &Nodes) {
    let position = found(&*nodes.a, &[put("a", "1")]);
    let rows = &mut [put("a", "2")].into_iter().map(Ok);
    assert_eq!(nodes.b.found_workspace(new_name(), rows).expect("an answer"), None);
    assert_eq!(all(&*nodes.b), (vec![put("a", "1")], position));
}

fn database_without_a_workspace_has_no_head_and_no_rows(nodes: &Nodes) {
    assert_eq!(nodes.a.head().expect("an answer"), None);
    let refused = since(&*nodes.a, Position::NONE).expect_err("no workspace");
    assert!(matches!(&refused, Fault::Refused(why) if why.contains("no Steward workspace")));
}

fn copy_gets_the_last_value_of_each_row_that_changed(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1"), put("c", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2"), removal("b")]);
    let third = taken(&*nodes.b, second, &[put("a", "3"), put("d", "3")]);
    assert_eq!((second.seq, third.seq), (2, 3));
    let changed = vec![put("a", "3"), removal("b"), put("d", "3")];
    assert_eq!(since(&*nodes.a, first).expect("an answer"), (changed, third));
    let changed = vec![put("a", "3"), put("d", "3")];
    assert_eq!(since(&*nodes.a, second).expect("an answer"), (changed, third));
}

fn new_copy_gets_no_removed_rows(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let second = taken(&*nodes.a, first, &[removal("a"), removal("never")]);
    assert_eq!(all(&*nodes.b), (vec![put("b", "1")], second));
}

fn new_copy_gets_the_rows_and_the_head_of_one_moment(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let last = 300;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut head = first;
            while head.seq < last {
                let value = (head.seq + 1).to_string();
                head = taken(&*nodes.a, head, &[put("a", &value), put("b", &value)]);
            }
        });
        let mut is_over = false;
        while !is_over {
            // Known before the question, so that the last answer has the last commit.
            is_over = writer.is_finished();
            let (rows, head) = all(&*nodes.b);
            let value = head.seq.to_string();
            assert_eq!(rows, [put("a", &value), put("b", &value)]);
            assert!(!is_over || head.seq == last);
        }
    });
}

fn commit_on_an_older_state_is_overtaken_and_changes_nothing(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2")]);
    assert_eq!(commit(&*nodes.b, first, &[put("a", "3"), put("b", "3")]), CommitOutcome::Overtaken);
    assert_eq!(all(&*nodes.b), (vec![put("a", "2")], second));
}

fn commit_on_another_past_is_overtaken(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    for seq in [first.seq - 1, first.seq, first.seq + 1] {
        let other = Position { seq, name: new_name() };
        assert_eq!(commit(&*nodes.a, other, &[put("a", "2")]), CommitOutcome::Overtaken);
    }
    assert_eq!(all(&*nodes.a), (vec![put("a", "1")], first));
}

fn commit_of_a_known_name_is_overtaken(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2")]);
    let again = Commit { from: second, name: second.name, rows: &[put("a", "3")] };
    assert_eq!(nodes.a.commit(&again).expect("an outcome"), CommitOutcome::Overtaken);
    assert_eq!(all(&*nodes.a), (vec![put("a", "2")], second));
}

fn commits_are_found_by_name(nodes: &Nodes) {
    let first = found(&*nodes.a, &[]);
    let second = taken(&*nodes.a, first, &[put("a", "2")]);
    let committed = |name| nodes.b.committed(name).expect("an answer");
    assert_eq!(committed(first.name), Some(1));
    assert_eq!(committed(second.name), Some(2));
    assert_eq!(committed(new_name()), None);
}

fn copy_that_lacks_nothing_needs_no_history(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2")]);
    nodes.forget_commits();
    assert_eq!(since(&*nodes.b, second).expect("an answer"), (Vec::new(), second));
    assert!(is_forked(&*nodes.b, first), "what it lacks is not known");
    let third = taken(&*nodes.b, second, &[put("a", "3")]);
    assert!(is_forked(&*nodes.a, second));
    assert_eq!(all(&*nodes.a), (vec![put("a", "3")], third));
    let fourth = taken(&*nodes.a, third, &[put("a", "4")]);
    assert_eq!(since(&*nodes.b, third).expect("an answer").1, fourth);
}

/// The value of the counter in a copy of `origin`, and the position of the copy.
fn counter(origin: &dyn Origin) -> (u64, Position) {
    let (rows, position) = all(origin);
    let value = rows.into_iter().find(|row| row.key == b"counter").and_then(|row| row.sealed);
    let text = String::from_utf8(value.expect("a counter")).expect("a text");
    (text.parse().expect("a number"), position)
}

/// Lets both nodes read the counter, and then both commit one more, for some rounds.
fn of_two_nodes_that_commit_at_once_one_is_overtaken(nodes: &Nodes) {
    const ROUNDS: u64 = 20;
    found(&*nodes.a, &[put("counter", "0")]);
    let (have_read, have_committed) = (Barrier::new(2), Barrier::new(2));
    let run = |origin: &dyn Origin| {
        let mut count = 0;
        for _ in 0..ROUNDS {
            let (value, read) = counter(origin);
            have_read.wait();
            let rows = [put("counter", &(value + 1).to_string())];
            count += u64::from(matches!(commit(origin, read, &rows), CommitOutcome::Committed(_)));
            have_committed.wait();
        }
        count
    };
    let taken: u64 = thread::scope(|scope| {
        let nodes = [&nodes.a, &nodes.b].map(|origin| scope.spawn(|| run(&**origin)));
        nodes.map(|node| node.join().expect("a node")).iter().sum()
    });
    assert_eq!((counter(&*nodes.a).0, taken), (ROUNDS, ROUNDS));
}

fn large_commit_is_applied_whole(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let long = "x".repeat(64 << 10);
    let mut rows: Vec<_> = (100..200).map(|number| put(&number.to_string(), &long)).collect();
    let second = taken(&*nodes.a, first, &rows);
    rows.push(put("a", "1"));
    assert_eq!(all(&*nodes.b), (rows, second));
    let many: Vec<_> = (100..200).map(|number| put(&number.to_string(), &long)).collect();
    assert_eq!(commit(&*nodes.b, first, &many), CommitOutcome::Overtaken);
    let (_, held) = turn(&*nodes.b, second);
    let last = Commit { from: second, name: new_name(), rows: &many };
    assert!(matches!(held.commit(&last), Ok(CommitOutcome::Committed(Position { seq: 3, .. }))));
}

fn commit_without_rows_is_a_commit(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.a, first, &[]);
    assert_eq!(since(&*nodes.b, first).expect("an answer"), (Vec::new(), second));
}

fn turn_shows_what_changed_and_commits(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let second = taken(&*nodes.b, first, &[put("a", "2"), removal("b")]);
    let mut rows = Vec::new();
    let took = nodes.a.turn(first, &mut |row| {
        rows.push(row);
        Ok(())
    });
    let (head, held) = took.unwrap_or_else(|fault| panic!("no turn: {fault}"));
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!((rows, head), (vec![put("a", "2"), removal("b")], second));
    let commit = Commit { from: head, name: new_name(), rows: &[put("a", "3")] };
    let third = Position { seq: 3, name: commit.name };
    assert_eq!(held.commit(&commit).expect("an outcome"), CommitOutcome::Committed(third));
    assert_eq!(all(&*nodes.b), (vec![put("a", "3")], third));
}

fn turn_hands_over_many_rows(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let many: Vec<_> = (1000..6000).map(|number| put(&number.to_string(), "x")).collect();
    let second = taken(&*nodes.b, first, &many);
    // The statements of a connection are prepared at its first turn.
    for _ in 0..2 {
        let mut count = 0;
        let took = nodes.a.turn(first, &mut |_| {
            count += 1;
            Ok(())
        });
        let (head, _held) = took.unwrap_or_else(|fault| panic!("no turn: {fault}"));
        assert_eq!((head, count), (second, many.len()));
    }
}

fn extended_turn_replaces_rows_and_commits_nothing_else(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let (_, held) = turn(&*nodes.a, first);
    held.extend().expect("a long turn");
    let replaced = held.replace(new_name(), &mut [Ok(put("a", "2"))].into_iter()).expect("taken");
    assert_eq!(all(&*nodes.b), (vec![put("a", "2")], replaced));
    assert_eq!(replaced.seq, 2);
    taken(&*nodes.b, replaced, &[put("a", "3")]);
}

fn commit_of_another_node_waits_for_the_turn_to_end(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let (head, held) = turn(&*nodes.a, first);
    thread::scope(|scope| {
        let other = scope.spawn(|| commit(&*nodes.b, first, &[put("a", "b's")]));
        let commit = Commit { from: head, name: new_name(), rows: &[put("a", "a's")] };
        assert!(matches!(held.commit(&commit), Ok(CommitOutcome::Committed(_))));
        assert_eq!(other.join().expect("an outcome"), CommitOutcome::Overtaken);
    });
    assert_eq!(all(&*nodes.b).0, [put("a", "a's")]);
}

fn dropped_turn_changes_nothing_and_lets_others_go_on(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    drop(turn(&*nodes.a, first));
    let second = taken(&*nodes.b, first, &[put("a", "2")]);
    let (head, _) = turn(&*nodes.a, first);
    assert_eq!(head, second);
}

fn turn_does_not_commit_on_an_older_state(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.b, first, &[put("a", "2")]);
    let (_, held) = turn(&*nodes.a, first);
    let commit = Commit { from: first, name: new_name(), rows: &[put("a", "3")] };
    assert_eq!(held.commit(&commit).expect("an outcome"), CommitOutcome::Overtaken);
    assert_eq!(all(&*nodes.b), (vec![put("a", "2")], second));
}

fn is_forked(origin: &dyn Origin, known: Position) -> bool {
    let by_since = matches!(since(origin, known), Err(Fault::Forked | Fault::TooOld));
    let by_turn = origin.turn(known, &mut |_| Ok(()));
    assert_eq!(by_since, matches!(by_turn, Err(Fault::Forked | Fault::TooOld)));
    by_since
}

fn copy_of_another_past_is_forked(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2")]);
    assert!(!is_forked(&*nodes.a, first) && !is_forked(&*nodes.a, second));
    for seq in 0..=second.seq + 1 {
        assert!(is_forked(&*nodes.b, Position { seq, name: new_name() }), "{seq}");
    }
    assert!(is_forked(&*nodes.b, Position { seq: 3, name: second.name }), "ahead");
}

fn copy_before_the_horizon_is_forked_and_later_ones_catch_up(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1"), put("c", "1")]);
    let second = taken(&*nodes.a, first, &[removal("a")]);
    let third = taken(&*nodes.a, second, &[removal("b")]);
    let fourth = taken(&*nodes.a, third, &[removal("c")]);
    nodes.b.trim(2).expect("an answer");
    assert_eq!(nodes.b.head().expect("an answer").expect("a head").horizon, 2);
    assert!(is_forked(&*nodes.a, first));
    let changed = vec![removal("b"), removal("c")];
    assert_eq!(since(&*nodes.a, second).expect("an answer"), (changed, fourth));
    nodes.b.trim(100).expect("an answer");
    assert!(is_forked(&*nodes.a, first), "the horizon never moves back");
    nodes.b.trim(0).expect("an answer");
    assert!(is_forked(&*nodes.a, third));
    assert_eq!(since(&*nodes.a, fourth).expect("an answer"), (Vec::new(), fourth));
    assert_eq!(nodes.a.committed(third.name).expect("an answer"), None);
}

fn replaced_rows_are_all_rows_and_every_copy_is_forked(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let second = taken(&*nodes.a, first, &[removal("b")]);
    let name = new_name();
    let rows = &mut [put("a", "9"), put("c", "9")].into_iter().map(Ok);
    let (_, held) = turn(&*nodes.b, first);
    let third = held.replace(name, rows).expect("an answer");
    assert_eq!(third, Position { seq: 3, name });
    assert_eq!(all(&*nodes.a), (vec![put("a", "9"), put("c", "9")], third));
    assert!(is_forked(&*nodes.a, first) && is_forked(&*nodes.a, second));
    // The database knows that both are older states of its own.
    assert!(matches!(since(&*nodes.a, second), Err(Fault::TooOld)));
    let elsewhere = Position { name: new_name(), ..second };
    assert!(matches!(since(&*nodes.a, elsewhere), Err(Fault::Forked)));
    assert_eq!(commit(&*nodes.a, second, &[put("a", "2")]), CommitOutcome::Overtaken);
    assert_eq!(taken(&*nodes.a, third, &[put("a", "10")]).seq, 4);
}

fn failing_copy_gets_its_own_error_back(nodes: &Nodes) {
    let first = found(&*nodes.a, &[put("a", "1"), put("b", "1")]);
    let second = taken(&*nodes.a, first, &[put("a", "2"), put("b", "2")]);
    let fail = &mut |_| Err(Error::internal("the copy is full").into());
    for known in [Position::NONE, first] {
        let failed = nodes.b.since(known, fail).expect_err("a failure");
        assert!(matches!(&failed, Fault::Copy(error) if error.to_string() == "the copy is full"));
    }
    let failed = nodes.b.turn(first, fail).map(|(head, _)| head).expect_err("a failure");
    assert!(matches!(failed, Fault::Copy(_)));
    assert_eq!(all(&*nodes.b), (vec![put("a", "2"), put("b", "2")], second));
}

fn heartbeat_shows_the_node(nodes: &Nodes) {
    let first = found(&*nodes.a, &[]);
    assert_eq!(nodes.a.nodes().expect("an answer"), []);
    let mut before = None;
    for (position, problem) in [(Position::NONE, Some("a problem")), (first, None)] {
        let beat = nodes.a.heartbeat(position, problem).expect("an answer");
        assert_eq!(before.replace(beat.seen), beat.before);
        let [node] = &nodes.b.nodes().expect("an answer")[..] else { panic!("not one node") };
        assert_eq!((node.seen_at, node.problem.as_deref()), (Some(beat.seen), problem));
        assert_eq!((node.position, &*node.release), (position.seq, env!("CARGO_PKG_VERSION")));
        assert!(node.name.starts_with("node"), "{}", node.name);
    }
}
