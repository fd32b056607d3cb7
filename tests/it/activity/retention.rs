//! Tests of `--activity-retention`, the time for which entries are kept.

use steward::testing::ids::ActivityId;
use steward::testing::resources::activity::{Detail, Fields, Meta};

use crate::activity::log::{logs, told};
use crate::support::prelude::*;

const BEGAN: Timestamp = Timestamp::from_micros(1_735_787_045_000_000);
const DAY: Duration = Duration::from_hours(24);

fn kept_for(retention: Duration, clock: &ManualClock) -> Config {
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    config.activity_retention = Some(retention);
    config
}

/// Waits until the log has this many entries.
async fn left(workspace: &Workspace, count: usize) {
    eventually("old entries are deleted", || (entries(workspace).len() == count).then_some(()))
        .await;
}

/// Writes entries of these organizations into the log, one second apart.
async fn fill(workspace: &Workspace, count: u64, organizations: &[OrganizationId]) {
    for piece in (0..count).collect::<Vec<_>>().chunks(1000) {
        let entries: Vec<Entry> = piece
            .iter()
            .map(|number| Entry {
                meta: Meta {
                    organization: organizations
                        [usize::try_from(*number).expect("few") % organizations.len()],
                    created_at: BEGAN.plus_seconds(i64::try_from(*number).expect("few")),
                    id: ActivityId(Uuid::from_u128(u128::from(*number))),
                    project: None,
                    user: Some(UserId(1)),
                },
                fields: Fields {
                    scope: "Organization".to_owned(),
                    item_id: number.to_string(),
                    activity: "updated".to_owned(),
                    detail: Detail { name: None, changes: Vec::new(), short_id: None },
                },
            })
            .collect();
        let put =
            workspace.app.store().write(move |tx| entries.iter().try_for_each(|one| tx.put(one)));
        put.await.expect("entries");
    }
}

#[tokio::test]
async fn expired_log_entries_and_their_counts_are_deleted() {
    let clock = ManualClock::at(BEGAN);
    let workspace = Workspace::with(kept_for(DAY * 365, &clock)).await;
    let owner = &workspace.owner;
    make(&workspace, owner, json!({ "name": "old" })).await;
    owner.patch(ME, json!({ "first_name": "Ola" })).await.ok();
    assert_eq!(entries(&workspace).len(), 3);
    clock.advance(DAY * 100);
    let (_, one) = make(&workspace, owner, json!({ "name": "new" })).await;
    // When they reach the maximum age, the entries still exist; an hour later they are deleted.
    clock.advance(DAY * 265);
    owner.patch(&one, json!({ "pinned": true })).await.ok();
    assert_eq!(entries(&workspace).len(), 5);
    clock.advance(Duration::from_hours(1));
    left(&workspace, 2).await;
    for path in logs(&workspace) {
        let log = owner.get(&path).await.ok();
        assert_eq!(log["count"], 2, "{path}");
        assert!(told(&log).iter().all(|[scope, item, _]| scope == "Dashboard" && item == "2"));
    }
    assert_eq!(owner.get(&format!("{}?item_id=1", logs(&workspace)[0])).await.ok()["count"], 0);
    clock.advance(DAY * 1000);
    left(&workspace, 0).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn expired_entries_of_many_organizations_are_deleted_and_newer_ones_kept() {
    let clock = ManualClock::at(BEGAN);
    let workspace = Workspace::with(kept_for(DAY, &clock)).await;
    let organization = |number| OrganizationId(Uuid::from_u128(number));
    let all = [workspace.made.organization_id, organization(1), organization(u128::MAX - 1)];
    fill(&workspace, 3000, &all).await;
    // The first 2000 entries, and the workspace's own entry, are now older than a day.
    clock.advance(DAY + Duration::from_secs(2000));
    left(&workspace, 1000).await;
    let left = entries(&workspace);
    assert!(left.iter().all(|entry| entry.meta.created_at >= BEGAN.plus_seconds(2000)));
    assert_eq!(workspace.owner.get(&logs(&workspace)[0]).await.ok()["count"], 333);
}

#[tokio::test]
async fn startup_deletes_expired_entries_and_no_limit_keeps_all() {
    let clock = ManualClock::at(BEGAN);
    let mut config = Config::default();
    config.clock = Clock::Manual(clock.clone());
    let workspace = Workspace::with(config.clone()).await;
    make(&workspace, &workspace.owner, json!({ "name": "old" })).await;
    clock.advance(DAY * 4000);
    make(&workspace, &workspace.owner, json!({ "name": "new" })).await;
    assert_eq!(entries(&workspace).len(), 3);
    let workspace = workspace.reopened(kept_for(DAY, &clock)).await;
    left(&workspace, 1).await;
    assert_eq!(entries(&workspace)[0].fields.item_id, "2");
}
