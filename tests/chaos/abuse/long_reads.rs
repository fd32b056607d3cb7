//! Tests that long reads stop when their clients disconnect, and that organizations share the capacity for them.

use std::pin::pin;
use std::sync::mpsc::Sender;

use futures_util::FutureExt;
use futures_util::poll;
use futures_util::stream::{FuturesUnordered, StreamExt};
use steward::testing::ids::{DashboardId, ProjectId};
use steward::testing::resources::dashboards::Dashboard;

use super::metered;
use crate::prelude::*;
use crate::support::metrics::is;
use crate::support::sharing::add_text;

/// Creates a dashboard with a description of 2 KB as this caller, and copies until there are this many.
async fn fill(workspace: &Workspace, caller: &TestClient, project: ProjectId, count: usize) {
    let sent = json!({ "name": "Board", "description": "word ".repeat(400) });
    let made = caller.post(&format!("/api/projects/{project}/dashboards/"), sent).await.ok();
    let first = (project, DashboardId(made["id"].as_u64().expect("an id")));
    let filled = workspace.app.operate(move |tx, _| {
        let mut dashboard = tx.get::<Dashboard>(&first)?;
        for _ in 1..count {
            let id = DashboardId(tx.next_number(Table::Dashboards)?);
            (dashboard.meta.id, dashboard.fields.id) = (id, id);
            tx.put(&dashboard)?;
        }
        Ok(())
    });
    filled.await.expect("dashboards");
}

/// Does what [`fill`] does, in the first project.
async fn fill_own(workspace: &Workspace, count: usize) {
    fill(workspace, &workspace.owner, workspace.made.project_id, count).await;
}

/// Returns the number of long reads.
fn long_reads(workspace: &Workspace) -> f64 {
    Numbers::at_once(&workspace.app).value("steward_long_read_duration_seconds_count", &[])
}

#[tokio::test]
async fn distinct_values_per_query_parameter_are_limited() {
    let workspace = Workspace::new().await;
    let different = |name: &str, count: usize| -> String {
        let values: Vec<_> = (0..count).map(|number| format!("{name}=a{number}")).collect();
        values.join("&")
    };
    let words: Vec<_> = (0..201).map(|number| format!("a{number}")).collect();
    let (some, others) = (words[..101].join(","), words[101..].join(","));
    let detail = "A query parameter has at most 200 different values (--max-query-values).";
    let (dashboards, log) = (workspace.dashboards(""), workspace.organization("activity_log/"));
    for (path, query, attr) in [
        (&dashboards, different("tags", 201), "tags"),
        (&dashboards, different("unknown", 201), "unknown"),
        (&log, different("limit", 201), "limit"),
        (&log, format!("activity={}", words.join(",")), "activity"),
        (&log, format!("activity={some}&activity={others}"), "activity"),
        (&"/api/schema/".to_owned(), different("format", 201), "format"),
    ] {
        let answer = workspace.owner.get(&format!("{path}?{query}")).await;
        answer.assert_invalid(attr, "limit_reached", detail);
    }
    for (path, query) in [
        (&dashboards, different("tags", 200)),
        (&dashboards, "tags=one&".repeat(3_000)),
        (&log, "scope=Dashboard&scopes=Dashboard&".repeat(900)),
        (&log, format!("activity={}", "created,".repeat(3_000))),
    ] {
        assert_eq!(workspace.owner.get(&format!("{path}?{query}")).await.status, 200);
    }
    let workspace = Workspace::configured(|config| config.caps.max_query_values = 2).await;
    let two = workspace.dashboards("?tags=a&tags=b&tags=a");
    assert_eq!(workspace.owner.get(&two).await.status, 200);
    let three = workspace.dashboards("?tags=a&tags=b&tags=c");
    assert_eq!(workspace.owner.get(&three).await.body["code"], "limit_reached");
}

#[tokio::test]
async fn last_query_value_is_used_and_page_links_contain_each_value_once() {
    let workspace = Workspace::new().await;
    fill_own(&workspace, 3).await;
    let path = workspace.dashboards("?limit=2&limit=1&limit=2&pinned=false&pinned=false&limit=1");
    let listed = workspace.owner.get(&path).await.ok();
    assert_eq!(listed["results"].as_array().map(Vec::len), Some(1));
    let next = listed["next"].as_str().expect("a link");
    assert!(next.ends_with("?limit=1&offset=1&pinned=false"), "{next}");
}

