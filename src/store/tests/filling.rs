//! Files of older forms get the indexes and counts that they lack.

use redb::{ReadableDatabase, ReadableTable};
use serde_json::json;
use uuid::Uuid;

use super::opening::set_format;
use super::*;
use crate::ids::{
    ActivityId, InviteId, LetterId, MembershipId, OrganizationId, ProjectId, UserId, UserUuid,
};
use crate::mail::outbox::{About, Letter};
use crate::mail::sent::Sent;
use crate::resources::activity::{self, Detail, Entry, FieldChange, Shown};
use crate::resources::members::{Level, Membership};
use crate::resources::users::{self, LinkAccount, Profile, ProfileShown, User};
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
                user: number.is_multiple_of(2).then_some(UserId(1 + number % 5)),
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
    let scratch = Scratch::empty();
    let create = |tx: &mut WriteTx<'_>, _: &SigningSecret| {
        for number in 1..=5 {
            let profile = ProfileShown { theme_mode: Some("x".repeat(number)), ..<_>::default() };
            let user = user(number as u64, true);
            tx.put(&user)?;
            tx.put(&Profile { user: user.head.id, shown: profile })?;
        }
        Ok(())
    };
    let mut draw = Seed::take().draw();
    let created = Store::create(&scratch.path(), NO_CACHE, &mut draw, create);
    let (store, ()) = created.expect("a data file");
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
            let sums = "bytes".to_owned().encoded();
            let is_new = |key: &[u8]| key.starts_with(&log) || key.starts_with(&sums);
            table.retain(|key, _| !is_new(key)).expect("forgotten");
            assert!(table.iter().expect("read").next().is_none());
        });
        set_format(&scratch, form);
        let store = scratch.open().expect("an older file");
        assert!(dump(&store) == whole, "form {form}");
        let kinds = vec![kind::<User>(), kind::<Profile>(), kind::<Entry>()];
        let findings = store.check(checks(kinds), Progress::unheard()).await;
        assert_clean(&findings.expect("checked"));
        store.close().await;
    }
}

/// What form 4 says of a letter's content.
#[derive(Serialize)]
enum OldAbout {
    Invite { invite: InviteId, to: String },
    Joining { user: UserId },
    Joined { user: UserId, to: String },
}

impl From<About> for OldAbout {
    fn from(about: About) -> Self {
        match about {
            About::Invite { invite, to, .. } => Self::Invite { invite, to },
            About::Joining { user } => Self::Joining { user },
            About::Joined { user, to } => Self::Joined { user, to },
            About::TakenOver { .. } => panic!("form 4 has none"),
        }
    }
}

/// Letters and sent mails, more than are brought up to date at once.
fn mails() -> (Vec<Letter>, Vec<Sent>) {
    let moment = |number: u64| Timestamp::from_micros(i64::try_from(number).expect("few"));
    let organization = |number: u64| OrganizationId(Uuid::from_u128(u128::from(number % 3)));
    let letter = |number: u64| {
        let (user, to) = (UserId(number), format!("{number}@x.example"));
        let invite = InviteId(Uuid::from_u128(u128::from(number)));
        Letter {
            id: LetterId(Uuid::from_u128(u128::from(number))),
            organization: organization(number),
            about: match number % 3 {
                0 => About::Invite { invite, to, by: None },
                1 => About::Joining { user },
                _ => About::Joined { user, to },
            },
            written_at: moment(number),
            due_at: moment(number * 7),
            attempts: 300,
        }
    };
    let sent = |number: u64| Sent {
        at: moment(number),
        letter: LetterId(Uuid::from_u128(u128::from(number))),
        organization: organization(number),
        mailbox: format!("{number}@x.example"),
        user: None,
    };
    ((0..2345).map(letter).collect(), (0..1234).map(sent).collect())
}

/// Puts a record of form 4 into the file.
fn put_old(table: &mut RawTable<'_>, of: Table, key: &[u8], head: &impl Serialize) {
    let payload = postcard::to_stdvec(&(1_u64, head)).expect("a head");
    let sealed = record::seal(of, key, &[payload.as_slice(), b"null"].concat());
    table.insert(key, sealed.as_slice()).expect("put");
}

#[tokio::test]
async fn an_older_files_mails_are_indexed_and_counted_by_organization_when_it_is_opened() {
    let (scratch, store) = Scratch::new();
    let (letters, sent) = mails();
    let all = (letters.clone(), sent.clone());
    let put = move |tx: &mut WriteTx<'_>| {
        all.0.iter().try_for_each(|letter| tx.put(letter))?;
        all.1.iter().try_for_each(|sent| tx.put(sent))
    };
    store.write(put).await.expect("mails");
    let whole = dump(&store);
    store.close().await;
    drop(store);
    scratch.behind_the_back(Table::Outbox, |table| {
        for Letter { id, organization, about, written_at, due_at, attempts } in letters {
            let about = OldAbout::from(about);
            let head = (id, organization, about, written_at, due_at, attempts);
            put_old(table, Table::Outbox, &id.encoded(), &head);
        }
    });
    scratch.behind_the_back(Table::MailSent, |table| {
        for Sent { at, letter, organization, mailbox, user: _ } in sent {
            let head = (at, letter, organization, mailbox);
            put_old(table, Table::MailSent, &(at, letter).encoded(), &head);
        }
    });
    for table in [Table::OutboxByOrganization, Table::Counts] {
        scratch.behind_the_back(table, |table| table.retain(|_, _| false).expect("emptied"));
    }
    let retired = redb::TableDefinition::<&[u8], &[u8]>::new("outbox_by_due/1");
    scratch.with_database(|database| {
        let transaction = database.begin_write().expect("a transaction");
        drop(transaction.open_table(retired).expect("a table of form 4"));
        transaction.commit().expect("committed");
    });
    set_format(&scratch, 4);
    let store = scratch.open().expect("an older file");
    assert!(dump(&store) == whole);
    let kinds = vec![kind::<Owner>(), kind::<Letter>(), kind::<Sent>()];
    let findings = store.check(checks(kinds), Progress::unheard()).await;
    assert_clean(&findings.expect("checked"));
    store.close().await;
    drop(store);
    scratch.with_database(|database| {
        let transaction = database.begin_read().expect("a transaction");
        assert!(transaction.open_table(retired).is_err(), "the old index is gone");
    });
}

fn user(number: u64, is_verified: bool) -> User {
    let (id, uuid) = (UserId(number), UserUuid(Uuid::from_u128(number.into())));
    User {
        head: users::Head {
            id,
            uuid,
            is_active: true,
            current_organization: None,
            current_project: None,
            date_joined: Timestamp::from_micros(77),
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
    }
}

/// A user who joined an organization `waited` after their creation, and whom `by` let in as the log has it.
fn joined(
    tx: &mut WriteTx<'_>,
    number: u64,
    (is_verified, waited, by): (bool, i64, Option<u64>),
) -> Result<()> {
    let mut user = user(number, is_verified);
    let organization = OrganizationId(Uuid::from_u128(9));
    user.head.current_organization = Some(organization);
    tx.put(&user)?;
    let (id, joined_at) = (user.head.id, user.head.date_joined.plus_seconds(waited));
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
