//! Tests which queries the parser accepts, and that it does not go back: with backtracking, the tests of deep queries would
//! take years.

use proptest::prelude::*;

use super::*;

/// Returns what is wrong with a query.
fn refusal(text: &str) -> Result<(), &'static str> {
    check(text).map_err(|(detail, _)| detail)
}

#[test]
fn refusals_name_the_place_of_the_fault() {
    for (text, line, column) in [
        ("", 1, 1),
        ("SELECT * FROM", 1, 14),
        ("SELECT *\nFROM events  \n", 2, 0),
        ("SELECT *\r\nFORM events", 2, 1),
        ("SELECT 'é', a b c FROM events", 1, 17),
        ("SELECT * FROM events;", 1, 21),
        ("SELECT * FROM events WHERE a = 'x", 1, 32),
        ("SELECT * FROM events /* a", 1, 22),
        ("SELECT 1 FROM events\n  UNION ALL SELECT 2 FROM events UNION SELECT 3", 2, 3),
        ("SELECT * FROM events, persons JOIN groups", 1, 21),
        ("SELECT * FROM events e\nLEFT JOIN persons ON 1", 2, 1),
        ("SELECT * FROM (SELECT 1 FROM events)", 1, 15),
        ("SELECT (SELECT 1 FROM persons) FROM events", 1, 23),
        ("SELECT 1 WHERE 2", 1, 10),
        ("WITH a AS (SELECT 1 FROM events) SELECT * FROM a", 1, 1),
        ("(DELETE FROM events)", 1, 2),
    ] {
        let found = check(text).map_err(|(_, byte)| TextPosition::of(text, byte));
        let expected = if column == 0 { Ok(()) } else { Err(TextPosition { line, column }) };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn valid_queries_over_events_are_accepted() {
    for text in [
        "SELECT * FROM events",
        "select event, timestamp from events",
        "SELECT uuid AS id, properties.$browser AS browser, properties['$os'] FROM events AS e",
        "SELECT toString(e.uuid) FROM `events` e WHERE e.event IN ('a', 'b') AND NOT team_id = 2 LIMIT 10",
        "SELECT count(), sum(if(event = '$pageview', 1, 0)) FROM events GROUP BY event ORDER BY 1 DESC",
        "SELECT arrayMap(x -> x + 1, [1, 2]), (1, 'a'), NULL FROM events -- a comment",
        "SELECT event FROM events WHERE timestamp > now() - INTERVAL 1 DAY",
        "SELECT event FROM events WHERE distinct_id IN (SELECT distinct_id FROM events WHERE event = 'x')",
        "(SELECT event FROM events)",
        "SELECT quantile(0.9)(a), sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM events",
        "SELECT CASE WHEN a THEN 1 ELSE .5 END, CAST(a AS Nullable(DateTime64(3, 'UTC'))), a::Int8 FROM events",
        "SELECT DISTINCT * EXCEPT (a, b) FROM events FINAL SAMPLE 1/10 PREWHERE a WHERE b IS NOT NULL OR c IS DISTINCT FROM 1",
        "SELECT a FROM events GROUP BY GROUPING SETS ((a), ()) WITH TOTALS HAVING b ORDER BY a NULLS LAST LIMIT 1 BY b LIMIT 9",
        "SELECT TRIM(BOTH ' ' FROM a), EXTRACT(DAY FROM b), left(c, 2), order, `a``b`, 0x1F, 1e-5 FROM events",
        "SELECT DATE '2025-01-01', date, interval FROM events WHERE a NOT BETWEEN 1 AND 2 AND NOT EXISTS (SELECT 1 FROM events)",
        "SELECT 'it''s; DROP \\' UNION JOIN' FROM events",
    ] {
        assert_eq!(refusal(text), Ok(()), "{text}");
    }
}

#[test]
fn invalid_queries_are_rejected_with_the_reason() {
    for (wrong, texts) in [
        (
            UNREADABLE,
            &[
                "",
                "events",
                "SELECT",
                "SELECT * FROM",
                "SELECT * FROM events;",
                "SELECT * FROM events; SELECT 1",
                "SELECT (1 FROM events",
                "SELECT 'x FROM events",
                "SELECT * FROM events WHERE",
                "DROP TABLE events",
                "SELECT * INTO t FROM events",
                "EXPLAIN SELECT * FROM events",
                "😀",
                "SELECT * FROM events )",
                "SELECT * FROM events LATERAL VIEW explode(x) t",
                "SELECT * FROM events FOR UPDATE",
                "SELECT * FROM events CONNECT BY a",
                "SELECT TOP 5 * FROM events",
                "SELECT * FROM events WITH (NOLOCK)",
                "SELECT a, FROM events",
                "SELECT a b c FROM events",
                "SELECT 1 + * FROM events",
                "SELECT 'a' (b) FROM events",
                "SELECT a ?? b FROM events",
                "SELECT * FROM (events)",
                "SELECT * FROM events BY a",
                "SELECT * FROM events WHERE a, b",
                "SELECT * FROM events WHERE a WHERE b",
                "SELECT * FROM events /* a comment",
                "SELECT * FROM persons JOIN",
                "SELECT (SELECT 1 FROM persons) FROM events WHERE",
            ][..],
        ),
        (
            UNION,
            &[
                "SELECT 1 FROM events UNION ALL SELECT 2 FROM events",
                "SELECT 1 FROM persons UNION ALL SELECT 2",
                "SELECT event FROM events INTERSECT SELECT event FROM events",
                "(SELECT 1 FROM events UNION ALL SELECT 2 FROM events)",
                "SELECT * FROM events WHERE a IN (SELECT a FROM events UNION ALL SELECT b FROM events)",
            ],
        ),
        (
            JOIN,
            &[
                "SELECT * FROM events JOIN persons ON true",
                "SELECT * FROM events e LEFT JOIN events f ON e.id = f.id",
                "SELECT * FROM events, persons",
                "SELECT * FROM (events JOIN persons ON 1)",
                "SELECT * FROM events LEFT ARRAY JOIN a AS b",
                "SELECT (SELECT 1 FROM persons) FROM events, persons",
            ],
        ),
        (
            NOT_EVENTS,
            &[
                "SELECT 1",
                "SELECT * FROM persons",
                "SELECT * FROM Events",
                "SELECT * FROM db.events",
                "SELECT * FROM events()",
                "SELECT * FROM numbers(10)",
                "SELECT * FROM (SELECT * FROM events)",
                "VALUES (1)",
                "WITH events AS (SELECT * FROM persons) SELECT * FROM events",
                "SELECT (SELECT max(id) FROM persons) FROM events",
                "SELECT * FROM events WHERE person_id IN (SELECT id FROM persons)",
                "INSERT INTO events VALUES (1)",
                "DELETE FROM events",
            ],
        ),
    ] {
        for text in texts {
            assert_eq!(refusal(text), Err(wrong), "{text}");
        }
    }
}

#[test]
fn deep_or_long_queries_are_rejected_or_parsed_within_limits() {
    let many = |part: &str| part.repeat(16_000 / part.len());
    let within = |part: &str, tokens: usize| part.repeat(2_000 / tokens);
    for text in [
        many("("),
        many("["),
        many("SELECT ("),
        format!("SELECT {}1 FROM events", many("(")),
        format!("SELECT {}1 FROM events", within("(", 1)),
        format!("SELECT {}1 FROM events", within("- ", 1)),
        format!("SELECT {}1 FROM events", within("NOT ", 1)),
        format!("SELECT {}1 FROM events", within("INTERVAL ", 1)),
        format!("SELECT {}1 FROM events", within("INTERVAL (", 2)),
        format!("SELECT {}1 FROM events", within("CASE WHEN ", 2)),
        format!("SELECT {}1 FROM events", within("DATE ", 1)),
        format!("SELECT {}1 FROM events", within("x -> ", 2)),
        format!("SELECT {}1 FROM events", within("f(", 2)),
        format!("SELECT {}1 FROM events", within("a[", 2)),
        format!("SELECT {}1 FROM events", within("CAST(", 2)),
        format!("SELECT CAST(1 AS {}Int8 FROM events", within("Array(", 2)),
        format!("SELECT CAST(1 AS {}Int8 FROM events", within("Nullable(", 2)),
        format!("SELECT CAST(1 AS {}Int8 FROM events", within("Tuple(a ", 3)),
        format!("SELECT CAST(1 AS {}Int8 FROM events", within("STRUCT<a ", 3)),
        format!("SELECT {}1 FROM events", within("EXISTS (SELECT ", 3)),
        format!("SELECT * FROM {}events", within("(", 1)),
        format!("SELECT * FROM {}", within("(SELECT * FROM ", 4)),
        format!("SELECT 1 FROM events{}", within(" UNION ALL SELECT 1 FROM events", 6)),
        format!("SELECT * FROM events{}", within(" JOIN events", 2)),
        format!("EXPLAIN {}", within("EXPLAIN ", 1)),
        format!("WITH {}", within("a AS (WITH ", 4)),
        format!("FROM {}", within("FROM (", 2)),
    ] {
        assert!(refusal(&text).is_err(), "{}", &text[..60]);
    }
    for text in [
        format!("SELECT 1{} FROM events", within(" + 1", 2)),
        format!("SELECT 1 FROM events WHERE a{}", within(" OR b", 2)),
        format!("SELECT a{} FROM events", within("::Int8", 2)),
        format!("SELECT a{} FROM events", within("[1]", 3)),
        format!("SELECT a{} FROM events", within(".b", 2)),
        format!("SELECT {}a FROM events", within("a, ", 2)),
    ] {
        assert_eq!(refusal(&text), Ok(()), "{}", &text[..60]);
    }
}

/// Depths that the parser accepts, with constructs for which backtracking would take exponential time.
#[test]
fn nested_queries_are_read_without_backtracking_at_every_depth() {
    for depth in 1..=44 {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("f(", ")"),
            ("a[", "]"),
            ("POSITION(", ")"),
            ("POSITION(1 IN ", ")"),
            ("EXTRACT(DAY FROM ", ")"),
            ("SUBSTRING(", ")"),
            ("SUBSTRING(1 FROM ", ")"),
            ("TRIM(", ")"),
            ("TRIM(BOTH ' ' FROM ", ")"),
            ("OVERLAY(", " PLACING 1 FROM 1)"),
            ("CEIL(", ")"),
            ("CEIL(1 TO ", ")"),
            ("CONVERT(", ", Int8)"),
            ("CAST(", " AS Int8)"),
            ("TRY_CAST(", " AS Int8)"),
            ("CASE WHEN ", " THEN 1 END"),
            ("CASE ", " WHEN 1 THEN 1 END"),
            ("NOT ", ""),
            ("- ", ""),
            ("INTERVAL (", ") DAY"),
            ("x -> ", ""),
            ("(x, y) -> ", ""),
            ("x -> POSITION(", ")"),
            ("f(x -> ", ")"),
            ("EXISTS (SELECT ", " FROM events)"),
            ("(SELECT ", " FROM events)"),
            ("1 IN (", ")"),
            ("a BETWEEN 1 AND ", ""),
            ("{a: ", "}"),
            ("ARRAY(", ")"),
            ("ROW(", ")"),
            ("TUPLE(", ")"),
            ("GROUPING SETS (", ")"),
            ("MATCH(", ")"),
        ] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let _ = refusal(&format!("SELECT {open}1{close} FROM events"));
        }
        for (begin, open, close) in [
            ("SELECT * FROM ", "(", ")"),
            ("SELECT * FROM ", "(SELECT * FROM ", ")"),
            ("SELECT * FROM ", "(events JOIN ", ")"),
            ("SELECT CAST(1 AS ", "Array(", ")"),
            ("SELECT CAST(1 AS ", "Tuple(a ", ")"),
            ("SELECT CAST(1 AS ", "STRUCT<a ", ">"),
            ("", "(", ")"),
            ("", "(SELECT 1 FROM events UNION ", ")"),
            ("SELECT * FROM events WHERE a IN ", "(", ")"),
            ("SELECT * FROM events GROUP BY ", "(", ")"),
            ("SELECT * FROM events ORDER BY ", "POSITION(", ")"),
        ] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let _ = refusal(&format!("{begin}{open}events{close}"));
        }
    }
}

