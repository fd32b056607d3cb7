//! The progress bar of commands. The test acts as the server that does the work, so that it controls the progress.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::process::DataFolder;
use crate::support::terminal::Terminal;

/// A `check` command with its terminal, and its connection to the server, which is the test.
struct Checking {
    command: Child,
    terminal: Terminal,
    line: UnixStream,
    _lock: File,
    _site: DataFolder,
}

impl Checking {
    fn begin() -> Self {
        let (site, _) = DataFolder::with_workspace();
        let lock = File::options().write(true).open(site.path("steward.redb.lock"));
        let lock = lock.expect("the lock of the file");
        lock.lock().expect("locked");
        let socket = UnixListener::bind(site.path("steward.redb.sock")).expect("a socket");
        let (terminal, stderr) = Terminal::new();
        let mut command = site.steward(&["check"]);
        let command = command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(stderr);
        let command = command.spawn().expect("a command");
        let (line, _) = socket.accept().expect("the command");
        let mut asked = String::new();
        BufReader::new(&line).read_line(&mut asked).expect("a request");
        assert_eq!(asked, "{\"Perform\":\"Check\"}\n");
        Self { command, terminal, line, _lock: lock, _site: site }
    }

    fn tell(&mut self, doing: &str, done: u64, of: u64) {
        let stage = json!({ "progress": { "doing": doing, "done": done, "of": of } });
        writeln!(self.line, "{stage}").expect("told");
    }

    /// Completes the command and returns its output.
    fn done(mut self) -> String {
        let done = json!({ "done": { "values": 8, "problem_count": 0, "problems": [] } });
        writeln!(self.line, "{done}").expect("told");
        let output = self.command.wait_with_output().expect("ended");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    }
}

#[test]
fn progress_bar_is_shown_after_a_second() {
    let mut checking = Checking::begin();
    checking.tell("checking", 0, 80_000);
    checking.tell("checking", 20_000, 80_000);
    checking.terminal.until_shows(" 25% of 80,000 values");
    let seen = checking.terminal.until_shows(" left");
    assert!(seen.contains("checking "), "{seen:?}");
    checking.tell("checking the structure", 0, 0);
    checking.terminal.until_shows(" checking the structure, ");
    assert!(checking.done().contains("problem"));
}
