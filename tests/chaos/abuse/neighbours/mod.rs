//! Measures what each attack costs a victim: the victim's latency during the attack, relative to its latency alone.
//!
//! By default, the victim sends few requests, and the test asserts only what does not depend on the machine: the victim gets
//! no 5xx, and the memory of the server is bounded. To send 2,000 requests of each kind and print the table of
//! `docs/reliability.md`:
//!
//! ```text
//! NEIGHBOURS=2000 cargo test --release --test chaos neighbours -- --nocapture
//! ```
//!
//! `NEIGHBOURS_ROWS` sets the number of the attacker's dashboards, and `NEIGHBOURS_ONLY` names an attack. `STEWARD_BIN` selects
//! another binary.

mod attacks;
mod stage;
mod victim;

use std::fmt::Write as _;

use attacks::ATTACKS;
use stage::Stage;
use victim::Latencies;

use crate::prelude::*;

/// The limit on the peak memory of the server in every attack, in bytes.
const MEMORY: usize = 512 << 20;

fn ratio(beside: Duration, alone: Duration) -> f64 {
    beside.as_secs_f64() / alone.as_secs_f64().max(1e-6)
}

/// Formats a row of the table: the attack, then for each kind of request its latency alone, during the attack, and the
/// ratio.
fn line(attack: &str, alone: &Latencies, beside: &Latencies, memory: usize) -> String {
    let mut line = format!("| {attack} |");
    for ((_, alone), (_, beside)) in alone.iter().zip(beside.iter()) {
        let (alone, beside) = (alone.p99(), beside.p99());
        let [a, b] = [alone, beside].map(|p99| p99.as_secs_f64() * 1000.0);
        write!(line, " {b:.1} / {a:.1} = {:.1}x |", ratio(beside, alone)).expect("a text");
    }
    let refused: usize = beside.iter().map(|(_, samples)| samples.failed).sum();
    write!(line, " {refused} | {} |", memory >> 20).expect("a text");
    line
}

#[test]
fn attacks_do_not_degrade_service_for_other_organizations() {
    let requests = size("NEIGHBOURS", 20);
    let mut table = vec![
        "| attack | read p99 ms | search | write | page | 5xx | RSS MiB |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    let mut faults = Vec::new();
    let only = std::env::var("NEIGHBOURS_ONLY").unwrap_or_default();
    for (name, needs, run) in ATTACKS.iter().filter(|(name, ..)| name.contains(&only)) {
        // A new server for each attack, so that attacks do not affect each other.
        let stage = Stage::set(*needs);
        let alone = stage.victim().measure(requests);
        let running = stage.attack(*run);
        let beside = stage.victim().measure(requests);
        running.stop();
        let memory = stage.peak_memory();
        table.push(line(name, &alone, &beside, memory));
        let failed: usize = beside.iter().map(|(_, samples)| samples.failed).sum();
        if failed > 0 {
            faults.push(format!("{name}: {failed} of the victim's requests failed"));
        }
        if memory > MEMORY {
            faults.push(format!("{name}: {} MiB of memory", memory >> 20));
        }
    }
    println!("{}", table.join("\n"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
