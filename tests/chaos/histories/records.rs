//! Histories of single records: what was written and read, with versions and times. The versions in the
//! responses alone determine the order of the writes.

use std::collections::{BTreeMap, BTreeSet};

/// When a request was sent and when its response arrived, by one clock.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub begin: u64,
    pub end: u64,
}

/// A response about one record.
#[derive(Debug, Clone)]
pub enum Event {
    /// The record was created or changed and now has this version. `expected` is the version in `If-Match`.
    Written { version: u64, value: String, expected: Option<u64> },
    /// The change was refused: the record did not have the version in `If-Match`.
    Stale { expected: u64 },
    /// The record was read.
    Read { version: u64, value: String },
    /// The record was in a list.
    Listed { value: String },
    /// The record was deleted.
    Removed,
    /// The record did not exist.
    Absent,
}

/// All responses about one record.
pub type History = Vec<(Span, Event)>;

/// A list: its count, and the shown value of each record.
#[derive(Debug, Clone)]
pub struct List {
    pub span: Span,
    pub count: usize,
    pub shown: BTreeMap<String, String>,
}

/// A write of one record.
struct Write<'h> {
    span: Span,
    version: u64,
    value: &'h str,
    expected: Option<u64>,
}

/// The writes of one record by version, and its deletion.
struct Writes<'h> {
    all: Vec<Write<'h>>,
    removed: Option<Span>,
}

impl<'h> Writes<'h> {
    fn of(history: &'h History) -> Result<Self, String> {
        let mut all = Vec::new();
        let mut removed = None;
        for (span, event) in history {
            match event {
                Event::Written { version, value, expected } => {
                    all.push(Write { span: *span, version: *version, value, expected: *expected });
                }
                Event::Removed if removed.replace(*span).is_some() => {
                    return Err("the record was deleted twice".to_owned());
                }
                _ => {}
            }
        }
        all.sort_by_key(|write| write.version);
        Ok(Self { all, removed })
    }

    /// Returns the earliest start and the latest end of the time in which this version was current.
    fn window(&self, at: usize) -> Span {
        let next = self.all.get(at + 1).map(|write| write.span).or(self.removed);
        Span { begin: self.all[at].span.begin, end: next.map_or(u64::MAX, |next| next.end) }
    }

    /// Checks that the writes may have happened in the order of their versions.
    fn are_ordered(&self) -> Result<(), String> {
        let mut values = BTreeSet::new();
        for (at, write) in self.all.iter().enumerate() {
            let Write { version, expected, .. } = write;
            if !values.insert(write.value) {
                return Err(format!("{} was written twice: the test has a defect", write.value));
            }
            let before = at.checked_sub(1).map(|at| &self.all[at]);
            if before.is_some_and(|before| before.version == *version) {
                return Err(format!("two writes have version {version}"));
            }
            let seen = before.map(|before| before.version);
            if expected.is_some() && *expected != seen {
                return Err(format!(
                    "version {version} changed {expected:?}, but {seen:?} had replaced it"
                ));
            }
            // A write that ended before another began must have the lower version.
            if let Some(late) =
                self.all[..at].iter().find(|other| write.span.end < other.span.begin)
            {
                return Err(format!(
                    "version {version} ended before version {} began",
                    late.version
                ));
            }
            if self.removed.is_some_and(|removed| removed.end < write.span.begin) {
                return Err(format!("version {version} changed a deleted record"));
            }
        }
        Ok(())
    }