proptest! {
    #[test]
    fn checking_arbitrary_tokens_does_not_panic(parts in proptest::collection::vec(
        prop::sample::select(vec![
            "SELECT", "FROM", "events", "(", ")", "[", "]", "WHERE", "JOIN", "ON", "UNION", "ALL", "AS", "a", "1",
            "'x'", ",", ".", "*", "CASE", "WHEN", "THEN", "END", "IN", "NOT", "INTERVAL", "DAY", "CAST", "->", "-",
            "LIMIT", "BY", "WITH", "ORDER", "GROUP", "<", ">", "=", "::", "Array", "EXISTS", "{", "}", "LATERAL", "DATE", "POSITION", "EXTRACT",
            "SUBSTRING", "TRIM", "OVERLAY", "CEIL", "CONVERT",
        ]), 0..60)
    ) {
        let _ = refusal(&parts.join(" "));
    }

    #[test]
    fn checking_arbitrary_query_text_does_not_panic(text in ".{0,80}") {
        let _ = refusal(&text);
    }

    #[test]
    fn repeated_parts_are_read_without_backtracking(
        parts in proptest::collection::vec(
            prop::sample::select(vec![
                "(", "[", "f(", "a[", "CASE WHEN ", "x -> ", "NOT ", "INTERVAL ", "a.", "a + ", "a AS b, ", "(SELECT ", "1 FROM ", "EXISTS (",
                "CAST(a AS b(", "DISTINCT ", ")", "]", " THEN ", " END", " IN ", " OVER (", "'", "/*", "`",
            ]), 1..6),
        times in 1_usize..800,
    ) {
        let text = format!("SELECT {}", parts.concat().repeat(times));
        let text = text.get(..text.len().min(MAX_LENGTH)).expect("ASCII");
        let _ = refusal(text);
    }
}

#[test]
fn query_may_be_as_long_as_the_field() {
    let text = |list: &str| format!("SELECT 1 FROM events WHERE event IN ('a'{list})");
    let list = ", 'a'".repeat((MAX_LENGTH - text("").len()) / 5);
    let query = text(&list);
    assert!(query.len() > MAX_LENGTH - 5);
    assert_eq!(HogQlQuery::read(&query.clone().into()).unwrap(), query);
    let error = HogQlQuery::read(&format!("{query}     x").into()).unwrap_err();
    assert_eq!(error.code(), "max_length");
}
