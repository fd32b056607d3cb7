//! The summaries by which the log replaces long values: `Lorem… (5000 characters)`, `(12 items)`.

use serde_json::Value;

/// Returns whether a value may be the summary of a long one.
pub(super) fn is_summary(value: &Value) -> bool {
    let Some((head, summary)) = value.as_str().and_then(|text| text.rsplit_once('(')) else {
        return false;
    };
    let summary = summary.strip_suffix(')').unwrap_or_default();
    let summary = summary.strip_suffix(", other values").unwrap_or(summary);
    let words = summary.split_once(' ');
    (head.is_empty() || head.ends_with("… "))
        && words.is_some_and(|(count, noun)| {
            let noun = noun.trim_end_matches('s');
            count.parse::<u64>().is_ok() && matches!(noun, "character" | "item" | "member")
        })
}

/// Returns whether an object still has a value of the log, which may be a summary.
pub(super) fn is_unchanged(now: &Value, after: &Value) -> bool {
    if now == after {
        return true;
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let Some(text) = after.as_str().filter(|_| is_summary(after)) else { return false };
    match now {
        Value::String(now) => {
            let count = now.chars().count();
            let beginning = text.rsplit_once("… ").map_or("", |(beginning, _)| beginning);
            now.starts_with(beginning) && text.ends_with(&format!("({count} characters)"))
        }
        Value::Array(items) => {
            text.starts_with(&format!("({} item{}", items.len(), plural(items.len())))
        }
        Value::Object(all) => {
            text.starts_with(&format!("({} member{}", all.len(), plural(all.len())))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn summaries_of_the_log_are_recognized() {
        for summary in
            ["(12 items)", "(1 member)", "Lorem… (5000 characters)", "(3 members, other values)"]
        {
            assert!(is_summary(&json!(summary)), "{summary}");
        }
        for text in ["Lorem (5000 characters)", "(items)", "(12 apples)", "12 items", ""] {
            assert!(!is_summary(&json!(text)), "{text}");
        }
    }

    #[test]
    fn long_values_are_compared_with_their_summary() {
        let long = "é".repeat(2000);
        let summary = json!(format!("{}… (2000 characters)", "é".repeat(100)));
        assert!(is_unchanged(&json!(long), &summary));
        assert!(!is_unchanged(&json!(format!("{long}é")), &summary));
        assert!(!is_unchanged(&json!(format!("e{}", &long[2..])), &summary));
        assert!(
            is_unchanged(&json!([1, 2]), &json!("(2 items)"))
                && !is_unchanged(&json!([1]), &json!("(2 items)"))
        );
        assert!(is_unchanged(&json!({ "a": 1 }), &json!("(1 member)")));
        assert!(is_unchanged(&json!(1), &json!(1)) && !is_unchanged(&json!(1), &json!(2)));
    }
}
