//! Tests of how many values a batch reads, counted at the transaction.

use std::cell::Cell;

use tempfile::TempDir;

use crate::ids::{InviteId, UserId};
use crate::mail::outbox::Notification;
use crate::mail::sent_log::SentMail;
use crate::secret::Seed;
use crate::store::{Order, Raw, Snapshot, Store, Table, WriteTx};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);

/// A snapshot that counts the values that are read through it.
struct Counting<'s> {
    snapshot: &'s Snapshot,
    read: Cell<usize>,
}

impl Raw for Counting<'_> {
    fn raw_get(
        &self,
        table: Table,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read.set(self.read.get() + 1);
        self.snapshot.raw_get(table, key, visit)
    }

    fn raw_between(
        &self,
        table: Table,
        span: (&[u8], Option<&[u8]>),
        skip: usize,
        order: Order,
        visit: &mut (dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + '_),
    ) -> Result<()> {
        self.snapshot.raw_between(table, span, skip, order, &mut |key, payload| {
            self.read.set(self.read.get() + 1);
            visit(key, payload)
        })
    }
}

/// A data file for tests of the outbox.
struct Outbox {
    store: Store,
    _folder: TempDir,
}

impl Outbox {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("steward.redb");
        let mut rng = Seed::generate().rng();
        let created = Store::create(&path, 1 << 22, &mut rng, |_, _| Ok(()));
        let (store, ()) = created.expect("a data file");
        Self { store, _folder: folder }
    }

    async fn put(&self, put: impl Fn(&mut WriteTx<'_>) -> Result<()> + Send + 'static) {
        self.store.write(put).await.expect("written");
    }

    /// Adds mails of an organization. `to` returns the address of each.
    async fn outbox_messages(&self, organization: u128, count: u128, to: fn(u128) -> String) {
        self.put(move |tx| {
            (0..count)
                .try_for_each(|number| tx.put(&outbox_message(organization, number, to(number))))
        })
        .await;
    }

    /// Uses up the limit of organizations.
    async fn exhaust(&self, organizations: std::ops::Range<u128>) {
        self.put(move |tx| {
            let each = |organization| (0..100).map(move |number| (organization, number));
            organizations.clone().flat_map(each).try_for_each(|(organization, number)| {
                tx.put(&sent(organization, number, format!("{number}@sent.example")))
            })
        })
        .await;
    }

    /// Plans a batch. Returns it with the number of values that were read.
    fn plan(&self, schedule: &mut Schedule, now: Timestamp) -> (Batch, usize) {
        let snapshot = self.store.snapshot().expect("a snapshot");
        let tx = Counting { snapshot: &snapshot, read: Cell::new(0) };
        let batch = schedule.plan(&tx, now).expect("a round");
        (batch, tx.read.get())
    }

    /// Plans batches until no organization has a turn now. Returns the mails, and the number of values that each
    /// batch read.
    fn plan_all(&self, schedule: &mut Schedule) -> (Vec<OutboxMessage>, Vec<usize>) {
        let (mut messages, mut reads) = (Vec::new(), Vec::new());
        loop {
            let (batch, read) = self.plan(schedule, NOW);
            messages.extend(batch.messages);
            reads.push(read);
            assert!(reads.len() < 2_000, "the batches do not end");
            if batch.next_at.is_none_or(|next| next > NOW) {
                return (messages, reads);
            }
        }
    }
}

fn id(organization: u128, number: u128) -> Uuid {
    Uuid::from_u128(organization << 64 | number)
}

fn organization(number: u128) -> OrganizationId {
    OrganizationId(id(number, 0))
}

fn outbox_message(of: u128, number: u128, to: String) -> OutboxMessage {
    let about = Notification::Invite { invite: InviteId(id(of, number)), to, by: UserId(1) };
    let (id, organization) = (OutboxMessageId(id(of, number)), organization(of));
    OutboxMessage { id, organization, about, written_at: NOW, due_at: NOW, attempts: 0 }
}

fn sent(of: u128, number: u128, mailbox: String) -> SentMail {
    let (message, organization) = (OutboxMessageId(id(of, number)), organization(of));
    SentMail { at: NOW, outbox_message: message, organization, mailbox, user: None }
}

fn distinct(number: u128) -> String {
    format!("{number}@x.example")
}

fn one_mailbox(number: u128) -> String {
    format!("victim+{number}@x.example")
}

#[tokio::test]
async fn planning_cost_for_an_exhausted_quota_is_constant() {
    let mut costs = Vec::new();
    for waiting in [300, 30_000] {
        let outbox = Outbox::new();
        outbox.outbox_messages(1, waiting, distinct).await;
        outbox.exhaust(1..2).await;
        let (messages, reads) = outbox.plan_all(&mut Schedule::default());
        assert!(messages.is_empty());
        costs.push(reads.iter().sum::<usize>());
    }
    assert!(costs[1] <= costs[0] && costs[0] < 20, "{costs:?}");
}

