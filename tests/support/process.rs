//! The real binary: folders to run it in, commands, servers, and a raw HTTP/1.1 client.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use axum::http::{HeaderMap, HeaderName};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use rustix::process::{Pid, Resource, Rlimit, Signal, geteuid, kill_process, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use super::wait::{TEST_TIMEOUT, until};

use super::OWNER;
use super::contract::contract;

/// The binary under test.
pub const STEWARD: &str = env!("CARGO_BIN_EXE_steward");
/// The time limits of [`Server::start`]: no test waits for one of an hour. A test whose subject is a limit sets another one.
const LONG_LIMITS: [&str; 6] = [
    "STEWARD_BODY_TIMEOUT",
    "STEWARD_DNS_TIMEOUT",
    "STEWARD_GRACE",
    "STEWARD_HEADER_TIMEOUT",
    "STEWARD_REQUEST_TIMEOUT",
    "STEWARD_SMTP_TIMEOUT",
];

/// Returns the binary of tests that also measure: that of `STEWARD_BIN`, or the binary under test.
pub fn binary() -> PathBuf {
    std::env::var_os("STEWARD_BIN").map_or_else(|| STEWARD.into(), PathBuf::from)
}

/// Returns the `steward` command, without the environment of the test run.
pub fn steward() -> Command {
    cleared(STEWARD)
}

/// Returns `program` with no environment variable except `PATH`.
pub fn cleared(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

/// Returns the command of a tool. Panics with the name of its Debian package if the tool is not installed.
#[track_caller]
pub fn tool(program: &str, package: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(is_installed, "{program} is not installed: apt install {package}");
    cleared(program)
}

/// Returns a free address of the loopback network for a program that is to listen there later. The caller alone uses its IP
/// address, so nothing else takes the port meanwhile.
pub fn own_address() -> SocketAddr {
    static USED: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, USED.fetch_add(1, Ordering::Relaxed), high, low);
    let listener = TcpListener::bind((own, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

/// Sets the permissions of a file or a folder.
pub fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file");
}

/// The outcome of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit code, or `None` if a signal killed the process.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// Runs a command until it exits. Panics after a timeout.
    pub fn new(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = KillOnDrop(command.spawn().expect("the command starts"));
        let stdout = text(child.0.stdout.take().expect("stdout is a pipe"));
        let stderr = text(child.0.stderr.take().expect("stderr is a pipe"));
        let status = until("the command exits", || child.0.try_wait().expect("a child"));
        Self {
            code: status.code(),
            stdout: stdout.join().expect("its output"),
            stderr: stderr.join().expect("its errors"),
        }
    }

    /// Asserts success with an empty stderr, and returns stdout.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// Asserts success with an empty stderr, and returns the JSON object on stdout.
    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.ok();
        assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
        serde_json::from_str(&text).expect("one JSON object")
    }

    /// Asserts exit code 1 and one line on stderr that contains `part`. Returns that line.
    #[track_caller]
    pub fn assert_failed(self, part: &str) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        assert!(self.stderr.starts_with("steward: "), "{self:?}");
        assert_eq!(self.stderr.matches('\n').count(), 1, "one line: {self:?}");
        assert!(self.stderr.contains(part), "not {part:?}: {self:?}");
        self.stderr
    }

    /// Asserts that the command line is invalid and that stderr contains `part`.
    #[track_caller]
    pub fn assert_usage_error(self, part: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        assert!(self.stderr.contains(part), "not {part:?}: {self:?}");
    }
}

/// A temporary folder, with or without a data file.
pub struct DataFolder {
    folder: TempDir,
}

impl DataFolder {
    /// Creates an empty folder.
    pub fn empty() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    /// Creates a folder with a data file. Returns the output of `init` too.
    pub fn with_workspace() -> (Self, Value) {
        let site = Self::empty();
        let args = ["init", "--email", OWNER, "--organization", "Corp", "--project", "Web"];
        let made = site.json(&args);
        (site, made)
    }

