//! Notifications and the watchdog of the service manager (systemd), if it asks for them.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{sleep, timeout};

use crate::app::App;

/// The number of health checks within the watchdog's timeout.
const CHECKS_PER_INTERVAL: u32 = 4;

/// Notifies that the service answers at `url`.
pub(super) fn notify_ready(url: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("serving {url}"))]);
}

/// Notifies that the service reloads its files. A call of [`notify_ready`] must follow.
pub(super) fn notify_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

/// Notifies that the service finishes open requests and then stops.
pub(super) fn notify_stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("finishing requests under way")]);
}

/// Notifies the watchdog while the service is healthy. Returns at once if there is no watchdog.
pub(super) async fn feed_watchdog(app: App, url: String) {
    let wanted = sd_notify::watchdog_enabled().filter(|within| !within.is_zero());
    let Some(period) = wanted.map(|within| within / CHECKS_PER_INTERVAL) else { return };
    let mut well = true;
    loop {
        let was_well = well;
        well = is_healthy(&app, period).await;
        if well {
            notify(&[NotifyState::Watchdog]);
        }
        if well && !was_well {
            notify(&[NotifyState::Status(&format!("serving {url}"))]);
        } else if was_well && !well {
            tracing::error!(
                "the data file accepts no writes; the watchdog is not notified until it does"
            );
            notify(&[NotifyState::Status("the data file accepts no writes")]);
        }
        sleep(period).await;
    }
}

/// Returns whether the data file accepts writes: the last commit was within `limit`, or a test write succeeds within
/// it. A file that is being copied, compacted or restored counts as healthy, however long that takes, and so does a
/// node that says what keeps it from serving: a restart repairs neither a database nor a standby.
async fn is_healthy(app: &App, limit: Duration) -> bool {
    let store = app.store();
    let has_reason = || store.troubles().iter().any(|(trouble, _)| trouble.stops_serving());
    let lately = store.committed_at().is_some_and(|moment| moment.elapsed() < limit);
    // A restart would lose a file whose name is gone, and found a new workspace.
    if lately || has_reason() || store.is_busy() || !store.seems_in_place() {
        return true;
    }
    let proven = timeout(limit, store.probe_commit()).await;
    matches!(proven, Ok(Ok(()))) || has_reason() || store.is_busy()
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "could not notify the service manager");
    }
}
