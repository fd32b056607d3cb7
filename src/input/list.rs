//! Lists.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::ArrayBuilder;

use super::spec::read_non_null;
use super::text::too_long;
use super::{Field, FieldType, Nullable, Schema, Text, python_type};
use crate::base::error::{Error, Result};

/// A list of at most `MAX` items of type `K`.
///
/// Fails with `not_a_list` or `max_length`. An invalid or null item fails with its own code, at `field__0` for the
/// first item.
#[derive(Debug, Clone, Copy)]
pub struct ListOf<K, const MAX: usize>(PhantomData<K>);

impl<K: FieldType, const MAX: usize> FieldType for ListOf<K, MAX> {
    type Value = Vec<K::Value>;

    fn read(value: &Value) -> Result<Self::Value> {
        let numbered = items(value, MAX)?.iter().enumerate();
        numbered.map(|(index, item)| read_non_null::<K>(&index.to_string(), item)).collect()
    }

    fn schema() -> Schema {
        array(K::schema(), MAX)
    }
}

/// A list of at most `MAX` strings of at most 200 characters each, for `app_urls` and `recording_domains`. Null and
/// blank items are removed. Fails as a [`ListOf`] strings.
#[derive(Debug, Clone, Copy)]
pub struct UrlList<const MAX: usize>;

impl<const MAX: usize> FieldType for UrlList<MAX> {
    type Value = Vec<String>;

    fn read(value: &Value) -> Result<Self::Value> {
        let mut urls = Vec::new();
        for (index, item) in items(value, MAX)?.iter().enumerate() {
            if !item.is_null() {
                urls.push(read_non_null::<Text<200>>(&index.to_string(), item)?);
            }
        }
        urls.retain(|url| !url.is_empty());
        Ok(urls)
    }

    fn schema() -> Schema {
        array(Nullable::<Text<200>>::property(), MAX)
    }
}

/// The tags of an object: trimmed, in lower case, sorted, and without duplicates and blanks. At most 200 tags of at
/// most 255 characters each, together at most 8 KiB. Fails as a [`ListOf`] strings.
#[derive(Debug, Clone, Copy)]
pub struct Tags;

impl Tags {
    /// Limits the size of all tags, because list responses repeat them for each object.
    const MAX_BYTES: usize = 8 * 1024;
}

impl FieldType for Tags {
    type Value = Vec<String>;

    fn read(value: &Value) -> Result<Self::Value> {
        let mut tags: BTreeSet<String> = ListOf::<Tag, 200>::read(value)?.into_iter().collect();
        tags.remove("");
        if tags.iter().map(String::len).sum::<usize>() > Self::MAX_BYTES {
            let detail =
                format!("Ensure the tags have no more than {} bytes in total.", Self::MAX_BYTES);
            return Err(Error::invalid("max_length", detail));
        }
        Ok(tags.into_iter().collect())
    }

    fn schema() -> Schema {
        ListOf::<Tag, 200>::schema()
    }
}

#[derive(Debug)]
struct Tag;

impl Tag {
    const MAX: usize = 255;
}

impl FieldType for Tag {
    type Value = String;

    /// Checks the length again in lower case, which can be longer and is what is stored.
    fn read(value: &Value) -> Result<String> {
        let tag = Text::<{ Self::MAX }>::read(value)?.to_lowercase();
        if tag.chars().count() > Self::MAX {
            return Err(too_long(Self::MAX));
        }
        Ok(tag)
    }

    fn schema() -> Schema {
        Text::<{ Self::MAX }>::schema()
    }
}

/// Returns the items of a list. Checks their number first, so that the work is bounded.
fn items(value: &Value, max: usize) -> Result<&Vec<Value>> {
    let Value::Array(items) = value else {
        let name = python_type(value);
        return Err(Error::invalid(
            "not_a_list",
            format!("Expected a list of items but got type \"{name}\"."),
        ));
    };
    if items.len() > max {
        return Err(Error::invalid(
            "max_length",
            format!("Ensure this field has no more than {max} elements."),
        ));
    }
    Ok(items)
}