    fn find(&self, by: impl Fn(&Write<'_>) -> bool, what: &str) -> Result<usize, String> {
        let found = self.all.iter().position(by);
        found.ok_or_else(|| format!("{what} was read but never written"))
    }

    /// Checks that this version may have been read in this span.
    fn may_be_read(&self, at: usize, span: Span, what: &str) -> Result<(), String> {
        let window = self.window(at);
        if span.end < window.begin {
            return Err(format!("{what} was read before it was written"));
        }
        if window.end < span.begin {
            return Err(format!("{what} was read after it was replaced or deleted"));
        }
        Ok(())
    }
}

/// Checks that these responses may have been given one after another, each at some moment of its span.
pub fn check(history: &History) -> Result<(), String> {
    let writes = Writes::of(history)?;
    writes.are_ordered()?;
    let mut reads = Vec::new();
    for (span, event) in history {
        match event {
            Event::Read { version, value } => {
                let at = writes.find(|write| write.version == *version, value)?;
                if writes.all[at].value != value {
                    return Err(format!("version {version} was read as {value}"));
                }
                writes.may_be_read(at, *span, value)?;
                reads.push((*span, at));
            }
            Event::Listed { value } => {
                let at = writes.find(|write| write.value == value, value)?;
                writes.may_be_read(at, *span, value)?;
                reads.push((*span, at));
            }
            Event::Stale { expected } => {
                let newer = |write: &&Write<'_>| write.version > *expected;
                if !writes.all.iter().filter(newer).any(|write| write.span.begin <= span.end) {
                    return Err(format!("version {expected} was refused as stale but was current"));
                }
            }
            Event::Absent if writes.removed.is_none_or(|removed| span.end < removed.begin) => {
                return Err("the record was absent but never deleted".to_owned());
            }
            Event::Absent | Event::Removed | Event::Written { .. } => {}
        }
    }
    for (span, at) in &reads {
        if let Some((_, newer)) =
            reads.iter().find(|(other, seen)| other.end < span.begin && seen > at)
        {
            return Err(format!("write {newer} was read, and then the older write {at}"));
        }
    }
    Ok(())
}

/// Checks that a list shows these records at one moment: it counts and shows all records that existed, and
/// all values that it shows were current at the same time.
pub fn check_list(list: &List, records: &BTreeMap<String, History>) -> Result<(), String> {
    let List { span, count, shown } = list;
    if *count != shown.len() {
        return Err(format!("{count} counted, {} shown", shown.len()));
    }
    let (mut earliest, mut latest) = (span.begin, span.end);
    for (id, history) in records {
        let writes = Writes::of(history)?;
        let Some(made) = writes.all.first() else { return Err(format!("{id} was never created")) };
        let Some(value) = shown.get(id) else {
            let may_be_gone = writes.removed.is_some_and(|removed| removed.begin <= span.end);
            if made.span.end < span.begin && !may_be_gone {
                return Err(format!("{id} existed but is not shown"));
            }
            continue;
        };
        let at = writes.find(|write| write.value == value, value)?;
        let window = writes.window(at);
        earliest = earliest.max(window.begin);
        latest = latest.min(window.end);
    }
    if let Some(id) = shown.keys().find(|id| !records.contains_key(*id)) {
        return Err(format!("{id} is shown but was never created"));
    }
    if latest < earliest {
        return Err("the shown values were never current at the same time".to_owned());
    }
    Ok(())
}

mod tests {
    use super::*;

    const fn at(begin: u64, end: u64) -> Span {
        Span { begin, end }
    }

    fn written(version: u64, value: &str, expected: Option<u64>) -> Event {
        Event::Written { version, value: value.to_owned(), expected }
    }

    fn read(version: u64, value: &str) -> Event {
        Event::Read { version, value: value.to_owned() }
    }

    fn listed(value: &str) -> Event {
        Event::Listed { value: value.to_owned() }
    }

    #[test]
    fn valid_record_history_is_accepted() {
        let history = vec![
            (at(0, 1), written(1, "a", None)),
            (at(2, 9), written(3, "c", Some(2))),
            (at(2, 5), written(2, "b", Some(1))),
            (at(3, 4), read(1, "a")),
            (at(3, 8), Event::Stale { expected: 1 }),
            (at(5, 7), listed("b")),
            (at(10, 12), Event::Removed),
            (at(11, 11), read(3, "c")),
            (at(11, 13), Event::Absent),
        ];
        check(&history).expect("a possible history");
    }

