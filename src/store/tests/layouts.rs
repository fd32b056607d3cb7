//! Records whose type gained members after they were stored.

use super::*;
use crate::store::record::payload;

/// A note as the first release stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct First {
    meta: FirstMeta,
    fields: FirstFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FirstMeta {
    owner: u64,
    id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FirstFields {
    text: String,
}

impl_record!(First {
    table: Domains,
    key: |note| -> (u64, u64) { (note.meta.owner, note.meta.id) },
    parts: meta: FirstMeta, fields: FirstFields,
    owner: |_, _| Ok(None),
});

/// A note as a later release stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grown {
    meta: GrownMeta,
    fields: GrownFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GrownMeta {
    owner: u64,
    id: u64,
    rank: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GrownFields {
    text: String,
    color: String,
    tags: Vec<String>,
}

impl_record!(Grown {
    table: Domains,
    key: |note| -> (u64, u64) { (note.meta.owner, note.meta.id) },
    parts: meta: GrownMeta, fields: GrownFields,
    added: &[
        Added::Field { name: "color", default: &"blue" },
        Added::Meta { name: "rank", default: &Some(7_u64) },
        Added::Field { name: "tags", default: &[""; 0] },
    ],
    owner: |note, _| {
        Ok(Some(byte_usage::Owner::Organization(uuid::Uuid::from_u128(note.meta.owner.into()))))
    },
});

fn first(id: u64) -> First {
    let meta = FirstMeta { owner: 1, id };
    First { meta, fields: FirstFields { text: format!("note {id}") } }
}

fn grown(id: u64) -> Grown {
    Grown {
        meta: GrownMeta { owner: 1, id, rank: Some(7) },
        fields: GrownFields {
            text: format!("note {id}"),
            color: "blue".to_owned(),
            tags: Vec::new(),
        },
    }
}

fn layout_of(payload: &[u8]) -> usize {
    payload::Payload::read(Table::Domains, payload).expect("a payload").layout
}

#[test]
fn older_record_is_completed_when_it_is_read() {
    let stored = payload(3, &first(1)).expect("a payload");
    let read = Row::<Grown>::visit(&stored, |row| {
        let text = r#"{"text":"note 1","color":"blue","tags":[]}"#;
        assert_eq!((row.version, row.fields), (3, text.as_bytes()));
        assert_eq!(row.base_size()?, r#"{"text":"note 1"}"#.len() as u64);
        row.into_record()
    });
    assert_eq!(read.expect("a record"), grown(1));
    let written = payload(3, &grown(1)).expect("a payload");
    assert_eq!(record::completed::<Grown>(&stored).expect("completed"), written);
    assert!(record::is_unchanged::<Grown>(&stored, &written).expect("compared"));
}

#[test]
fn newer_record_is_refused_by_name() {
    let stored = payload(3, &grown(1)).expect("a payload");
    let refused = Row::<First>::parse(&stored).expect_err("a refusal").to_string();
    let text =
        "a newer release wrote the data file: domains has layout 3, this release reads up to 0";
    assert!(refused.contains(text), "{refused}");
}

#[tokio::test]
async fn older_record_is_stored_in_the_current_layout_when_it_changes() {
    let (_scratch, store) = Scratch::new();
    store.write(|tx| tx.put(&first(1))).await.expect("put");
    let stored = |store: &Store| {
        let snapshot = store.snapshot().expect("open");
        let key = (1_u64, 1_u64).encoded();
        snapshot.get_raw(Table::Domains, &key).expect("read").expect("a record")
    };
    let before = stored(&store);
    store.write(|tx| tx.put(&grown(1))).await.expect("put");
    assert_eq!(stored(&store), before, "an equal record is not stored again");
    store.write(|tx| tx.bump_version::<Grown>(&(1, 1))).await.expect("bumped");
    assert_eq!(layout_of(&stored(&store)), 3);
}
