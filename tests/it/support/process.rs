//! The real binary: a folder to run it in, commands, servers, and a raw HTTP/1.1 client.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::contract::contract;

/// The binary under test.
pub const STEWARD: &str = env!("CARGO_BIN_EXE_steward");
/// The address that `Site::made` makes the owner with.
pub const OWNER: &str = "owner@corp.example";
/// Longer than anything takes that works, on however busy a machine.
pub const LONG: Duration = Duration::from_secs(30);

/// Asks again and again until `ready` gives something.
#[track_caller]
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// `steward`, with nothing of the environment of whoever runs the tests.
pub fn steward() -> Command {
    cleared(STEWARD)
}

/// `program`, with nothing of the environment but where programs are.
pub fn cleared(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

/// What a command came to.
#[derive(Debug)]
pub struct Run {
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end, which must come.
    pub fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Killed(command.spawn().expect("the command starts"));
        let stdout = text(child.0.stdout.take().expect("stdout is a pipe"));
        let stderr = text(child.0.stderr.take().expect("stderr is a pipe"));
        let status = until("the command ends", || child.0.try_wait().expect("a child"));
        Self {
            code: status.code(),
            stdout: stdout.join().expect("its output"),
            stderr: stderr.join().expect("its complaints"),
        }
    }

    /// What it printed, once it succeeded in silence.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// The one JSON object that it printed, once it succeeded in silence.
    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.ok();
        assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
        serde_json::from_str(&text).expect("one JSON object")
    }

    /// Asserts that it failed with exit code 1 and one line that says `part`, which is given back.
    #[track_caller]
    pub fn fails(self, part: &str) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{self:?}");
        assert!(self.stderr.starts_with("steward: "), "{self:?}");
        assert_eq!(self.stderr.matches('\n').count(), 1, "one line: {self:?}");
        assert!(self.stderr.contains(part), "not {part:?}: {self:?}");
        self.stderr
    }

    /// Asserts that the command line made no sense, and that the complaint says `part`.
    #[track_caller]
    pub fn misused(self, part: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        assert!(self.stderr.contains(part), "not {part:?}: {self:?}");
    }
}

/// A folder with a data file in it, or none yet; gone with the test.
pub struct Site {
    folder: TempDir,
}

impl Site {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    /// A folder with a data file, and what `init` answered.
    pub fn made() -> (Self, Value) {
        let site = Self::empty();
        let args = ["init", "--email", OWNER, "--organization", "Corp", "--project", "Web"];
        let made = site.json(&args);
        (site, made)
    }

    /// A folder with these bytes as the data file.
    pub fn holding(bytes: &[u8]) -> Self {
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

    /// The binary in this folder, and both within reach of every user.
    pub fn program_for_all(&self) -> PathBuf {
        let program = self.path("steward");
        if fs::hard_link(STEWARD, &program).is_err() {
            fs::copy(STEWARD, &program).expect("a copy");
        }
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.folder(), open).expect("the folder is opened");
        program
    }

    /// `steward`, in this folder.
    pub fn steward(&self, args: &[&str]) -> Command {
        let mut command = steward();
        command.current_dir(self.folder()).args(args);
        command
    }

    /// What a command comes to that is run in this folder.
    pub fn run(&self, args: &[&str]) -> Run {
        Run::of(&mut self.steward(args))
    }

    /// The JSON object that a command answers which is run in this folder.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// Serves the data file of this folder; port and log are taken care of.
    #[track_caller]
    pub fn serve(&self, args: &[&str]) -> Server {
        self.try_serve(args).unwrap_or_else(|run| panic!("it does not serve: {run:?}"))
    }

    /// Serves, or tells what became of it.
    pub fn try_serve(&self, args: &[&str]) -> Result<Server, Run> {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
        Server::start(&mut self.steward(&args))
    }

    /// The key that the first start wrote.
    pub fn first_key(&self) -> String {
        let text = fs::read_to_string(self.path("steward.redb.first-key")).expect("a key");
        text.trim_end().to_owned()
    }

    /// Asserts that `check` finds nothing wrong.
    #[track_caller]
    pub fn check(&self) {
        assert_eq!(self.json(&["check"])["problem_count"], 0);
    }

    /// Every file of the folder: its name, its permissions, its bytes (none for a socket).
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

    /// The names in the folder.
    pub fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, ..)| name).collect()
    }
}

/// A running `steward serve`. Killed when it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// What it printed up to the line that says where it is.
    pub greeting: String,
    stderr: thread::JoinHandle<String>,
}

