//! Rows 7 and 16-18: start, start after a kill, and memory.

use std::time::Duration;

use crate::plan::{Group, Span};
use crate::process::forget_peak;
use crate::report::{ReportLine, Unit, megabytes, middle, millis};
use crate::service::PAGE_CACHE;
use crate::site::{Resource, Site};
use crate::{Result, Settings, grouped, progress};

/// Measures starts and memory.
pub fn life(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if !settings.wants(&[7, 16, 17, 18]) {
        return Ok(lines);
    }
    let mut many = Site::many(settings, Resource::Dashboards)?;
    if settings.wants(&[17]) {
        lines.push(under_load(settings, &many)?);
    }
    if settings.wants(&[7]) {
        let line;
        (many, line) = after_kill(settings, many)?;
        lines.push(line);
    }
    if settings.wants(&[18]) {
        let line;
        (many, line) = clean_start(settings, many)?;
        lines.push(line);
    }
    if settings.wants(&[16]) {
        lines.extend(idle(settings, many)?);
        lines.extend(idle(settings, Site::few(settings, "idle")?)?);
    }
    Ok(lines)
}

/// Row 17: concurrent reads, lists and edits across the large file.
fn under_load(settings: &Settings, many: &Site) -> Result<ReportLine> {
    progress("memory under load");
    let (gets, list, patches) = (many.gets(), many.list(0), many.patches());
    // Exclude the memory used to fill or open the file.
    forget_peak(many.service.pid())?;
    let groups = [Group::closed(44, &gets), Group::closed(4, &list), Group::closed(16, &patches)];
    let run = many.run(&groups, Span::slice(settings.slice * 3))?;
    let peak = many.memory()?.peak;
    let figures = format!(
        "peak {:.1} MB at {} req/s",
        megabytes(peak),
        grouped(run.groups.iter().map(|it| it.rate).sum::<f64>())
    );
    let beyond = megabytes(peak.saturating_sub(PAGE_CACHE));
    Ok(ReportLine::new(17, "RSS under load beyond the page cache", beyond, Unit::Megabytes)
        .figures(figures)
        .at_most(45.0, 80.0))
}

/// Row 7: the service is killed during edits.
fn after_kill(settings: &Settings, mut many: Site) -> Result<(Site, ReportLine)> {
    progress("starts after SIGKILL");
    let patches = many.patches();
    let mut span = Span::slice(Duration::from_millis(400));
    // Leave requests in progress for the kill.
    span.drain = false;
    let mut times = Vec::new();
    for _ in 0..settings.rounds {
        many.run(&[Group::closed(16, &patches)], span)?;
        many = many.crashed(settings)?;
        times.push(millis(many.first_answer()?));
    }
    let what = format!("first 200 after SIGKILL, {} rows", grouped(many.count));
    let line = start_line(7, what, &times).at_most(150.0, 500.0);
    Ok((many, line))
}

/// Row 18: starts with a cleanly closed file.
fn clean_start(settings: &Settings, mut many: Site) -> Result<(Site, ReportLine)> {
    progress("clean starts");
    let mut times = Vec::new();
    for _ in 0..settings.rounds {
        many = many.restarted(settings)?;
        times.push(millis(many.first_answer()?));
    }
    let what = format!("start to first 200, clean file, {} rows", grouped(many.count));
    let line = start_line(18, what, &times).at_most(60.0, 150.0);
    Ok((many, line))
}

fn start_line(row: u8, what: String, times: &[f64]) -> ReportLine {
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let time = middle(times, |time| *time);
    ReportLine::new(row, what, time, Unit::Millis)
        .figures(format!("slowest of {}: {slowest:.0} ms", times.len()))
}

/// Row 16: memory of a server before its first request, and after its first key.
fn idle(settings: &Settings, mut site: Site) -> Result<[ReportLine; 2]> {
    let pause = Duration::from_millis(300);
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds.min(3) {
        site = site.restarted(settings)?;
        std::thread::sleep(pause);
        let before = site.memory()?;
        site.first_answer()?;
        std::thread::sleep(pause);
        rounds.push([before, site.memory()?]);
    }
    let rows = grouped(site.count);
    let line = |when: &str, at: usize| {
        let what = format!("RSS idle {when} the first key, {rows} rows");
        let anonymous = middle(&rounds, |round| megabytes(round[at].anonymous));
        let value = middle(&rounds, |round| megabytes(round[at].now));
        ReportLine::new(16, what, value, Unit::Megabytes)
            .figures(format!("{anonymous:.1} MB without the executable"))
    };
    Ok([line("before", 0).at_most(12.0, 20.0), line("after", 1).at_most(35.0, 50.0)])
}
