//! Histories of a name that only one holder may have at a time.

use super::records::Span;

/// A response about the name.
#[derive(Debug, Clone)]
pub enum Event {
    /// This holder got the name.
    Given(String),
    /// This holder released the name.
    Freed(String),
    /// The name was refused, because another holder had it.
    Taken,
}

/// The time during which a holder had the name.
struct Held {
    given: Span,
    freed: Option<Span>,
}

/// Checks that the name may have had one holder at a time.
pub fn check(history: &[(Span, Event)]) -> Result<(), String> {
    let mut holders = Vec::new();
    for (given, event) in history {
        let Event::Given(holder) = event else { continue };
        let freed =
            history.iter().find(|(_, event)| matches!(event, Event::Freed(id) if id == holder));
        holders.push(Held { given: *given, freed: freed.map(|(span, _)| *span) });
    }
    for (span, event) in history {
        let overlaps = |held: &Held| {
            held.given.begin <= span.end && held.freed.is_none_or(|freed| freed.end >= span.begin)
        };
        if matches!(event, Event::Taken) && !holders.iter().any(overlaps) {
            return Err("the name was refused but free".to_owned());
        }
    }
    let all: Vec<&Held> = holders.iter().collect();
    if can_follow(0, &all) { Ok(()) } else { Err("two holders at once".to_owned()) }
}

/// Whether these holders may have had the name one after another, starting at `now`. Each gets and releases
/// it as early as possible; the next ones must still be in time.
fn can_follow(now: u64, left: &[&Held]) -> bool {
    let may_be_next = |at: usize| {
        let given = now.max(left[at].given.begin);
        if given > left[at].given.end {
            return false;
        }
        let mut others = left.to_vec();
        others.remove(at);
        match left[at].freed {
            Some(freed) => {
                let freed = given.max(freed.begin);
                let in_time = |other: &&Held| freed <= other.given.end;
                others.iter().all(in_time) && can_follow(freed, &others)
            }
            None => others.is_empty(),
        }
    };
    left.is_empty() || (0..left.len()).any(may_be_next)
}

mod tests {
    use super::*;

    const fn at(begin: u64, end: u64) -> Span {
        Span { begin, end }
    }

    fn given(holder: &str) -> Event {
        Event::Given(holder.to_owned())
    }

    fn freed(holder: &str) -> Event {
        Event::Freed(holder.to_owned())
    }

    #[test]
    fn valid_name_history_is_accepted() {
        let history = [
            (at(0, 1), given("a")),
            (at(0, 3), Event::Taken),
            (at(2, 6), freed("a")),
            (at(4, 5), given("b")),
            (at(7, 9), Event::Taken),
        ];
        check(&history).expect("a possible history");
        let history = [
            (at(0, 16), given("a")),
            (at(17, 34), freed("a")),
            (at(21, 32), given("b")),
            (at(33, 33), freed("b")),
        ];
        check(&history).expect("the first holder is the one whose release is recorded last");
        let history = [
            (at(0, 10), given("a")),
            (at(2, 3), freed("a")),
            (at(0, 9), given("b")),
            (at(50, 60), freed("b")),
        ];
        check(&history).expect("the first released holder is the one whose claim is recorded last");
    }

    #[test]
    fn name_history_with_two_holders_is_rejected() {
        for (case, history, found) in [
            ("never released", vec![(at(0, 1), given("a")), (at(0, 1), given("b"))], "two holders"),
            (
                "both for a while",
                vec![(at(0, 1), given("a")), (at(2, 3), given("b")), (at(4, 5), freed("a"))],
                "two holders at once",
            ),
            (
                "refused without a reason",
                vec![(at(0, 1), Event::Taken), (at(2, 3), given("a"))],
                "but free",
            ),
            (
                "refused after it was free",
                vec![(at(0, 1), given("a")), (at(2, 3), freed("a")), (at(4, 5), Event::Taken)],
                "but free",
            ),
        ] {
            let error = check(&history).expect_err(case);
            assert!(error.contains(found), "{case}: {error}");
        }
    }
}
