//! The attacks, each from one tenant or one address.

use std::io::{Read, Write};
use std::thread::JoinHandle;

use rustix::process::nice;

use super::stage::AttackSetup::{self, CostlyPage, Heavy, Many, Nothing};
use super::stage::{Attacker, PROXY};
use crate::prelude::*;

/// Starts an attack. The threads exit when the attacker is stopped.
pub type Run = fn(&Arc<Attacker>) -> Vec<JoinHandle<()>>;

/// All attacks in the table: the name, what it needs, and how it begins.
pub const ATTACKS: &[(&str, AttackSetup, Run)] = &[
    ("64 connections that read a dashboard", Nothing, reads),
    ("300 answers of 8 MiB that nobody reads", Heavy, unread_answers),
    ("400 bodies of 1 MiB that never end", Nothing, unfinished_bodies),
    ("searches whose clients leave at once", Many, abandoned_searches),
    ("64 searches side by side", Many, searches),
    ("organizations without end", Nothing, organizations),
    ("copies of an 8 MiB dashboard", Heavy, copies),
    ("5,000 idle connections of one address", Nothing, idle_connections),
    ("one costly public page", CostlyPage, costly_page),
    ("PATCH of an 8 MiB dashboard by 32", Heavy, heavy_changes),
    ("512 connections that roll a key", Nothing, rolls),
    ("16 readers of compressed scripts", Nothing, scripts),
];

/// Runs `each` on this many threads until the attack is stopped.
fn threads(
    attacker: &Arc<Attacker>,
    count: usize,
    each: impl Fn(&Attacker) + Send + Sync + 'static,
) -> Vec<JoinHandle<()>> {
    let each = Arc::new(each);
    let spawn = |_| {
        let (attacker, each) = (Arc::clone(attacker), Arc::clone(&each));
        thread::spawn(move || {
            // Low priority, so that the attack loads the server but not the cores on which the victim is measured.
            let _priority = nice(19);
            while attacker.goes_on() {
                each(&attacker);
            }
        })
    };
    (0..count).map(spawn).collect()
}

/// Sends `request` repeatedly on `count` keep-alive connections and reads the responses.
fn repeat(attacker: &Arc<Attacker>, count: usize, request: String) -> Vec<JoinHandle<()>> {
    repeat_each(attacker, count, move |_| request.clone())
}

/// Sends requests on `count` keep-alive connections and reads the responses.
fn repeat_each(
    attacker: &Arc<Attacker>,
    count: usize,
    request: impl Fn(&Attacker) -> String + Send + Sync + 'static,
) -> Vec<JoinHandle<()>> {
    threads(attacker, count, move |attacker| {
        let Ok(mut connection) = Connection::open(attacker.address) else { return attacker.rest() };
        while attacker.goes_on() {
            if connection.write(request(attacker)).is_err() || connection.reply().is_err() {
                return attacker.rest();
            }
            attacker.succeeded();
        }
    })
}

/// Opens connections, sends these bytes on them, and keeps them open.
fn hold(
    attacker: &Arc<Attacker>,
    count: usize,
    from: &'static str,
    bytes: impl Fn(&Attacker) -> String + Send + Sync + 'static,
) -> Vec<JoinHandle<()>> {
    threads(attacker, 1, move |attacker| {
        let bytes = bytes(attacker);
        let mut held = Vec::new();
        while attacker.goes_on() {
            if held.len() >= count {
                attacker.rest();
                continue;
            }
            match connect_from(from, attacker.address) {
                Ok(mut stream) => {
                    let _refused = stream.write_all(bytes.as_bytes());
                    held.push(stream);
                    attacker.succeeded();
                }
                Err(_) => attacker.rest(),
            }
        }
    })
}

fn unread_answers(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    hold(attacker, 300, "127.0.0.2", |attacker| {
        request("GET", &format!("/shared/{}.json", attacker.token), "", "", "")
    })
}

fn unfinished_bodies(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    hold(attacker, 400, "127.0.0.2", |attacker| {
        let body = format!("{{\"name\": \"{}\"}}", "x".repeat(1_000_000));
        let path = format!("/api/projects/{}/dashboards/", attacker.project);
        let mut sent = request("POST", &path, &attacker.key, "", &body);
        sent.truncate(sent.len() - 64);
        sent
    })
}

