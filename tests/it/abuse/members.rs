//! What a removed member leaves: it ends with the membership, and a bounded piece of it is removed in one write.

use serde_json::{Value, json};
use steward::operator::{Operation, perform};
use steward::resources::access_controls::rules::Rule;
use steward::resources::members::Level;
use steward::resources::organizations::Sweep;
use steward::resources::{members, sweeps, users};
use steward::store::{Order, Progress, Record, Tx, Window};

use crate::dashboards::make;
use crate::invites::{invite, invites};
use crate::signup::Offer;
use crate::support::Workspace;

const BEN: &str = "ben@corp.example";
/// How many records one write removes at the most.
const PIECE: usize = 500;

/// Adds Ben to the first organization once more, as the operator.
fn rejoin(workspace: &Workspace) -> Operation {
    Operation::UserCreate {
        email: BEN.to_owned(),
        first_name: String::new(),
        last_name: String::new(),
        organization: Some(workspace.made.organization_id),
        level: Level::Admin,
        existing: true,
    }
}

fn count<R: Record>(workspace: &Workspace) -> usize {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut found = 0;
    let counted = tx.scan::<R, _>(&(), Window::all(Order::Ascending), |_| {
        found += 1;
        Ok(())
    });
    counted.expect("counted");
    found
}

/// Gives Ben a rule on each of `count` dashboards that hides it; the dashboards.
async fn hide_dashboards(workspace: &Workspace, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(make(workspace, &workspace.owner, json!({ "name": format!("D{number}") })).await.0);
    }
    let path = |id: u64| workspace.dashboards(&format!("{id}/access_controls/"));
    let member = workspace.membership(BEN).await["id"].clone();
    for id in &ids {
        let sent = json!({ "organization_member": member, "access_level": "none" });
        workspace.owner.put(&path(*id), sent).await.ok();
    }
    ids
}

#[tokio::test]
async fn what_a_removed_member_was_granted_goes_in_pieces_and_never_holds_again() {
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Member).await;
    let hidden = hide_dashboards(&workspace, PIECE + 20).await;
    let one = workspace.dashboards(&format!("{}/", hidden[PIECE + 10]));
    assert_eq!(ben.get(&one).await.status, 403);

    // The rule of the request alone, so the sweeper is not woken.
    let organization = workspace.made.organization_id;
    let removed = workspace.app.store().write(move |tx| {
        let user = |email| users::find_by_email(tx, email).map(|user| user.expect("a user").head.id);
        let (owner, ben) = (user(crate::support::OWNER)?, user(BEN)?);
        let caller = members::find(tx, organization, owner)?.expect("a member");
        sweeps::remove_member(tx, &caller, ben)
    });
    removed.await.expect("removed");
    assert_eq!((count::<Rule>(&workspace), count::<Sweep>(&workspace)), (20, 1));
    workspace.check().await;
    // Nothing shows what is left.
    for id in &hidden {
        let path = workspace.dashboards(&format!("{id}/access_controls/"));
        assert_eq!(workspace.owner.get(&path).await.ok()["access_controls"], json!([]));
    }
    assert_eq!(ben.get(&one).await.status, 403);
    let refused = perform(&workspace.app, rejoin(&workspace), Progress::unheard()).await;
    assert_eq!(refused.expect_err("refused").status(), 503);

    while workspace.app.store().write(sweeps::sweep).await.expect("swept") {}
    assert_eq!((count::<Rule>(&workspace), count::<Sweep>(&workspace)), (0, 0));
    workspace.operate(rejoin(&workspace)).await;
    assert_eq!(ben.get(&one).await.ok()["id"], hidden[PIECE + 10]);
    workspace.check().await;
}

#[tokio::test]
async fn the_sweeper_removes_what_a_removed_member_left() {
    let workspace = Workspace::new().await;
    workspace.member("ben", Level::Member).await;
    hide_dashboards(&workspace, PIECE + 1).await;
    let path = workspace.organization(&format!("members/{}/", workspace.uuid(BEN).await));
    workspace.owner.delete(&path).await.is_empty(204);
    crate::support::eventually("nothing is left", || {
        (count::<Rule>(&workspace) + count::<Sweep>(&workspace) == 0).then_some(())
    })
    .await;
    workspace.check().await;
}

#[tokio::test]
async fn invites_end_with_the_membership_of_whoever_made_them() {
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Admin).await;
    let sent = |email: &str| json!({ "target_email": email });
    let offer = Offer::of(&invite(&ben, &workspace, sent("ann@x.example")).await);
    invite(&workspace.owner, &workspace, sent("cat@x.example")).await;
    let path = workspace.organization(&format!("members/{}/", workspace.uuid(BEN).await));
    workspace.owner.delete(&path).await.is_empty(204);
    workspace.operate(rejoin(&workspace)).await;
    let answer = offer.accept(&workspace.anonymous(), json!({ "first_name": "Ann" })).await;
    answer.refuses_body("invalid_input", "The provided invite ID is not valid.");
    let list = workspace.owner.get(&invites(&workspace, "")).await.ok();
    let listed: Vec<&Value> = list["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["target_email"])
        .collect();
    assert_eq!(listed, ["cat@x.example"]);
    workspace.check().await;
}
