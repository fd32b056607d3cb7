//! The definition of an insight: its query as a summary in words, and as JSON.

use std::io;

use askama::Template;
use serde_json::{Map, Value};

use crate::base::json::escape_invisible;

/// Maximum size of the JSON on a card, in bytes. The public JSON holds definitions of any size.
const MAX_JSON: usize = 8192;
/// Maximum number of series that the summary names.
const MAX_NAMED_SERIES: usize = 8;

/// The definition of an insight, as HTML.
#[derive(Template)]
#[template(path = "sharing/page/definition.html")]
pub struct Definition {
    /// The summary: pairs of a label and a text. Leaves out what it cannot describe.
    pub words: Vec<(&'static str, String)>,
    /// The JSON; `None` if it is too long.
    pub json: Option<String>,
}

impl Definition {
    /// Describes the query of an insight, or its legacy filters.
    pub fn of(asked: &Map<String, Value>) -> Self {
        let source = asked.get("source").and_then(Value::as_object).unwrap_or(asked);
        Self { words: summarize(source), json: to_json(asked) }
    }
}

fn summarize(source: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let parts = [("Kind", kind(source)), ("Series", series(source)), ("Dates", dates(source))];
    parts.into_iter().filter_map(|(name, words)| Some((name, words?))).collect()
}

/// Formats the JSON. Characters that change the direction of text are escaped, so that they cannot disguise
/// the JSON.
fn to_json(asked: &Map<String, Value>) -> Option<String> {
    let mut out = BoundedText::new(MAX_JSON);
    serde_json::to_writer_pretty(&mut out, asked).ok()?;
    let json = escape_invisible(out.text()?);
    Some(json).filter(|json| json.len() <= MAX_JSON)
}

/// Describes the kind of the query and its interval.
fn kind(source: &Map<String, Value>) -> Option<String> {
    let kind = text(source, "kind").or_else(|| text(source, "insight"))?;
    let words = match kind {
        "TrendsQuery" | "TRENDS" => "Trends",
        "FunnelsQuery" | "FUNNELS" => "Funnel",
        "RetentionQuery" | "RETENTION" => "Retention",
        "PathsQuery" | "PATHS" => "User paths",
        "StickinessQuery" | "STICKINESS" => "Stickiness",
        "LifecycleQuery" | "LIFECYCLE" => "Lifecycle",
        "HogQLQuery" => "SQL",
        "EventsQuery" => "Events",
        "ActorsQuery" => "Persons",
        other => other,
    };
    match text(source, "interval") {
        Some(interval @ ("minute" | "hour" | "day" | "week" | "month")) => {
            Some(format!("{words}, by {interval}"))
        }
        _ => Some(words.to_owned()),
    }
}

/// Lists the events and actions of the query.
fn series(source: &Map<String, Value>) -> Option<String> {
    let listed = ["series", "events", "actions"].into_iter();
    let all: Vec<String> = listed
        .filter_map(|name| source.get(name)?.as_array())
        .flatten()
        .filter_map(|one| one_series(one.as_object()?))
        .collect();
    let named = all.iter().take(MAX_NAMED_SERIES).cloned().collect::<Vec<_>>().join("; ");
    match all.len() {
        0 => None,
        1..=MAX_NAMED_SERIES => Some(named),
        more => Some(format!("{named}; and {} more", more - MAX_NAMED_SERIES)),
    }
}

fn one_series(one: &Map<String, Value>) -> Option<String> {
    let known = ["custom_name", "name", "event", "id"];
    let named = known.into_iter().find_map(|name| text(one, name));
    let every = one.get("event").is_some_and(Value::is_null).then_some("All events");
    let name = named.or(every)?;
    let counted = match text(one, "math") {
        Some("dau") => " (unique users)",
        Some("weekly_active") => " (weekly active users)",
        Some("monthly_active") => " (monthly active users)",
        Some("unique_session") => " (unique sessions)",
        _ => "",
    };
    Some(format!("{name}{counted}"))
}

/// Describes the date range of the query.
fn dates(source: &Map<String, Value>) -> Option<String> {
    let range = source.get("dateRange").and_then(Value::as_object).unwrap_or(source);
    match (text(range, "date_from")?, text(range, "date_to")) {
        ("all", _) => Some("All time".to_owned()),
        ("dStart", None) => Some("Today".to_owned()),
        ("wStart", None) => Some("This week".to_owned()),
        ("mStart", None) => Some("This month".to_owned()),
        ("yStart", None) => Some("This year".to_owned()),
        (from, None) => Some(last(from).unwrap_or_else(|| format!("From {from}"))),
        (from, Some(to)) => Some(format!("From {from} to {to}")),
    }
}

/// Describes a relative date such as `-30d`.
fn last(from: &str) -> Option<String> {
    let number = from.strip_prefix('-')?;
    let (number, unit) = number.split_at_checked(number.len().checked_sub(1)?)?;
    let unit = match unit {
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "m" => "month",
        "q" => "quarter",
        "y" => "year",
        _ => return None,
    };
    match number.parse::<u16>().ok()? {
        1 => Some(format!("Last {unit}")),
        number => Some(format!("Last {number} {unit}s")),
    }
}

fn text<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    fields.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// A buffer that refuses writes beyond its limit.
pub(super) struct BoundedText {
    bytes: Vec<u8>,
    limit: usize,
}

impl BoundedText {
    /// Returns an empty buffer that holds at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Returns the text; `None` if the bytes are not valid UTF-8.
    pub(super) fn text(self) -> Option<String> {
        String::from_utf8(self.bytes).ok()
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    fn words(asked: &Value) -> Vec<String> {
        let asked = asked.as_object().unwrap();
        let source = asked.get("source").and_then(Value::as_object).unwrap_or(asked);
        summarize(source).into_iter().map(|(name, words)| format!("{name}: {words}")).collect()
    }

    #[test]
    fn query_and_legacy_filters_are_described_in_words() {
        let query = json!({ "kind": "InsightVizNode", "source": {
            "kind": "TrendsQuery",
            "interval": "week",
            "dateRange": { "date_from": "-90d", "date_to": null },
            "series": [
                { "kind": "EventsNode", "event": "$pageview", "name": "Pageview", "math": "dau" },
                { "kind": "EventsNode", "event": null },
                { "kind": "ActionsNode", "id": 5, "custom_name": "Paid", "name": "x" },
            ],
        }});
        let filters = json!({
            "insight": "FUNNELS", "date_from": "2026-01-01", "date_to": "2026-02-01",
            "events": [{ "id": "$pageview" }], "actions": [{ "id": 3, "name": "Paid" }],
        });
        let series: Vec<_> =
            (0..20).map(|number| json!({ "event": format!("e{number}") })).collect();
        let cases: [(Value, &[&str]); 4] = [
            (
                query,
                &[
                    "Kind: Trends, by week",
                    "Series: Pageview (unique users); All events; Paid",
                    "Dates: Last 90 days",
                ],
            ),
            (
                filters,
                &[
                    "Kind: Funnel",
                    "Series: $pageview; Paid",
                    "Dates: From 2026-01-01 to 2026-02-01",
                ],
            ),
            (json!({ "series": series }), &["Series: e0; e1; e2; e3; e4; e5; e6; e7; and 12 more"]),
            (json!({ "kind": "OtherQuery", "interval": "eon" }), &["Kind: OtherQuery"]),
        ];
        for (asked, expected) in cases {
            assert_eq!(words(&asked), expected, "{asked}");
        }
    }

    #[test]
    fn date_ranges_are_described_in_words() {
        for (from, expected) in [
            ("-1d", "Last day"),
            ("-24h", "Last 24 hours"),
            ("-6m", "Last 6 months"),
            ("all", "All time"),
            ("dStart", "Today"),
            ("mStart", "This month"),
            ("-1mStart", "From -1mStart"),
            ("-é", "From -é"),
            ("-", "From -"),
            ("-99999d", "From -99999d"),
        ] {
            let found = words(&json!({ "dateRange": { "date_from": from } }));
            assert_eq!(found, [format!("Dates: {expected}")]);
        }
    }

    #[test]
    fn unknown_query_parts_are_left_out() {
        for odd in [
            json!({}),
            json!({ "kind": 5, "series": { "a": 1 }, "dateRange": "now", "interval": [] }),
            json!({ "source": [], "series": [1, null, "x", {}, []], "dateRange": { "date_from": 7 } }),
            json!({ "kind": "", "insight": "  ", "date_from": null }),
        ] {
            assert_eq!(words(&odd), [] as [&str; 0], "{odd}");
        }
    }

    #[test]
    fn bidirectional_characters_in_json_are_escaped() {
        let asked = json!({ "a\u{202e}": "\u{2066}b\u{61c}", "c": "é" });
        let fields = to_json(asked.as_object().unwrap()).unwrap();
        let expected = r#"{ "a\u202e": "\u2066b\u061c", "c": "é" }"#;
        assert_eq!(fields.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        assert_eq!(serde_json::from_str::<Value>(&fields).unwrap(), asked);
    }

    #[test]
    fn long_definition_is_not_formatted() {
        let asked = |length: usize| json!({ "query": "x".repeat(length) });
        assert!(to_json(asked(8_000).as_object().unwrap()).is_some());
        assert!(to_json(asked(9_000).as_object().unwrap()).is_none());
    }

    #[test]
    fn bounded_text_grows_up_to_its_limit() {
        let mut out = BoundedText::new(4);
        assert!(out.write_all(b"abc").is_ok());
        assert!(out.write_all(b"de").is_err());
        assert!(out.write_all(b"d").is_ok());
        assert!(out.write_all(b"e").is_err());
        assert_eq!(out.text().as_deref(), Some("abcd"));
    }
}