fn array(items: Schema, max: usize) -> Schema {
    ArrayBuilder::new().items(RefOr::T(items)).max_items(Some(max)).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, assert_reads, assert_refused, read_field};
    use super::super::{Integer, Name};
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn attr<K: FieldType>(value: &Value) -> (&'static str, Option<String>) {
        let (code, _, attr) = read_field::<K>(value).map(|_| ()).unwrap_err();
        (code, attr)
    }

    #[test]
    fn value_that_is_not_a_list_is_rejected_with_its_type() {
        assert_refused::<ListOf<Text<9>, 2>>([
            (json!("x"), "not_a_list", "Expected a list of items but got type \"str\"."),
            (json!({}), "not_a_list", "Expected a list of items but got type \"dict\"."),
            (json!(1), "not_a_list", "Expected a list of items but got type \"int\"."),
            (json!(1.5), "not_a_list", "Expected a list of items but got type \"float\"."),
            (json!(true), "not_a_list", "Expected a list of items but got type \"bool\"."),
            (json!(null), "null", "This field may not be null."),
            (json!([1, 2, 3]), "max_length", "Ensure this field has no more than 2 elements."),
        ]);
        let refused = ListOf::<Text<9>, 2>::read(&json!(null)).unwrap_err();
        assert_eq!(refused.detail(), "Expected a list of items but got type \"NoneType\".");
    }

    #[test]
    fn list_item_errors_contain_the_index() {
        let numbers = [(json!([1, "2", 3.0]), vec![1, 2, 3]), (json!([]), vec![])];
        assert_reads::<ListOf<Integer<0, 9>, 3>>(numbers);
        let cases = [
            (json!(["a", ""]), "blank", "f__1"),
            (json!([null]), "null", "f__0"),
            (json!(["a", "b", []]), "invalid_input", "f__2"),
        ];
        for (value, code, at) in cases {
            assert_eq!(attr::<ListOf<Name<9>, 3>>(&value), (code, Some(at.to_owned())));
        }
        let nested = attr::<ListOf<ListOf<Name<9>, 3>, 3>>(&json!([[], ["a", true]]));
        assert_eq!(nested, ("invalid_input", Some("f__1__1".to_owned())));
    }

    #[test]
    fn url_lists_drop_null_and_blank() {
        assert_reads::<UrlList<6>>([
            (json!([" https://a.io ", null, "", "  ", "b", 5]), texts(&["https://a.io", "b", "5"])),
            (json!([]), vec![]),
        ]);
        let long = attr::<UrlList<2>>(&json!([null, "a".repeat(201)]));
        assert_eq!(long, ("max_length", Some("f__1".to_owned())));
        assert_eq!(attr::<UrlList<2>>(&json!([true])), ("invalid_input", Some("f__0".to_owned())));
        assert_refused::<UrlList<1>>([
            (json!([null, null]), "max_length", "Ensure this field has no more than 1 elements."),
            (json!("x"), "not_a_list", "Expected a list of items but got type \"str\"."),
        ]);
        let schema = serde_json::to_value(UrlList::<1>::schema()).unwrap();
        assert_eq!(schema["items"]["type"], json!(["string", "null"]));
    }

    #[test]
    fn tags_are_lowercased_sorted_and_deduplicated() {
        assert_reads::<Tags>([
            (
                json!(["b", " Mixed Case ", "B", "a", "", " ", 5, 1.5]),
                texts(&["1.5", "5", "a", "b", "mixed case"]),
            ),
            (json!([]), vec![]),
        ]);
        let cases = [
            (json!(["a", true]), "invalid_input", "f__1"),
            (json!([null]), "null", "f__0"),
            (json!([{}]), "invalid_input", "f__0"),
            (json!(["a".repeat(256)]), "max_length", "f__0"),
            (json!(["İ".repeat(200)]), "max_length", "f__0"),
            (json!(["a\u{0}"]), "null_characters_not_allowed", "f__0"),
        ];
        for (value, code, at) in cases {
            assert_eq!(attr::<Tags>(&value), (code, Some(at.to_owned())));
        }
        assert_refused::<Tags>([
            (json!(null), "null", "This field may not be null."),
            (json!("a"), "not_a_list", "Expected a list of items but got type \"str\"."),
            (
                json!(vec!["a"; 201]),
                "max_length",
                "Ensure this field has no more than 200 elements.",
            ),
        ]);
    }

    proptest! {
        #[test]
        fn parsing_parsed_tags_again_changes_nothing(tags in prop::collection::vec(any::<String>(), 0..20)) {
            if let Ok(Some(tags)) = read_field::<Tags>(&json!(tags)) {
                prop_assert!(tags.is_sorted_by(|a, b| a < b) && !tags.contains(&String::new()));
                prop_assert_eq!(read_field::<Tags>(&json!(tags)), Ok(Some(tags)));
            }
        }

        #[test]
        fn reading_arbitrary_json_does_not_panic(value in any_json()) {
            let _ = (read_field::<Tags>(&value), read_field::<UrlList<3>>(&value));
            prop_assert!(value.is_array() || read_field::<ListOf<Integer<0, 9>, 3>>(&value).is_err());
        }
    }
}
