//! Rows 8-10: the cost of verifying a key once, in many requests at once, and during a flood of wrong keys.

use std::time::{Duration, Instant};

use argon2::{Argon2, Block, Params};
use rand::prelude::{RngExt, SeedableRng, StdRng};

use super::{rate_ratio, rates};
use crate::http::Client;
use crate::plan::{Group, Span};
use crate::process::forget_peak;
use crate::report::{ReportLine, Unit, megabytes, middle, millis};
use crate::site::{CONNECTIONS, Site};
use crate::{Context, Result, Settings, fail, progress};

/// The time limit for the responses of a herd.
const HERD_WITHIN: Duration = Duration::from_secs(20);

/// Measures key verification.
pub fn keys(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if !settings.wants(&[8, 9, 10]) {
        return Ok(lines);
    }
    progress("keys");
    let mut site = Site::few(settings, "keys")?;
    let verify = verify_time(settings)?;
    if settings.wants(&[8]) {
        lines.extend(fresh_keys(settings, &site, verify)?);
    }
    if settings.wants(&[10]) {
        lines.extend(flood(settings, &site, verify)?);
    }
    if settings.wants(&[9]) {
        let mut rounds = Vec::new();
        for _ in 0..settings.rounds {
            site = site.restarted(settings)?;
            rounds.push(herd(&site)?);
        }
        lines.extend(herd_lines(&rounds, verify));
    }
    Ok(lines)
}

/// Returns the time of one Argon2id verification with the parameters of keys on the servers' core, in milliseconds. Its
/// memory is reused.
fn verify_time(settings: &Settings) -> Result<f64> {
    const TIMES: usize = 9;
    let argon2 = Argon2::from(Params::new(1024, 1, 1, None).context("parameters")?);
    let mut memory = vec![Block::default(); argon2.params().block_count()];
    let mut one = || {
        let begin = Instant::now();
        let mut hash = [0; 32];
        let secret = b"a secret as long as that of a key";
        argon2
            .hash_password_into_with_memory(secret, b"sixteen byte salt", &mut hash, &mut memory)
            .context("Argon2")?;
        std::hint::black_box(hash);
        Ok(millis(begin.elapsed()))
    };
    let times: Result<Vec<f64>> =
        settings.cores.on_server(|| (0..TIMES).map(|_| one()).collect())?;
    Ok(middle(&times?, |time| *time))
}

/// Row 8: the first and the second request of a new key on a warm connection.
fn fresh_keys(settings: &Settings, site: &Site, verify: f64) -> Result<[ReportLine; 3]> {
    let mut rounds = Vec::new();
    let mut paused = Vec::new();
    for number in 0..=(settings.rounds * 2) {
        let key = site.service.new_key(&format!("fresh {number}"))?;
        let (known, fresh) = (site.get_with(&site.key), site.get_with(&key));
        let mut client = site.service.client()?;
        let warm = (0..200).map(|_| timed(&mut client, &known)).collect::<Result<Vec<f64>>>()?;
        let first = timed(&mut client, &fresh)?;
        let second = timed(&mut client, &fresh)?;
        rounds.push((first, second, middle(&warm, |time| *time)));
        // Any pause makes the caches cold. This cost is not the key's, so it is measured separately.
        std::thread::sleep(Duration::from_secs_f64(first / 1e3));
        paused.push(timed(&mut client, &known)?);
    }
    let first = middle(&rounds, |(first, ..)| *first);
    let second = middle(&rounds, |(_, second, _)| *second);
    let warm = middle(&rounds, |(.., warm)| *warm);
    let ratio = middle(&rounds, |(_, second, warm)| second / warm);
    let paused = middle(&paused, |time| *time);
    let micros = |of: f64| format!("{:.0} of {:.0} us", second * 1e3, of * 1e3);
    Ok([
        ReportLine::ratio(8, "second request of a key / warm p50", ratio)
            .figures(micros(warm))
            .hoped(1.5),
        ReportLine::ratio(8, "the same / a warm key after a like pause", second / paused)
            .figures(micros(paused)),
        ReportLine::new(8, "first request of a key", first / verify, Unit::Verifies)
            .figures(format!("{first:.1} ms; a verify {verify:.1} ms"))
            .at_most(2.0, 3.0),
    ])
}

