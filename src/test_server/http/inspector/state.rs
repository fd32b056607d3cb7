//! The state of the service: its clock, its snapshots, and what DNS look-ups find.

use askama::Template;
use serde_json::{Value, json};

use crate::console::paging::Paging;
use crate::console::registry::PageResult;
use crate::console::visit::Visit;
use crate::test_server::clock::{self, ClockBody};
use crate::test_server::dns::DnsName;
use crate::test_server::snapshots::SnapshotBody;

use super::{Commands, PAGE_SIZE, STATE, control, page};

/// The parameters of the query with the numbers of snapshots and of names before the page.
const SNAPSHOTS: &str = "snapshots";
const NAMES: &str = "names";

#[derive(Template)]
#[template(path = "test_server/http/inspector/state.html")]
struct StatePage<'p> {
    clock: ClockBody,
    of_clock: Commands,
    snapshots: Vec<&'p SnapshotBody>,
    snapshot_paging: Paging,
    of_snapshots: Commands,
    names: Vec<DnsName>,
    name_paging: Paging,
    of_names: Commands,
}

/// Shows the state.
pub(super) async fn state(visit: Visit) -> PageResult {
    let control = control(&visit)?;
    let environment = control.stage.environment();
    let clock = clock::show(&environment.clock);
    let other = if clock.frozen { "Let the clock run" } else { "Stop the clock" };
    let set = |change: Value| control.call("POST", "clock").with(change.to_string()).command();
    let of_clock = vec![
        ("Move the clock by three days", set(json!({ "advance": "72h" }))),
        (other, set(json!({ "frozen": !clock.frozen }))),
    ];
    let saved = control.stage.snapshots().list()?;
    let url = |offset: u64| visit.url_with(SNAPSHOTS, &offset.to_string());
    let (snapshots, snapshot_paging) = Paging::of_all(&saved, &visit, SNAPSHOTS, PAGE_SIZE, &url)?;
    let name = snapshots.first().map_or("before", |first| first.name.as_str());
    let path = format!("snapshots/{name}");
    let of_snapshots = vec![
        ("Save the state under a name", control.call("PUT", &path).command()),
        ("Restore it", control.call("POST", format!("{path}/restore")).command()),
        ("Delete it", control.call("DELETE", path).command()),
        ("Put everything back to how it was at the start", control.call("POST", "reset").command()),
    ];
    let names: Vec<_> = environment.dns.save().into_values().collect();
    let url = |offset: u64| visit.url_with(NAMES, &offset.to_string());
    let (names, name_paging) = Paging::of_all(&names, &visit, NAMES, PAGE_SIZE, &url)?;
    let found = control.call("PUT", "dns/example.com").with(r#"{"txt": ["a text"]}"#);
    let of_names = vec![
        ("Set what a name finds", found.command()),
        ("Forget all names", control.call("DELETE", "dns").command()),
    ];
    let content = StatePage {
        clock,
        of_clock: Commands::new("clock", of_clock),
        snapshots: snapshots.iter().collect(),
        snapshot_paging,
        of_snapshots: Commands::new("snapshots", of_snapshots),
        names: names.to_vec(),
        name_paging,
        of_names: Commands::new("names", of_names),
    };
    Ok(page(control, "State", STATE, &content)?)
}
