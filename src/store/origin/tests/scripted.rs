//! The script of the origin in memory.

use super::super::scripted::{Calls, Event};
use super::*;

/// Returns an origin with one row, and the position of its first commit.
fn origin() -> (Scripted, Position) {
    let origin = Scripted::default();
    let first = found(&origin, &[put("a", "1")]);
    (origin, first)
}

fn attempt(origin: &Scripted, from: Position, name: Uuid) -> Result<Outcome, Fault> {
    origin.commit(&Commit { from, name, rows: &[put("a", "2")] })
}

#[test]
fn commit_fails_before_or_after_its_effect() {
    for (event, is_done) in
        [(Event::FailBefore, false), (Event::Lose, false), (Event::FailAfter, true)]
    {
        let ((origin, first), name) = (origin(), new_name());
        origin.at(Calls::Writing, 1, event.clone());
        let fault = attempt(&origin, first, name).expect_err("no answer");
        assert_eq!(matches!(fault, Fault::Away(_)), matches!(event, Event::FailBefore));
        assert_eq!(origin.committed(name).expect("an answer").is_some(), is_done, "{event:?}");
    }
}

#[test]
fn call_that_is_overtaken_finds_the_rows_of_the_other_node() {
    let (origin, first) = origin();
    origin.at(Calls::Writing, 1, Event::OvertakeWith(vec![put("b", "9")]));
    let outcome = attempt(&origin, first, new_name()).expect("an outcome");
    assert_eq!(outcome, Outcome::Overtaken);
    assert_eq!(since(&origin, first).expect("an answer").0, [put("b", "9")]);
}

#[test]
fn late_commit_lands_before_a_later_call_unless_it_no_longer_fits() {
    for is_first in [true, false] {
        let ((origin, first), name) = (origin(), new_name());
        origin.at(Calls::Writing, 1, Event::LandBefore(if is_first { 2 } else { 3 }));
        assert!(matches!(attempt(&origin, first, name), Err(Fault::Unknown(_))));
        let second = attempt(&origin, first, new_name()).expect("an outcome");
        assert_eq!(second == Outcome::Overtaken, is_first);
        assert_eq!(origin.committed(name).expect("an answer").is_some(), is_first);
    }
}

#[test]
fn copy_that_is_ahead_of_a_rewound_origin_is_forked() {
    let (origin, first) = origin();
    let second = taken(&origin, first, &[put("a", "2")]);
    origin.rewind(first.seq);
    assert!(matches!(since(&origin, second), Err(Fault::Forked)));
    origin.commit_as_other(&[put("a", "3")]);
    assert!(matches!(since(&origin, second), Err(Fault::Forked)));
    assert_eq!(since(&origin, first).expect("an answer").0, [put("a", "3")]);
}

#[test]
fn origin_that_is_away_answers_no_call_and_counts_none() {
    let (origin, first) = origin();
    origin.set_away(true);
    assert!(matches!(since(&origin, first), Err(Fault::Away(_))));
    assert!(matches!(attempt(&origin, first, new_name()), Err(Fault::Away(_))));
    let beat = origin.heartbeat(first, OffsetDateTime::UNIX_EPOCH, None);
    assert!(matches!(beat, Err(Fault::Away(_))));
    origin.set_away(false);
    assert_eq!((origin.count(Calls::Writing), origin.count(Calls::Asking)), (0, 0));
    assert_eq!(taken(&origin, first, &[put("a", "2")]).seq, 2);
}

#[test]
fn newer_format_is_noticed_by_the_next_question() {
    let (origin, first) = origin();
    origin.set_format(FORMAT + 1);
    let found = FORMAT + 1;
    assert!(matches!(since(&origin, first), Err(Fault::Newer { found: is }) if is == found));
}

#[test]
fn damaged_row_is_handed_over_as_it_is() {
    let (origin, _) = origin();
    origin.damage(Table::Users, b"a", b"x".to_vec());
    assert_eq!(all(&origin).0, [put("a", "x")]);
    assert_eq!(origin.content().len(), 1);
}
