//! Row 19: writes during backups.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::{p99, rate_ratio, rates, repeat};
use crate::plan::{Group, Span};
use crate::report::{ReportLine, Unit};
use crate::site::{CONNECTIONS, Resource, Site};
use crate::{Result, Settings};

/// The initial rows of the file. The creates add many more.
const ROWS: u64 = 50_000;

/// Measures creates while backups are created one after another.
pub fn backups(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&[19]) {
        return Ok(Vec::new());
    }
    let site = Site::new(settings, "backups", Resource::Dashboards, ROWS)?;
    let creates = site.creates();
    let group = [Group::closed(CONNECTIONS, &creates).expecting(201)];
    let span = Span::slice(settings.slice.max(Duration::from_secs(1)));
    let mut made = 0;
    let rounds = repeat(settings, "backups", || {
        let alone = site.run(&group, span)?;
        let (beside, number) = beside_backups(settings, &site, || site.run(&group, span))?;
        made += number;
        Ok((beside, alone))
    })?;
    let [beside, alone] = p99(&rounds);
    Ok(vec![
        ReportLine::ratio(19, "create at 64 beside backups / alone", rate_ratio(&rounds))
            .figures(format!("{}; {made} backups of {ROWS} rows and more", rates(&rounds)))
            .at_least(0.80, 0.50),
        ReportLine::new(19, "p99 of creates beside backups", beside, Unit::Millis)
            .figures(format!("{alone:.2} ms alone")),
    ])
}

/// Creates backups one after another on the core of the service while `act` runs. Returns their number.
fn beside_backups<T>(
    settings: &Settings,
    site: &Site,
    act: impl FnOnce() -> Result<T>,
) -> Result<(T, u32)> {
    let (over, made) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let backing_up = scope.spawn(|| -> Result<()> {
            while !over.load(Ordering::Relaxed) {
                site.service.back_up(settings.cores)?;
                made.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        let done = act();
        over.store(true, Ordering::Relaxed);
        backing_up.join().map_err(|_| "the backups panicked")??;
        Ok((done?, made.load(Ordering::Relaxed)))
    })
}
