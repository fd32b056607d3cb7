//! Tests of the mail worker with a real data file, a mail server on loopback and a manual clock.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use steward::testing::error::{Error, Result};
use steward::testing::http::logging::{self, LogFormat};
use steward::testing::ids::{InviteId, OutboxMessageId};
use steward::testing::leases::LeaseWatch;
use steward::testing::mail::{
    self, ComposeMail, Composed, Delivery, MailContent, MailKind, MailWorker, Mailer, Notification,
    OutboxMessage, Pace, PaceKey,
};
use steward::testing::metrics::Series;
use steward::testing::secret::SeedSource;
use steward::testing::store::Snapshot;
use steward::{CreatedWorkspace, InitialRecords, create};
use tokio::net::TcpSocket;

use crate::support::log;
use crate::support::prelude::*;
use crate::support::wait::{TEST_TIMEOUT, until};

const START: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);
const TICK: Duration = Duration::from_micros(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Renders messages in place of the real renderer.
struct Scribe;

impl ComposeMail for Scribe {
    fn compose(&self, _: &Snapshot, message: &OutboxMessage, _: Timestamp) -> Result<Composed> {
        let to = match &message.about {
            Notification::Invite { to, .. }
            | Notification::Joined { to, .. }
            | Notification::TakenOver { to, .. } => to,
            Notification::Joining { user } => {
                let told = |name: &str| Notification::Joined {
                    user: *user,
                    to: format!("{name}@joined.example"),
                };
                return Ok(Composed::Replace(vec![told("ann"), told("bob")]));
            }
        };
        match to.split('@').next() {
            Some("moot") => Ok(Composed::Obsolete),
            Some("fault") if message.attempts == 0 => Err(Error::internal("a fault")),
            Some("panic") => panic!("a composer that panics"),
            _ => Ok(Composed::Content(MailContent {
                kind: MailKind::Test,
                link: None,
                subject: format!("To {to}"),
                text: "Hello.".to_owned(),
                html: "<p>Hello.</p>".to_owned(),
            })),
        }
    }

    fn record(
        &self,
        _: &mut WriteTx<'_>,
        message: &OutboxMessage,
        _: &Delivery,
        _: Timestamp,
    ) -> Result<()> {
        match message.about.address() {
            Some("unrecorded@x.example") => Err(Error::internal("a fault")),
            _ => Ok(()),
        }
    }
}

/// Returns an id that no other test uses.
fn unique() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
    Uuid::from_u128(0x0bec_0000_0000_7000_8000_0000_0000_0000 + number)
}

fn organization() -> OrganizationId {
    OrganizationId(unique())
}

/// A data file whose outbox has a mail worker.
struct Office {
    app: App,
    postman: MailWorker,
    made: CreatedWorkspace,
    clock: ManualClock,
    server: MailServer,
    timeout: Duration,
    folder: TempDir,
}

impl Office {
    async fn open() -> Self {
        Self::within(2 * TEST_TIMEOUT).await
    }