    /// Creates a folder whose data file has these bytes.
    pub fn with_bytes(bytes: &[u8]) -> Self {
        let site = Self::empty();
        fs::write(site.data(), bytes).expect("the file is written");
        site
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path("steward.redb")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a folder in this one, with these permissions.
    pub fn create_folder(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).expect("a folder");
        set_mode(&path, mode);
        path
    }

    /// Copies the binary into the folder, and makes both accessible to every user.
    pub fn program_for_all(&self) -> PathBuf {
        let program = self.path("steward");
        if fs::hard_link(STEWARD, &program).is_err() {
            fs::copy(STEWARD, &program).expect("a copy");
        }
        set_mode(self.folder(), 0o755);
        program
    }

    /// Returns the `steward` command with these arguments, in this folder.
    pub fn steward(&self, args: &[&str]) -> Command {
        let mut command = steward();
        command.current_dir(self.folder()).args(args);
        command
    }

    /// Runs a command in this folder.
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(&mut self.steward(args))
    }

    /// Runs a command in this folder and returns its JSON output.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// Serves the data file of this folder on a free port.
    #[track_caller]
    pub fn serve(&self, args: &[&str]) -> Server {
        self.try_serve(args).unwrap_or_else(|run| panic!("the server does not start: {run:?}"))
    }

    /// Serves the data file, or returns the outcome of a server that exits.
    pub fn try_serve(&self, args: &[&str]) -> Result<Server, CommandOutput> {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
        Server::start(&mut self.steward(&args))
    }

    /// Serves the data file in a process whose writes fail beyond the size that [`Server::limit_files`] sets.
    pub fn serve_limited(&self, prepare: impl FnOnce(&mut Command)) -> Server {
        let mut command = cleared("sh");
        command.current_dir(self.folder());
        // While the signal is ignored, a write beyond the limit returns an error instead of killing the process.
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", STEWARD]);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        prepare(&mut command);
        Server::start(&mut command).expect("it serves")
    }

    /// Returns the API key that the first start wrote.
    pub fn first_key(&self) -> String {
        let text = fs::read_to_string(self.path("steward.redb.first-key")).expect("a key");
        text.trim_end().to_owned()
    }

    /// Asserts that `check` finds no problem.
    #[track_caller]
    pub fn check(&self) {
        assert_eq!(self.json(&["check"])["problem_count"], 0);
    }

    /// Returns the name, permissions and bytes of every file in the folder. Sockets have no bytes.
    pub fn files(&self) -> Vec<(String, u32, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(self.folder())
            .expect("a folder")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().into_string().expect("a name");
                let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
                (name, mode, fs::read(entry.path()).unwrap_or_default())
            })
            .collect();
        files.sort();
        files
    }

    /// Returns the names of the files in the folder.
    pub fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, ..)| name).collect()
    }
}

/// A running `steward serve`. It is killed when it is dropped.
pub struct Server {
    child: KillOnDrop,
    pub address: SocketAddr,
    /// The output up to the line that contains the address.
    pub greeting: String,
    stderr: thread::JoinHandle<String>,
}

