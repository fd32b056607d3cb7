//! Histories of a name that only one may hold at a time.

use super::records::Span;

/// What was answered about the name.
#[derive(Debug, Clone)]
pub enum Event {
    /// It was given to this holder.
    Given(String),
    /// This holder let go of it.
    Freed(String),
    /// It was refused, because another held it.
    Taken,
}

/// From when to when a holder had the name.
struct Held {
    given: Span,
    freed: Option<Span>,
}

/// Whether the name may have been held by one at a time.
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
            return Err("it was refused, and nobody held it".to_owned());
        }
    }
    holders.sort_by_key(|held| held.freed.map_or(u64::MAX, |freed| freed.end));
    // Each takes it as early as it can be; who comes after must still be in time.
    let mut now = 0;
    for (at, held) in holders.iter().enumerate() {
        now = now.max(held.given.begin);
        if now > held.given.end {
            return Err("two held it at once".to_owned());
        }
        match held.freed {
            Some(freed) => now = now.max(freed.begin),
            None if at + 1 < holders.len() => return Err("two hold it".to_owned()),
            None => {}
        }
    }
    Ok(())
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
    fn a_name_that_goes_from_one_to_the_next_is_taken_for_right() {
        let history = [
            (at(0, 1), given("a")),
            (at(0, 3), Event::Taken),
            (at(2, 6), freed("a")),
            (at(4, 5), given("b")),
            (at(7, 9), Event::Taken),
        ];
        check(&history).expect("it may have been so");
    }

    #[test]
    fn a_name_that_two_hold_at_once_is_found() {
        for (case, history, found) in [
            ("for good", vec![(at(0, 1), given("a")), (at(0, 1), given("b"))], "two hold it"),
            (
                "for a while",
                vec![(at(0, 1), given("a")), (at(2, 3), given("b")), (at(4, 5), freed("a"))],
                "two held it at once",
            ),
            (
                "refused for nothing",
                vec![(at(0, 1), Event::Taken), (at(2, 3), given("a"))],
                "nobody",
            ),
            (
                "refused after it was free",
                vec![(at(0, 1), given("a")), (at(2, 3), freed("a")), (at(4, 5), Event::Taken)],
                "nobody",
            ),
        ] {
            let error = check(&history).expect_err(case);
            assert!(error.contains(found), "{case}: {error}");
        }
    }
}
