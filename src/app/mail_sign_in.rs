//! Mails that sign users in to the console.
//!
//! A request of a browser is only queued, so that its response tells nothing about the address. A task takes one request
//! after the other, stores it, and sends the mail, if there is one, in the background. These mails do not wait in the
//! outbox: the file must not contain their codes, and mails of organizations must neither delay them nor show them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::app::rate_limit::MailClass;
use crate::base::error::{Error, Result};
use crate::base::secret::SeedSource;
use crate::base::tasks::spawn;
use crate::base::time::{Clock, Timestamp};
use crate::config::Config;
use crate::fair::fair_queue::Consumer;
use crate::ids::OutboxMessageId;
use crate::input::{Email, FieldType};
use crate::mail::compose::MailContent;
use crate::mail::mailer::Mailer;
use crate::metrics::{Counter, Series};
use crate::resources::sessions::{
    self, BrowserNonce, KnownBrowser, MailCode, MailRecipient, NewSignInRequest,
};
use crate::resources::users::User;
use crate::store::Snapshot;

use super::App;
use super::changes::{Author, WriteOptions};

/// The page that takes the code of a mail.
const CODE_PAGE: &str = "/console/sign_in/code/";
/// The maximum number of requests that wait to be stored.
const MAX_WAITING_REQUESTS: usize = 256;
/// The maximum number of stored requests, without those of browsers in which their user has signed in.
const MAX_STORED_REQUESTS: u64 = 10_000;
/// The maximum number of mails that wait or are being sent.
const MAX_UNSENT_MAILS: usize = 100;
/// The maximum number of mails that are being sent at once.
const MAX_CONCURRENT_MAILS: usize = 4;
/// The maximum number of attempts to send a mail.
const MAX_ATTEMPTS: u32 = 3;
/// The wait after a failed attempt.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// What the task of sign-in mails does.
pub(super) enum MailTask {
    Request(MailRequest),
    /// Answers once what was asked before has been sent, with the time of the next attempt.
    Settle(oneshot::Sender<Option<Timestamp>>),
}

/// A browser's request for a sign-in mail.
pub(super) struct MailRequest {
    nonce: BrowserNonce,
    email: String,
    ip_address: IpAddr,
    known_browsers: Vec<KnownBrowser>,
}

/// Accepts requests for sign-in mails, and sends the mails.
pub(super) struct MailSignIn {
    requests: mpsc::Sender<MailTask>,
    sender: Arc<MailSender>,
}

impl MailSignIn {
    /// Returns the queue of requests with its end, or `None` without a mail client.
    pub(super) fn of(
        mailer: Option<Mailer>,
        config: &Config,
    ) -> Option<(Self, mpsc::Receiver<MailTask>)> {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_REQUESTS);
        let metrics = &config.metrics;
        let mails = MailSender {
            mailer: mailer?,
            clock: config.clock.clone(),
            seeds: config.seeds.for_background(),
            unsent: Arc::new(Semaphore::new(MAX_UNSENT_MAILS)),
            sending: Semaphore::new(MAX_CONCURRENT_MAILS),
            mails: watch::Sender::default(),
            sent: metrics.counter(Series::MAILS_SENT, &[]),
            failed: metrics.counter(Series::MAILS_FAILED, &[]),
            abandoned: metrics.counter(Series::MAILS_ABANDONED, &[]),
        };
        Some((Self { requests: sender, sender: Arc::new(mails) }, receiver))
    }

    /// Waits until each mail was sent or waits for another attempt. Returns when the first of these attempts is.
    pub(super) async fn settle(&self) -> Option<Timestamp> {
        let (settling, settled) = oneshot::channel();
        self.requests.send(MailTask::Settle(settling)).await.ok()?;
        settled.await.ok().flatten()
    }
}

impl App {
    /// Whether a mail can sign users in.
    pub(crate) fn offers_mail_sign_in(&self) -> bool {
        self.0.mail_sign_in.is_some()
    }

    /// Queues a request for a sign-in mail. `known_browsers` are the proofs that users have signed in in the browser. Returns
    /// the nonce for the browser's cookie. Neither the response nor its time depends on the accounts.
    ///
    /// # Errors
    /// 400 if the text is not an address, 404 if no mail can sign users in, 429 if the client's address exceeds the limit.
    pub(crate) fn request_sign_in_mail(
        &self,
        email: &str,
        ip_address: IpAddr,
        known_browsers: Vec<KnownBrowser>,
    ) -> Result<BrowserNonce> {
        let service = self.0.mail_sign_in.as_ref().ok_or_else(Error::not_found)?;
        let email = Email::read(&email.into())?;
        self.rate_limiter().check_mail_request(ip_address)?;
        let nonce = BrowserNonce::generate(&mut self.seed().rng());
        let request = MailRequest { nonce, email, ip_address, known_browsers };
        if service.requests.try_send(MailTask::Request(request)).is_err() {
            tracing::error!("dropped a request for a sign-in mail: too many wait");
        }
        Ok(nonce)
    }

    /// Starts the task that takes the requests. It ends with the app.
    pub(super) fn start_mail_sign_in(&self, mut tasks: mpsc::Receiver<MailTask>) {
        let inner = Arc::downgrade(&self.0);
        spawn(async move {
            while let Some(task) = tasks.recv().await {
                let Some(app) = inner.upgrade().map(Self) else { return };
                let request = match task {
                    MailTask::Request(request) => request,
                    MailTask::Settle(settling) => {
                        if let Some(service) = &app.0.mail_sign_in {
                            let _ = settling.send(service.sender.next_attempt().await);
                        }
                        continue;
                    }
                };
                if let Err(error) = app.store_mail_request(request).await {
                    tracing::error!(%error, "could not store a request for a sign-in mail");
                }
            }
        });
    }

