//! Three nodes under load, of which one is killed or frozen, or whose connections or database are cut, in each round.
//!
//! `ROUNDS` sets the number of rounds. The first four have one mishap of each kind.

use super::load::Load;
use super::{Cluster, database};
use crate::prelude::*;

/// The number of rounds, unless the environment sets another.
const ROUNDS: usize = 10;
/// How many writes every node acknowledges before each mishap, and how many more at most.
const BETWEEN: u64 = 5;
const MOST_MORE: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mishap {
    /// A node is killed with SIGKILL and started again.
    Kill,
    /// The database ends two thirds of all sessions.
    Cut,
    /// The database stops as after a crash, and starts again.
    Crash,
    /// A node is stopped until the others have gone on, and goes on.
    Freeze,
}

impl Mishap {
    const ALL: [Self; 4] = [Self::Kill, Self::Cut, Self::Crash, Self::Freeze];

    /// Draws a mishap, in the shares in which the design was tried.
    fn draw(dice: &mut TestRng) -> Self {
        match dice.next() % 100 {
            0..36 => Self::Kill,
            36..68 => Self::Cut,
            68..82 => Self::Crash,
            _ => Self::Freeze,
        }
    }

    fn happen(
        self,
        dice: &mut TestRng,
        (cluster, load): (&Cluster, &Load<'_>),
        (schema, postgres): (&Schema, &Postgres),
    ) {
        let node = dice.below(cluster.nodes.len());
        match self {
            Self::Kill => {
                cluster.nodes[node].kill();
                cluster.nodes[node].restart();
            }
            Self::Freeze => {
                cluster.nodes[node].signal(Signal::STOP);
                let others = (0..cluster.nodes.len()).filter(|other| *other != node);
                load.goes_on(others, more(dice));
                cluster.nodes[node].signal(Signal::CONT);
            }
            Self::Cut => {
                let seed = dice.below(1000);
                schema.execute(&format!(
                    "SELECT setseed({seed} / 1000.0); SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name LIKE 'steward %' AND random() < 0.67"
                ));
            }
            Self::Crash => {
                postgres.control(&["stop", "-m", "immediate"]);
                postgres.control(&["start"]);
            }
        }
    }
}

/// Draws a number of writes.
fn more(dice: &mut TestRng) -> u64 {
    1 + dice.below(MOST_MORE) as u64
}

#[test]
fn mishaps_under_load_lose_no_acknowledged_write_and_show_nothing_stale() {
    let rounds = size("ROUNDS", ROUNDS);
    let (schema, postgres) = database();
    let cluster = Cluster::start((0..3).map(|_| schema.url()));
    let load = Load::new(&cluster);
    let mut dice = TestRng(seed());
    let mut told = BTreeMap::<Mishap, u64>::new();
    load.run(|| {
        for round in 0..rounds {
            load.goes_on(0..3, BETWEEN);
            // Vary the moment.
            load.goes_on([dice.below(3)], more(&mut dice));
            let mishap = Mishap::ALL.get(round).copied();
            let mishap = mishap.unwrap_or_else(|| Mishap::draw(&mut dice));
            mishap.happen(&mut dice, (&cluster, &load), (&schema, &postgres));
            *told.entry(mishap).or_default() += 1;
        }
        load.goes_on(0..3, BETWEEN);
    });
    println!("{rounds} rounds: {told:?}");
    load.end().assert_right();
    cluster.check();
}
