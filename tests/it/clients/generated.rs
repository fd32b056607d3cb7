//! The requests of clients that are generated from PostHog's schema. They have each resource in a project twice: below
//! `/api/projects/` and below `/api/environments/`.

use crate::support::prelude::*;

#[tokio::test]
async fn generated_client_uses_insights_below_both_roots() {
    let (workspace, owner) = Workspace::owned().await;
    for (count, root) in [(1, "/api/projects/1/"), (2, "/api/environments/1/")] {
        let list = format!("{root}insights/");
        let (made, one) = owner.create(&list, json!({"name": "Visitors", "tags": ["a"]})).await;
        let user = workspace.made.user_id;
        let query =
            format!("{list}?basic=false&created_by={user}&limit=1&offset=0&refresh=force_cache");
        assert_eq!(owner.get(&query).await.ok()["count"], count);
        assert_eq!(owner.get(&one).await.ok(), made);
        assert_eq!(owner.patch(&one, json!({"description": "d"})).await.ok()["description"], "d");
        assert_eq!(owner.put(&one, json!({"name": "Users"})).await.ok()["name"], "Users");
        let removed = owner.delete(&one).await;
        assert_eq!((removed.status, removed.bytes.len()), (405, 0));
        let sharing = owner.get(&format!("{one}sharing/")).await.ok();
        assert_eq!((&sharing["enabled"], &sharing["created_at"]), (&json!(false), &Value::Null));
        let renewed = owner.post(&format!("{one}sharing/refresh/"), json!({})).await.ok();
        assert_ne!(renewed["access_token"], sharing["access_token"]);
    }
}
