//! Three nodes under load, of which one is killed or frozen, or whose connections or database are cut, in each round.
//!
//! `ROUNDS` sets the number of rounds.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::load::Load;
use super::{Cluster, database};
use crate::support::postgres::{Schema, Server as Postgres};
use crate::support::sim::TestRng;

/// The number of rounds, unless the environment sets another.
const ROUNDS: u64 = 10;
/// How many writes every node acknowledges before each mishap.
const BETWEEN: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mishap {
    /// A node is killed with SIGKILL and started again.
    Kill,
    /// The database ends two thirds of all sessions.
    Cut,
    /// The database stops as after a crash, and starts again.
    Crash,
    /// A node is stopped for up to 1.5 s, and goes on.
    Freeze,
}

impl Mishap {
    /// Draws a mishap, in the shares in which the design was tried.
    fn draw(dice: &mut TestRng) -> Self {
        match dice.next() % 100 {
            0..36 => Self::Kill,
            36..68 => Self::Cut,
            68..82 => Self::Crash,
            _ => Self::Freeze,
        }
    }

    fn happen(self, dice: &mut TestRng, cluster: &Cluster, schema: &Schema, postgres: &Postgres) {
        let node = usize::try_from(dice.next()).expect("64 bits") % cluster.nodes.len();
        match self {
            Self::Kill => cluster.nodes[node].kill_and_restart(),
            Self::Freeze => {
                cluster.nodes[node].freeze(Duration::from_millis(dice.next() % 1500));
            }
            Self::Cut => {
                schema.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name LIKE 'steward %' AND random() < 0.67",
                );
            }
            Self::Crash => {
                postgres.control(&["stop", "-m", "immediate"]);
                postgres.control(&["start"]);
            }
        }
    }
}

#[test]
fn mishaps_under_load_lose_no_acknowledged_write_and_show_nothing_stale() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = rounds.unwrap_or(ROUNDS);
    let (schema, postgres) = database();
    let cluster = Cluster::start((0..3).map(|_| schema.url()));
    let load = Load::new(&cluster);
    let mut dice = TestRng(rounds);
    let mut told = BTreeMap::<Mishap, u64>::new();
    let begun = Instant::now();
    load.run(|| {
        for _ in 0..rounds {
            load.goes_on(0..3, BETWEEN);
            // Vary the moment.
            thread::sleep(Duration::from_micros(dice.next() % 200_000));
            let mishap = Mishap::draw(&mut dice);
            mishap.happen(&mut dice, &cluster, &schema, &postgres);
            *told.entry(mishap).or_default() += 1;
        }
        load.goes_on(0..3, BETWEEN);
    });
    let report = load.end();
    println!("{rounds} rounds in {:?}: {told:?}\n{report}", begun.elapsed());
    report.assert_right();
    cluster.check();
}
