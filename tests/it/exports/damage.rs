//! An import of an incomplete or changed export fails with the line number and creates nothing.

use std::io::{self, BufReader, Read};

use proptest::prelude::*;
use steward::testing::bootstrap;
use steward::testing::store::Place;

use crate::exports::{Everything, export, import};
use crate::support::exports::{first_of, lines, sealed};
use crate::support::prelude::*;

/// Asserts that the import of these bytes fails and leaves no file. Returns the error.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let error = import(bytes, &folder.path().join("steward.redb")).expect_err("a refusal");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "{error}");
    error.to_string()
}

/// Returns the lines of a small export.
async fn small(secrets: bool) -> Vec<Vec<u8>> {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    lines(&export(workspace.app.store(), secrets).await)
}

/// Replaces a text in one line.
#[track_caller]
fn changed(lines: &[Vec<u8>], at: usize, from: &str, to: &str) -> Vec<Vec<u8>> {
    let line = String::from_utf8(lines[at].clone()).expect("text");
    assert!(line.contains(from), "{line}");
    let mut lines = lines.to_vec();
    lines[at] = line.replacen(from, to, 1).into_bytes();
    lines
}

#[tokio::test]
async fn truncated_reordered_or_repeated_export_is_rejected() {
    let lines = small(true).await;
    assert!(import(&sealed(&lines), &tempfile::tempdir().unwrap().path().join("x")).is_ok());
    for at in 0..lines.len() {
        refused(&lines[..at].concat());
        let half = &lines[at][..lines[at].len() / 2];
        let said = refused(&[lines[..at].concat(), half.to_vec()].concat());
        assert!(said.contains(&format!("line {}: the line is cut off", at + 1)), "{said}");
        let mut twice = lines.clone();
        twice.insert(at, lines[at].clone());
        refused(&twice.concat());
        refused(&sealed(&twice));
        let mut without = lines.clone();
        without.remove(at);
        refused(&without.concat());
        if at + 1 < lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            refused(&swapped.concat());
            if at > 0 {
                let said = refused(&sealed(&swapped));
                let line = format!("line {}: the line is not in order", at + 2);
                assert!(said.contains(&line), "{said}");
            }
        }
    }
    for more in ["\n", "{}\n", "x", "null\n"] {
        refused(&[lines.concat(), more.into()].concat());
    }
}

#[tokio::test]
async fn every_flipped_bit_in_an_export_is_detected() {
    let bytes = export(Everything::new().await.workspace.app.store(), true).await;
    for (round, at) in (0..bytes.len()).step_by(bytes.len() / 150).enumerate() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (round % 8);
        refused(&flipped);
    }
}

