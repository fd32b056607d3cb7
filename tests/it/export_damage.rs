//! What is no whole export is refused with the number of the line, and leaves nothing.

use std::fs;
use std::io::{self, BufReader, Read};

use proptest::prelude::*;
use serde_json::{Value, json};
use steward::bootstrap;
use steward::store::Progress;

use crate::exports::{Everything, export, import};
use crate::support::Workspace;

/// Asserts that these bytes are refused and that nothing is left of them; what was said.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let error = import(bytes, &folder.path().join("steward.redb")).expect_err("a refusal");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "{error}");
    error.to_string()
}

/// The lines, each with its end.
pub fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The same lines under a first line that tells of them.
pub fn sealed(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut header: Value = serde_json::from_slice(&lines[0]).expect("a header");
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    for line in &lines[1..] {
        let line: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
        *counts.entry(line["table"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let rest = lines[1..].concat();
    header["counts"] = json!(counts);
    header["blake3"] = json!(blake3::hash(&rest).to_hex().as_str());
    [format!("{header}\n").into_bytes(), rest].concat()
}

/// A small export, as its lines.
async fn small(secrets: bool) -> Vec<Vec<u8>> {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    lines(&export(workspace.app.store(), secrets).await)
}

/// The number of the first line of a table.
#[track_caller]
pub fn first_of(lines: &[Vec<u8>], table: &str) -> usize {
    let begins = format!("{{\"table\":\"{table}\",");
    lines.iter().position(|line| line.starts_with(begins.as_bytes())).expect(table)
}

/// The lines with one text in the place of another in a line.
#[track_caller]
fn changed(lines: &[Vec<u8>], at: usize, from: &str, to: &str) -> Vec<Vec<u8>> {
    let line = String::from_utf8(lines[at].clone()).expect("text");
    assert!(line.contains(from), "{line}");
    let mut lines = lines.to_vec();
    lines[at] = line.replacen(from, to, 1).into_bytes();
    lines
}

#[tokio::test]
async fn a_file_that_was_cut_off_reordered_or_repeated_is_refused() {
    let lines = small(true).await;
    assert!(import(&sealed(&lines), &tempfile::tempdir().unwrap().path().join("x")).is_ok());
    for at in 0..lines.len() {
        refused(&lines[..at].concat());
        let half = &lines[at][..lines[at].len() / 2];
        let said = refused(&[lines[..at].concat(), half.to_vec()].concat());
        assert!(said.contains(&format!("line {}: the line breaks off", at + 1)), "{said}");
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
                let line = format!("line {}: the line does not stand in its place", at + 2);
                assert!(said.contains(&line), "{said}");
            }
        }
    }
    for more in ["\n", "{}\n", "x", "null\n"] {
        refused(&[lines.concat(), more.into()].concat());
    }
}

#[tokio::test]
async fn no_flipped_bit_goes_unnoticed() {
    let all = Everything::new().await;
    let bytes = export(all.workspace.app.store(), true).await;
    let step = bytes.len() / 150;
    for (round, at) in (0..bytes.len()).step_by(step).enumerate() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (round % 8);
        refused(&flipped);
    }
}

#[tokio::test]
async fn a_refusal_names_the_line_and_the_field() {
    let lines = small(true).await;
    for (table, from, to, said) in [
        (
            "users",
            "\"is_active\":true",
            "\"is_active\":7",
            "head.is_active is not what belongs there",
        ),
        ("users", "\"is_active\":true,", "", "missing field `is_active`"),
        (
            "users",
            "\"is_active\":true",
            "\"is_active\":true,\"x\":1",
            "is not as an export writes it",
        ),
        ("users", "\"head\":", "\"head\": ", "is not as an export writes it"),
        ("users", "\"first_name\":\"Olga\"", "\"first_name\":null", "shown.first_name is not what"),
        ("users", "\"version\":", "\"version\":-", "version is not what belongs there"),
        ("users", "\"table\":\"users\"", "\"table\":\"people\"", "table names no table"),
        (
            "users",
            "\"table\":\"users\"",
            "\"table\":\"users_by_email\"",
            "table names what follows from",
        ),
        ("users", "\"table\":\"users\"", "\"table\":\"counts\"", "table names what follows from"),
        ("memberships", "\"level\":15", "\"level\":16", "head.level is not what belongs there"),
        ("sequences", "\"last\":1", "\"last\":0", "head.last is no number of a sequence"),
        ("sequences", "\"of\":\"", "\"of\":\"x", "head.of names no table"),
        ("meta", "\"first\":[", "\"first\":[1,", "head.first"),
        ("dashboards", "}\n", "\n", "is not as an export writes it"),
    ] {
        let at = first_of(&lines, table);
        let whole = refused(&sealed(&changed(&lines, at, from, to)));
        let line = format!("line {}: ", at + 1);
        assert!(whole.contains(&line) && whole.contains(said), "{table} {from}: {whole}");
        assert!(!whole.contains('\n'));
    }
}

