//! What the service manager is told, where it asks for it: systemd's notifications and watchdog.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{sleep, timeout};

use crate::state::App;

/// How often it is looked whether all is well, in the time within which the watchdog wants to hear so.
const LOOKS: u32 = 4;

/// The service answers at `url`.
pub(super) fn ready(url: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("serving {url}"))]);
}

/// The service reads again what it reads; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The service finishes what is under way and ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing requests under way")]);
}

/// Feeds the watchdog for as long as the service is healthy; at once over, where there is none.
pub(super) async fn watch(app: App, url: String) {
    let wanted = sd_notify::watchdog_enabled().filter(|within| !within.is_zero());
    let Some(period) = wanted.map(|within| within / LOOKS) else { return };
    let mut well = true;
    loop {
        let was_well = well;
        well = healthy(&app, period).await;
        if well {
            tell(&[NotifyState::Watchdog]);
        }
        if well && !was_well {
            tell(&[NotifyState::Status(&format!("serving {url}"))]);
        } else if was_well && !well {
            tracing::error!("the watchdog hears nothing until the data file takes writes again");
            tell(&[NotifyState::Status("the data file takes no writes")]);
        }
        sleep(period).await;
    }
}

/// Whether the data file takes writes: one is on disk since `limit`, or gets there within it. While the file is
/// copied, compacted or restored, which takes as long as it takes, all is well.
async fn healthy(app: &App, limit: Duration) -> bool {
    let store = app.store();
    let lately = store.committed_at().is_some_and(|moment| moment.elapsed() < limit);
    if lately || store.occupied() {
        return true;
    }
    let proven = timeout(limit, store.prove()).await;
    matches!(proven, Ok(Ok(()))) || store.occupied()
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager was not told");
    }
}
