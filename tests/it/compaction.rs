//! The data file becomes small again by itself after much was deleted.

use std::os::unix::fs::MetadataExt;

use crate::support::prelude::*;

/// A larger file is compacted, in bytes.
const MIN_SIZE: u64 = 32 * 1024 * 1024;

fn size_on_disk(file: &Path) -> u64 {
    file.metadata().expect("the file").blocks() * 512
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_file_is_compacted_after_most_of_it_was_deleted() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let kept = owner.post(&workspace.dashboards(""), json!({ "name": "kept" })).await.ok();
    let (_, two) = owner.create("/api/organizations/", json!({ "name": "Two" })).await;
    let project = &owner.get(&format!("{two}projects/")).await.ok()["results"][0]["id"];
    let dashboards = format!("/api/projects/{project}/dashboards/");
    let filler = "x".repeat(30_000);
    // A tenth is kept. It lies all over the file, which redb itself would make shorter otherwise.
    for list in [vec![dashboards; 9], vec![workspace.dashboards("")]].concat().iter().cycle() {
        if size_on_disk(&workspace.path()) > MIN_SIZE / 16 * 17 {
            break;
        }
        owner.post(list, json!({ "filters": { "long": filler } })).await.ok();
    }
    assert_eq!(owner.delete(&two).await.status, 204);
    // A compaction before the end of the deletion would leave a file that is too small for another one.
    workspace.completes_deletions().await;
    assert!(size_on_disk(&workspace.path()) > MIN_SIZE);
    // Each minute the service looks at the file. It waits some minutes for an idle moment.
    eventually("the file is small", || {
        clock.advance(Duration::from_mins(1));
        (size_on_disk(&workspace.path()) < MIN_SIZE / 4).then_some(())
    })
    .await;
    let one = workspace.dashboards(&format!("{}/", kept["id"]));
    assert_eq!(owner.get(&one).await.ok()["name"], json!("kept"));
    owner.patch(&one, json!({ "name": "renamed" })).await.ok();
    assert_eq!(owner.get(&one).await.ok()["name"], json!("renamed"));
    workspace.assert_file_valid().await;
}