impl Server {
    /// Starts a command that runs `steward serve`, and waits until it prints its address. If it exits instead,
    /// returns its outcome. Time limits that neither a flag nor a variable of the command sets are an hour.
    pub fn start(command: &mut Command) -> Result<Self, CommandOutput> {
        for limit in LONG_LIMITS {
            if command.get_envs().all(|(name, _)| name != limit) {
                command.env(limit, "1h");
            }
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = KillOnDrop(command.spawn().expect("the binary starts"));
        let lines = lines(child.0.stdout.take().expect("stdout is a pipe"));
        let stderr = text(child.0.stderr.take().expect("stderr is a pipe"));
        let mut greeting = String::new();
        loop {
            match lines.recv_timeout(TEST_TIMEOUT) {
                Ok(line) => {
                    let address = address(&line);
                    greeting += &line;
                    if let Some(address) = address {
                        return Ok(Self { child, address, greeting, stderr });
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let code = child.0.wait().expect("the process exits").code();
                    let stderr = stderr.join().expect("its log");
                    return Err(CommandOutput { code, stdout: greeting, stderr });
                }
                Err(RecvTimeoutError::Timeout) => panic!("the server prints nothing"),
            }
        }
    }

    /// Returns the output up to the address, parsed as a JSON object.
    pub fn startup_message(&self) -> Value {
        serde_json::from_str(&self.greeting).expect("one JSON object")
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child.0)
    }

    /// Returns a value from `/proc/PID/status`, in bytes.
    pub fn memory(&self, name: &str) -> usize {
        let path = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let text = fs::read_to_string(path).expect("the server runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes * 1024
    }

    /// Makes every write beyond this size of a file fail.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(self.pid()), Resource::Fsize, limit).expect("the limit can be set");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process runs");
    }

    /// Kills the server with SIGKILL.
    pub fn kill(mut self) {
        self.child.0.kill().expect("the process runs");
        let status = self.child.0.wait().expect("the process exits");
        assert_eq!(status.signal(), Some(9), "SIGKILL ended the process");
    }

    /// Waits until the server exits. Returns its exit code and its log.
    #[track_caller]
    pub fn wait(mut self) -> (Option<i32>, String) {
        let status = until("the server exits", || self.child.0.try_wait().expect("a child"));
        (status.code(), self.stderr.join().expect("its log"))
    }

    /// Stops the server with SIGTERM, and asserts that no connection kept it until the end of its grace period. Returns its
    /// log.
    #[track_caller]
    pub fn stop(self) -> String {
        self.signal(Signal::TERM);
        let (code, log) = self.wait();
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("still busy at the end of the grace period"), "{log}");
        log
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).expect("the server accepts a connection")
    }

    /// Sends one request on a new connection.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, key: &str, body: Option<&Value>) -> Reply {
        self.connect().send(method, path, key, body).expect("an answer")
    }

    #[track_caller]
    pub fn get(&self, path: &str, key: &str) -> Reply {
        self.send("GET", path, key, None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, key: &str, body: &Value) -> Reply {
        self.send("POST", path, key, Some(body))
    }

    /// Returns the ids and names of all dashboards in this list, read page by page.
    #[track_caller]
    pub fn dashboards(&self, list: &str, key: &str) -> Vec<(u64, String)> {
        let mut connection = self.connect();
        let get = |path: &str| connection.send("GET", path, key, None).expect("an answer").ok();
        all_rows(list, get).0.iter().map(id_and_name).collect()
    }
}

/// A server of a new workspace.
pub struct Served {
    pub server: Server,
    pub site: DataFolder,
    /// The owner's key.
    pub key: String,
    /// The path of the dashboards of the first project.
    pub dashboards: String,
}

impl Served {
    /// Serves a new workspace with these further arguments.
    pub fn with(args: &[&str]) -> Self {
        let (site, made) = DataFolder::with_workspace();
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let dashboards = format!("/api/projects/{}/dashboards/", made["project_id"]);
        Self { server: site.serve(args), site, key, dashboards }
    }
}

/// A child process that is killed when this is dropped.
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a connection from this address in the loopback network.
pub fn connect_from(from: &str, to: SocketAddr) -> io::Result<TcpStream> {
    let socket: OwnedFd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(from.parse().expect("an address"), 0))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

/// Reads a child's output in a thread.
fn text(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8(bytes).expect("text")
    })
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|read| read > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

/// Returns the address in a line of the server's output, if it contains one.
fn address(line: &str) -> Option<SocketAddr> {
    let found = match serde_json::from_str::<Value>(line) {
        Ok(greeting) => greeting["url"].as_str()?.to_owned(),
        Err(_) => line.strip_prefix("Steward is serving ")?.split(' ').next()?.to_owned(),
    };
    found.split_once("://")?.1.parse().ok()
}

