//! The beginning and the end of the work in the background.

use std::time::Duration;

use tokio::time::timeout;

use crate::base::error::Result;
use crate::config::Config;
use crate::leases::{Duty, LeaseRenewal};
use crate::mail::outbox;
use crate::store::{OpenError, Store};

use super::{App, Inner};

/// How long [`App::close`] waits for mails that are being sent.
const MAIL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a server a node of its shared database: it sends heartbeats, and claims the leases of what it can do. A command is
/// no node, and a data file has none.
///
/// # Errors
/// When a thread cannot be started.
pub(super) fn begin_as_node(
    store: &Store,
    config: &Config,
    is_server: bool,
    sends_mail: bool,
) -> Result<LeaseRenewal, OpenError> {
    if is_server {
        store.start_heartbeat()?;
    }
    let duties: &[Duty] = match (is_server, sends_mail) {
        (false, _) => &[],
        (true, false) => &[Duty::Maintenance],
        (true, true) => &[Duty::Mail, Duty::Maintenance],
    };
    Ok(LeaseRenewal::start(store, &config.clock, duties))
}

/// Logs a warning if the outbox has mails. Call it if no mail server is configured.
pub(super) fn warn_about_queued_mail(store: &Store) -> Result<()> {
    let waiting = outbox::queued_count(&*store.snapshot()?)?;
    if waiting > 0 {
        tracing::warn!(
            waiting,
            "the outbox has mails, but no mail server is configured (--smtp-url)"
        );
    }
    Ok(())
}

impl App {
    /// Wakes the background maintenance after a change that it must complete.
    #[doc(hidden)]
    pub fn wake_maintenance(&self) {
        self.0.maintenance.wake();
    }

    /// Restarts background deletion and mail after the data file was replaced.
    pub(crate) fn resume_after_restore(&self) {
        self.wake_maintenance();
        if let Some(worker) = &self.0.mail_worker {
            worker.wake();
        }
    }

    /// Waits for mails that are being sent and for queued writes, then closes the data file. A node of a shared database
    /// releases its leases before, so that another node continues its work at once.
    pub async fn close(&self) {
        if let Some(worker) = &self.0.mail_worker
            && timeout(MAIL_SHUTDOWN_TIMEOUT, worker.stop()).await.is_err()
        {
            tracing::warn!(
                "the mail server does not answer; mails that are being sent may arrive twice"
            );
        }
        self.0.leases.stop().await;
        self.0.store.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.maintenance.wake();
    }
}
