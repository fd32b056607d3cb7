//! Settings from environment variables.

use crate::prelude::*;

/// Returns the variables that the manual names.
fn variables(site: &DataFolder) -> BTreeSet<String> {
    let manual = site.run(&["man"]).ok();
    let name = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_');
        format!("STEWARD_{}", &rest[..end.unwrap_or(rest.len())])
    };
    manual.split("STEWARD_").skip(1).map(name).collect()
}

#[test]
fn empty_variable_counts_as_unset() {
    let site = DataFolder::empty();
    let unset = site.json(&["config"]);
    let names = variables(&site);
    assert!(names.len() > 40, "{names:?}");
    let mut all = site.steward(&["config", "--json"]);
    for name in &names {
        let mut one = site.steward(&["config", "--json"]);
        assert_eq!(CommandOutput::new(one.env(name, "")).json(), unset, "{name}");
        all.env(name, "");
    }
    assert_eq!(CommandOutput::new(&mut all).json(), unset);
    let mut init = site.steward(&["init", "--email", OWNER, "--json"]);
    for name in &names {
        init.env(name, "");
    }
    assert!(CommandOutput::new(&mut init).json()["api_key"].is_string());
    assert_eq!(site.names(), ["steward.redb", "steward.redb.lock"]);
}

#[test]
fn invalid_setting_names_its_variable_and_exits_with_2() {
    let site = DataFolder::empty();
    for (variable, value) in [
        ("STEWARD_LISTEN", "nonsense"),
        ("STEWARD_CONNECTIONS", "0"),
        ("STEWARD_PUBLIC_URL", "https://a.example/path"),
        ("STEWARD_TRUSTED_PROXY", "::ffff:10.0.0.0/104"),
        ("STEWARD_GRACE", "soon"),
        ("STEWARD_LOG", "loud=loud=loud"),
        ("STEWARD_SMTP_URL", "smtp://localhost"),
        ("STEWARD_SMTP_URL", "nonsense"),
        ("STEWARD_BACKUP_EVERY", "6h"),
        ("STEWARD_CONSOLE_MAIL_LOGIN", "1"),
        ("STEWARD_DATA", "postgres://ann:hunter2@db:x/y"),
    ] {
        let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0"]);
        if variable == "STEWARD_LISTEN" {
            command = site.steward(&["serve"]);
        }
        let run = CommandOutput::new(command.env(variable, value));
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
        run.assert_usage_error(variable);
    }
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("STEWARD_SMTP_URL", "smtp://localhost").env("STEWARD_SMTP_FROM", "nobody");
    CommandOutput::new(&mut command).assert_usage_error("; STEWARD_SMTP_FROM sets --smtp-from");
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn file_of_a_setting_that_cannot_be_used_exits_with_2_and_names_the_variable() {
    let (site, _) = DataFolder::with_workspace();
    let before = site.names();
    let serve = &["serve", "--listen", "127.0.0.1:0"][..];
    let mail =
        &[("STEWARD_SMTP_URL", "smtps://ann@localhost"), ("STEWARD_SMTP_FROM", "a@x.example")][..];
    let database = &[("STEWARD_DATA", "postgres://127.0.0.1:1/none")][..];
    for (args, variable, others) in [
        (serve, "STEWARD_TLS_CERT", &[("STEWARD_TLS_KEY", "none.pem")][..]),
        (serve, "STEWARD_TLS_KEY", &[("STEWARD_TLS_CERT", "none.pem")]),
        (serve, "STEWARD_SMTP_CA_FILE", mail),
        (serve, "STEWARD_SMTP_PASSWORD_FILE", mail),
        (&["mail", "test", "ann@x.example"], "STEWARD_SMTP_CA_FILE", mail),
        (&["mail", "test", "ann@x.example"], "STEWARD_SMTP_PASSWORD_FILE", mail),
        (serve, "STEWARD_DATA_CA", database),
        (&["user", "list"], "STEWARD_DATA_CA", database),
        (&["user", "list"], "STEWARD_DATA", &[("STEWARD_DATA", "postgres://db:x/y")]),
        (&["user", "list"], "STEWARD_DATA", &[("STEWARD_DATA", "postgres://db/y?sslmode=x")]),
        (serve, "STEWARD_DATA", &[("STEWARD_DATA", "postgres://db/y"), ("PGPORT", "x")]),
        (serve, "STEWARD_CONFIG", &[]),
        (&["user", "list"], "STEWARD_CONFIG", &[]),
    ] {
        let mut command = site.steward(args);
        command.env(variable, "none.pem").envs(others.iter().copied());
        CommandOutput::new(&mut command).assert_usage_error(&format!("{variable} sets --"));
    }
    assert_eq!(site.names(), before);
}

#[test]
fn address_of_a_database_is_no_name_of_a_file_and_is_never_shown() {
    let site = DataFolder::empty();
    let is_refused = |run: CommandOutput| {
        assert!(run.code == Some(2) && !run.stderr.is_empty(), "{run:?}");
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    };
    let mistyped = "postgre://ann:hunter2@db/x";
    for args in [
        &["serve", "--listen", "127.0.0.1:0", "--data", mistyped][..],
        &["init", "--email", OWNER, "--data", "host=db user=ann password=hunter2"],
        &["serve", "--config", mistyped],
        &["serve", mistyped],
        &["backup", mistyped],
        &["user", "list", mistyped],
    ] {
        is_refused(site.run(args));
    }
    is_refused(CommandOutput::new(site.steward(&["check"]).env("STEWARD_DATA", mistyped)));
    std::fs::write(site.path("steward.toml"), format!("data = {mistyped:?}\n")).expect("written");
    is_refused(site.run(&["healthcheck", "--config", "steward.toml"]));
    let shown = site.run(&["config", "--data", mistyped]).ok();
    assert!(shown.contains("data = \"********\" # flag, masked"), "{shown}");
    assert_eq!(site.names(), ["steward.toml"]);
    site.run(&["user", "list", "--data", "./host=db"]).assert_failed("./host=db does not exist");
}
