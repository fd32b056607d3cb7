//! Checks the sources against the module rules in ARCHITECTURE.md.

mod graph;
mod language;
mod rules;
mod samples;
mod source;

use graph::ModuleGraph;
use rules::{Rule, Violation};
use source::Source;

use crate::support::prelude::*;

/// The rules for the files under `src/`.
const RULES: [Rule; 8] = [
    rules::crates,
    rules::purity,
    rules::independence,
    rules::definitions,
    rules::console,
    rules::wire,
    rules::responses,
    rules::size,
];

/// Returns every source file under `src/`, with its path from there.
fn sources() -> Vec<Source> {
    sources_in("src")
}

/// Returns every source file under a folder at the top of the repository, with its path from that folder.
fn sources_in(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let path =
                    path.strip_prefix(&root).expect("within the folder").to_str().expect("UTF-8");
                found.push(Source::new(path, &text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 60, "only {} sources were found", found.len());
    found
}

#[track_caller]
fn assert_none(violations: impl IntoIterator<Item = Violation>) {
    let lines: Vec<_> = violations.into_iter().map(|violation| violation.to_string()).collect();
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

#[test]
fn every_source_keeps_the_rules_of_its_module() {
    let sources = sources();
    assert_none(sources.iter().flat_map(|source| RULES.iter().flat_map(move |rule| rule(source))));
}

/// With `--nocapture`, the test prints the modules of `src/` in layers.
#[test]
fn modules_of_a_folder_have_no_cycles() {
    let graphs = graph::graphs(&sources());
    let cycles: Vec<_> = graphs.iter().filter_map(ModuleGraph::cycle).collect();
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
    for (number, layer) in (1..).zip(graphs[0].layers()) {
        println!("{number:>2} {}", layer.join(", "));
    }
}

#[test]
fn every_resource_with_routes_is_in_the_list() {
    let sources = sources();
    let list = sources.iter().find(|source| source.path == graph::LIST).expect("the list");
    let listed = rules::listed_resources(list);
    let with_routes =
        sources.iter().filter(|source| source.is_wire() && source.code.contains("pub fn routes("));
    let folders: BTreeSet<_> =
        with_routes.filter_map(|source| Some(source.resource()?.0)).collect();
    assert_eq!(listed, folders);
}

#[test]
fn tests_read_no_clock_and_do_not_sleep() {
    assert_none(sources_in("tests").iter().flat_map(rules::clocks));
}
