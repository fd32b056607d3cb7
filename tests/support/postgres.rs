//! PostgreSQL for tests: a server of this process, and a schema of its own for each test.
//!
//! The first test that needs the server starts it, with its files below the folder of the build and reachable only through
//! a socket there. It ends with this process, however that ends. `STEWARD_TEST_POSTGRES` names another server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// The user that owns the data of a server, if it is started by root: PostgreSQL refuses to run as root.
const SYSTEM_USER: &str = "postgres";

/// The role that owns everything in a server. It needs no password.
pub const ROLE: &str = "steward";

/// A socket's path must be shorter.
const MAX_SOCKET_PATH: usize = 100;

/// Creates the data of a server and starts it. Stops it at the end of the input: this process ends or drops the server.
/// Arguments: the folder, lines for `postgresql.conf` and `pg_hba.conf`, and the folder of the primary of a standby.
const SUPERVISE: &str = r#"
set -e
trap '' HUP INT TERM
umask 077
mkdir "$1"
fail() { cat "$1"/*.log; rm -rf "$1"; exit 1; }
if [ -n "$4" ]; then
    pg_basebackup -D "$1/data" -h "$4" -U steward -R -c fast >"$1/backup.log" 2>&1 || fail "$1"
else
    initdb -D "$1/data" -U steward -A trust -N -E UTF8 --locale=C >"$1/initdb.log" 2>&1 || fail "$1"
fi
printf '%s\n' "$2" >>"$1/data/postgresql.conf"
printf '%s\n' "$3" | cat - "$1/data/pg_hba.conf" >"$1/hba" && mv "$1/hba" "$1/data/pg_hba.conf"
pg_ctl -D "$1/data" -l "$1/server.log" -w -t 300 -s start >"$1/start.log" 2>&1 || fail "$1"
echo ready
cat >/dev/null
pg_ctl -D "$1/data" -m immediate -s stop >/dev/null 2>&1 || true
rm -rf "$1"
"#;

/// A server. It stops when it is dropped, or when this process ends.
#[derive(Debug)]
pub struct Server {
    supervisor: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts a server with these settings, such as `port = 6000`, and these first lines of `pg_hba.conf`. It does not sync
    /// its files, unless a setting is `fsync = on`.
    pub fn start(settings: &[&str], hba: &str) -> Self {
        Self::create(settings, hba, None)
    }

    /// Starts a standby of this server, with the same settings. It receives what this server does.
    pub fn standby(&self) -> Self {
        Self::create(&["fsync = on"], "", Some(&self.folder))
    }

    fn create(settings: &[&str], hba: &str, primary: Option<&Path>) -> Self {
        let user = system_user();
        let folder = new_folder(user);
        let socket = format!("unix_socket_directories = '{}'", folder.display());
        let usual = ["listen_addresses = ''", &socket, "fsync = off", "max_connections = 1000"];
        let settings = [&usual, settings].concat().join("\n");
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISE, "sh"]).arg(&folder).args([&settings, hba]);
        command.arg(primary.unwrap_or_else(|| Path::new("")));
        command.env("PATH", path_with_server()).stdin(Stdio::piped()).stdout(Stdio::piped());
        // In a process group of its own, so that Ctrl-C does not end it before it has stopped the server.
        command.stderr(Stdio::null()).current_dir("/").process_group(0);
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        let mut supervisor = command.spawn().expect("a shell");
        let mut output = BufReader::new(supervisor.stdout.take().expect("the output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("the output of the supervisor");
        if line != "ready\n" {
            output.read_to_string(&mut line).expect("the output of the supervisor");
            panic!("PostgreSQL did not start (apt install postgresql): {line}");
        }
        Self { supervisor, folder }
    }

    /// Returns the folder of the server. The socket lies there.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the URL of the server's first database for this role, which may contain a password.
    pub fn url(&self, role: &str) -> String {
        let folder = self.folder.to_str().expect("UTF-8").replace('/', "%2F");
        format!("postgres://{role}@{folder}/postgres")
    }

    /// Kills the server and its sessions with SIGKILL.
    pub fn kill(&self) {
        let file = self.folder.join("data/postmaster.pid");
        let text = fs::read_to_string(file).expect("a running server");
        let parent = text.lines().next().and_then(|line| line.parse().ok()).expect("its number");
        let children = processes().into_iter().filter(|(_, of)| *of == parent).map(|(pid, _)| pid);
        for pid in [parent].into_iter().chain(children.collect::<Vec<_>>()) {
            // A session that has ended meanwhile needs no signal.
            let _ = kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL);
        }
        while processes().iter().any(|(pid, of)| *pid == parent || *of == parent) {
            thread::yield_now();
        }
    }

    /// Runs `pg_ctl` with these arguments on the server's data, and waits until it is done.
    pub fn control(&self, arguments: &[&str]) {
        let mut command = Command::new("pg_ctl");
        command.env("PATH", path_with_server()).current_dir("/").arg("-D");
        command.arg(self.folder.join("data")).args(["-w", "-t", "300", "-s"]).args(arguments);
        command.arg("-l").arg(self.folder.join("server.log"));
        if let Some((uid, gid)) = system_user() {
            command.uid(uid).gid(gid);
        }
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("pg_ctl");
        assert!(status.success(), "pg_ctl {arguments:?}: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Returns the numbers of all processes and of their parents. Zombies are left out.
fn processes() -> Vec<(i32, i32)> {
    let stat = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name of the program, in parentheses, may contain spaces.
        let (pid, rest) = text.split_once(' ')?;
        let mut fields = rest.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        (state != "Z").then_some((pid.parse().ok()?, fields.next()?.parse().ok()?))
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(stat).collect()
}

/// Returns the numbers of the user and the group that the server needs, if this process is root's.
fn system_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the users of this system");
    let line = users.lines().find(|line| line.split(':').next() == Some(SYSTEM_USER));
    let line = line.unwrap_or_else(|| panic!("no user {SYSTEM_USER}: apt install postgresql"));
    let number = |at| line.split(':').nth(at).and_then(|number| number.parse().ok());
    Some((number(2).expect("a user"), number(3).expect("a group")))
}

/// Returns `PATH` with the newest server of Debian, whose commands are not in it.
pub fn path_with_server() -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    let version = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path()).max_by_key(version);
    if let Some(newest) = newest {
        path = format!("{}/bin:{path}", newest.display());
    }
    path
}

/// Returns a path below the folder of the build, or below that of temporary files if the server's user cannot reach the
/// former or the path of a socket would be too long. Nothing is there yet.
fn new_folder(user: Option<(u32, u32)>) -> PathBuf {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let started = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{started}", std::process::id());
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp");
    let bases = [built, std::env::temp_dir()].map(|base| base.join("steward-postgres"));
    let usable = bases.into_iter().find(|base| {
        fs::create_dir_all(base).expect("a folder for servers");
        if let Some((uid, gid)) = user {
            chown(base, Some(uid), Some(gid)).expect("a folder for servers");
        }
        let _ = fs::set_permissions(base, fs::Permissions::from_mode(0o755));
        let mut command = Command::new("test");
        command.arg("-w").arg(base).current_dir("/");
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        let is_reachable = command.status().expect("a command").success();
        is_reachable && base.as_os_str().len() + name.len() + 20 < MAX_SOCKET_PATH
    });
    let folder = usable.expect("a folder for servers").join(name);
    // A process with the same number, on another day, was killed together with its supervisor.
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Returns a new folder in which [`file_for_server`] creates files.
pub fn folder_for_server() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a folder");
    folder
}

/// Creates a file that only the user of servers can read.
pub fn file_for_server(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file");
    if let Some((uid, gid)) = system_user() {
        chown(&path, Some(uid), Some(gid)).expect("a file");
    }
    path
}

/// Returns the server that this process started for its tests.
pub fn local_server() -> &'static Server {
    /// The role of the tests needs no password, and others do.
    const HBA: &str = "local all steward trust\nlocal all all scram-sha-256";
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[], HBA))
}

/// Returns the URL of the server for most tests: that of `STEWARD_TEST_POSTGRES`, or that of this process.
fn shared_server() -> String {
    let other = std::env::var("STEWARD_TEST_POSTGRES").ok().filter(|url| !url.is_empty());
    other.unwrap_or_else(|| local_server().url(ROLE))
}

/// A schema of its own, with nothing in it. It is dropped with this value.
#[derive(Debug)]
pub struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// Creates a schema in the shared server.
    pub fn new() -> Self {
        Self::on(&shared_server())
    }

    /// Creates a schema in the database at `server`.
    pub fn on(server: &str) -> Self {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        let created = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{created}", std::process::id());
        let drop_old = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
        execute(server, &format!("{drop_old}; CREATE SCHEMA {name}"));
        Self { server: server.to_owned(), name }
    }

    /// Returns the name of the schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of the database, with this schema as the first of its `search_path`.
    pub fn url(&self) -> String {
        self.url_at(&self.server)
    }

    /// Returns another URL of the same database, with this schema as the first of its `search_path`.
    pub fn url_at(&self, server: &str) -> String {
        let separator = if server.contains('?') { '&' } else { '?' };
        format!("{server}{separator}options=-c%20search_path%3D{}", self.name)
    }

    /// Runs statements, and returns the values of all rows as texts. A null is an empty text.
    pub fn execute(&self, sql: &str) -> Vec<Vec<String>> {
        execute(&self.url(), sql)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A connection of the test may still hold a lock.
        let sql = format!("SET lock_timeout = 2000; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let _ = try_execute(&self.server, &sql);
    }
}

/// Runs statements, and returns the values of all rows as texts. A null is an empty text.
pub fn execute(url: &str, sql: &str) -> Vec<Vec<String>> {
    try_execute(url, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

/// Runs statements on a connection of their own. The caller can be a thread of an async runtime.
fn try_execute(url: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let (config, sql) = (url.parse::<Config>()?, sql.to_owned());
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            let driven = tokio::spawn(connection);
            let rows = rows(&client, &sql).await;
            drop(client);
            let _ = driven.await;
            rows
        })
    };
    thread::spawn(work).join().expect("a connection to PostgreSQL")
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let messages = client.simple_query(sql).await?;
    let values = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(values).collect())
}
