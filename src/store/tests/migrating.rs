//! Migrations of stored records.

use serde::Deserializer;

use super::*;
use crate::store::format::migrate::{Step, migrate};

/// A note as the older format has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    meta: NoteMeta,
    fields: NoteFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NoteMeta {
    owner: u64,
    id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NoteFields {
    text: String,
}

static NOTES_BY_TEXT: Index<Note, (u64, String)> =
    Index::covering(Table::DomainsOfOrganization, |note| {
        Some((note.meta.owner, note.fields.text.clone()))
    });

impl_record!(Note {
    table: Domains,
    key: |note| -> (u64, u64) { (note.meta.owner, note.meta.id) },
    parts: meta: NoteMeta, fields: NoteFields,
    indexes: [&NOTES_BY_TEXT],
    counts: [|note| Some(note.meta.owner.encoded())],
    owner: |note, _| Ok(Some(organization(note.meta.owner))),
});

/// A note as the newer format has it. Its step reads both forms as this type.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grown {
    meta: GrownMeta,
    fields: GrownFields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GrownMeta {
    owner: u64,
    id: u64,
    #[serde(deserialize_with = "rank_or_7")]
    rank: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GrownFields {
    text: String,
    #[serde(default = "blue")]
    color: String,
}

static GROWN_BY_TEXT: Index<Grown, (u64, String)> =
    Index::covering(Table::DomainsOfOrganization, |note| {
        Some((note.meta.owner, note.fields.text.clone()))
    });

impl_record!(Grown {
    table: Domains,
    key: |note| -> (u64, u64) { (note.meta.owner, note.meta.id) },
    parts: meta: GrownMeta, fields: GrownFields,
    indexes: [&GROWN_BY_TEXT],
    counts: [|note| Some(note.meta.owner.encoded())],
    owner: |note, _| Ok(Some(organization(note.meta.owner))),
});

fn organization(number: u64) -> byte_usage::Owner {
    byte_usage::Owner::Organization(uuid::Uuid::from_u128(number.into()))
}

/// Returns the rank of a note, or 7 if its metadata ends before it.
fn rank_or_7<'de, D: Deserializer<'de>>(meta: D) -> Result<u64, D::Error> {
    u64::deserialize(meta).or(Ok(7))
}

fn blue() -> String {
    "blue".to_owned()
}

fn note(id: u64) -> Note {
    Note { meta: NoteMeta { owner: 1, id }, fields: NoteFields { text: format!("note {id}") } }
}

/// Stores all notes with the members that the newer format adds.
fn grow_notes(tx: &mut WriteTx<'_>) -> Result<()> {
    let mut notes = Vec::new();
    tx.scan(&(), Window::all(Order::Ascending), |row: Row<'_, Grown>| {
        notes.push(row.into_record()?);
        Ok(())
    })?;
    for note in &notes {
        tx.put(note)?;
        tx.savepoint()?;
    }
    Ok(())
}

#[tokio::test]
async fn step_adds_members_to_stored_records() {
    let (scratch, store) = Scratch::new();
    store.write(|tx| (0..300).try_for_each(|id| tx.put(&note(id)))).await.expect("put");
    store.close().await;
    let steps: [Step; 1] = [grow_notes];
    scratch.with_database(|database| {
        migrate(database, 1, &steps, schema::FORMAT).expect("migrated");
    });
    let store = scratch.open().expect("the file");
    let mut registry = checks();
    registry.record_types.push(&RecordTypeOf::<Grown>(Redaction::Open));
    assert_clean(&store.check(registry, Progress::silent()).await.expect("checked"));
    let snapshot = store.snapshot().expect("open");
    let meta = GrownMeta { owner: 1, id: 299, rank: 7 };
    let fields = GrownFields { text: "note 299".to_owned(), color: blue() };
    assert_eq!(snapshot.get::<Grown>(&(1, 299)).expect("read"), Grown { meta, fields });
    assert_eq!(snapshot.version::<Grown>(&(1, 299)).expect("read"), 2);
}