/// Counts the rows that a read of 4,000 rows visits after its client disconnects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_read_stops() {
    let workspace = Workspace::new().await;
    fill_own(&workspace, 4_000).await;
    let project = workspace.made.project_id;
    let pool = workspace.app.long_reads();
    let (seen, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let read = {
        let (seen, go_on) = (Arc::clone(&seen), Arc::clone(&go_on));
        move |tx: &BoundedRead<'_>| {
            tx.scan::<Dashboard, _>(&project, Window::all(Order::Ascending), |_| {
                seen.fetch_add(1, Ordering::SeqCst);
                while !go_on.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                Ok(())
            })
        }
    };
    let consumer = Consumer::Organization(workspace.made.organization_id.0);
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut reading = Box::pin(pool.run(consumer, tx, read));
    assert!(poll!(reading.as_mut()).is_pending());
    eventually("a row is read", || (seen.load(Ordering::SeqCst) > 0).then_some(())).await;
    drop(reading);
    go_on.store(true, Ordering::SeqCst);
    eventually("the slot is free", || (pool.used() == 0).then_some(())).await;
    let seen = seen.load(Ordering::SeqCst);
    assert!(seen <= 1_000, "{seen} rows were read after the client disconnected");
}

#[tokio::test]
async fn read_stops_at_the_request_timeout() {
    let workspace =
        Workspace::configured(|config| config.request_timeout = Duration::from_millis(20)).await;
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let endless = |tx: &BoundedRead<'_>| -> steward::testing::error::Result<()> {
        loop {
            tx.spend(1)?;
        }
    };
    let ended = workspace.app.long_reads().run(Consumer::User(1), tx, endless).await;
    let error = ended.expect_err("it ends");
    assert_eq!((error.status(), error.is_overload(), error.retry_after()), (503, true, Some(1)));
    let ready = async || workspace.app.require_ready().await.ok();
    eventually_async("the file is in order", ready).await;
}

#[tokio::test]
async fn skipped_rows_count_against_the_read_limit() {
    let workspace = Workspace::new().await;
    fill_own(&workspace, 3_000).await;
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let project = workspace.made.project_id;
    for (offset, order, is_exceeded) in [
        (2_900, Order::Ascending, true),
        (2_900, Order::Descending, true),
        (500, Order::Ascending, false),
    ] {
        let (read, mut seen) = (BoundedRead::short(&tx), 0);
        let window = Window { offset, limit: 1, order };
        let walked = read.scan::<Dashboard, _>(&project, window, |_| {
            seen += 1;
            Ok(())
        });
        assert_eq!((walked.is_err(), read.is_exceeded()), (is_exceeded, is_exceeded));
        assert_eq!(seen, usize::from(!is_exceeded));
    }
}

/// Reads on the request thread are limited for every route: a longer read restarts on another thread.
#[tokio::test]
async fn long_read_moves_off_the_request_thread() {
    let workspace = metered().await;
    let board = Board::make(&workspace, json!({ "name": "Small" })).await;
    add_text(&workspace, &board, "one", 0).await;
    for path in [board.one.as_str(), "/api/users/@me/", "/api/organizations/@current/"] {
        workspace.owner.get(path).await.ok();
    }
    assert!(long_reads(&workspace) < 0.1, "short reads stay on the request thread");
    for number in 0..200 {
        add_text(&workspace, &board, &"word ".repeat(700), number).await;
    }
    let shown = workspace.owner.get(&board.one).await.ok();
    assert_eq!(shown["tiles"].as_array().map(Vec::len), Some(201));
    assert!((long_reads(&workspace) - 1.0).abs() < 0.1);
}

