//! Pages far into long lists, which are read on the threads for long reads.

use steward::testing::error::Result;
use steward::testing::ids::{MembershipId, UserUuid};
use steward::testing::resources::dashboards::insights::Insight;
use steward::testing::resources::members;
use steward::testing::resources::users;

use crate::support::prelude::*;

/// The greatest offset that a request reads on its own thread.
const MAX_INLINE_OFFSET: usize = 1500;
/// More rows than that.
const ROWS: u64 = 2000;

/// Copies the only dashboard, insight and plain member, so that each list has more than `ROWS` rows.
fn copy_records(workspace: &Workspace, tx: &mut WriteTx<'_>) -> Result<()> {
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    let dashboard = tx.get::<Dashboard>(&(project, DashboardId(1)))?;
    let insight = tx.get::<Insight>(&(project, InsightId(1)))?;
    let user = users::find_by_email(tx, ANN)?.expect("a user");
    let member = members::find(tx, organization, user.meta.id)?.expect("a member");
    for number in 1..=ROWS {
        let mut copy = dashboard.clone();
        copy.meta.id = DashboardId(tx.next_number(Table::Dashboards)?);
        copy.fields.id = copy.meta.id;
        copy.fields.name = Some(format!("Board {}", number * 7 % 1000));
        tx.put(&copy)?;
        let mut copy = insight.clone();
        copy.meta.id = InsightId(tx.next_number(Table::Insights)?);
        copy.fields.id = copy.meta.id;
        copy.fields.short_id = format!("short{number}");
        tx.put(&copy)?;
        let mut copy = user.clone();
        copy.meta.id = UserId(tx.next_number(Table::Users)?);
        copy.meta.uuid = UserUuid(Uuid::from_u128(number.into()));
        (copy.fields.id, copy.fields.uuid) = (copy.meta.id, copy.meta.uuid);
        copy.fields.email = format!("member{number}@corp.example");
        tx.put(&copy)?;
        let mut joined = member.clone();
        joined.user = copy.meta.id;
        joined.id = MembershipId(Uuid::from_u128(number.into()));
        joined.joined_at = joined.joined_at.plus(Duration::from_millis(number));
        tx.put(&joined)?;
    }
    Ok(())
}

/// A workspace with long lists of dashboards, insights and members.
async fn with_long_lists() -> Workspace {
    let workspace = Workspace::configured(|config| config.metrics = Metrics::enabled()).await;
    make(&workspace, &workspace.owner, json!({ "name": "Board" })).await;
    let insights = workspace.project("insights/");
    let insight = workspace.owner.post(&insights, json!({ "name": "Visitors" })).await;
    assert_eq!(insight.status, 201, "{}", insight.body);
    workspace.member("ann", Level::Member).await;
    let copies = workspace.clone();
    let copied = workspace.app.store().write(move |tx| copy_records(&copies, tx)).await;
    copied.expect("copies");
    workspace
}

/// The paths of the lists in each order, with a first parameter.
fn lists(workspace: &Workspace) -> [String; 5] {
    let insights = workspace.project("insights/");
    [
        workspace.dashboards("?a=b"),
        format!("{insights}?order=created_at"),
        format!("{insights}?order=-created_at"),
        workspace.organization("members/?order=joined_at"),
        workspace.organization("members/?order=-joined_at"),
    ]
}

fn long_reads(workspace: &Workspace) -> f64 {
    Numbers::at_once(&workspace.app).value("steward_long_read_duration_seconds_count", &[])
}

/// Returns the rows of a list from this offset on, and the count.
async fn page(
    workspace: &Workspace,
    list: &str,
    limit: usize,
    offset: usize,
) -> (Vec<Value>, usize) {
    let path = format!("{list}&limit={limit}&offset={offset}");
    let Value::Object(mut page) = workspace.owner.get(&path).await.ok() else { panic!("no page") };
    let count = page["count"].as_u64().expect("a count");
    let Value::Array(rows) = page["results"].take() else { panic!("no results") };
    (rows, usize::try_from(count).expect("a small count"))
}

/// Returns all rows of a list. A page of 1,000 rows is a long read.
async fn all(workspace: &Workspace, list: &str) -> Vec<Value> {
    let (mut rows, count) = page(workspace, list, 1000, 0).await;
    while rows.len() < count {
        rows.extend(page(workspace, list, 1000, rows.len()).await.0);
    }
    rows
}

/// Asserts that pages from both ends and the middle are the ones of the whole list, and that those far into it are long
/// reads.
async fn assert_deep_pages(workspace: &Workspace) {
    for list in lists(workspace) {
        let all = all(workspace, &list).await;
        let count = all.len();
        for offset in [0, 1499, 1500, 1501, count - 101, count - 1, count] {
            let before = long_reads(workspace);
            let (rows, counted) = page(workspace, &list, 7, offset).await;
            assert_eq!(counted, count);
            let expected: Vec<_> = all.iter().skip(offset).take(7).cloned().collect();
            assert_eq!(rows, expected, "{list} at {offset}");
            let is_long = (long_reads(workspace) - before - 1.0).abs() < 0.1;
            assert!(is_long || offset <= MAX_INLINE_OFFSET, "{list} at {offset} is no long read");
        }
    }
}

#[tokio::test]
async fn deep_pages_of_long_lists_are_right_and_long_reads() {
    let workspace = with_long_lists().await;
    assert_deep_pages(&workspace).await;
    // An offset counts no deleted dashboards and insights.
    let one =
        |kind: &str, id: u64| format!("/api/projects/{}/{kind}/{id}/", workspace.made.project_id);
    let deletions = (10..100).step_by(3).flat_map(|id| {
        ["dashboards", "insights"].map(|kind| {
            let (owner, path) = (&workspace.owner, one(kind, id));
            async move { owner.patch(&path, json!({ "deleted": true })).await.ok() }
        })
    });
    join_all(deletions).await;
    assert_deep_pages(&workspace).await;
}

#[tokio::test]
async fn deep_pages_are_whole_beside_writers() {
    let workspace = with_long_lists().await;
    let (it, list) = (&workspace, workspace.dashboards("?a=b"));
    let writers = (0..4_u64).map(|writer| async move {
        for number in 0..20 {
            let name = json!({ "name": format!("Board {}", number * 91 % 1000) });
            let path = it.dashboards(&format!("{}/", writer * 100 + number + 2));
            it.owner.patch(&path, name.clone()).await.ok();
            assert_eq!(it.owner.post(&it.dashboards(""), name).await.status, 201);
            let refused =
                it.owner.post(&it.dashboards(""), json!({ "restriction_level": 5 })).await;
            assert_eq!(refused.status, 400);
        }
    });
    let reader = async {
        for offset in (0..40).map(|number| 1800 + number * 7) {
            let (rows, count) = page(&workspace, &list, 20, offset).await;
            assert_eq!(rows.len(), count.saturating_sub(offset).min(20));
            let keys: Vec<_> =
                rows.iter().map(|row| (row["name"].as_str(), row["id"].as_u64())).collect();
            assert!(keys.is_sorted(), "{keys:?}");
        }
    };
    tokio::join!(join_all(writers), reader);
}