/// Returns the time of one request in milliseconds. Fails unless the status is 200.
fn timed(client: &mut Client, request: &[u8]) -> Result<f64> {
    let begin = Instant::now();
    match client.send(request)? {
        (200, _) => Ok(millis(begin.elapsed())),
        (status, body) => {
            fail(format!("expected 200, got {status}: {}", String::from_utf8_lossy(body)))
        }
    }
}

/// Row 9: the slowest response in milliseconds, and the increase of memory in megabytes.
fn herd(site: &Site) -> Result<(f64, f64)> {
    let gets = site.gets();
    // Wait until the start has settled. The key must not be used before the run.
    std::thread::sleep(Duration::from_millis(200));
    forget_peak(site.service.pid())?;
    let before = site.memory()?.now;
    let connections = CONNECTIONS as u64;
    let span = Span::exactly(connections, HERD_WITHIN);
    let run = site.run(&[Group::closed(CONNECTIONS, &gets)], span)?;
    if run.groups[0].answers != connections {
        return fail("not every request of the herd has a response");
    }
    let rise = site.memory()?.peak.saturating_sub(before);
    Ok((millis(run.groups[0].quantile(1.0)), megabytes(rise)))
}

fn herd_lines(rounds: &[(f64, f64)], verify: f64) -> [ReportLine; 2] {
    let slowest = middle(rounds, |(slowest, _)| *slowest);
    let rise = middle(rounds, |(_, rise)| *rise);
    [
        ReportLine::new(9, "64 at once on one cold key: slowest", slowest / verify, Unit::Verifies)
            .figures(format!("{slowest:.1} ms; a verify {verify:.1} ms"))
            .at_most(70.0, 140.0),
        ReportLine::new(9, "64 at once on one cold key: rise of RSS", rise, Unit::Megabytes)
            .at_most(40.0, 80.0),
    ]
}

/// Row 10: equal numbers of connections with wrong keys and with the right key.
fn flood(settings: &Settings, site: &Site, verify: f64) -> Result<[ReportLine; 2]> {
    let (gets, wrong) = (site.gets(), wrong_keys(site));
    let span = Span::slice(settings.slice);
    let right = Group::closed(CONNECTIONS / 2, &gets);
    let flood = Group::closed(CONNECTIONS / 2, &wrong).expecting(401);
    let mut rounds = Vec::new();
    let mut costs = Vec::new();
    for _ in 0..settings.rounds {
        let alone = site.run(&[right], span)?;
        rounds.push((site.run(&[right, flood], span)?, alone));
        costs.push(site.run(&[flood], span)?.cpu_per_answer() * 1e3);
    }
    let cost = middle(&costs, |cost| *cost);
    let what = "32 with a cached key beside 32 wrong / alone";
    Ok([
        ReportLine::ratio(10, what, rate_ratio(&rounds)).figures(rates(&rounds)).at_least(0.4, 0.3),
        ReportLine::new(10, "CPU of a wrong key", cost / verify, Unit::Verifies)
            .figures(format!("{:.1} us", cost * 1e3))
            .at_most(0.1, 0.2),
    ])
}

/// Returns well-formed wrong keys: one half random, the other half the right key with one letter changed.
fn wrong_keys(site: &Site) -> Vec<Vec<u8>> {
    const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const START: usize = "phx_".len();
    let mut dice = StdRng::seed_from_u64(11);
    let mut letter = || char::from(LETTERS[dice.random_range(0..LETTERS.len())]);
    let mut wrong = |number: usize| {
        let mut key: Vec<char> = site.key.chars().collect();
        if number.is_multiple_of(2) {
            key[START..].fill_with(&mut letter);
        } else {
            let at = START + number % (key.len() - START);
            let right = key[at];
            while key[at] == right {
                key[at] = letter();
            }
        }
        site.get_with(&key.into_iter().collect::<String>())
    };
    (0..4_096).map(&mut wrong).collect()
}