impl Server {
    /// Starts what runs `steward serve` and waits until it says where it is; the failed run where it
    /// ends instead.
    pub fn start(command: &mut Command) -> Result<Self, Run> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let lines = lines(child.stdout.take().expect("stdout is a pipe"));
        let stderr = text(child.stderr.take().expect("stderr is a pipe"));
        let mut greeting = String::new();
        loop {
            match lines.recv_timeout(LONG) {
                Ok(line) => {
                    let address = address(&line);
                    greeting += &line;
                    if let Some(address) = address {
                        return Ok(Self { child, address, greeting, stderr });
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let code = child.wait().expect("it ends").code();
                    let stderr = stderr.join().expect("its log");
                    return Err(Run { code, stdout: greeting, stderr });
                }
                Err(RecvTimeoutError::Timeout) => {
                    let _ = child.kill();
                    panic!("it says nothing");
                }
            }
        }
    }

    /// What it printed, as the JSON object that it is.
    pub fn greeted(&self) -> Value {
        serde_json::from_str(&self.greeting).expect("one JSON object")
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// Cuts it off with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it is there");
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(9), "it was cut off");
    }

    /// Waits until it ends by itself; its exit code and its log.
    #[track_caller]
    pub fn wait(mut self) -> (Option<i32>, String) {
        let status = until("the server ends", || self.child.try_wait().expect("a child"));
        let log = std::mem::replace(&mut self.stderr, thread::spawn(String::new));
        (status.code(), log.join().expect("its log"))
    }

    /// Stops it in order; its log.
    #[track_caller]
    pub fn stop(self) -> String {
        self.signal(Signal::TERM);
        let (code, log) = self.wait();
        assert_eq!(code, Some(0), "{log}");
        log
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).expect("it takes connections")
    }

    /// Sends one request on a connection of its own.
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

    /// All dashboards of a project, page by page: id and name.
    #[track_caller]
    pub fn dashboards(&self, project: &Value, key: &str) -> Vec<(u64, String)> {
        let mut connection = self.connect();
        let mut found = Vec::new();
        loop {
            let path =
                format!("/api/projects/{project}/dashboards/?limit=1000&offset={}", found.len());
            let page = connection.send("GET", &path, key, None).expect("an answer").ok();
            for one in page["results"].as_array().expect("a page") {
                let id = one["id"].as_u64().expect("an id");
                found.push((id, one["name"].as_str().expect("a name").to_owned()));
            }
            if page["next"].is_null() {
                return found;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A child that does not outlive the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a child's output while it runs.
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

/// The address in the line that says where the server is.
fn address(line: &str) -> Option<SocketAddr> {
    let found = match serde_json::from_str::<Value>(line) {
        Ok(greeting) => greeting["url"].as_str()?.to_owned(),
        Err(_) => line.strip_prefix("Steward is serving ")?.split(' ').next()?.to_owned(),
    };
    found.split_once("://")?.1.parse().ok()
}

/// One HTTP/1.1 connection, byte by byte.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        Self::of(TcpStream::connect_timeout(&address, LONG)?)
    }

    pub fn of(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// How long an answer is waited for.
    pub fn patience(&self, patience: Duration) {
        self.stream.get_ref().set_read_timeout(Some(patience)).expect("a timeout");
    }

    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a request and reads its answer, which has to be one that the document promises.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> io::Result<Reply> {
        let key = match key {
            "" => String::new(),
            key => format!("Authorization: Bearer {key}\r\n"),
        };
        let body = body.map_or_else(String::new, Value::to_string);
        let body = match body.len() {
            0 => "\r\n".to_owned(),
            length => {
                format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
            }
        };
        self.write(format!("{method} {path} HTTP/1.1\r\nHost: steward\r\n{key}{body}"))?;
        let reply = self.reply()?;
        let asked = (&method.parse().expect("a method"), path);
        contract().check(asked, reply.status, &reply.header_map(), &reply.body);
        Ok(reply)
    }

    /// The next answer.
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

    /// Whether the server ended the connection and said nothing more.
    pub fn is_over(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
            || self.stream.get_ref().take_error().is_ok_and(|error| error.is_some())
    }
}

/// What came back.
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

    /// The body of a 2xx answer.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.json());
        self.json()
    }

    /// Asserts an error envelope; a 503 says when to try again.
    #[track_caller]
    pub fn refuses(&self, status: u16, kind: &str, code: &str) {
        let body = self.json();
        assert_eq!(
            (self.status, &body["type"], &body["code"], &body["attr"]),
            (status, &json!(kind), &json!(code), &Value::Null),
            "{body}"
        );
        assert!(body["detail"].is_string());
        assert_eq!(body.as_object().expect("an object").len(), 4);
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert_eq!(self.header("retry-after").is_some(), status == 503);
    }
}
