//! The progress bar of commands. The test acts as the server that does the work, so that it controls the progress.

use std::io::{BufRead, Write};
use std::os::unix::net::UnixListener;

use crate::prelude::*;

#[test]
fn progress_bar_is_shown_after_a_second() {
    let (site, _) = DataFolder::with_workspace();
    let lock = File::options().write(true).open(site.path("steward.redb.lock"));
    let lock = lock.expect("the lock of the file");
    lock.lock().expect("locked");
    let socket = UnixListener::bind(site.path("steward.redb.sock")).expect("a socket");
    let (mut terminal, stderr) = Terminal::new();
    let mut command = site.steward(&["check"]);
    command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(stderr);
    let check = command.spawn().expect("a command");
    let (mut line, _) = socket.accept().expect("the command");
    let mut asked = String::new();
    BufReader::new(&line).read_line(&mut asked).expect("a request");
    assert_eq!(asked, "{\"Perform\":\"Check\"}\n");
    let mut tell = |doing: &str, done: u64, of: u64| {
        let stage = json!({ "progress": { "doing": doing, "done": done, "of": of } });
        writeln!(line, "{stage}").expect("told");
    };
    tell("checking", 0, 80_000);
    tell("checking", 20_000, 80_000);
    terminal.until_shows(" 25% of 80,000 values");
    let seen = terminal.until_shows(" left");
    assert!(seen.contains("checking "), "{seen:?}");
    tell("checking the structure", 0, 0);
    terminal.until_shows(" checking the structure, ");
    let done = json!({ "done": { "values": 8, "problem_count": 0, "problems": [] } });
    writeln!(line, "{done}").expect("told");
    let output = check.wait_with_output().expect("ended");
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).expect("text").contains("problem"));
}
