//! What the database or this program refuses until an operator changes something.

use super::support::local_server;
use super::*;
use crate::wait::until;

/// A role that needs the password `right`, with a schema that it owns or not. Both are dropped at the end.
struct Guest {
    schema: Schema,
    role: String,
}

impl Guest {
    fn new() -> Self {
        let schema = Schema::on(&local_server().url(support::ROLE));
        let role = format!("guest_{}", schema.name());
        schema.execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'right'"));
        Self { schema, role }
    }

    /// Returns the database for this role.
    fn origin(&self, password: &str) -> Postgres {
        let server = local_server().url(&format!("{}:{password}", self.role));
        open(&self.schema.url_at(&server), "node a")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let role = &self.role;
        self.schema.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn wrong_password_is_refused_and_not_repeated() {
    let guest = Guest::new();
    let origin = guest.origin("hunter2");
    let parts = ["password authentication failed", "pg_hba.conf", &format!("\"{}\"", guest.role)];
    let why = assert_refused(origin.head(), &parts);
    for text in [why, format!("{origin:?}"), origin.shown().to_owned()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert_refused(open(&local_server().url(&guest.role), "node a").head(), &["password missing"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn password_comes_from_a_file_that_is_read_at_each_connection() {
    let guest = Guest::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("passwords");
    let write = |password: &str| {
        let line = format!("*:5432:postgres:{}:{password}\n", guest.role);
        std::fs::write(&path, line).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).expect("a file");
    };
    let url = guest.schema.url_at(&local_server().url(&guest.role));
    let origin = open(&format!("{url}&passfile={}", path.display()), "node a");
    // A named file must exist.
    assert_refused(origin.head(), &["passwords"]);
    write("hunter2");
    let parts = ["password authentication failed", "password file"];
    let why = assert_refused(origin.head(), &parts);
    assert!(!why.contains("hunter2"), "{why}");
    write("right");
    assert_eq!(origin.head().expect("an answer"), None);
    guest.schema.execute(&format!("ALTER ROLE {} PASSWORD 'newer'", guest.role));
    // The open connection goes on. The next one needs the new password.
    assert_eq!(origin.head().expect("an answer"), None);
    origin.idle().clear();
    assert_refused(origin.head(), &["password authentication failed"]);
    write("newer");
    assert_eq!(origin.head().expect("an answer"), None);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn problem_of_a_node_is_stored_in_ascii() {
    let Database { schema: _schema, origin, first } = Database::new();
    origin.heartbeat(first, Some("d\u{e9}j\u{e0} vu")).expect("an answer");
    assert_eq!(origin.nodes().expect("an answer")[0].problem.as_deref(), Some("d?j? vu"));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn unknown_database_and_schema_are_refused() {
    let server = local_server().url(support::ROLE);
    let missing = open(&server.replace("/postgres", "/missing"), "node a");
    assert_refused(missing.head(), &["\"missing\" does not exist"]);
    let schema = Schema::on(&server);
    let elsewhere = open(&schema.url().replace(schema.name(), "missing"), "node a");
    let founded = elsewhere.found_workspace(new_name(), &mut std::iter::empty());
    assert_refused(founded, &["no schema has been selected"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn missing_grants_are_refused_by_name() {
    let guest = Guest::new();
    let (schema, role) = (guest.schema.name(), guest.role.as_str());
    let origin = guest.origin("right");
    let owner = open(&guest.schema.url(), "node b");
    let grant = |what: &str| guest.schema.execute(&format!("GRANT {what} TO {role}"));
    grant(&format!("USAGE ON SCHEMA {schema}"));
    let founded = origin.found_workspace(new_name(), &mut std::iter::empty());
    assert_refused(founded, &["permission denied for schema"]);
    let first = found(&owner, &[put("a", "1")]);
    let remedy = "GRANT SELECT, INSERT, UPDATE, DELETE ON";
    assert_refused(origin.head(), &["permission denied for table steward_head", remedy]);
    grant("SELECT ON steward_head, steward_commits, steward_rows");
    assert_eq!(since(&origin, first).expect("an answer").1, first);
    let committed = origin.commit(&Commit { from: first, name: new_name(), rows: &[] });
    assert_refused(committed, &["permission denied for table"]);
    grant("SELECT, INSERT, UPDATE ON steward_nodes, steward_head, steward_commits");
    grant("INSERT ON steward_rows");
    // A heartbeat needs what a commit needs.
    assert_refused(origin.heartbeat(first, None), &["permission denied for table steward_rows"]);
    grant(&format!("SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema}"));
    let second = taken(&origin, first, &[put("a", "2")]);
    origin.heartbeat(second, None).expect("an answer");
    origin.trim(0).expect("an answer");
    assert_eq!(turn(&origin, second).0, second);
    guest.schema.execute("DROP TABLE steward_nodes");
    assert_refused(origin.heartbeat(second, None), &["steward_nodes", "has lost this table"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn commits_that_the_database_may_lose_are_refused() {
    let schema = Schema::new();
    for level in ["off", "local"] {
        let url = format!("{}%20-c%20synchronous_commit%3D{level}", schema.url());
        assert_refused(open(&url, "node a").head(), &[&format!("synchronous_commit is {level}")]);
    }
    let url = format!("{}%20-c%20synchronous_commit%3Dremote_apply", schema.url());
    assert_eq!(open(&url, "node a").head().expect("an answer"), None);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn session_stays_durable_if_the_default_changes() {
    let server = Server::start(&[], "");
    let url = server.url(support::ROLE);
    let origin = open(&url, "node a");
    let first = found(&origin, &[]);
    support::execute(&url, "ALTER SYSTEM SET synchronous_commit = off");
    server.control(&["reload"]);
    let show_default = || support::execute(&url, "SHOW synchronous_commit");
    until("the new default", || (show_default() == [["off"]]).then_some(()));
    let link = origin.link().expect("the idle connection");
    let show = || link.ask(ANSWER, "SHOW synchronous_commit", &[]).expect("a row").expect("a row");
    assert_eq!(show().get::<_, &str>(0), "on");
    // The session that connects now sees the new default.
    assert_refused(since(&open(&url, "node b"), first), &["synchronous_commit is off"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tables_of_another_program_are_refused() {
    for other in [
        "CREATE TABLE steward_head (id int)",
        "CREATE TABLE steward_head (id int, workspace text, layout text, format text, seq text, \
         name text, horizon text); INSERT INTO steward_head VALUES (1, '', '', '', '', '', '')",
    ] {
        let schema = Schema::new();
        schema.execute(other);
        assert_refused(open(&schema.url(), "node a").head(), &["Steward did not create"]);
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn newer_formats_and_tables_stop_this_release() {
    let Database { schema, origin, first } = Database::new();
    let newer = |fault: Result<(Vec<OriginRow>, Position), Fault>| match fault {
        Err(Fault::Newer { found }) => Some(found),
        _ => None,
    };
    let format = crate::store::values::schema::FORMAT;
    let store = |value: &str| {
        schema.execute(&format!("INSERT INTO steward_rows VALUES ('later/1', '\\x01', {value}, 2)"))
    };
    store("null");
    assert!(since(&origin, Position::NONE).is_ok() && since(&origin, first).is_ok());
    schema.execute("DELETE FROM steward_rows WHERE tab = 'later/1'");
    store("'\\x02'");
    assert_eq!(newer(since(&origin, Position::NONE)), Some(format));
    assert_eq!(newer(since(&origin, first)), Some(format));
    schema.execute("UPDATE steward_head SET format = format + 1");
    assert_eq!(newer(since(&origin, first)), Some(format + 1));
    let taken = origin.turn(first, &mut |_| Ok(())).map(|(head, _)| head);
    assert!(matches!(taken, Err(Fault::Newer { .. })));
    schema.execute("UPDATE steward_head SET layout = layout + 1");
    assert_refused(origin.head(), &["layout 2 of a newer release"]);
}
