//! Files of older forms get the indexes and counts that they lack.

use redb::ReadableTable;
use serde_json::json;
use uuid::Uuid;

use super::opening::set_format;
use super::*;
use crate::ids::{ActivityId, MembershipId, OrganizationId, ProjectId, UserId, UserUuid};
use crate::resources::activity::{self, Detail, Entry, FieldChange, Shown};
use crate::resources::members::{Level, Membership};
use crate::resources::users::{self, LinkAccount, User};
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
        let findings =
            store.check(checks(vec![kind::<Owner>(), kind::<Entry>()]), Progress::unheard()).await;
        assert_clean(&findings.expect("checked"));
        store.close().await;
    }
}

/// A user who joined an organization `waited` after their creation, and whom `by` let in as the log has it.
fn joined(
    tx: &mut WriteTx<'_>,
    number: u64,
    (is_verified, waited, by): (bool, i64, Option<u64>),
) -> Result<()> {
    let (id, uuid) = (UserId(number), UserUuid(Uuid::from_u128(number.into())));
    let (organization, at) = (OrganizationId(Uuid::from_u128(9)), Timestamp::from_micros(77));
    let joined_at = at.plus_seconds(waited);
    tx.put(&User {
        head: users::Head {
            id,
            uuid,
            is_active: true,
            current_organization: Some(organization),
            current_project: None,
            date_joined: at,
        },
        shown: users::Shown {
            id,
            uuid,
            distinct_id: String::new(),
            first_name: String::new(),
            last_name: String::new(),
            email: format!("u{number}@x.example"),
            is_email_verified: is_verified,
            hedgehog_config: None,
            role_at_organization: None,
        },
    })?;
    let member = MembershipId(Uuid::from_u128(u128::from(number) << 64));
    tx.put(&Membership {
        organization,
        user: id,
        id: member,
        level: Level::Admin,
        joined_at,
        updated_at: joined_at,
        listed: true,
    })?;
    tx.put(&Entry {
        head: activity::Head {
            organization,
            created_at: joined_at,
            id: ActivityId(member.0),
            project: None,
            user: by.map(UserId),
        },
        shown: Shown {
            scope: "OrganizationMembership".to_owned(),
            item_id: member.to_string(),
            activity: "created".to_owned(),
            detail: Detail { name: None, changes: Vec::new() },
        },
    })
}

#[tokio::test]
async fn an_older_files_accounts_that_only_a_link_made_are_found_when_it_is_opened() {
    let (scratch, store) = Scratch::new();
    let write = |tx: &mut WriteTx<'_>| {
        // By a link; with a token of a mail; by the operator; as the operator's user, later.
        for (number, how) in [
            (101, (false, 0, Some(101))),
            (102, (true, 0, Some(102))),
            (103, (false, 0, None)),
            (104, (false, 5, Some(104))),
        ] {
            joined(tx, number, how)?;
        }
        Ok(())
    };
    store.write(write).await.expect("users");
    store.close().await;
    drop(store);
    set_format(&scratch, 4);
    let store = scratch.open().expect("an older file");
    let mut found = Vec::new();
    let tx = store.snapshot().expect("a snapshot");
    let all = Window::all(Order::Ascending);
    tx.scan::<LinkAccount, _>(&(), all, |row| {
        found.push(row.into_record()?);
        Ok(())
    })
    .expect("read");
    let organization = OrganizationId(Uuid::from_u128(9));
    let at = Timestamp::from_micros(77);
    assert_eq!(found, [LinkAccount { user: UserId(101), organization, invited_by: None, at }]);
}