    /// Opens it with this timeout for the mail server.
    async fn within(timeout: Duration) -> Self {
        log::capture();
        let (folder, clock) = (TempDir::new().unwrap(), ManualClock::at(START));
        let config = configured(&clock);
        let path = folder.path().join("steward.redb");
        let (app, made) = create(&path, config, &InitialRecords::default()).unwrap();
        let server = MailServer::start();
        let postman = postman(app.store(), Clock::Manual(clock.clone()), &server.url(), timeout);
        Self { app, postman, made, clock, server, timeout, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("steward.redb")
    }

    /// Stops the mail worker and closes the file.
    async fn close(&self) {
        self.postman.stop().await;
        self.app.close().await;
    }

    /// Closes the file and opens it again with this clock.
    async fn reopen(self, clock: ManualClock) -> Self {
        self.close().await;
        let store = Store::open(&self.path(), 1 << 20).unwrap();
        let app = App::new(store, configured(&clock)).unwrap();
        let manual = Clock::Manual(clock.clone());
        let postman = postman(app.store(), manual, &self.server.url(), self.timeout);
        Self { app, postman, clock, ..self }
    }

    /// Closes the file and opens it again with the same clock.
    async fn restart(self) -> Self {
        let clock = self.clock.clone();
        self.reopen(clock).await
    }

    /// Adds a message without waking the mail worker.
    async fn put(&self, organization: OrganizationId, about: Notification) -> OutboxMessageId {
        post_into(self.app.store(), organization, about, self.app.now()).await
    }

    async fn post_for(&self, organization: OrganizationId, to: &str) -> OutboxMessageId {
        let id = self.put(organization, invite(to)).await;
        self.postman.wake();
        id
    }

    async fn post(&self, to: &str) -> OutboxMessageId {
        self.post_for(organization(), to).await
    }

    fn find(&self, id: OutboxMessageId) -> Option<OutboxMessage> {
        self.app.store().snapshot().unwrap().find(&id).unwrap()
    }

    /// Waits until the message has failed this many times, and returns it.
    async fn tried(&self, id: OutboxMessageId, attempts: u32) -> OutboxMessage {
        let what = format!("attempt {attempts}");
        eventually(&what, || self.find(id).filter(|message| message.attempts == attempts)).await
    }

    async fn is_gone(&self, id: OutboxMessageId) {
        eventually("the message is deleted", || self.find(id).is_none().then_some(())).await;
    }

    /// Waits until this many attempts are stored for the limits of organizations.
    async fn remembers(&self, count: usize) {
        eventually("attempts are recorded", || (remembered(&self.app) == count).then_some(()))
            .await;
    }

    /// Waits until this many of the messages are left.
    async fn waits(&self, messages: &[OutboxMessageId], count: usize) {
        let waiting = || messages.iter().filter(|id| self.find(**id).is_some()).count();
        eventually("messages are deleted", || (waiting() == count).then_some(())).await;
    }

    /// Asserts that the next mail has this recipient.
    async fn sends_to(&mut self, to: &str) -> Mail {
        let mail = self.server.mail().await;
        assert_eq!(mail.to, [to]);
        mail
    }

    /// Sends a message, and waits until it is delivered.
    async fn delivers(&mut self, to: &str) {
        let id = self.post(to).await;
        self.sends_to(to).await;
        self.is_gone(id).await;
    }

    /// Waits for this many mails.
    async fn receives(&mut self, count: usize) {
        for _ in 0..count {
            self.server.mail().await;
        }
    }

    /// Asserts that the mail worker has nothing to send: a message that is added now is sent next.
    async fn rests(&mut self) {
        self.delivers(&format!("{}@rests.example", unique())).await;
    }

    /// Asserts that the file has no problems and that the server received no other mail.
    async fn ends(mut self) {
        self.close().await;
        self.server.has_no_more();
        checked(&self.path()).await.close().await;
    }
}

/// Opens a data file and asserts that it has no problems.
async fn checked(path: &Path) -> App {
    let app = App::new(Store::open(path, 1 << 20).unwrap(), Config::default()).unwrap();
    let findings = perform(&app, Operation::Check, Progress::silent()).await.unwrap();
    assert_eq!(findings["problem_count"], 0, "{findings}");
    app
}

/// Returns the number of attempts that are stored for the limits of organizations.
fn remembered(app: &App) -> usize {
    let mut remembered = 0;
    let tx = app.store().snapshot().unwrap();
    tx.scan::<Pace, _>(&(), Window::all(Order::Ascending), |row| {
        if matches!(row.meta.key, PaceKey::Organization(_)) {
            remembered += row.meta.attempts.len();
        }
        Ok(())
    })
    .unwrap();
    remembered
}

async fn post_into(
    store: &Store,
    organization: OrganizationId,
    about: Notification,
    now: Timestamp,
) -> OutboxMessageId {
    let id = OutboxMessageId(unique());
    let written =
        store.write(move |tx| mail::enqueue(tx, id, organization, about.clone(), now)).await;
    written.unwrap();
    id
}

fn configured(clock: &ManualClock) -> Config {
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    config
}

/// Starts a mail worker that renders with the [`Scribe`].
fn postman(store: &Store, clock: Clock, url: &str, timeout: Duration) -> MailWorker {
    let mut mail = Config::default().mail;
    mail.smtp_url = Some(url.parse().expect("a URL"));
    mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    mail.smtp_timeout = timeout;
    let mailer = Mailer::new(&mail).expect("it can be used").expect("a server is named");
    let (store, lease) = (store.clone(), LeaseWatch::unneeded());
    let (seeds, composer) = (SeedSource::default(), Arc::new(Scribe));
    MailWorker::start(store, clock, seeds, mailer, composer, lease, &Metrics::default())
}

/// An invite by a user of its own, so that no user's limit is reached.
fn invite(to: &str) -> Notification {
    let id = unique();
    Notification::Invite { invite: InviteId(id), to: to.to_owned(), by: UserId(id.as_u64_pair().1) }
}

#[tokio::test]
async fn queued_message_is_sent_once_and_removed_from_the_outbox() {
    let mut office = Office::open().await;
    let id = office.post("Ann.B@corp.example").await;
    let mail = office.sends_to("Ann.B@corp.example").await;
    assert_eq!((mail.from.as_str(), mail.hello.as_str()), ("steward@corp.example", "corp.example"));
    assert_eq!(mail.subject(), "To Ann.B@corp.example");
    office.is_gone(id).await;
    assert_eq!(remembered(&office.app), 1);
    assert!(log::lines_about(id).is_empty(), "a sent mail must not be logged");
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn messages_queued_before_the_worker_starts_are_sent_unless_older_than_three_days() {
    let office = Office::open().await;
    office.postman.stop().await;
    let old = office.post("old@corp.example").await;
    office.clock.advance(72 * HOUR + TICK);
    let id = office.post(ANN).await;
    assert!(office.find(id).is_some());
    let mut office = office.restart().await;
    office.sends_to(ANN).await;
    office.is_gone(id).await;
    office.is_gone(old).await;
    office.ends().await;
}

#[tokio::test]
async fn failed_message_is_retried_with_exponential_backoff_up_to_an_hour() {
    let mut office = Office::open().await;
    office.server.refuse(ANN);
    let id = office.post(ANN).await;
    let waits = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600];
    let mut now = START;
    for (tries, wait) in (1..).zip(waits) {
        let message = office.tried(id, tries).await;
        assert_eq!(message.due_at, now.plus_seconds(wait), "after attempt {tries}");
        let wait = Duration::from_secs(wait.unsigned_abs());
        office.clock.advance(wait.saturating_sub(TICK));
        office.rests().await;
        assert_eq!(office.find(id), Some(message), "it was tried too early");
        office.clock.advance(TICK);
        now = now.plus(wait);
    }
    office.tried(id, 13).await;
    let said = log::lines_about(id);
    assert_eq!(said.len(), 13);
    assert_eq!(said[0]["level"], "WARN");
    assert_eq!(said[0]["error"], "550 5.1.1 <[address]> is unknown");
    office.ends().await;
}

#[tokio::test]
async fn message_is_dropped_after_three_days_of_failures() {
    let mut office = Office::open().await;
    office.server.refuse(ANN);
    let id = office.post(ANN).await;
    office.tried(id, 1).await;
    office.clock.advance(72 * HOUR);
    office.tried(id, 2).await;
    office.clock.advance(HOUR);
    office.is_gone(id).await;
    let said = log::lines_about(id);
    assert_eq!(said.len(), 3);
    assert_eq!([&said[2]["level"], &said[2]["message"]], ["ERROR", "gave up a mail"]);
    assert!(!said.iter().any(|line| line.to_string().contains("ann@")), "{said:?}");
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn message_is_retried_after_any_smtp_error() {
    let mut office = Office::open().await;
    let manners = [
        ServerBehavior::RefuseSender,
        ServerBehavior::Later,
        ServerBehavior::CutBeforeData,
        ServerBehavior::CutBeforeReply,
    ];
    let cut = format!("{}: ", office.server.address);
    let words =
        ["550 5.7.1 <steward@corp.example> may not send", "451 4.3.0 come back later", &cut, &cut];
    for (manner, words) in manners.into_iter().zip(words) {
        office.server.next([manner]);
        let to = format!("{manner:?}@corp.example");
        let id = office.post(&to).await;
        office.tried(id, 1).await;
        let mut first = None;
        if matches!(manner, ServerBehavior::Later | ServerBehavior::CutBeforeReply) {
            first = Some(office.sends_to(&to).await);
        }
        // If it is unknown whether the mail was delivered, the next mail to the address waits a minute.
        let unsure =
            matches!(manner, ServerBehavior::CutBeforeData | ServerBehavior::CutBeforeReply);
        office.clock.advance(if unsure { MINUTE } else { Duration::from_secs(5) });
        let second = office.sends_to(&to).await;
        if let Some(first) = first {
            let id = |mail: &Mail| mail.parsed().message_id().map(str::to_owned);
            assert_eq!(id(&first), id(&second), "both mails must have the same message id");
        }
        office.is_gone(id).await;
        let said = log::lines_about(id);
        assert_eq!(said.len(), 1);
        assert!(said[0]["error"].as_str().unwrap().starts_with(words), "{said:?}");
    }
    office.ends().await;
}

#[tokio::test]
async fn message_is_retried_if_the_mail_server_is_unreachable() {
    let mut office = Office::open().await;
    // A bound port on which no server listens.
    let port = TcpSocket::new_v4().expect("a socket");
    port.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = port.local_addr().expect("an address");
    let nowhere = format!("smtp://{address}");
    office.postman.stop().await;
    let clock = Clock::Manual(office.clock.clone());
    office.postman = postman(office.app.store(), clock, &nowhere, office.timeout);
    let id = office.post(ANN).await;
    office.tried(id, 1).await;
    assert!(log::lines_about(id)[0]["error"].as_str().unwrap().contains("refused"));
    let mut office = office.restart().await;
    office.clock.advance(Duration::from_secs(5));
    office.sends_to(ANN).await;
    office.ends().await;
}

#[tokio::test]
async fn silent_mail_server_times_out_without_delaying_requests() {
    let office = Office::within(Duration::from_millis(300)).await;
    office.server.next([ServerBehavior::Silent]);
    let id = office.post(ANN).await;
    eventually("the mail is being sent", || (office.server.connections() == 1).then_some(())).await;
    let owner = TestClient::of(router(office.app.clone()), &office.made.api_key);
    owner.get(ME).await.ok();
    owner.post("/api/organizations/", json!({ "name": "Meanwhile" })).await.ok();
    assert_eq!(office.tried(id, 1).await.due_at, START.plus_seconds(5));
    let error = format!("{} took longer than 300ms", office.server.address);
    assert_eq!(log::lines_about(id)[0]["error"], error.as_str());
    office.ends().await;
}

#[tokio::test]
async fn missing_reply_to_quit_causes_no_delay_and_no_duplicate() {
    let mut office = Office::within(Duration::from_hours(1)).await;
    office.server.next([ServerBehavior::NoGoodbye]);
    office.delivers(ANN).await;
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn address_receives_one_mail_a_minute_in_any_case_and_from_any_sender() {
    let mut office = Office::open().await;
    office.delivers(ANN).await;
    let second = office.post("ANN@corp.example").await;
    let third = office.post("Ann@corp.example").await;
    office.rests().await;
    let mut office = office.restart().await;
    office.rests().await;
    office.clock.advance(MINUTE.saturating_sub(TICK));
    office.rests().await;
    assert_eq!(office.find(second).unwrap().attempts, 0);
    office.clock.advance(TICK);
    office.sends_to("ANN@corp.example").await;
    office.is_gone(second).await;
    office.rests().await;
    office.clock.advance(MINUTE);
    office.sends_to("Ann@corp.example").await;
    office.is_gone(third).await;
    office.ends().await;
}

#[tokio::test]
async fn organization_sends_one_hundred_mails_an_hour_without_delaying_others() {
    let mut office = Office::open().await;
    let busy = organization();
    for number in 0..40 {
        office.put(busy, invite(&format!("first-{number}@corp.example"))).await;
    }
    office.postman.wake();
    office.receives(40).await;
    office.remembers(40).await;
    office.clock.advance(HOUR / 2);
    office.rests().await;
    let mut letters = Vec::new();
    for number in 0..110 {
        letters.push(office.put(busy, invite(&format!("then-{number}@corp.example"))).await);
    }
    office.postman.wake();
    office.receives(60).await;
    // A message of another organization behind all of these is sent.
    office.rests().await;
    let mut office = office.restart().await;
    office.rests().await;
    office.waits(&letters, 50).await;
    office.clock.advance((HOUR / 2).saturating_sub(TICK));
    office.rests().await;
    office.clock.advance(TICK);
    office.receives(40).await;
    office.waits(&letters, 10).await;
    office.rests().await;
    office.clock.advance(HOUR / 2);
    office.receives(10).await;
    office.waits(&letters, 0).await;
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn organizations_take_turns_and_send_one_mail_each_at_a_time() {
    let mut office = Office::open().await;
    office.server.next([ServerBehavior::Hold; 4]);
    let busy: Vec<_> = (0..4).map(|_| organization()).collect();
    for round in ["first", "second"] {
        for (number, organization) in busy.iter().enumerate() {
            office.put(*organization, invite(&format!("{round}-{number}@corp.example"))).await;
        }
    }
    office.postman.wake();
    let mut to = Vec::new();
    for _ in 0..4 {
        to.extend(office.server.mail().await.to);
    }
    assert!(to.iter().all(|to| to.starts_with("first")), "{to:?}");
    // With four mails under way, a further one waits, but not behind the second ones.
    let late = office.post("late@corp.example").await;
    office.server.release();
    office.sends_to("late@corp.example").await;
    office.is_gone(late).await;
    for _ in 0..3 {
        office.server.release();
        assert!(office.server.mail().await.to[0].starts_with("second"));
    }
    office.server.mail().await;
    office.remembers(9).await;
    office.ends().await;
}

#[tokio::test]
async fn single_mail_of_an_organization_does_not_wait_for_a_thousand_of_others() {
    let office = Office::open().await;
    office.postman.stop().await;
    let busy: Vec<_> = (0..11).map(|_| organization()).collect();
    let mails: Vec<_> = (0..1_100)
        .map(|number| {
            let about = invite(&format!("busy-{number}@corp.example"));
            (OutboxMessageId(unique()), busy[number % busy.len()], about)
        })
        .collect();
    let queued = office.app.store().write(move |tx| {
        mails.iter().try_for_each(|(id, organization, about)| {
            mail::enqueue(tx, *id, *organization, about.clone(), START)
        })
    });
    queued.await.unwrap();
    office.put(organization(), invite("late@corp.example")).await;
    let mut office = office.restart().await;
    let mut before = 0;
    while office.server.mail().await.to != ["late@corp.example"] {
        before += 1;
    }
    assert!(before < 50, "{before} mails of others were sent first");
    office.close().await;
}

#[tokio::test]
async fn records_of_attempts_are_deleted_after_an_hour() {
    let mut office = Office::open().await;
    for name in ["ann", "bob", "cem"] {
        office.delivers(&format!("{name}@corp.example")).await;
        office.clock.advance(MINUTE);
    }
    assert_eq!(remembered(&office.app), 3);
    office.clock.advance(57 * MINUTE);
    office.remembers(2).await;
    office.clock.advance(2 * MINUTE);
    office.remembers(0).await;
    office.ends().await;
}

#[tokio::test]
async fn clock_set_back_causes_neither_duplicates_nor_endless_waiting() {
    let mut office = Office::open().await;
    office.delivers(ANN).await;
    office.server.refuse("bob@corp.example");
    let bob = office.post("bob@corp.example").await;
    office.tried(bob, 1).await;
    let second = office.put(organization(), invite(ANN)).await;

    // The clock goes back ten seconds: the minute between mails still counts.
    let mut office = office.reopen(ManualClock::at(START.plus_seconds(-10))).await;
    office.rests().await;
    assert!(office.find(second).is_some());
    office.clock.advance(Duration::from_secs(10) + MINUTE);
    office.sends_to(ANN).await;
    office.is_gone(second).await;

    // The clock goes back a year: mails sent in the future no longer count, and messages waiting until then are due.
    office.rests().await;
    let third = office.put(organization(), invite(ANN)).await;
    let tried = office.tried(bob, 2).await.attempts;
    let mut office = office.reopen(ManualClock::at(START.plus_seconds(-365 * 86_400))).await;
    office.sends_to(ANN).await;
    office.is_gone(third).await;
    assert!(office.tried(bob, tried + 1).await.due_at < START);
    // One is of Ann's mail, and one of the attempt to send Bob's.
    office.remembers(2).await;
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn announcement_is_sent_to_each_recipient_and_obsolete_messages_are_dropped() {
    let mut office = Office::open().await;
    office.is_gone(office.post("moot@corp.example").await).await;
    let joining = office.put(organization(), Notification::Joining { user: UserId(7) }).await;
    office.postman.wake();
    let mut told = vec![office.server.mail().await.to, office.server.mail().await.to];
    told.sort();
    assert_eq!(told, [["ann@joined.example"], ["bob@joined.example"]]);
    office.is_gone(joining).await;
    office.rests().await;
    office.remembers(3).await;
    office.ends().await;
}

#[tokio::test]
async fn message_that_cannot_be_rendered_or_recorded_delays_no_other() {
    let mut office = Office::open().await;
    let panics = office.put(organization(), invite("panic@corp.example")).await;
    let fault = office.put(organization(), invite("fault@corp.example")).await;
    office.rests().await;
    office.tried(panics, 1).await;
    office.tried(fault, 1).await;
    assert_eq!(log::lines_about(fault)[0]["level"], "ERROR");
    office.clock.advance(Duration::from_secs(5));
    office.sends_to("fault@corp.example").await;
    office.tried(panics, 2).await;
    let id = office.post("unrecorded@x.example").await;
    office.sends_to("unrecorded@x.example").await;
    office.is_gone(id).await;
    assert_eq!(log::lines_about(id)[0]["level"], "ERROR");
    office.post(ANN).await;
    office.sends_to(ANN).await;
    office.ends().await;
}

#[tokio::test]
async fn waiting_message_is_not_written_again_and_not_sent_once_it_is_cancelled() {
    let mut office = Office::open().await;
    office.delivers(ANN).await;
    let second = office.post(ANN).await;
    for _ in 0..3 {
        office.rests().await;
    }
    let tx = office.app.store().snapshot().unwrap();
    assert_eq!(tx.view::<OutboxMessage, _>(&second, |row| Ok(row.version)).unwrap(), Some(1));
    drop(tx);
    office.app.store().write(move |tx| mail::cancel(tx, second)).await.unwrap();
    office.clock.advance(MINUTE);
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn message_cancelled_during_delivery_does_not_return() {
    let mut office = Office::open().await;
    for (manner, attempts) in [(ServerBehavior::Hold, 1), (ServerBehavior::HoldThenCut, 3)] {
        office.server.next([manner]);
        let to = format!("{manner:?}@corp.example");
        let id = office.post(&to).await;
        office.sends_to(&to).await;
        office.app.store().write(move |tx| mail::cancel(tx, id)).await.unwrap();
        office.server.release();
        // Mails that were, or may have been, accepted count.
        office.remembers(attempts).await;
        office.rests().await;
        assert_eq!(office.find(id), None);
    }
    office.clock.advance(HOUR);
    office.rests().await;
    office.ends().await;
}

#[tokio::test]
async fn stop_finishes_and_records_the_current_delivery_and_starts_no_other() {
    let mut office = Office::open().await;
    office.server.next([ServerBehavior::Accept, ServerBehavior::Hold]);
    let (mut letters, sender) = (Vec::new(), organization());
    for name in ["ann", "bob", "cem"] {
        letters.push(office.put(sender, invite(&format!("{name}@corp.example"))).await);
    }
    office.postman.wake();
    office.sends_to(ANN).await;
    office.sends_to("bob@corp.example").await;
    tokio::join!(office.postman.stop(), async { office.server.release() });
    let waiting: Vec<_> = letters.iter().map(|id| office.find(*id).is_some()).collect();
    assert_eq!((waiting, remembered(&office.app)), (vec![false, false, true], 2));
    let mut office = office.restart().await;
    office.sends_to("cem@corp.example").await;
    office.ends().await;
}

#[tokio::test]
async fn service_wakes_the_mail_worker_for_new_messages() {
    let server = MailServer::start();
    let folder = TempDir::new().unwrap();
    let mut config = Config::default();
    config.mail.smtp_url = Some(server.url().parse().unwrap());
    config.mail.smtp_from = Some("steward@corp.example".to_owned());
    let path = folder.path().join("steward.redb");
    let (app, _) = create(&path, config, &InitialRecords::default()).unwrap();
    for _ in 0..3 {
        // The invite does not exist, so the mail worker deletes the message without sending it.
        let (id, about) = (OutboxMessageId(unique()), invite(ANN));
        app.operate(move |tx, now| mail::enqueue(tx, id, organization(), about.clone(), now))
            .await
            .unwrap();
        let find = || app.store().snapshot().unwrap().find::<OutboxMessage>(&id).unwrap();
        eventually("the message is deleted", || find().is_none().then_some(())).await;
    }
    assert_eq!(server.connections(), 0);
    app.close().await;
}

/// The environment variables with the data file and the mail server of a child process.
const DATA: &str = "STEWARD_TEST_DATA";
const SMTP: &str = "STEWARD_TEST_SMTP";

/// Not a test: the child process of the tests below, which kill it or limit its disk. Exits when its standard input is
/// closed.
#[test]
#[ignore = "other tests run it in a child process"]
fn mail_worker_child_process() {
    let (Ok(data), Ok(url)) = (std::env::var(DATA), std::env::var(SMTP)) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dropped = Metrics::default().counter(Series::LOG_LINES_DROPPED, &[]);
    let _log = logging::init("info", LogFormat::Json, dropped).unwrap();
    runtime.block_on(async {
        let store = Store::open(data.as_ref(), 1 << 20).unwrap();
        let postman = postman(&store, Clock::System, &url, 2 * TEST_TIMEOUT);
        let end = || std::io::stdin().read_line(&mut String::new());
        tokio::task::spawn_blocking(end).await.unwrap().unwrap();
        postman.stop().await;
        store.close().await;
    });
}

/// A mail worker in a child process, and its log. Killed when dropped.
struct Process(Child, Arc<Mutex<String>>);

impl Process {
    fn start(data: &Path, server: &MailServer) -> Self {
        let mut command = Command::new("sh");
        // With the signal ignored, a write beyond the limit returns an error.
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["outbox::mail_worker_child_process", "--exact", "--ignored"]);
        command.env(DATA, data).env(SMTP, server.url());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("this program starts");
        let (stderr, log) =
            (child.stderr.take().expect("a pipe"), Arc::new(Mutex::new(String::new())));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
                kept.lock().unwrap().push_str(&line);
            }
        });
        Self(child, log)
    }

    /// Waits until the log contains this text.
    fn says(&self, what: &str) {
        until(what, || self.1.lock().unwrap().contains(what).then_some(()));
    }

    /// Stops the process and asserts success.
    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(until("the process exits", || self.0.try_wait().unwrap()).success());
    }

    /// Makes every write beyond this offset in a file fail.
    fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(Pid::from_child(&self.0)), Resource::Fsize, limit).expect("the limit is set");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates and closes a data file with one message of an organization for each of these names.
async fn closed_with(names: &[&str]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("steward.redb");
    let (app, _) = create(&path, Config::default(), &InitialRecords::default()).unwrap();
    let sender = organization();
    for name in names {
        post_into(app.store(), sender, invite(&format!("{name}@corp.example")), app.now()).await;
    }
    app.close().await;
    (folder, path)
}

/// Asserts that the file has no problems, that no message waits, and that this many mails were sent.
async fn all_was_sent(path: &Path, count: usize) {
    let app = checked(path).await;
    assert_eq!(mail::queued_count(&app.store().snapshot().unwrap()).unwrap(), 0);
    assert_eq!(remembered(&app), count);
    app.close().await;
}

#[tokio::test]
async fn kill_between_two_mails_loses_none_and_repeats_no_recorded_one() {
    let (_folder, path) = closed_with(&["ann", "bob", "cem"]).await;
    let mut server = MailServer::start();
    server.next([ServerBehavior::Accept, ServerBehavior::Hold]);
    let process = Process::start(&path, &server);
    assert_eq!(server.mail().await.to, [ANN]);
    assert_eq!(server.mail().await.to, ["bob@corp.example"]);
    // The second mail is being sent, so the first is recorded.
    drop(process);
    let process = Process::start(&path, &server);
    let mut again = vec![server.mail().await.to, server.mail().await.to];
    again.sort();
    assert_eq!(again, [["bob@corp.example"], ["cem@corp.example"]]);
    process.end();
    server.has_no_more();
    all_was_sent(&path, 3).await;
}

#[tokio::test]
async fn mail_accepted_during_a_write_failure_is_recorded_later_and_not_repeated() {
    let (_folder, path) = closed_with(&["ann", "bob"]).await;
    let mut server = MailServer::start();
    server.next([ServerBehavior::Hold, ServerBehavior::Hold]);
    let process = Process::start(&path, &server);
    assert_eq!(server.mail().await.to, [ANN]);
    process.limit_files(Some(0));
    server.release();
    process.says("could not record the outcome of a mail; retrying");
    assert_eq!(server.connections(), 1);
    process.limit_files(None);
    assert_eq!(server.mail().await.to, ["bob@corp.example"]);
    server.release();
    process.end();
    server.has_no_more();
    all_was_sent(&path, 2).await;
}