#[tokio::test]
async fn what_does_not_hold_together_is_refused_though_each_line_is_right() {
    let lines = small(true).await;
    for table in ["organizations", "users", "project_settings", "projects"] {
        let mut without = lines.clone();
        without.remove(first_of(&lines, table));
        let said = refused(&sealed(&without));
        assert!(said.contains("points at nothing in"), "{table}: {said}");
    }
    // Two users with one address.
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
async fn the_first_line_is_believed_in_nothing() {
    let lines = small(true).await;
    for (from, to, said) in [
        ("\"steward_export\":1", "\"steward_export\":2", "it is of form 2"),
        ("\"schema\":", "\"schema\":9", "its data of format 9"),
        ("\"secrets\":true", "\"secrets\":false", "line 2: table is secret"),
        ("\"secrets\":true", "\"secrets\":1", "line 1: secrets is not what belongs there"),
        ("\"users\":1", "\"users\":18446744073709551615", "line 1: counts is not what there is"),
        ("\"users\":1", "\"users\":1,\"tiles\":0", "line 1: counts is not what there is"),
        ("\"blake3\":\"", "\"blake3\":\"0", "line 1: blake3 is the hash of other lines"),
        ("{", "{\"more\":1,", "line 1: more is not what belongs there"),
        ("{", "", "it is no export of Steward: line 1: "),
    ] {
        let whole = refused(&changed(&lines, 0, from, to).concat());
        assert!(whole.contains(said), "{whole}");
    }
    assert!(refused(b"").contains("it is no export of Steward: line 1: the line is missing"));
    let mut without = lines.clone();
    without.remove(1);
    let said = refused(&sealed(&without));
    assert!(said.contains("secrets is true, and there is no signing secret"), "{said}");
    // Secrets do not come in under a first line that tells of none.
    let open = small(false).await;
    for table in ["meta", "api_keys"] {
        let mut with = open.clone();
        let secret = lines[first_of(&lines, table)].clone();
        let place = if table == "meta" { 1 } else { first_of(&open, "dashboards") };
        with.insert(place, secret);
        let said = refused(&sealed(&with));
        assert!(said.contains("table is secret, and the export has no secrets"), "{said}");
    }
}

#[test]
fn an_endless_line_ends_the_import_and_not_the_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let endless = BufReader::new(io::repeat(b'x'));
    let data = folder.path().join("steward.redb");
    let error = bootstrap::import(&data, endless, &Progress::unheard()).expect_err("a refusal");
    assert!(error.to_string().contains("line 1: the line is too long"), "{error}");
    let broken = BufReader::new(io::empty().chain(Failing));
    let error = bootstrap::import(&data, broken, &Progress::unheard()).expect_err("a refusal");
    assert!(error.to_string().contains("line 1: the disk is gone"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// A source that cannot be read.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

const HEADER: &str = r#"{"steward_export":1,"schema":4,"secrets":false,"counts":{},"blake3":""}"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_stands_in_a_file_nothing_panics_and_nothing_is_left(
        begins in any::<bool>(),
        lines in proptest::collection::vec(prop_oneof![
            ".{0,80}",
            "\\{\"table\":\"(users|meta|sequences|sharing|activity)\",\"version\":[0-9]{1,20},\"head\":[\\[{\"0-9a-z:,}\\]]{0,40}\\}",
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