#[tokio::test]
async fn import_errors_name_the_line_and_the_field() {
    let lines = small(true).await;
    let (active, name, table) =
        (r#""is_active":true"#, r#""first_name":"Olga""#, r#""table":"users""#);
    let number = r#""first_name":{"$serde_json::private::Number":"5"}"#;
    let no_records = "table names a table that exports do not contain";
    for (table, from, to, said) in [
        ("users", active, r#""is_active":7"#, "meta.is_active is not valid here"),
        ("users", r#""is_active":true,"#, "", "missing field `is_active`"),
        ("users", active, r#""is_active":true,"x":1"#, "is not in the form that an export writes"),
        ("users", name, r#""first_name":null"#, "fields.first_name is not valid"),
        ("users", name, number, "fields is not valid here"),
        ("users", r#""version":"#, r#""version":-"#, "version is not valid here"),
        ("users", table, r#""table":"people""#, "table is not the name of a table"),
        ("users", table, r#""table":"users_by_email""#, no_records),
        ("users", table, r#""table":"counts""#, no_records),
        ("users", table, r#""table":"sessions""#, no_records),
        ("memberships", r#""level":15"#, r#""level":16"#, "meta.level is not valid here"),
        ("sequences", r#""last":1"#, r#""last":0"#, "meta.last is not a valid sequence number"),
        ("sequences", r#""of":""#, r#""of":"x"#, "meta.of is not the name of a table"),
        ("meta", r#""first":["#, r#""first":[1,"#, "meta.first"),
        ("dashboards", "}\n", "\n", "is not valid JSON"),
    ] {
        let at = first_of(&lines, table);
        let whole = refused(&sealed(&changed(&lines, at, from, to)));
        let line = format!("line {}: ", at + 1);
        assert!(whole.contains(&line) && whole.contains(said), "{table} {from}: {whole}");
        assert!(!whole.contains('\n'));
    }
}

#[tokio::test]
async fn inconsistent_records_are_rejected_even_if_each_line_is_valid() {
    let lines = small(true).await;
    for table in ["organizations", "users", "project_settings", "projects"] {
        let mut without = lines.clone();
        without.remove(first_of(&lines, table));
        let said = refused(&sealed(&without));
        assert!(said.contains("refers to a missing record in"), "{table}: {said}");
    }
    // Two users with the same address.
    let at = first_of(&lines, "users");
    let again = changed(&lines, at, "\"id\":1", "\"id\":2");
    let again = changed(&again, at, "\"id\":1", "\"id\":2");
    let again = changed(&again, at, "\"uuid\":\"0", "\"uuid\":\"1");
    let mut two = lines.clone();
    two.insert(at + 1, again[at].clone());
    let said = refused(&sealed(&two));
    let expected = format!("line {}: users_by_email/1: a second record under one key", at + 2);
    assert!(said.contains(&expected), "{said}");
}

#[tokio::test]
async fn every_member_of_the_export_header_is_verified() {
    let lines = small(true).await;
    for (from, to, said) in [
        ("\"steward_export\":1", "\"steward_export\":2", "it has line format 2"),
        ("\"schema\":", "\"schema\":9", "its data has format 9"),
        ("\"secrets\":true", "\"secrets\":false", "line 2: table is secret"),
        ("\"secrets\":true", "\"secrets\":1", "line 1: secrets is not valid here"),
        (
            "\"users\":1",
            "\"users\":18446744073709551615",
            "line 1: counts does not match the lines",
        ),
        ("\"users\":1", "\"users\":1,\"tiles\":0", "line 1: counts does not match the lines"),
        ("\"blake3\":\"", "\"blake3\":\"0", "line 1: blake3 does not match the lines"),
        ("{", "{\"more\":1,", "line 1: more is not valid here"),
        ("{", "", "it is not a Steward export: line 1: "),
    ] {
        let whole = refused(&changed(&lines, 0, from, to).concat());
        assert!(whole.contains(said), "{whole}");
    }
    assert!(refused(b"").contains("it is not a Steward export: line 1: the line is missing"));
    let mut without = lines.clone();
    without.remove(1);
    let said = refused(&sealed(&without));
    assert!(said.contains("secrets is true, but there is no signing secret"), "{said}");
    // Secrets are refused if the header says that there are none.
    let open = small(false).await;
    for table in ["meta", "api_keys"] {
        let mut with = open.clone();
        let secret = lines[first_of(&lines, table)].clone();
        let place = if table == "meta" { 1 } else { first_of(&open, "dashboards") };
        with.insert(place, secret);
        let said = refused(&sealed(&with));
        assert!(said.contains("table is secret, but the export has no secrets"), "{said}");
    }
}

#[test]
fn endless_line_fails_the_import_without_using_all_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let endless = BufReader::new(io::repeat(b'x'));
    let data = folder.path().join("steward.redb");
    let error = bootstrap::import(&Place::File(data.clone()), endless, &Progress::silent())
        .expect_err("a refusal");
    assert!(error.to_string().contains("line 1: the line is too long"), "{error}");
    let broken = BufReader::new(io::empty().chain(Failing));
    let error = bootstrap::import(&Place::File(data.clone()), broken, &Progress::silent())
        .expect_err("a refusal");
    assert!(error.to_string().contains("line 1: the disk is gone"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// A source whose reads fail.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

const HEADER: &str = r#"{"steward_export":1,"schema":1,"secrets":false,"counts":{},"blake3":""}"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn importing_arbitrary_input_fails_without_leftover_files(
        begins in any::<bool>(),
        lines in proptest::collection::vec(prop_oneof![
            ".{0,80}",
            "\\{\"table\":\"(users|meta|sequences|sharing|activity)\",\"version\":[0-9]{1,20},\"meta\":[\\[{\"0-9a-z:,}\\]]{0,40}\\}",
            "[\\[{]{0,400}",
        ], 0..4),
    ) {
        let mut bytes = if begins { format!("{HEADER}\n").into_bytes() } else { Vec::new() };
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        refused(&bytes);
    }
}