/// Starts reads of the next of `consumers` until one waits for a slot. Each ends when its sender is dropped.
fn occupy(
    workspace: &Workspace,
    consumers: impl Iterator<Item = Consumer>,
) -> Vec<(Sender<()>, impl Future<Output = steward::testing::error::Result<bool>> + Unpin)> {
    let pool = workspace.app.long_reads();
    let mut held = Vec::new();
    for consumer in consumers {
        let (end, ended) = std::sync::mpsc::channel();
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let mut read = Box::pin(pool.run(consumer, tx, move |_| Ok(ended.recv().is_err())));
        assert!(read.as_mut().now_or_never().is_none(), "it lasts until its sender is dropped");
        held.push((end, read));
        if pool.waiting() > 0 {
            break;
        }
    }
    held
}

/// All slots but one are in use, so the searches run one after the other. 64 searches of an organization wait before
/// the first one of another. It must be among the first to finish.
#[tokio::test]
async fn search_does_not_wait_for_searches_of_another_organization() {
    let workspace = Workspace::new().await;
    let (victim, made) = workspace.outsider("victim").await;
    let project = serde_json::from_value(made["project_id"].clone()).expect("an id");
    fill_own(&workspace, 500).await;
    fill(&workspace, &victim, project, 500).await;
    let search = |caller: TestClient, project: ProjectId| async move {
        caller.get(&format!("/api/projects/{project}/dashboards/?search=nowhere")).await.ok()
    };
    // Both keys are now in the cache.
    search(victim.clone(), project).await;
    search(workspace.owner.clone(), workspace.made.project_id).await;
    let mut held = occupy(&workspace, (100..).map(Consumer::User));
    let search = |who: &'static str, caller: &TestClient, project| {
        let answered = search(caller.clone(), project);
        Box::pin(async move {
            answered.await;
            who
        })
    };
    let mut searches: Vec<_> = (0..64)
        .map(|_| search("flood", &workspace.owner, workspace.made.project_id))
        .chain([search("victim", &victim, project)])
        .collect();
    for search in &mut searches {
        assert!(poll!(search.as_mut()).is_pending());
    }
    assert_eq!(workspace.app.long_reads().waiting(), 66, "the searches, and one of the reads");
    // Returns the searches in the order in which they are answered, also if this task runs late.
    let mut answered: FuturesUnordered<_> = searches.into_iter().collect();
    assert!(poll!(answered.next()).is_pending());
    // One of the two slots goes to the read that waits.
    held.drain(..2).for_each(drop);
    let mut place = 0;
    while answered.next().await.expect("it is answered") != "victim" {
        place += 1;
    }
    assert!(place < 8, "{place} were answered before the victim");
}

/// Searches beyond an organization's share of the queue fail, without an effect on other organizations.
#[tokio::test]
async fn queue_limit_for_searches_affects_only_its_own_organization() {
    let workspace = metered().await;
    let (victim, made) = workspace.outsider("victim").await;
    let theirs = format!("/api/projects/{}/dashboards/?search=a", made["project_id"]);
    let mine = workspace.dashboards("?search=a");
    victim.get(&theirs).await.ok();
    workspace.owner.get(&mine).await.ok();
    let consumer = Consumer::Organization(workspace.made.organization_id.0);
    let (ends, held): (Vec<_>, Vec<_>) =
        occupy(&workspace, std::iter::repeat(consumer)).into_iter().unzip();
    let mut waiting: Vec<_> = (1..64).map(|_| Box::pin(workspace.owner.get(&mine))).collect();
    for search in &mut waiting {
        assert!(poll!(search.as_mut()).is_pending());
    }
    let refused = workspace.owner.get(&mine).await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (503, &2.into()));
    let mut victims = pin!(join_all((0..32).map(|_| victim.get(&theirs))));
    assert!(victims.as_mut().await.iter().all(|answer| answer.status == 200));
    let numbers = Numbers::at_once(&workspace.app);
    assert!((numbers.value("steward_long_reads_refused_total", &[]) - 1.0).abs() < 0.1);
    // A search whose client disconnects while it waits never runs.
    waiting.truncate(31);
    let (before, left) = (long_reads(&workspace), held.len() + waiting.len());
    drop(ends);
    join_all(held).await;
    assert!(join_all(waiting).await.iter().all(|answer| answer.status == 200));
    let is_free = || (workspace.app.long_reads().used() == 0).then_some(());
    eventually("no slot is in use", is_free).await;
    let ran = long_reads(&workspace) - before;
    assert!(is(ran, u32::try_from(left).expect("few")), "{ran} long reads instead of {left}");
}
