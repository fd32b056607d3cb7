//! Checks the sources against the module rules in ARCHITECTURE.md.

mod graph;
mod language;
mod rules;
mod samples;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use graph::ModuleGraph;
use rules::Violation;
use source::Source;

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
fn crates_are_used_only_in_their_allowed_modules() {
    assert_none(sources().iter().flat_map(rules::crates));
}

#[test]
fn rules_never_wait_read_the_clock_or_use_random_numbers() {
    assert_none(sources().iter().flat_map(rules::purity));
}

#[test]
fn no_rule_uses_what_calls_rules() {
    assert_none(sources().iter().flat_map(rules::independence));
}

#[test]
fn files_of_the_store_use_no_reexport_of_it() {
    assert_none(sources().iter().flat_map(rules::definitions));
}

#[test]
fn console_uses_no_store_and_no_rule() {
    assert_none(sources().iter().flat_map(rules::console));
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
fn all_http_files_have_the_same_structure() {
    assert_none(sources().iter().flat_map(rules::wire));
}

#[test]
fn types_in_response_schemas_write_the_responses() {
    assert_none(sources().iter().flat_map(rules::responses));
}

#[test]
fn tests_read_no_clock_and_do_not_sleep() {
    assert_none(sources_in("tests").iter().flat_map(rules::clocks));
}

#[test]
fn no_file_is_unfinished_or_too_long() {
    assert_none(sources().iter().flat_map(rules::size));
}
