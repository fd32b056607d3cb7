//! The measured operations. Their names are those in `counts.txt`.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use steward::App;

use crate::callgrind::{Dump, dump};
use crate::sample::{insight, runtime};
use crate::site::{Client, DASHBOARDS, INSIGHTS, Site, dashboard};
use crate::{Result, fail};

/// A measured operation.
struct Operation {
    name: &'static str,
    /// How often it is counted. The count is the average.
    times: u64,
    /// Whether each of them commits.
    writes: bool,
    work: Work,
}

/// Returns the request with a number.
type NumberedRequest = fn(&Site, u64) -> Result<Request<Body>>;

/// What a measured operation does.
enum Work {
    /// The requests, and the status of every response.
    Request(u16, NumberedRequest),
    /// One write of the operator that creates this many dashboards with names in no order. It shows what the store does
    /// for a batch, which requests of one client never form.
    Creates(u64),
}

const fn read(name: &'static str, times: u64, status: u16, request: NumberedRequest) -> Operation {
    Operation { name, times, writes: false, work: Work::Request(status, request) }
}

const fn write(name: &'static str, status: u16, request: NumberedRequest) -> Operation {
    Operation { name, times: 200, writes: true, work: Work::Request(status, request) }
}

/// The requests before the counted ones: they fill caches and grow buffers.
const WARM_UP: u64 = 50;

/// The operations, in order. Writes come last, because they change what lists return.
const OPERATIONS: &[Operation] = &[
    read("get", 400, 200, |site, n| site.get(&one(site, n))),
    read("get-unknown-id", 400, 404, |site, n| {
        site.get(&format!("{}{}/", site.dashboards, 1_000_000 + n))
    }),
    read("refused-by-scope", 400, 403, |site, n| site.get_with(&site.narrow_key, &one(site, n))),
    read("refused-without-key", 400, 401, |site, n| site.get_with("phx_unknown", &one(site, n))),
    read("list-100", 150, 200, |site, _| list(site, 0)),
    read("list-100-at-offset-1000", 50, 200, |site, _| list(site, 1000)),
    read("list-100-at-offset-2000", 50, 200, |site, _| list(site, 2000)),
    read("insight-get", 400, 200, |site, n| site.get(&one_insight(site, n))),
    read("insight-list-100", 150, 200, |site, _| site.get(&format!("{}?limit=100", site.insights))),
    read("console-list-50", 50, 200, |site, _| site.console_list()),
    read("create-refused", 400, 400, |site, n| {
        site.post(&site.dashboards, &json!({ "name": "A".repeat(401), "tags": n }))
    }),
    write("create", 201, |site, n| site.post(&site.dashboards, &dashboard(DASHBOARDS + n))),
    write("patch", 200, |site, n| site.patch(&one(site, n), &edition(n))),
    write("insight-create", 201, |site, n| site.post(&site.insights, &insight(INSIGHTS + n))),
    write("insight-patch", 200, |site, n| site.patch(&one_insight(site, n), &edition(n))),
    Operation { name: "create-64-in-one-write", times: 10, writes: true, work: Work::Creates(64) },
];

/// Returns the body of a PATCH.
fn edition(number: u64) -> Value {
    json!({ "description": format!("Revenue against plan, by channel, edition {number:05}") })
}

/// Returns the path of an insight, another one for each number.
fn one_insight(site: &Site, number: u64) -> String {
    let at = usize::try_from(number * 97 % INSIGHTS).unwrap_or_default();
    format!("{}{}/", site.insights, site.insight_ids.get(at).copied().unwrap_or_default())
}

/// Returns the path of a dashboard, another one for each number.
fn one(site: &Site, number: u64) -> String {
    // Successive requests read different pages. 997 and 2,500 have no common factor, so all dashboards have their turn.
    let at = usize::try_from(number * 997 % DASHBOARDS).unwrap_or_default();
    format!("{}{}/", site.dashboards, site.ids.get(at).copied().unwrap_or_default())
}

fn list(site: &Site, offset: u64) -> Result<Request<Body>> {
    let at = if offset == 0 { String::new() } else { format!("&offset={offset}") };
    site.get(&format!("{}?limit=100{at}", site.dashboards))
}

/// Runs every operation, with a dump before and after its counted requests.
pub fn run(site: &Site) -> Result<()> {
    runtime()?.block_on(async {
        let (app, client) = site.serve()?;
        for operation in OPERATIONS {
            measure(site, &app, &client, operation)
                .await
                .map_err(|error| format!("{}: {error}", operation.name))?;
        }
        app.close().await;
        Ok(())
    })
}

async fn measure(site: &Site, app: &App, client: &Client, operation: &Operation) -> Result<()> {
    let Operation { times, work, .. } = operation;
    match *work {
        Work::Request(status, request) => {
            for number in 0..WARM_UP {
                client.send(request(site, number)?, status).await?;
            }
            let requests: Result<Vec<_>> =
                (WARM_UP..WARM_UP + times).map(|number| request(site, number)).collect();
            let requests = requests?;
            dump();
            for request in requests {
                client.send(request, status).await?;
            }
        }
        Work::Creates(count) => {
            site.create_at_once(app, 0..count).await?;
            dump();
            for number in 1..=*times {
                site.create_at_once(app, number * count..(number + 1) * count).await?;
            }
        }
    }
    dump();
    Ok(())
}

/// Returns the counts of one request of each operation, without its commit, and of the commits. The server commits the
/// writes of many requests together, so a commit of one request would hide what the request itself costs.
pub fn per_operation(dumps: &[Dump]) -> Result<Vec<(String, u64)>> {
    if dumps.len() != OPERATIONS.len() * 2 {
        return fail(format!("{} dumps for {} operations", dumps.len(), OPERATIONS.len()));
    }
    // The first dump of each pair ends the preparation.
    let counted = dumps.iter().skip(1).step_by(2);
    let mut counts = Vec::new();
    for (Operation { name, times, writes, .. }, dump) in OPERATIONS.iter().zip(counted) {
        counts.push(((*name).to_owned(), (dump.total - dump.commits) / times));
        match (*writes, dump.commits) {
            (false, 0) => {}
            (true, 1..) => counts.push((format!("{name}-commit"), dump.commits / times)),
            (_, commits) => {
                return fail(format!("{name}: {commits} instructions in commits"));
            }
        }
    }
    Ok(counts)
}
