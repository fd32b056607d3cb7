//! Objects that do not exist: unknown, malformed and deleted ids, and ids of another organization or project.

use crate::support::prelude::*;

/// The lists of organizations and of projects, and the requests at an object of each.
const OF_ORGANIZATIONS: [(&str, &str); 4] = [
    ("roles/", "GET , PATCH , PUT , DELETE , GET role_memberships/"),
    ("domains/", "GET , PATCH , DELETE , GET certificate/, GET lookup/, POST verify/"),
    ("invites/", "DELETE , GET mail/"),
    ("batch_exports/", EXPORTS),
];
const OF_PROJECTS: [(&str, &str); 3] = [
    ("batch_exports/", EXPORTS),
    (
        "dashboards/",
        "GET , PATCH , PATCH move_tile/, GET deleted_tiles/, GET sharing/, PATCH sharing/, POST sharing/refresh/, \
         GET collaborators/, POST collaborators/, DELETE collaborators/nobody/",
    ),
    ("insights/", "GET , PATCH , PUT , GET sharing/, PATCH sharing/, POST sharing/refresh/"),
];
const EXPORTS: &str = "GET , PATCH , DELETE , POST pause/, POST unpause/";

/// Ids that no object has.
const UNKNOWN: &str = "0 -1 abc 1.0 1e3 999999 18446744073709551616 @me %00 ..%2f %FF \
                       01890000-0000-7000-8000-000000000000";

/// Returns the text of the error of a request that names an object only to reach what belongs to it.
fn missing(kind: &str, rest: &str) -> &'static str {
    match kind {
        _ if !rest.starts_with("sharing") && !rest.starts_with("collaborators") => "Not found.",
        "insights/" => "Insight not found.",
        _ => "Dashboard not found.",
    }
}

#[tokio::test]
async fn unknown_deleted_and_foreign_objects_are_404() {
    let (workspace, owner) = Workspace::owned().await;
    let (organization, project) = workspace.second_organization().await;
    let organizations = [workspace.organization(""), format!("/api/organizations/{organization}/")];
    let projects = [workspace.project(""), format!("/api/projects/{project}/")];
    let numbers = [json!(workspace.made.project_id), project];
    let lists = OF_ORGANIZATIONS.map(|(kind, requests)| (&organizations, kind, requests));
    let lists = lists.into_iter().chain(OF_PROJECTS.map(|(kind, it)| (&projects, kind, it)));
    for (at, (roots, kind, requests)) in lists.enumerate() {
        let mut ids: Vec<_> = UNKNOWN.split(' ').chain(["@current"]).map(str::to_owned).collect();
        ids.push("9".repeat(5_000));
        let own = ids.len();
        for (root, project) in roots.iter().zip(&numbers) {
            let name = format!("n{at}-{project}");
            let sent = json!({
                "domain": format!("{name}.example"), "target_email": format!("{name}@x.example"),
                "project_id": project,
            });
            let (_, path) =
                owner.create(&format!("{root}{kind}"), with(nowhere(&name), sent)).await;
            ids.extend(path.split('/').nth_back(1).map(str::to_owned));
        }
        // The second of the two is foreign. The first is deleted.
        let deleted = format!("{}{kind}{}/", roots[0], ids[own]);
        if owner.delete(&deleted).await.status == 405 {
            owner.patch(&deleted, json!({ "deleted": true })).await.ok();
        }
        let first = format!("{}{kind}", roots[0]);
        assert_eq!(owner.get(&first).await.ok()["count"], 0, "{first}");
        for id in &ids {
            for request in requests.split(", ") {
                let (method, rest) = request.split_once(' ').expect("a method and a path");
                let path = format!("{}{kind}{id}/{rest}", roots[0]);
                // A missing object precedes invalid fields.
                let body = (method != "GET").then(|| json!({ "name": [], "enabled": "maybe" }));
                let answer = owner.send(method.parse().expect("a method"), &path, body).await;
                assert_eq!(answer.body["detail"], missing(kind, rest), "{method} {path}");
                answer.assert_not_found(missing(kind, rest));
            }
        }
        let second = format!("{}{kind}", roots[1]);
        assert_ne!(owner.get(&second).await.ok()["count"], 0, "{second}");
    }
}

#[tokio::test]
async fn unknown_projects_and_organizations_are_404() {
    let (workspace, owner) = Workspace::owned().await;
    for id in UNKNOWN.split(' ') {
        let dashboards = format!("/api/projects/{id}/dashboards/");
        owner.get(&dashboards).await.assert_not_found("Project not found.");
        owner.post(&dashboards, json!({})).await.assert_not_found("Project not found.");
        owner.get(&format!("/api/projects/{id}/")).await.assert_not_found("Not found.");
        let below = workspace.organization(&format!("projects/{id}/"));
        owner.get(&below).await.assert_not_found("Not found.");
        let members = format!("/api/organizations/{id}/members/");
        owner.get(&members).await.assert_not_found("Organization not found.");
    }
}