fn search(attacker: &Attacker, query: &str) -> String {
    let path = format!("/api/projects/{}/dashboards/?{query}", attacker.project);
    request("GET", &path, &attacker.key, "", "")
}

fn abandoned_searches(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    threads(attacker, 4, |attacker| {
        let query = vec!["tags=weekly"; 2_000].join("&");
        let Ok(mut stream) = connect_from("127.0.0.2", attacker.address) else {
            return attacker.rest();
        };
        let _refused = stream.write_all(search(attacker, &query).as_bytes());
        attacker.succeeded();
        attacker.rest();
    })
}

fn searches(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    repeat(attacker, 64, search(attacker, "search=nowhere"))
}

/// Normal read requests: the baseline of the table.
fn reads(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    repeat(attacker, 64, search(attacker, "limit=1"))
}

fn organizations(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    let create = request("POST", "/api/organizations/", &attacker.key, "", r#"{"name": "More"}"#);
    let me = request("PATCH", "/api/users/@me/", &attacker.key, "", r#"{"first_name": "Me"}"#);
    let mut running = repeat(attacker, 16, create);
    running.extend(repeat(attacker, 4, me));
    running
}

fn copies(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    let made = AtomicUsize::new(0);
    repeat_each(attacker, 8, move |attacker| {
        let path = format!("/api/projects/{}/dashboards/", attacker.project);
        let body = format!("{{\"use_dashboard\": {}}}", attacker.dashboard);
        let key = format!("Idempotency-Key: {}\r\n", made.fetch_add(1, Ordering::Relaxed));
        request("POST", &path, &attacker.key, &key, &body)
    })
}

fn idle_connections(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    hold(attacker, 5_000, "127.0.0.2", |_| request("GET", "/_livez", "", "", ""))
}

fn costly_page(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    threads(attacker, 100, |attacker| {
        let Ok(mut stream) = connect_from("127.0.0.2", attacker.address) else {
            return attacker.rest();
        };
        let page = request("GET", &format!("/shared/{}", attacker.token), "", "", "");
        if stream.write_all(page.as_bytes()).is_ok() {
            let _timeout = stream.set_read_timeout(Some(Duration::from_millis(500)));
            let _beginning = stream.read(&mut [0; 4096]);
        }
        attacker.succeeded();
    })
}

fn heavy_changes(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    let path = format!("/api/projects/{}/dashboards/{}/", attacker.project, attacker.dashboard);
    let change = request("PATCH", &path, &attacker.key, "", r#"{"tiles": []}"#);
    let mut running = repeat(attacker, 16, change);
    let name = request("PATCH", &path, &attacker.key, "", r#"{"pinned": true}"#);
    running.extend(repeat(attacker, 16, name));
    running
}

fn rolls(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    let create = json!({ "label": "rolled", "scopes": ["dashboard:read"] });
    let mut connection = Connection::open(attacker.address).expect("a connection");
    let made = connection.send("POST", "/api/personal_api_keys/", &attacker.key, Some(&create));
    let made = made.expect("an answer").ok();
    let path = format!("/api/personal_api_keys/{}/roll/", made["id"].as_str().expect("an id"));
    let roll = request("POST", &path, &attacker.key, "", "{}");
    // Each thread sends the request on 16 connections, reads the responses, and repeats.
    threads(attacker, 32, move |attacker| {
        let open = |_| Connection::open(attacker.address).ok();
        let mut connections: Vec<_> = (0..16).filter_map(open).collect();
        while attacker.goes_on() && !connections.is_empty() {
            connections.retain_mut(|connection| connection.write(&roll).is_ok());
            connections.retain_mut(|connection| connection.reply().is_ok());
            attacker.succeeded();
        }
        attacker.rest();
    })
}

fn scripts(attacker: &Arc<Attacker>) -> Vec<JoinHandle<()>> {
    threads(attacker, 16, |attacker| {
        let Ok(mut stream) = connect_from(PROXY, attacker.address) else { return attacker.rest() };
        let headers =
            "Accept-Encoding: gzip\r\nX-Forwarded-For: 192.0.2.7\r\nConnection: close\r\n";
        let script = request("GET", "/api/docs/swagger-ui-bundle.js", "", headers, "");
        if stream.write_all(script.as_bytes()).is_ok() {
            let _all = std::io::copy(&mut stream, &mut std::io::sink());
            attacker.succeeded();
        }
    })
}
