//! A server with two tenants: an attacker and a victim.

use std::sync::{Condvar, OnceLock};
use std::thread::JoinHandle;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::victim::Victim;
use crate::abuse::answers::{share, shared_dashboard};
use crate::prelude::*;
use crate::support::process::{binary, cleared};

/// The address of the trusted proxy.
pub const PROXY: &str = "127.0.0.9";
/// How often an attacker must have succeeded before the attack counts as running.
const RUNNING: usize = 10;
/// The cores that this process may use.
static ALLOWED: OnceLock<CpuSet> = OnceLock::new();

/// The data that an attack needs in the attacker's project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackSetup {
    Nothing,
    /// Many dashboards.
    Many,
    /// A dashboard of nearly 8 MiB with a public page.
    Heavy,
    /// A dashboard with a public page that takes long to render.
    CostlyPage,
}

/// The data that an attack uses.
pub struct Attacker {
    pub address: SocketAddr,
    pub key: String,
    pub project: u64,
    /// The dashboard in [`AttackSetup`], and the token of its public page.
    pub dashboard: u64,
    pub token: String,
    /// How many responses came, and how many connections are held.
    successes: AtomicUsize,
    stopped: Mutex<bool>,
    stop: Condvar,
}

impl Attacker {
    pub fn goes_on(&self) -> bool {
        !*self.stopped.lock().expect("no panic")
    }

    /// Records a response, or a connection that is held.
    pub fn succeeded(&self) {
        self.successes.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits a moment, or until the attack is stopped.
    pub fn rest(&self) {
        let stopped = self.stopped.lock().expect("no panic");
        let pause = Duration::from_millis(5);
        drop(self.stop.wait_timeout_while(stopped, pause, |stopped| !*stopped));
    }
}

/// The server, the attacker and the victim.
pub struct Stage {
    attacker: Arc<Attacker>,
    victim: Victim,
    server: Server,
    _site: DataFolder,
}

/// An attack that runs until it is stopped.
pub struct Running {
    attacker: Arc<Attacker>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub fn stop(self) {
        *self.attacker.stopped.lock().expect("no panic") = true;
        self.attacker.stop.notify_all();
        for thread in self.threads {
            thread.join().expect("an attack");
        }
    }
}

/// Starts the server on a core of its own, so that its times do not include the work of the attack. Afterwards the
/// calling thread, and the threads that it starts, run on other cores, if there are any.
fn on_server_core<T>(start: impl FnOnce() -> T) -> T {
    let pin = |core| {
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).expect("a core that is allowed");
    };
    let allowed = *ALLOWED.get_or_init(|| sched_getaffinity(None).expect("the allowed cores"));
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let first = cores.next().expect("a core");
    pin(first);
    let started = start();
    pin(cores.next_back().unwrap_or(first));
    started
}

/// Raises the limit on open files to the maximum, for attacks with thousands of connections.
fn allow_many_connections() {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limits.maximum, ..limits };
    setrlimit(Resource::Nofile, raised).expect("a limit below the hard one");
}

impl Stage {
    /// Starts a server with default limits, except those of time, and creates the data that the attack needs.
    pub fn set(needs: AttackSetup) -> Self {
        allow_many_connections();
        let site = DataFolder::empty();
        let run = |args: &[&str]| {
            let mut command = cleared(binary());
            CommandOutput::new(command.current_dir(site.folder()).args(args).arg("--json")).json()
        };
        let made = run(&["init", "--email", OWNER, "--project", "Web"]);
        let create = ["organization", "create", "Victim", "--owner", "v@victim.example"];
        let victim = run(&create);
        let key = ["key", "create", "--email", "v@victim.example", "--label", "v", "--scope", "*"];
        let victim_key = run(&key)["value"].as_str().expect("a key").to_owned();
        let mut command = cleared(binary());
        command.current_dir(site.folder()).args(["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--trusted-proxy", &format!("{PROXY}/32")]);
        let server = on_server_core(|| Server::start(&mut command)).expect("it serves");
        let address = server.address;
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let project = made["project_id"].as_u64().expect("a project");
        let (dashboard, token) = furnish(&server, &key, project, needs);
        let (successes, stopped, stop) = (AtomicUsize::new(0), Mutex::new(false), Condvar::new());
        let attacker =
            Attacker { address, key, project, dashboard, token, successes, stopped, stop };
        let victim_project = victim["project_id"].as_u64().expect("a project");
        let victim = victim_of(&server, &victim_key, victim_project);
        Self { attacker: Arc::new(attacker), victim, server, _site: site }
    }

    pub fn victim(&self) -> &Victim {
        &self.victim
    }

    /// Starts an attack. Returns when it is running.
    pub fn attack(&self, run: fn(&Arc<Attacker>) -> Vec<JoinHandle<()>>) -> Running {
        let attacker = Arc::clone(&self.attacker);
        let running = Running { threads: run(&attacker), attacker };
        until("the attack runs", || {
            (self.attacker.successes.load(Ordering::Relaxed) >= RUNNING).then_some(())
        });
        running
    }

    /// Returns the peak resident memory of the server, in bytes.
    pub fn peak_memory(&self) -> usize {
        self.server.memory("VmHWM:")
    }
}

fn victim_of(server: &Server, key: &str, project: u64) -> Victim {
    let dashboards = format!("/api/projects/{project}/dashboards/");
    let create =
        |nth| server.post(&dashboards, key, &json!({ "name": format!("board {nth}") })).ok();
    let made: Vec<_> = (0..20).map(create).collect();
    let one = format!("{dashboards}{}/", made[0]["id"]);
    let token = share(server, &one, key);
    Victim {
        address: server.address,
        requests: vec![
            ("read", request("GET", &one, key, "", "")),
            ("search", request("GET", &format!("{dashboards}?search=board"), key, "", "")),
            ("write", request("PATCH", &one, key, "", r#"{"description": "written"}"#)),
            ("page", request("GET", &format!("/shared/{token}"), "", "", "")),
        ],
    }
}

/// Creates the data that the attack needs. Returns the dashboard and the token of its public page.
fn furnish(server: &Server, key: &str, project: u64, needs: AttackSetup) -> (u64, String) {
    let dashboards = format!("/api/projects/{project}/dashboards/");
    // 4,000 characters of four bytes each, or Markdown that takes long to render.
    let (text, size) = match needs {
        AttackSetup::Heavy => ("\u{1f9f1}".repeat(3_990), (9, 55)),
        AttackSetup::CostlyPage => ("*a* `b` [c](d) ".repeat(266), (5, 100)),
        AttackSetup::Nothing | AttackSetup::Many => {
            if needs == AttackSetup::Many {
                fill(server, key, &dashboards);
            }
            return (0, String::new());
        }
    };
    shared_dashboard(server, (&dashboards, key), &json!({ "text": { "body": text } }), size)
}

/// Creates many dashboards with long descriptions, on several connections.
fn fill(server: &Server, key: &str, dashboards: &str) {
    let rows: usize = size("NEIGHBOURS_ROWS", 400);
    let body = json!({ "name": "needle", "description": "hay ".repeat(500) }).to_string();
    let create = request("POST", dashboards, key, "", &body);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut connection = server.connect();
                for _ in 0..rows.div_ceil(16) {
                    connection.write(&create).expect("sent");
                    assert_eq!(connection.reply().expect("an answer").status, 201);
                }
            });
        }
    });
}