/// Returns the text of a request with a key or none, and with these further header lines, each with its line end.
pub fn request(method: &str, path: &str, key: &str, headers: &str, body: &str) -> String {
    let key =
        if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
    let body = match body.len() {
        0 => "\r\n".to_owned(),
        length => {
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        }
    };
    format!("{method} {path} HTTP/1.1\r\nHost: steward\r\n{key}{headers}{body}")
}

/// Returns the rows on all pages of a list, and their number as the last page says. `get` returns the page at a path.
pub fn all_rows(list: &str, mut get: impl FnMut(&str) -> Value) -> (Vec<Value>, u64) {
    let mut rows = Vec::new();
    loop {
        let page = get(&format!("{list}?limit=1000&offset={}", rows.len()));
        rows.extend_from_slice(page["results"].as_array().expect("a page"));
        if page["next"].is_null() {
            return (rows, page["count"].as_u64().expect("a number"));
        }
    }
}

/// Returns the id and the name of a dashboard.
pub fn id_and_name(row: &Value) -> (u64, String) {
    (row["id"].as_u64().expect("an id"), row["name"].as_str().expect("a name").to_owned())
}

/// One HTTP/1.1 connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::of(TcpStream::connect_timeout(&address, TEST_TIMEOUT)?)
    }

    pub fn of(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        stream.set_write_timeout(Some(TEST_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Begins a request that creates an object. Returns when the server waits for its body of this length.
    pub fn begin(&mut self, path: &str, key: &str, length: usize) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        );
        self.write(head).expect("sent");
        assert_eq!(self.reply().expect("a response").status, 100, "the request must be under way");
    }

    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a request and reads the response. Asserts that the response conforms to the OpenAPI document.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> io::Result<Reply> {
        let body = body.map_or_else(String::new, Value::to_string);
        self.write(request(method, path, key, "", &body))?;
        let reply = self.reply()?;
        let asked = (&method.parse().expect("a method"), path);
        contract().check(asked, reply.status, &reply.header_map(), &reply.body);
        Ok(reply)
    }

    /// Reads the next response.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let line = self.line()?;
        let mut words = line.split(' ');
        let version = words.next().unwrap_or_default().to_owned();
        let status = words.next().and_then(|word| word.parse().ok()).ok_or_else(cut)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut reply = Reply { version, status, headers, body: Vec::new() };
        if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().expect("a length")];
            self.stream.read_exact(&mut reply.body)?;
        }
        Ok(reply)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads until the server closes the connection.
    pub fn read_rest(&mut self, rest: &mut String) {
        self.stream.read_to_string(rest).expect("text, and the end");
    }

    /// Returns whether the server has closed the connection by now.
    pub fn is_closed_now(&self) -> bool {
        let socket = self.stream.get_ref();
        socket.set_nonblocking(true).expect("a socket");
        let peeked = socket.peek(&mut [0]);
        socket.set_nonblocking(false).expect("a socket");
        match peeked {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }

    /// Returns whether the server closed the connection without sending more.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub version: String,
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn header_map(&self) -> HeaderMap {
        let parse = |(name, value): &(String, String)| {
            (name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"))
        };
        self.headers.iter().map(parse).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Asserts a 2xx status and returns the body.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.json());
        self.json()
    }

    /// Asserts an error response. A 503 must have `Retry-After`.
    #[track_caller]
    pub fn assert_error(&self, status: u16, kind: &str, code: &str) {
        let body = self.json();
        let shown = (self.status, &body["type"], &body["code"], &body["attr"]);
        assert_eq!(shown, (status, &json!(kind), &json!(code), &Value::Null), "{body}");
        assert!(body["detail"].is_string());
        assert_eq!(body.as_object().expect("an object").len(), 4);
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert_eq!(self.header("retry-after").is_some(), status == 503);
    }
}

/// Another user than the one that runs the tests as root.
pub const NOBODY: u32 = 65534;

/// Returns a command in a folder. If the tests run as root, another user runs it.
pub fn as_nobody(program: &Path, folder: &Path, args: &[&str]) -> Command {
    let mut command = cleared(program);
    command.current_dir(folder).args(args);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
