//! Random sequences of changes of tiles. Every response is a documented one, the `dashboards` of an insight
//! are correct, and the data file stays consistent.

use proptest::prelude::*;

use crate::support::prelude::*;

/// A change of a dashboard: the dashboard, the kind of change, and two IDs or numbers.
type Step = (usize, u8, u64, u64);

/// A workspace with three dashboards that have an insight and a text each. The third is a copy of the
/// first.
async fn furnished() -> (Workspace, Vec<String>) {
    let workspace = Workspace::new().await;
    let mut ones = Vec::new();
    for _ in 0..2 {
        let (id, one) = make(&workspace, &workspace.owner, json!({})).await;
        put_insight(&workspace, id, json!("I"), json!({})).await;
        put_texts(&workspace.owner, &one, &["t"]).await;
        ones.push(one);
    }
    let (_, copy) = make(&workspace, &workspace.owner, json!({"use_dashboard": 1})).await;
    ones.push(copy);
    (workspace, ones)
}

async fn take(
    workspace: &Workspace,
    ones: &mut Vec<String>,
    (which, what, one, two): Step,
) -> TestResponse {
    let path = ones[which % ones.len()].clone();
    let sent = match what {
        0 => json!({"tiles": [{"id": one, "deleted": two % 2 == 0}]}),
        1 => json!({"tiles": [{"id": one, "layouts": {"sm": {"x": two, "y": two % 3}}}]}),
        2 => json!({"tiles": [{"text": {"body": "new"}}, {"id": one, "color": "red"}]}),
        3 => {
            json!({"tiles": [{"text": {"id": two, "body": "b"}}, {"id": one, "text": {"body": "c"}}]})
        }
        4 => json!({"duplicate_tiles": [{"id": one}, {"id": two}]}),
        5 => json!({"deleted": true, "delete_insights": one % 2 == 0}),
        6 | 7 => json!({"deleted": false}),
        8 => {
            let sent = json!({"use_dashboard": one % 5, "duplicate_tiles": two % 3 == 0});
            let made = workspace.owner.post(&workspace.dashboards(""), sent).await;
            if let Some(id) = made.body["id"].as_u64() {
                ones.push(workspace.dashboards(&format!("{id}/")));
            }
            return made;
        }
        _ => {
            let sent = json!({"tile": {"id": one}, "toDashboard": two % 5});
            return workspace.owner.patch(&format!("{path}move_tile/"), sent).await;
        }
    };
    workspace.owner.patch(&path, sent).await
}

/// For each insight, the tiles that it lists, and the tiles that show it.
async fn standings(workspace: &Workspace, ones: &[String]) -> [BTreeMap<u64, Vec<Value>>; 2] {
    let (mut said, mut found) = (BTreeMap::new(), BTreeMap::<u64, Vec<Value>>::new());
    for one in ones {
        let answer = workspace.owner.get(one).await;
        if answer.status == 404 {
            continue;
        }
        let dashboard = answer.ok();
        for (number, tile) in dashboard["tiles"].as_array().expect("tiles").iter().enumerate() {
            assert_eq!(tile["order"], number);
            assert_ne!(tile["insight"].is_null(), tile["text"].is_null(), "{tile}");
            let Some(insight) = tile["insight"]["id"].as_u64() else { continue };
            let mut listed = tile["insight"]["dashboard_tiles"].as_array().expect("tiles").clone();
            for tile in &mut listed {
                let deleted = tile.as_object_mut().expect("a tile").remove("deleted");
                assert!(matches!(deleted, Some(Value::Null | Value::Bool(false))), "{deleted:?}");
            }
            said.insert(insight, listed);
            let here = json!({"id": tile["id"], "dashboard_id": dashboard["id"]});
            found.entry(insight).or_default().push(here);
        }
    }
    [said, found]
}

#[test]
fn any_sequence_of_tile_changes_leaves_consistent_tiles() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner =
        TestRunner::new(Cases { cases: 10, failure_persistence: None, ..Cases::default() });
    let step = (0_usize..4, 0_u8..11, 0_u64..12, 0_u64..12);
    let ran = runner.run(&prop::collection::vec(step, 1..60), |steps| {
        runtime.block_on(async {
            let (workspace, mut ones) = furnished().await;
            for step in steps {
                let answer = take(&workspace, &mut ones, step).await;
                let expected = [200, 201, 400, 404].contains(&answer.status);
                prop_assert!(expected, "{step:?}: {} {}", answer.status, answer.body);
            }
            let [said, found] = standings(&workspace, &ones).await;
            prop_assert_eq!(said, found);
            workspace.assert_file_valid().await;
            Ok::<(), TestCaseError>(())
        })
    });
    ran.expect("every sequence passes");
}
