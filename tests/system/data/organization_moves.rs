//! `export --organization` and `import --organization` with the real binary, both without servers and beside running ones.

use crate::prelude::*;

#[test]
fn organization_moves_with_and_without_servers() {
    for serving in [false, true] {
        let (old, made) = DataFolder::with_workspace();
        let text = |name: &str| made[name].as_str().expect("a text");
        let (key, organization) = (text("api_key"), text("organization_id"));
        let project = &made["project_id"];
        let list = format!("/api/projects/{project}/dashboards/");
        let server = old.serve(&[]);
        // More than one transaction takes.
        for number in 0..600 {
            server.post(&list, key, &json!({ "name": format!("D{number:03}") })).ok();
        }
        server.stop();
        // An empty file of cell 1, which accepts the API keys.
        old.json(&["backup", "backup.redb"]);
        let (new, backup) = (DataFolder::empty(), old.path("backup.redb"));
        let backup = backup.to_str().expect("a path");
        new.json(&["init", "--email", "there@x.example", "--cell", "1", "--secrets-of", backup]);
        let servers = serving.then(|| (old.serve(&[]), new.serve(&["--cell", "1"])));
        let file = old.path("one.jsonl");
        let file = file.to_str().expect("a path");
        let exported =
            old.json(&["export", "--organization", organization, "--secrets", "one.jsonl"]);
        let told = new.json(&["import", "--organization", file]);
        let expected = json!({
            "id": organization, "name": "Corp", "slug": "corp", "projects": [project], "lines": exported["lines"],
            "accounts_created": 1, "accounts_kept": 0, "keys": 1, "keys_left_out": 0, "secrets": true, "next": null,
        });
        assert_eq!(told, expected);
        new.check();
        new.run(&["import", "--organization", file]).assert_failed("exists here already");
        // A refusal in the middle of a long export reaches the command.
        let text = fs::read_to_string(file).expect("the export");
        let broken = text.replacen("\"name\":\"D007\"", "\"name\":7", 1);
        fs::write(new.path("broken.jsonl"), broken).expect("written");
        new.run(&["import", "--organization", "broken.jsonl"]).assert_failed("fields.name is not");
        new.run(&["import", "--organization", "missing"]).assert_failed("cannot open missing");
        if let Some((old, new)) = servers {
            old.stop();
            new.stop();
        }
        let names = |folder: &DataFolder| {
            let server = folder.serve(&[]);
            let names = server.dashboards(&list, key);
            server.stop();
            names
        };
        assert_eq!(names(&old), names(&new));
    }
}

#[test]
fn cells_are_founded_once_and_told_apart() {
    let site = DataFolder::empty();
    site.run(&["init", "--email", "a@x.example", "--cell", "21"])
        .assert_usage_error("write a number from 0 to 20");
    let made = site.json(&["init", "--email", "a@x.example", "--cell", "20"]);
    assert_eq!(made["project_id"], 2_000_000_001_u64);
    let refused = site.try_serve(&["--cell", "3"]).map(drop).expect_err("a refusal");
    assert!(refused.stderr.contains("the data is cell 20, not cell 3 (--cell)"), "{refused:?}");
    assert_eq!(refused.code, Some(2));
    site.serve(&["--cell", "20"]).stop();
    site.serve(&[]).stop();
    let whole = site.run(&["export", "--secrets"]).ok();
    assert!(whole.starts_with("{\"steward_export\":1,") && whole.contains("\"cell\":20,"));
    fs::write(site.path("all.jsonl"), whole).expect("written");
    site.json(&["import", "all.jsonl", "--data", "copy.redb"]);
    site.serve(&["--data", "copy.redb", "--cell", "20"]).stop();
    let fresh = DataFolder::empty();
    fresh.serve(&["--cell", "2"]).stop();
    assert_eq!(fresh.json(&["organization", "list"])["results"][0]["projects"], 1);
    fresh.try_serve(&["--cell", "0"]).map(drop).expect_err("a refusal");
}
