//! Files of older forms get the indexes and counts that they lack.

use redb::ReadableTable;
use serde_json::json;
use uuid::Uuid;

use super::opening::set_format;
use super::*;
use crate::ids::{ActivityId, OrganizationId, ProjectId, UserId};
use crate::resources::activity::{self, Detail, Entry, FieldChange, Shown};
use crate::time::Timestamp;

/// Entries about everything that an entry can be about, more than are filled in at once.
fn entries() -> Vec<Entry> {
    let about = [
        (None, "Organization", "01890000-0000-7000-8000-000000000000"),
        (None, "PersonalAPIKey", "abc"),
        (None, "OrganizationInvite", "x\0\"\u{e9}"),
        (Some(1), "Project", "1"),
        (Some(1), "Dashboard", "7"),
        (Some(2), "Dashboard", "8"),
        (Some(2), "DashboardCollaborator", "8:3"),
        (Some(2), "AccessControl", "2:dashboard:8:*"),
        (Some(2), "AccessControl", "2:dashboard:*:3"),
        (Some(2), "AccessControl", "2:3"),
    ];
    let entry = |number: u64| {
        let (project, scope, item_id) = about[usize::try_from(number).expect("few") % about.len()];
        let change = FieldChange {
            r#type: scope.to_owned(),
            action: "changed".to_owned(),
            field: "name".to_owned(),
            before: json!({ "scope": "Dashboard", "item_id": "9" }),
            after: json!(null),
        };
        Entry {
            head: activity::Head {
                organization: OrganizationId(Uuid::from_u128(u128::from(number % 3))),
                created_at: Timestamp::from_micros(i64::try_from(number).expect("few") - 1000),
                id: ActivityId(Uuid::from_u128(u128::from(number))),
                project: project.map(ProjectId),
                user: number.is_multiple_of(2).then_some(UserId(number % 5)),
            },
            shown: Shown {
                scope: scope.to_owned(),
                item_id: item_id.to_owned(),
                activity: "updated".to_owned(),
                detail: Detail { name: Some("a\"b".to_owned()), changes: vec![change] },
            },
        }
    };
    (0..2345).map(entry).collect()
}

#[tokio::test]
async fn an_older_files_activity_log_is_indexed_and_counted_when_it_is_opened() {
    let (scratch, store) = Scratch::new();
    let all = entries();
    store.write(move |tx| all.iter().try_for_each(|entry| tx.put(entry))).await.expect("entries");
    let whole = dump(&store);
    store.close().await;
    drop(store);
    for form in [1, 2, 3] {
        for table in [Table::ActivityByProject, Table::ActivityByUser, Table::ActivityByItem] {
            scratch.behind_the_back(table, |table| table.retain(|_, _| false).expect("emptied"));
        }
        let log = Table::Activity.name().to_owned().encoded();
        scratch.behind_the_back(Table::Counts, |table| {
            table.retain(|key, _| !key.starts_with(&log)).expect("forgotten");
            assert!(table.iter().expect("read").next().is_none());
        });
        set_format(&scratch, form);
        let store = scratch.open().expect("an older file");
        assert!(dump(&store) == whole, "form {form}");
        let findings = store.check(vec![kind::<Owner>(), kind::<Entry>()], |_, _| Ok(false)).await;
        assert_clean(&findings.expect("checked"));
        store.close().await;
    }
}