#[tokio::test]
async fn batch_reads_a_limited_number_of_messages_to_one_mailbox() {
    for waiting in [300, 30_000] {
        let outbox = Outbox::new();
        outbox.outbox_messages(1, waiting, one_mailbox).await;
        outbox.put(|tx| tx.put(&sent(9, 1, "victim@x.example".to_owned()))).await;
        // The last mail in the order of the index.
        outbox
            .put(move |tx| tx.put(&outbox_message(1, waiting, "free@x.example".to_owned())))
            .await;
        let mut schedule = Schedule::default();
        let (messages, reads) = outbox.plan_all(&mut schedule);
        assert_eq!(messages.first().map(|message| message.id.0), Some(id(1, waiting)));
        assert!(reads.iter().all(|read| *read < 3 * MAX_READ_PER_ORGANIZATION), "{reads:?}");
        // A new mail is found without reading the others again.
        outbox
            .put(move |tx| tx.remove::<OutboxMessage>(&OutboxMessageId(id(1, waiting))).map(drop))
            .await;
        outbox.plan_all(&mut schedule);
        let later = NOW.plus_seconds(1);
        outbox
            .put(move |tx| {
                let new = outbox_message(1, waiting + 1, "new@x.example".to_owned());
                tx.put(&OutboxMessage { due_at: later, ..new })
            })
            .await;
        schedule.add(organization(1), later);
        let (batch, read) = outbox.plan(&mut schedule, later);
        assert_eq!(batch.messages.len(), 1);
        assert!(read < 20, "{read}");
    }
}

#[tokio::test]
async fn batch_checks_a_limited_number_of_organizations() {
    for organizations in [30, 3_000] {
        let outbox = Outbox::new();
        outbox
            .put(move |tx| {
                let all = (1..=organizations).map(|of| outbox_message(of, 1, one_mailbox(of)));
                all.into_iter().try_for_each(|message| tx.put(&message))
            })
            .await;
        outbox.put(|tx| tx.put(&sent(9_999, 1, "victim@x.example".to_owned()))).await;
        let mut schedule = Schedule::default();
        let (messages, reads) = outbox.plan_all(&mut schedule);
        assert!(messages.is_empty());
        assert!(reads.iter().all(|read| *read < 500), "{reads:?}");
        let turns = schedule.due_order.len();
        assert_eq!(turns, usize::try_from(organizations).expect("a number"));
    }
}

#[tokio::test]
async fn organizations_take_turns() {
    let outbox = Outbox::new();
    outbox.outbox_messages(1, 90, distinct).await;
    let mut schedule = Schedule::default();
    let (batch, _) = outbox.plan(&mut schedule, NOW);
    assert_eq!(batch.messages.len(), MAX_SENT_PER_ORGANIZATION);
    outbox.put(|tx| tx.put(&outbox_message(2, 1, "other@x.example".to_owned()))).await;
    schedule.add(organization(2), NOW);
    let (batch, _) = outbox.plan(&mut schedule, NOW);
    assert!(batch.messages.iter().any(|message| message.organization == organization(2)));
}

#[tokio::test]
async fn batch_contains_one_message_per_mailbox() {
    let outbox = Outbox::new();
    for of in 1..=3 {
        outbox.outbox_messages(of, 3, one_mailbox).await;
    }
    let (batch, _) = outbox.plan(&mut Schedule::default(), NOW);
    assert_eq!(batch.messages.len(), 1);
    assert_eq!(batch.next_at, Some(NOW));
}

#[tokio::test]
async fn delayed_message_is_sent_when_it_is_due() {
    let outbox = Outbox::new();
    let due = NOW.plus_seconds(5);
    outbox
        .put(move |tx| tx.put(&OutboxMessage { due_at: due, ..outbox_message(1, 1, distinct(1)) }))
        .await;
    let mut schedule = Schedule::default();
    let (batch, _) = outbox.plan(&mut schedule, NOW);
    assert_eq!((batch.messages.len(), batch.next_at), (0, Some(due)));
    assert_eq!(outbox.plan(&mut schedule, due).0.messages.len(), 1);
}

#[tokio::test]
async fn slow_mail_delays_only_its_users_messages_in_all_organizations() {
    let outbox = Outbox::new();
    for of in 1..=5 {
        outbox.outbox_messages(of, 3, distinct).await;
    }
    let of_other = OutboxMessage {
        about: Notification::Invite { invite: InviteId(id(6, 1)), to: distinct(6), by: UserId(2) },
        ..outbox_message(6, 1, distinct(6))
    };
    outbox.put(move |tx| tx.put(&of_other)).await;
    let mut schedule = Schedule::default();
    let slow = outbox_message(1, 0, distinct(0));
    let ended = NOW.plus_seconds(30);
    schedule.pauses.add(&slow, std::time::Duration::from_secs(30), ended);
    let organizations = |batch: &Batch| -> Vec<_> {
        batch.messages.iter().map(|message| message.organization).collect()
    };
    let (batch, _) = outbox.plan(&mut schedule, ended);
    assert_eq!(organizations(&batch), [organization(6)]);
    schedule.add(organization(6), NOW);
    let (batch, _) = outbox.plan(&mut schedule, ended.plus_seconds(119));
    assert_eq!(organizations(&batch), [organization(6)]);
    let (batch, _) = outbox.plan(&mut schedule, ended.plus_seconds(120));
    assert!(!batch.messages.is_empty());
    assert!(batch.messages.iter().all(|message| message.organization != organization(6)));
}
