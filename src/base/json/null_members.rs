//! Removes values from JSON text without parsing it.

/// Appends `json` to `out`, with null as the value of the members with these names: of an object, or of each object of an
/// array. Objects inside these stay as they are, and so does the text of all other values. `json` must be valid JSON.
pub fn null_members(json: &[u8], names: &[&str], out: &mut Vec<u8>) {
    let innermost = if json.starts_with(b"[") { 2 } else { 1 };
    let mut rest = json;
    let (mut depth, mut is_object, mut is_name) = (0_usize, false, false);
    while let Some(first) = rest.first() {
        let (token, after) = rest.split_at(token_length(rest));
        out.extend_from_slice(token);
        rest = after;
        match first {
            b'"' if std::mem::take(&mut is_name) && is_one_of(token, names) => {
                out.extend_from_slice(b":null");
                rest = after.get(member_length(after)..).unwrap_or_default();
            }
            b'{' | b'[' => {
                depth += 1;
                is_object = if depth == innermost { *first == b'{' } else { is_object };
                is_name = is_object && depth == innermost;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => is_name = is_object && depth == innermost,
            _ => {}
        }
    }
}

/// Returns whether `token`, a string in quotes, is one of `names`.
fn is_one_of(token: &[u8], names: &[&str]) -> bool {
    let name = token.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    name.is_some_and(|name| names.iter().any(|known| known.as_bytes() == name))
}

/// Returns the length of the string or the bracket at the start of `text`, or of the text before the next one.
fn token_length(text: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',');
    if !text.starts_with(b"\"") {
        let others = text.iter().skip(1).position(is_end);
        let is_alone = text.first().is_some_and(is_end);
        return if is_alone { 1 } else { others.map_or(text.len(), |others| others + 1) };
    }
    let mut is_escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Returns the length of the rest of a member after its name, up to the comma or bracket behind its value.
fn member_length(text: &[u8]) -> usize {
    let (mut rest, mut depth) = (text, 0_usize);
    while let Some(first) = rest.first() {
        match first {
            b',' | b'}' | b']' if depth == 0 => break,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        rest = rest.get(token_length(rest)..).unwrap_or_default();
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const NAMES: [&str; 2] = ["value", "token"];

    fn nulled(text: &str) -> String {
        let mut out = Vec::new();
        null_members(text.as_bytes(), &NAMES, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn named_members_of_the_outer_objects_become_null() {
        for (text, expected) in [
            ("", ""),
            ("null", "null"),
            (r#""value""#, r#""value""#),
            (r#"{"value":"x"}"#, r#"{"value":null}"#),
            (r#"{"a":1.0,"value":{"b":[1,"}"]},"c":2}"#, r#"{"a":1.0,"value":null,"c":2}"#),
            (r#"{"value" : [1, 2] , "a" : "value"}"#, r#"{"value":null, "a" : "value"}"#),
            (r#"{"a":"value","b":{"value":1}}"#, r#"{"a":"value","b":{"value":1}}"#),
            (r#"{"a":["value","token"]}"#, r#"{"a":["value","token"]}"#),
            (r#"{"x\"":1,"token":"\\\"","y":2}"#, r#"{"x\"":1,"token":null,"y":2}"#),
            (r#"[{"value":1},{"token":2,"b":3}]"#, r#"[{"value":null},{"token":null,"b":3}]"#),
            (r#"[["value","token"],{"value":1}]"#, r#"[["value","token"],{"value":null}]"#),
        ] {
            assert_eq!(nulled(text), expected, "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[a-z"\\{}\[\],: ]{0,6}"#.prop_map(Value::from),
            Just(Value::from("value")),
        ];
        let name = prop_oneof![Just("value".to_owned()), Just("token".to_owned()), "[a-c\"]{1,2}"];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((name.clone(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn expected(mut json: Value) -> Value {
        let mut outer = match &mut json {
            Value::Array(items) => items.iter_mut().collect(),
            other => vec![other],
        };
        for members in outer.iter_mut().filter_map(|one| one.as_object_mut()) {
            for (_, value) in members.iter_mut().filter(|(name, _)| NAMES.contains(&name.as_str()))
            {
                *value = Value::Null;
            }
        }
        json
    }

    proptest! {
        #[test]
        fn any_json_loses_exactly_the_named_values(json in any_json()) {
            let found: Value = serde_json::from_str(&nulled(&json.to_string())).expect("JSON");
            prop_assert_eq!(found, expected(json));
        }
    }
}
