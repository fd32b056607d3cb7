//! Reading the JSON of a line. An error names the field, and never repeats a value.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::base::error::{Error, Result};

/// The maximum length of the path of a field in an error.
const MAX_PATH: usize = 100;

/// Returns the error for a field of a line; an empty `field` stands for the line itself.
pub fn invalid_field(field: &str, what: &str) -> Error {
    let field = if field.is_empty() { "the line" } else { field };
    Error::invalid("not_imported", format!("{field} {what}"))
}

/// Parses a line.
pub fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    if std::str::from_utf8(line).is_err() {
        return Err(invalid_field("", "is not UTF-8 text"));
    }
    read(line.strip_suffix(b"\n").unwrap_or(line), "")
}

/// Reads a part of a line. An error names the field within `field`.
pub fn read_part<T: DeserializeOwned>(part: &Value, field: &str) -> Result<T> {
    // A value would change the spelling of some numbers, such as 0.00001. A text keeps it.
    read(&serde_json::to_vec(part).map_err(Error::internal)?, field)
}

fn read<T: DeserializeOwned>(text: &[u8], field: &str) -> Result<T> {
    match serde_json::from_slice(text) {
        Ok(part) => Ok(part),
        Err(error) => {
            let error_of = |text: &[u8]| serde_json::from_slice::<T>(text).err();
            Err(explain(text, field, &error, &error_of))
        }
    }
}

/// Returns the error for a `text` without line breaks that cannot be read. `error_of` reads another text as the same type.
fn explain(
    text: &[u8],
    field: &str,
    error: &serde_json::Error,
    error_of: &dyn Fn(&[u8]) -> Option<serde_json::Error>,
) -> Error {
    let mut before = text.get(..error.column()).unwrap_or(text);
    // An invalid value may be noticed only behind the comma or bracket that follows it. Reading it alone then fails too.
    if let Some((b',' | b'}' | b']', value)) = before.split_last()
        && error.is_data()
        && error_of(value).is_some_and(|error| error.is_data())
    {
        before = value;
    }
    let path = match (field, path_of_end(before).as_str()) {
        (field, "") => field.to_owned(),
        ("", inner) => inner.to_owned(),
        (field, inner) => format!("{field}.{inner}"),
    };
    let reason = error.to_string();
    if reason.starts_with("missing field") {
        let missing = reason.split(" at line").next().unwrap_or_default();
        return invalid_field(&path, &format!("is incomplete ({missing})"));
    }
    match field {
        "" if reason.starts_with("trailing characters") => {
            invalid_field("", "is followed by extra characters")
        }
        "" if !error.is_data() => invalid_field(&path, "is not valid JSON"),
        _ => invalid_field(&path, "is not valid here"),
    }
}

/// An object or an array whose end is not read yet, with the name or the index of the current member.
enum Open {
    Object(Option<String>),
    Array(usize),
}

/// Returns the path of the value at the end of `text`, which is the beginning of a JSON text. Empty for the whole text.
fn path_of_end(text: &[u8]) -> String {
    let mut open = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' => open.push(Open::Object(None)),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Object(name)) => *name = None,
                Some(Open::Array(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let string = printable_string(&mut bytes);
                if let Some(Open::Object(name)) = open.last_mut()
                    && name.is_none()
                {
                    *name = Some(string);
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for member in open {
        match member {
            Open::Object(Some(name)) if path.is_empty() => path = name,
            Open::Object(Some(name)) => path.extend([".", &name]),
            Open::Object(None) => {}
            Open::Array(index) => path.extend(["[", &index.to_string(), "]"]),
        }
    }
    path.truncate(MAX_PATH);
    path
}

/// Takes the rest of a string. Omits what is not safe to print, because the names in a file may contain anything.
fn printable_string(bytes: &mut impl Iterator<Item = u8>) -> String {
    let mut string = String::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => _ = bytes.next(),
            _ if byte.is_ascii_alphanumeric() || b"._[]".contains(&byte) => {
                string.push(char::from(byte));
            }
            _ => {}
        }
    }
    string
}

#[cfg(test)]
mod tests {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer};

    use super::*;

    /// A text that is not "bad". The error has no position of its own.
    #[derive(Debug)]
    struct Word;

    impl<'de> Deserialize<'de> for Word {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            match String::deserialize(from)?.as_str() {
                "bad" => Err(D::Error::custom("bad")),
                _ => Ok(Self),
            }
        }
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Sample {
        id: u64,
        word: Word,
        words: Vec<Word>,
        pair: (u64, Word),
        inner: Option<Box<Sample>>,
    }

    #[test]
    fn error_names_the_value_wherever_it_is() {
        let good = r#"{"id":1,"words":["a","b"],"pair":[1,"a"],"inner":null,"word":"a"}"#;
        let nested = good.replace("null", good);
        assert!(read_part::<Sample>(&nested.parse().expect("JSON"), "meta").is_ok());
        for (from, to, said) in [
            (r#""id":1"#, r#""id":[1]"#, "meta.id is not valid here"),
            (r#""id":1"#, r#""id":-1"#, "meta.id is not valid here"),
            (r#""id":1,"#, "", "meta is incomplete (missing field `id`)"),
            (
                r#""inner":{"id":1,"#,
                r#""inner":{"#,
                "meta.inner is incomplete (missing field `id`)",
            ),
            (r#"["a","b"]"#, r#"["bad","b"]"#, "meta.words[0] is not valid here"),
            (r#"["a","b"]"#, r#"["a","bad"]"#, "meta.words[1] is not valid here"),
            (r#"["a","b"]"#, r#"["a",["b"]]"#, "meta.words[1] is not valid here"),
            (r#"[1,"a"]"#, "[1]", "meta.pair is not valid here"),
            (r#"[1,"a"]"#, r#"["\"]{",1]"#, "meta.pair[0] is not valid here"),
            (r#""word":"a"},"#, r#""word":"bad"},"#, "meta.inner.word is not valid here"),
        ] {
            let line = nested.replacen(from, to, 1);
            assert_ne!(line, nested);
            let refused = read_part::<Sample>(&line.parse().expect("JSON"), "meta");
            assert_eq!(refused.expect_err(said).to_string(), said, "{line}");
        }
        let last = good.replace(r#""word":"a""#, r#""word":"bad""#);
        let refused = parse_line::<Sample>(last.as_bytes()).expect_err("a bad word");
        assert_eq!(refused.to_string(), "word is not valid here");
        let refused =
            parse_line::<Sample>(b"{\"id\":1,\"words\":[\"a\",").expect_err("half a line");
        assert_eq!(refused.to_string(), "words[1] is not valid JSON");
    }
}
