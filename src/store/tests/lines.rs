//! Lines of an export: round trips of arbitrary records, and rejection of invalid lines.

use proptest::prelude::*;

use super::*;
use crate::store::kinds::json_lines::{ExportLine, IncludedSecrets};
use crate::store::record::payload_of;

fn things() -> impl Strategy<Value = (u64, Thing)> {
    let text = prop_oneof![".*", Just("null".to_owned()), "[\\x00-\\x1f\"\\\\\u{2028}/]{0,8}"];
    let meta = (any::<u64>(), any::<u64>(), proptest::option::of(any::<u64>()));
    let rank = proptest::option::of(".*");
    (1..u64::MAX / 2, meta, rank, text).prop_map(|(version, (owner, id, code), rank, note)| {
        (version, Thing { meta: Meta { owner, id, code, rank }, note })
    })
}

const OPEN: &RecordTypeOf<Thing> = &RecordTypeOf(Redaction::Open);

fn line_of(record_type: &dyn RecordType, secrets: bool, stored: &[u8]) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let secrets = if secrets { IncludedSecrets::Everything } else { IncludedSecrets::Nothing };
    let written = record_type.write_line(secrets, stored, &mut line).expect("a sound record");
    assert_eq!(written, !line.is_empty());
    written.then_some(line)
}

fn read(line: &[u8]) -> Result<Vec<u8>> {
    let record_type: &dyn RecordType = OPEN;
    Ok(record_type.parse_line(&ExportLine::read(line)?, None)?.1)
}

proptest! {
    #[test]
    fn exported_record_is_imported_byte_for_byte((version, thing) in things()) {
        let stored = payload_of(version, &thing).expect("a payload");
        let line = line_of(OPEN, false, &stored).expect("a line");
        prop_assert_eq!(line.split(|byte| *byte == b'\n').count(), 2);
        let ends = line.ends_with(b"}\n");
        prop_assert!(ends);
        prop_assert_eq!(read(&line).expect("a record"), stored);
    }

    #[test]
    fn changed_byte_in_a_line_is_rejected_or_gives_another_record((version, thing) in things(), at in any::<usize>(), to in any::<u8>()) {
        let stored = payload_of(version, &thing).expect("a payload");
        let mut line = line_of(OPEN, false, &stored).expect("a line");
        let at = at % line.len();
        let same = line[at] == to;
        line[at] = to;
        if let Ok(read) = read(&line) {
            let again = line_of(OPEN, false, &read).expect("a line");
            prop_assert!(same || again != line || read != stored);
        }
    }

    #[test]
    fn reading_an_arbitrary_line_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}

#[test]
fn line_errors_name_the_field_and_hide_its_value() {
    let good = r#"{"table":"projects","version":1,"meta":{"owner":1,"id":2,"code":null,"rank":null},"fields":"x"}"#;
    let good = format!("{good}\n");
    assert!(read(good.as_bytes()).is_ok());
    for (from, to, said) in [
        (r#""id":2"#, r#""id":"SECRET""#, "meta.id is not valid here"),
        (r#""id":2,"#, "", "meta is incomplete (missing field `id`)"),
        (r#""rank":null"#, r#""rank":["SECRET"]"#, "meta.rank is not valid here"),
        (r#""fields":"x""#, r#""fields":7"#, "fields is not valid here"),
        (r#","fields":"x""#, "", "fields is not valid here"),
        (r#""version":1"#, r#""version":0"#, "version is not a valid version"),
        (r#""version":1"#, r#""version":18446744073709551615"#, "version is not a valid version"),
        (r#""version":1"#, r#""version":-1"#, "version is not valid here"),
        (r#""version":1"#, r#""SECRET":1"#, "SECRET is not valid here"),
        (r#""x"}"#, r#""x"} SECRET"#, "the line is followed by extra characters"),
        (r#""x"}"#, r#""x"#, "fields is not valid JSON"),
    ] {
        let line = good.replacen(from, to, 1);
        assert_ne!(line, good);
        let refused = read(line.as_bytes()).expect_err(said).to_string();
        assert_eq!(refused, said, "{line}");
    }
}

#[test]
fn secret_records_are_omitted_or_redacted() {
    let stored = payload_of(1, &thing(7)).expect("a payload");
    let whole = RecordTypeOf::<Thing>(Redaction::Whole);
    assert_eq!(line_of(&whole, false, &stored), None);
    assert!(line_of(&whole, true, &stored).is_some());
    let meta = RecordTypeOf::<Thing>(Redaction::Meta {
        hide: |meta: &mut Meta| meta.rank = None,
        regenerate: |_, _| Ok(()),
    });
    let line = line_of(&meta, false, &stored).expect("a line");
    let expected = "{\"table\":\"projects\",\"version\":1,\"meta\":{\"owner\":1,\"id\":7,\"code\":7,\"rank\":null},\"fields\":\"note 7\"}\n";
    assert_eq!(String::from_utf8(line).expect("text"), expected);
    assert_eq!(line_of(&meta, true, &stored), line_of(OPEN, true, &stored));
}

/// An export does not read indexes, so it succeeds with damaged ones. Importing it creates a valid file.
#[tokio::test]
async fn export_of_a_file_with_damaged_indexes_imports_to_a_valid_file() {
    let (scratch, store) = Scratch::new();
    let put = |tx: &mut WriteTx<'_>| (1..=3).try_for_each(|id| tx.put(&thing(id)));
    store.write(put).await.expect("three things");
    let whole = dump(&store);
    store.close().await;
    scratch.behind_the_back(Table::ProjectsById, |table| {
        let key = 2_u64.encoded();
        table.insert(key.as_slice(), b"damaged".as_slice()).expect("written");
    });
    scratch.behind_the_back(Table::GrantsByUser, |table| {
        table.retain(|_, _| false).expect("emptied");
    });
    let store = scratch.open().expect("a store");
    let found = check(&store).await;
    assert!(found.problem_count > 3, "{:?}", found.problems);
    let folder = scratch.folder.path().to_owned();
    let how = ExportOptions {
        registry: checks(),
        secrets: true,
        organization: None,
        folder,
        progress: Progress::silent(),
    };
    let mut lines = Vec::new();
    store.export(how).await.expect("an export").write_to(&mut lines).expect("written");
    store.close().await;
    let to = scratch.folder.path().join("new.redb");
    let rng = Seed::generate().rng();
    import(&to, lines.as_slice(), &checks(), rng, &Progress::silent()).expect("imported");
    let new = Store::open(&to, NO_CACHE).expect("a store");
    assert_clean(&check(&new).await);
    assert!(dump(&new) == whole);
    new.close().await;
}