    async fn store_mail_request(&self, request: MailRequest) -> Result<()> {
        let may_send = self.count_mail(&*self.store().fresh().await?, &request)?;
        let MailRequest { nonce, email, ip_address, .. } = request;
        let code = MailCode::generate(&mut self.seed().rng());
        let keys = &self.0.signing.sessions;
        let browser = keys.browser_digest(&nonce);
        let code_digest = keys.mail_code_digest(&browser, &code);
        let new = NewSignInRequest { browser, code: code_digest, email, may_send };
        let options = WriteOptions::of_small_write(Consumer::from_address(ip_address));
        let write = self.write(options, move |tx, now| {
            Ok((Author::default(), sessions::open_request(tx, &new, now)?))
        });
        let (Some(recipient), _) = write.await? else {
            tracing::info!("ignored a request for a sign-in mail");
            return Ok(());
        };
        let Some(service) = &self.0.mail_sign_in else { return Ok(()) };
        let base = self.config().link_base().trim_end_matches('/');
        let page = format!("{base}{CODE_PAGE}");
        let content = sessions::render_mail(base, &page, &code, ip_address, recipient.expires_at)?;
        service.sender.spawn(recipient, content);
        Ok(())
    }

    /// Counts the mail that a request causes, if somebody gets mails at its address. Returns whether the limits allow one.
    ///
    /// # Errors
    /// 503 if too many requests are stored, unless the user has signed in in the browser.
    fn count_mail(&self, tx: &Snapshot, request: &MailRequest) -> Result<bool> {
        let keys = &self.0.signing.sessions;
        let class = sessions::find_recipient(tx, &request.email)?.map(|User { meta, .. }| {
            let mut proofs = request.known_browsers.iter();
            let is_known_browser = proofs.any(|proof| keys.is_known_browser(proof, meta.id));
            MailClass { user: meta.id, is_known_browser }
        });
        let is_known_browser = class.is_some_and(|class| class.is_known_browser);
        if !is_known_browser && sessions::count_requests(tx)? >= MAX_STORED_REQUESTS {
            return Err(Error::overloaded(1, "there are too many requests"));
        }
        let limits = self.rate_limiter();
        Ok(class.is_some_and(|class| limits.check_mail(class, request.ip_address).is_ok()))
    }
}

/// Sends sign-in mails in the background.
struct MailSender {
    mailer: Mailer,
    clock: Clock,
    seeds: SeedSource,
    unsent: Arc<Semaphore>,
    sending: Semaphore,
    /// The mails, each with the time of its next attempt if it waits for one.
    mails: watch::Sender<BTreeMap<OutboxMessageId, Option<Timestamp>>>,
    sent: Counter,
    failed: Counter,
    abandoned: Counter,
}

impl MailSender {
    /// Sends a mail in the background, unless too many wait.
    fn spawn(self: &Arc<Self>, recipient: MailRecipient, content: MailContent) {
        let Ok(unsent) = Arc::clone(&self.unsent).try_acquire_owned() else {
            self.abandoned.increment(1);
            tracing::error!(user = %recipient.user, "dropped a sign-in mail: too many wait");
            return;
        };
        let sender = Arc::clone(self);
        let id = OutboxMessageId(self.seeds.draw().rng().uuid(self.clock.now()));
        self.note(id, None);
        spawn(async move {
            let _unsent = unsent;
            sender.send(id, recipient, content).await;
            sender.mails.send_modify(|mails| {
                mails.remove(&id);
            });
        });
    }

    fn note(&self, id: OutboxMessageId, next: Option<Timestamp>) {
        self.mails.send_modify(|mails| {
            mails.insert(id, next);
        });
    }

    /// Waits until each mail was sent or waits for another attempt. Returns when the first of these attempts is.
    async fn next_attempt(&self) -> Option<Timestamp> {
        let mut mails = self.mails.subscribe();
        let is_later = |next: &Option<Timestamp>| next.is_some_and(|at| at > self.clock.now());
        let settled = mails.wait_for(|mails| mails.values().all(is_later)).await;
        settled.ok()?.values().flatten().min().copied()
    }

    async fn send(&self, id: OutboxMessageId, recipient: MailRecipient, content: MailContent) {
        let MailRecipient { user, email: to, expires_at } = recipient;
        for attempt in 1..=MAX_ATTEMPTS {
            let Ok(turn) = self.sending.acquire().await else { return };
            let now = self.clock.now();
            if now >= expires_at {
                break;
            }
            match self.mailer.send(id, &to, &content, now).await {
                Ok(_) => {
                    self.sent.increment(1);
                    tracing::info!(%user, "sent a sign-in mail");
                    return;
                }
                Err(failure) => {
                    self.failed.increment(1);
                    let error = failure.redacted(&to);
                    tracing::warn!(%user, attempt, %error, "could not send a sign-in mail");
                }
            }
            drop(turn);
            if attempt < MAX_ATTEMPTS {
                let next = self.clock.now().plus(RETRY_DELAY);
                self.note(id, Some(next));
                self.clock.wait_until(next, RETRY_DELAY).await;
                self.note(id, None);
            }
        }
        self.abandoned.increment(1);
        tracing::error!(%user, "gave up a sign-in mail");
    }
}
