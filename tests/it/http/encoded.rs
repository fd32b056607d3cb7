//! Percent-encoded paths. PostHog's clients encode `@me` and `@current` with `encodeURIComponent`.

use crate::support::prelude::*;

#[tokio::test]
async fn percent_encoded_at_sign_in_fixed_path_segments_is_accepted() {
    let workspace = Workspace::new().await;
    let routes = routes();
    let is_fixed = |path: &str| path.contains('@') && !path.contains('{');
    let fixed: Vec<_> = routes.specs().iter().filter(|row| is_fixed(row.path)).collect();
    assert!(fixed.len() >= 3, "users/@me twice, and personal_api_keys/@current");
    for row in fixed {
        let plain = row.path.trim_end_matches('/');
        let encoded = plain.replace('@', "%40");
        let body = (row.method != Method::GET).then(|| json!({}));
        let expected = workspace.owner.send(row.method.clone(), plain, body.clone()).await.ok();
        for path in [encoded.clone(), format!("{encoded}/"), format!("{encoded}/?unknown=%40")] {
            let answer = workspace.owner.send(row.method.clone(), &path, body.clone()).await;
            assert_eq!((answer.status, &answer.body), (200, &expected), "{path}");
        }
        workspace.anonymous().get(&encoded).await.is_no_key();
        let other = workspace.owner.send(Method::PUT, &encoded, Some(json!({}))).await;
        let plain = workspace.owner.send(Method::PUT, plain, Some(json!({}))).await;
        assert_eq!((other.status, &other.headers["allow"]), (405, &plain.headers["allow"]));
    }
}

#[tokio::test]
async fn percent_encoded_at_sign_in_path_parameters_is_accepted() {
    let (_workspace, owner) = Workspace::owned().await;
    for path in [
        "/api/organizations/@current/",
        "/api/organizations/@current/projects/@current/",
        "/api/projects/@current/",
        "/api/projects/@current/dashboards/",
    ] {
        let expected = owner.get(path).await.ok();
        assert_eq!(owner.get(&path.replace('@', "%40")).await.ok(), expected, "{path}");
    }
    // The last owner cannot be demoted, with either spelling.
    let path = "/api/organizations/%40current/members/%40me/";
    let demoted = owner.patch(path, json!({"level": 8})).await;
    let plain = owner.patch(&path.replace("%40", "@"), json!({"level": 8})).await;
    assert_eq!((demoted.status, &demoted.body), (plain.status, &plain.body));
    assert_ne!(demoted.status, 404, "{}", demoted.body);
    // A path that is encoded twice, or decodes to another name, is unknown.
    for path in ["/api/users/%2540me/", "/api/users/%40you/", "/api/users/%41me/"] {
        owner.get(path).await.assert_not_found("API endpoint not found.");
    }
    owner.get("/api/personal_api_keys/%40me/").await.assert_not_found("Not found.");
}
