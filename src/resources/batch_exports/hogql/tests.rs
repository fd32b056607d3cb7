//! Tests which queries are accepted, and which fault of the others is reported.

use super::*;

/// Returns why a query is refused.
fn refusal(text: &str) -> Result<(), Refusal> {
    check(text).map_err(|(refusal, _)| refusal)
}

#[test]
fn refusals_name_the_place_of_the_fault() {
    for (text, line, column) in [
        ("", 1, 1),
        ("SELECT * FROM", 1, 14),
        ("SELECT *\nFROM events  \n", 2, 0),
        ("SELECT *\r\nFORM events", 2, 12),
        ("SELECT 'é'; FROM events", 1, 11),
        ("SELECT * FROM events;", 1, 21),
        ("SELECT * FROM events WHERE a = 'x", 1, 32),
        ("SELECT * FROM events /* a", 1, 22),
        ("SELECT (1 FROM events", 1, 22),
        ("SELECT 1) FROM events", 1, 9),
        ("SELECT 1 FROM events\n  UNION ALL SELECT 2 FROM events UNION SELECT 3", 2, 3),
        ("SELECT * FROM events, persons JOIN groups", 1, 21),
        ("SELECT * FROM events e\nLEFT JOIN persons ON 1", 2, 1),
        ("SELECT * FROM (SELECT 1 FROM events)", 1, 15),
        ("SELECT (SELECT 1 FROM persons) FROM events", 1, 23),
        ("SELECT (SELECT 1) FROM events", 1, 17),
        ("SELECT 1 WHERE 2", 1, 17),
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
    let deep = format!("SELECT {}1{} FROM events", "(".repeat(50_000), ")".repeat(50_000));
    let (begin, end) = ("(SELECT ".repeat(9_000), " FROM events)".repeat(9_000));
    let subqueries = format!("SELECT {begin}1{end} FROM events");
    for text in [
        "SELECT * FROM events",
        "select event, timestamp from events",
        "SELECT uuid AS id, properties.$browser AS browser, properties['$os'] FROM events AS e",
        "SELECT toString(e.uuid) FROM `events` e WHERE e.event IN ('a', 'b') AND NOT team_id = 2 LIMIT 10",
        "SELECT count(), sum(if(event = '$pageview', 1, 0)) FROM events GROUP BY event, 2 ORDER BY 1 DESC, 2 LIMIT 1, 2",
        "SELECT arrayMap(x -> x + 1, [1, 2]), (1, 'a'), NULL FROM events -- a comment",
        "SELECT event /* , ; */ FROM events -- UNION\n WHERE a // 2",
        "SELECT event FROM events WHERE timestamp > now() - INTERVAL 1 DAY",
        "SELECT event FROM events WHERE distinct_id IN (SELECT distinct_id FROM events WHERE event = 'x')",
        "(SELECT event FROM events)",
        "SELECT quantile(0.9)(a), sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM events",
        "SELECT CASE WHEN a THEN 1 ELSE .5 END, CAST(a AS Nullable(DateTime64(3, 'UTC'))), a::Int8, 1. FROM events",
        "SELECT DISTINCT * EXCEPT (a, b) FROM events FINAL SAMPLE 1/10 PREWHERE a WHERE b IS NOT NULL OR c IS DISTINCT FROM 1",
        "SELECT a FROM events GROUP BY GROUPING SETS ((a), ()) WITH TOTALS HAVING b ORDER BY a NULLS LAST LIMIT 1 BY b LIMIT 9",
        "SELECT TRIM(BOTH ' ' FROM a), EXTRACT(DAY FROM b), left(c, 2), order, `a``b`, 0x1F, 1e-5 FROM events",
        "SELECT DATE '2025-01-01', date, interval FROM events WHERE a NOT BETWEEN 1 AND 2 AND NOT EXISTS (SELECT 1 FROM events)",
        "SELECT a ?? b, a ? b : c, t.1.2, properties.from, properties.$join AS union, FROM events",
        r"SELECT 'it''s; DROP \' UNION JOIN', `a\`, JOIN` FROM events",
        &deep,
        &subqueries,
    ] {
        assert_eq!(refusal(text), Ok(()), "{text:.200}");
    }
}

#[test]
fn invalid_queries_are_rejected_with_the_reason() {
    for (wrong, texts) in [
        (
            Refusal::Unreadable,
            &[
                "",
                "()",
                "events",
                "SELECT * FROM events;",
                "SELECT * FROM events; SELECT 1",
                "SELECT (1 FROM events",
                "SELECT [1) FROM events",
                "SELECT (1] FROM events",
                "SELECT * FROM events )",
                "SELECT 'x FROM events",
                r"SELECT 'x\' FROM events",
                "SELECT * FROM events /* a comment",
                "SELECT * FROM events SELECT * FROM persons",
                "SELECT * FROM events MINUS SELECT * FROM persons",
                "EXPLAIN SELECT * FROM events",
                "DROP TABLE events",
                "INSERT INTO events VALUES (1)",
                "DELETE FROM events",
                "😀",
                "SELECT * FROM persons UNION SELECT (1",
            ][..],
        ),
        (
            Refusal::Union,
            &[
                "SELECT 1 FROM events UNION ALL SELECT 2 FROM events",
                "SELECT 1 FROM persons UNION ALL SELECT 2",
                "SELECT 1 UNION ALL SELECT 2 FROM events",
                "SELECT event FROM events INTERSECT SELECT event FROM events",
                "SELECT event FROM events EXCEPT SELECT event FROM events",
                "SELECT * UNION ALL SELECT * FROM events",
                "(SELECT 1 FROM events UNION ALL SELECT 2 FROM events)",
                "(SELECT 1 FROM events) UNION ALL (SELECT 2 FROM events)",
                "SELECT * FROM events WHERE a IN (SELECT a FROM events UNION ALL SELECT b FROM events)",
                "SELECT * FROM events WHERE a IN ((SELECT a FROM events) UNION ALL (SELECT b FROM events))",
            ],
        ),
        (
            Refusal::Join,
            &[
                "SELECT * FROM events JOIN persons ON true",
                "SELECT * FROM events e LEFT JOIN events f ON e.id = f.id",
                "SELECT * FROM events ALL LEFT JOIN events f ON e.id = f.id",
                "SELECT * FROM events, persons",
                "SELECT * FROM events LEFT ARRAY JOIN a AS b",
                "SELECT * FROM persons AS p CROSS JOIN events",
                "SELECT (SELECT 1 FROM persons) FROM events, persons",
                "SELECT (SELECT 1 FROM events, persons) FROM events",
            ],
        ),
        (
            Refusal::NotEvents,
            &[
                "SELECT",
                "SELECT 1",
                "SELECT * FROM",
                "SELECT * FROM WHERE a",
                "SELECT * FROM persons",
                "SELECT * FROM Events",
                "SELECT * FROM db.events",
                "SELECT * FROM events.persons",
                "SELECT * FROM `events``2`",
                "SELECT * FROM events()",
                "SELECT * FROM numbers(10)",
                "SELECT * FROM (events)",
                "SELECT * FROM (SELECT * FROM events)",
                "SELECT * FROM events FROM persons",
                "SELECT a IS DISTINCT FROM events",
                "WITH events AS (SELECT * FROM persons) SELECT * FROM events",
                "SELECT (WITH a AS (SELECT 1 FROM events) SELECT * FROM events) FROM events",
                "SELECT (SELECT max(id) FROM persons) FROM events",
                "SELECT ((SELECT max(id) FROM persons), [(SELECT 1 FROM events)]) FROM events",
                "SELECT * FROM events WHERE person_id IN (SELECT id FROM persons)",
            ],
        ),
    ] {
        for text in texts {
            assert_eq!(refusal(text), Err(wrong), "{text}");
        }
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