    #[test]
    fn invalid_record_history_is_rejected() {
        let made = (at(0, 1), written(1, "a", None));
        let changed = (at(2, 5), written(2, "b", Some(1)));
        for (case, more, found) in [
            ("a lost update", vec![(at(3, 6), written(3, "c", Some(1)))], "had replaced"),
            ("one version twice", vec![(at(3, 6), written(2, "c", None))], "two writes"),
            (
                "against the clock",
                vec![(at(6, 7), written(4, "c", None)), (at(8, 9), written(3, "d", None))],
                "ended before",
            ),
            ("a stale read", vec![(at(6, 7), read(1, "a"))], "after it was replaced"),
            ("a stale row", vec![(at(6, 7), listed("a"))], "after it was replaced"),
            ("a read from the future", vec![(at(0, 1), read(2, "b"))], "before it was written"),
            ("a value of no version", vec![(at(6, 7), read(2, "a"))], "was read as"),
            ("a value that was never written", vec![(at(6, 7), read(9, "x"))], "never written"),
            (
                "back in time",
                vec![(at(2, 3), read(2, "b")), (at(4, 5), read(1, "a"))],
                "and then the older",
            ),
            (
                "refused without a reason",
                vec![(at(6, 7), Event::Stale { expected: 2 })],
                "but was current",
            ),
            ("absent without a deletion", vec![(at(6, 7), Event::Absent)], "never deleted"),
            (
                "deleted twice",
                vec![(at(6, 7), Event::Removed), (at(6, 8), Event::Removed)],
                "deleted twice",
            ),
            (
                "read after its deletion",
                vec![(at(6, 7), Event::Removed), (at(8, 9), read(2, "b"))],
                "after it was replaced or deleted",
            ),
            (
                "changed after its deletion",
                vec![(at(6, 7), Event::Removed), (at(8, 9), written(3, "c", None))],
                "changed a deleted record",
            ),
        ] {
            let mut history = vec![made.clone(), changed.clone()];
            history.extend(more);
            let error = check(&history).expect_err(case);
            assert!(error.contains(found), "{case}: {error}");
        }
    }

    #[test]
    fn list_that_matches_no_moment_is_rejected() {
        let records = BTreeMap::from([
            (
                "1".to_owned(),
                vec![(at(0, 1), written(1, "a", None)), (at(2, 3), written(2, "b", None))],
            ),
            (
                "2".to_owned(),
                vec![(at(0, 1), written(1, "c", None)), (at(4, 5), written(2, "d", None))],
            ),
            ("3".to_owned(), vec![(at(0, 1), written(1, "e", None)), (at(6, 9), Event::Removed)]),
        ]);
        let list = |count, shown: &[(u64, &str)]| List {
            span: at(0, 8),
            count,
            shown: shown.iter().map(|(id, value)| (id.to_string(), (*value).to_owned())).collect(),
        };
        let early = |span| List { span, ..list(2, &[(1, "b"), (2, "d")]) };
        check_list(&list(3, &[(1, "b"), (2, "c"), (3, "e")]), &records).expect("a possible list");
        check_list(&early(at(6, 8)), &records).expect("a possible list");
        for (case, list, found) in [
            ("a count", list(3, &[(1, "b"), (2, "d")]), " counted"),
            ("one too few", early(at(2, 5)), "is not shown"),
            ("one too many", list(4, &[(1, "b"), (2, "c"), (3, "e"), (4, "f")]), "never created"),
            (
                "no moment",
                list(3, &[(1, "a"), (2, "d"), (3, "e")]),
                "never current at the same time",
            ),
        ] {
            let error = check_list(&list, &records).expect_err(case);
            assert!(error.contains(found), "{case}: {error}");
        }
    }
}
