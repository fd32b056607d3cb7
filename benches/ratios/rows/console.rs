//! Rows 24-27: the console. What a page costs the server, what a session costs, and what a browser loads and paints.

use std::hint::black_box;
use std::time::{Duration, Instant};

use steward::{Config, InitialRecords, create};

use super::{micros, repeat};
use crate::browser::{Browser, Visit};
use crate::ceiling;
use crate::plan::{Group, Run, Span};
use crate::reference::Reference;
use crate::report::{ReportLine, Unit, middle};
use crate::sample::{runtime, sign_in};
use crate::site::{CONNECTIONS, Site, remove};
use crate::{Context, Result, Settings, fail, progress};

/// The page that a browser paints in no time.
const EMPTY_PAGE: &[u8] =
    b"<!doctype html><html lang=\"en\"><title>Empty</title><link rel=\"icon\" href=\"data:,\"><p>Empty</p></html>";

/// Clients on loopback get no compression, so the browser names an address for documentation.
const FAR_ADDRESS: &str = "192.0.2.1";

/// The look-ups of a session in one measurement.
const LOOK_UPS: u32 = 100_000;

/// Measures the console.
pub fn console(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if settings.wants(&[25]) {
        lines.push(session(settings)?);
    }
    if !settings.wants(&[24, 26, 27]) {
        return Ok(lines);
    }
    let site = Site::few(settings, "console")?;
    if settings.wants(&[24]) {
        lines.push(page(settings, &site)?);
    }
    if settings.wants(&[26, 27]) {
        lines.extend(browsed(settings, &site)?);
    }
    Ok(lines)
}

/// Signs in, and returns a request for the list of dashboards, 50 on a page.
fn list_request(site: &Site) -> Result<Vec<u8>> {
    let form = format!("key={}", site.key);
    let request = format!(
        "POST /console/sign_in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let head = site.service.client()?.head_of(request.as_bytes())?;
    let cookie = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie").then(|| value.split(';').next())?
    });
    let cookie = cookie.ok_or_else(|| format!("a sign-in without a cookie: {head}"))?;
    let path = site.console_list();
    Ok(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n").into_bytes())
}

fn page(settings: &Settings, site: &Site) -> Result<ReportLine> {
    let requests = [list_request(site)?];
    let group = [Group::closed(CONNECTIONS, &requests)];
    let rounds = repeat(settings, "console", || site.run(&group, Span::slice(settings.slice)))?;
    let rate = middle(&rounds, Run::rate);
    let cost = middle(&rounds, micros) / 1e3;
    Ok(ReportLine::new(24, "console: list of 50 dashboards, CPU of a page", cost, Unit::Millis)
        .figures(format!("{rate:.0} pages/s"))
        .at_most(0.6, 1.5))
}

/// Looks up a session as the console does for every page, in this process.
fn session(settings: &Settings) -> Result<ReportLine> {
    let folder = settings.folder.join("session");
    remove(&folder)?;
    std::fs::create_dir_all(&folder).context("the data folder")?;
    let rounds = runtime()?.block_on(async {
        let (app, made) =
            create(&folder.join("steward.redb"), Config::default(), &InitialRecords::default())
                .context("the data file")?;
        let text = sign_in(&app, made.user_id).await?;
        let rounds = repeat(settings, "session", || {
            let begun = Instant::now();
            for _ in 0..LOOK_UPS {
                black_box(app.verify_session(&text)).context("the session")?;
            }
            Ok(begun.elapsed() / LOOK_UPS)
        });
        app.close().await;
        rounds
    })?;
    let cost = middle(&rounds, |one: &Duration| one.as_secs_f64() * 1e6);
    Ok(ReportLine::new(25, "look-up of a session", cost, Unit::Micros).at_most(1.0, 3.0))
}

/// The visits of one round: an empty page, the list with and without the files in the browser's cache.
struct Round {
    empty: Visit,
    first: Visit,
    later: Visit,
}

fn browsed(settings: &Settings, site: &Site) -> Result<Vec<ReportLine>> {
    let ceiling = ceiling::start(&settings.folder, settings.cores, EMPTY_PAGE, EMPTY_PAGE)?;
    let profile = settings.folder.join("browser");
    remove(&profile)?;
    let rounds = runtime()?.block_on(visits(settings, site, &ceiling, &profile))?;
    if rounds.is_empty() {
        return fail("no round was measured");
    }
    let of = |get: fn(&Round) -> f64| middle(&rounds, get);
    let requests = of(|round| round.first.requests);
    let visit = |row, name: &str, get: fn(&Round) -> Visit| {
        let what = format!("console: list, {name} visit");
        let bytes = middle(&rounds, |round| get(round).bytes / 1e3);
        let ratio = middle(&rounds, |round| get(round).paint / round.empty.paint);
        let (own, empty) =
            (middle(&rounds, |round| get(round).paint), of(|round| round.empty.paint));
        let paint = format!("{what} / an empty page: first contentful paint");
        [
            ReportLine::new(row, format!("{what}: wire"), bytes, Unit::Kilobytes),
            ReportLine::ratio(row, paint, ratio).figures(format!("{own:.0} of {empty:.0} ms")),
        ]
    };
    let [wire, paint] = visit(26, "first", |round| round.first);
    let [later_wire, later_paint] = visit(27, "later", |round| round.later);
    Ok(vec![
        wire.at_most(25.0, 40.0),
        ReportLine::new(26, "console: list, first visit: requests", requests, Unit::Requests)
            .at_most(5.0, 6.0),
        paint.at_most(2.0, 3.0),
        later_wire.at_most(4.0, 20.0),
        later_paint.at_most(1.4, 2.0),
    ])
}

async fn visits(
    settings: &Settings,
    site: &Site,
    ceiling: &Reference,
    profile: &std::path::Path,
) -> Result<Vec<Round>> {
    /// Paints vary more than requests, and one takes a moment only.
    const VISITS_IN_A_ROUND: usize = 4;
    let base = format!("http://127.0.0.1:{}", site.service.address.port());
    let list = format!("{base}{}", site.console_list());
    let empty = format!("http://127.0.0.1:{}/api/projects/1/dashboards/", ceiling.address.port());
    let browser = Browser::open(profile, FAR_ADDRESS).await?;
    browser.sign_in(&base, &site.key).await?;
    let mut rounds = Vec::new();
    for round in 0..settings.rounds * VISITS_IN_A_ROUND {
        progress(&format!(
            "browser: visit {} of {}",
            round + 1,
            settings.rounds * VISITS_IN_A_ROUND
        ));
        let blank = browser.visit(&empty).await?;
        browser.forget_files().await?;
        let first = browser.visit(&list).await?;
        browser.visit(&empty).await?;
        let later = browser.visit(&format!("{list}?offset=50")).await?;
        rounds.push(Round { empty: blank, first, later });
    }
    Ok(rounds)
}
