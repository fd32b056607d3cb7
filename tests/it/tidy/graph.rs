//! The modules of `src/` and which uses which, computed from the paths in the sources.
//!
//! In every folder, the graph of its children has no cycle. At the top, a resource counts as two modules: its rules,
//! `resources/x`, and its handlers, `resources/x/http`. Each file of `resources/shared` counts as one. The file that
//! declares a folder's modules is left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::Source;

/// The modules of a folder. Each use of one module by another has the places where it stands.
#[derive(Default)]
pub struct ModuleGraph {
    folder: String,
    names: BTreeSet<String>,
    uses: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// A path from one module to another, with its place.
struct Use {
    from: Vec<String>,
    to: Vec<String>,
    place: String,
}

/// Returns the graph of the top of `src/`, then those of the folders below.
pub fn graphs(sources: &[Source]) -> Vec<ModuleGraph> {
    let sources: Vec<_> = sources.iter().filter(|source| !source.is_test()).collect();
    let modules: BTreeSet<_> = sources.iter().map(|source| source.module()).collect();
    let uses = uses(&sources, &modules);
    let mut folders: BTreeSet<&[String]> = BTreeSet::new();
    for module in &modules {
        folders.extend((1..module.len()).map(|depth| &module[..depth]));
    }
    let below = |folder: &[String], module: &[String]| {
        module.strip_prefix(folder).and_then(|rest| rest.first()).cloned()
    };
    let mut found = vec![ModuleGraph::new("src", &modules, &uses, top_module)];
    for folder in folders.into_iter().filter(|folder| *folder != ["resources"]) {
        let name = format!("src/{}", folder.join("/"));
        found.push(ModuleGraph::new(&name, &modules, &uses, |module| below(folder, module)));
    }
    found
}

/// Returns the top module that a module belongs to; none for the library and the command, which tie them together.
fn top_module(module: &[String]) -> Option<String> {
    let parts: Vec<_> = module.iter().map(String::as_str).collect();
    match parts[..] {
        [] | ["lib" | "main"] => None,
        ["resources", resource, "http", ..] => Some(format!("resources/{resource}/http")),
        ["resources", "shared", part, ..] => Some(format!("resources/shared/{part}")),
        ["resources", resource, ..] => Some(format!("resources/{resource}")),
        [node, ..] => Some(node.to_owned()),
    }
}

/// The file whose macro passes the names of resources on, as `$resource` and `$log`.
pub const LIST: &str = "resources/shared/list.rs";

/// Returns the names that stand for the variable of a macro in a path.
fn names_of(variable: &str, sources: &[&Source]) -> Vec<String> {
    let list = sources.iter().find(|source| source.path == LIST);
    let text = list.map_or("", |list| list.code.as_str());
    let (start, end) = match variable {
        "$resource" => ("logged:", ";"),
        "$log" => ("log:", "}"),
        name => return vec![name.to_owned()],
    };
    let names = text.split_once(start).and_then(|(_, rest)| rest.split_once(end));
    names.map_or("", |(names, _)| names).split_whitespace().map(str::to_owned).collect()
}

/// Returns the paths for all names that the variables of macros in a path stand for.
fn expanded(path: &[String], sources: &[&Source]) -> Vec<Vec<String>> {
    let mut paths = vec![Vec::new()];
    for part in path {
        let names = names_of(part, sources);
        paths = paths
            .iter()
            .flat_map(|path| {
                names.iter().map(|name| [path.as_slice(), std::slice::from_ref(name)].concat())
            })
            .collect();
    }
    paths
}

fn uses(sources: &[&Source], modules: &BTreeSet<Vec<String>>) -> Vec<Use> {
    let mut found = Vec::new();
    for source in sources {
        let paths = source.module_paths().into_iter();
        let paths = paths
            .flat_map(|(at, path)| expanded(&path, sources).into_iter().map(move |one| (at, one)));
        for (at, path) in paths {
            let known = (1..=path.len()).rev().find(|length| modules.contains(&path[..*length]));
            let Some(length) = known else { continue };
            let place = format!("src/{}:{}: {}", source.path, source.line(at), path.join("::"));
            found.push(Use { from: source.module(), to: path[..length].to_vec(), place });
        }
    }
    found
}

impl ModuleGraph {
    fn new(
        folder: &str,
        modules: &BTreeSet<Vec<String>>,
        uses: &[Use],
        node: impl Fn(&[String]) -> Option<String>,
    ) -> Self {
        let mut found = Self { folder: folder.to_owned(), ..Self::default() };
        found.names.extend(modules.iter().filter_map(|module| node(module)));
        for Use { from, to, place } in uses {
            if let (Some(from), Some(to)) = (node(from), node(to))
                && from != to
            {
                found.uses.entry(from).or_default().entry(to).or_default().push(place.clone());
            }
        }
        found
    }

    /// Returns a shortest cycle with the places that make it, or `None` if there is no cycle.
    pub fn cycle(&self) -> Option<String> {
        let cycles = self.names.iter().filter_map(|node| self.way_back(node));
        let cycle = cycles.min_by_key(Vec::len)?;
        let mut text = format!("a cycle in {}: {}", self.folder, cycle.join(" -> "));
        for (from, to) in cycle.iter().zip(&cycle[1..]) {
            for place in &self.uses[*from][*to] {
                text.push_str("\n    ");
                text.push_str(place);
            }
        }
        Some(text)
    }

    /// Returns a shortest way from a module over others back to itself.
    fn way_back<'r>(&'r self, node: &'r str) -> Option<Vec<&'r str>> {
        let mut ways = VecDeque::from([vec![node]]);
        let mut known = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in self.uses.get(*way.last()?).into_iter().flat_map(BTreeMap::keys) {
                let longer = [way.as_slice(), &[next.as_str()]].concat();
                if next == node {
                    return Some(longer);
                }
                if known.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }

    /// Returns the modules in layers: each uses only modules in the layers before its own. Call it if there is no cycle.
    pub fn layers(&self) -> Vec<Vec<&str>> {
        let mut left: BTreeSet<_> = self.names.iter().map(String::as_str).collect();
        let mut layers = Vec::new();
        while !left.is_empty() {
            let is_free = |node: &&str| {
                let mut used = self.uses.get(*node).into_iter().flat_map(BTreeMap::keys);
                !used.any(|used| left.contains(used.as_str()))
            };
            let layer: Vec<_> = left.iter().copied().filter(is_free).collect();
            assert!(!layer.is_empty(), "the modules have a cycle");
            left.retain(|node| !layer.contains(node));
            layers.push(layer);
        }
        layers
    }
}

/// Returns the cycles of small sources, given by path and text.
fn cycles(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    graphs(&sources).iter().filter_map(ModuleGraph::cycle).collect()
}

#[test]
fn cycle_is_found_by_any_path_and_shown_with_its_locations() {
    let found = cycles(&[
        ("lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
        ("a.rs", "use crate::b::B;\n"),
        ("b/mod.rs", "// crate::a\nmod c;\n"),
        ("b/c.rs", "\nfn f() { crate::a::g() }\n"),
    ]);
    assert_eq!(
        found,
        ["a cycle in src: a -> b -> a\n    src/a.rs:1: b::B\n    src/b/c.rs:2: a::g"]
    );
    let mods = ("x/mod.rs", "mod a;\nmod b;\nmod c;\nuse a::A;\n");
    for (a, b, c) in [
        ("use super::b::{self};", "use super::c::C;", "use crate::x::{a::A, b};"),
        ("use super::{b, X};", "use super::{c};", "use super::a;"),
        ("fn f() -> super::b::B {}", "use crate::x::c;", "use self::super::a::A;"),
    ] {
        let found = cycles(&[mods, ("x/a.rs", a), ("x/b.rs", b), ("x/c.rs", c)]);
        assert_eq!(found.len(), 1, "{a}");
        assert!(found[0].starts_with("a cycle in src/x: "), "{}", found[0]);
    }
}

#[test]
fn folders_tests_and_the_list_of_resources_are_no_part_of_a_cycle_by_themselves() {
    let found = cycles(&[
        ("x/mod.rs", "mod a;\nuse a::A;\n"),
        ("x/a.rs", "use super::X;\nuse crate::y;\n"),
        ("y.rs", "#[cfg(test)]\nmod tests {\n    use crate::x;\n}\n"),
        ("y/tests.rs", "use crate::x;\n"),
    ]);
    assert_eq!(found, [""; 0]);
    let list = (LIST, "$then! { logged: users\n teams; log: activity }\n");
    let records = ("resources/records.rs", "const R: () = crate::resources::$resource::RECORDS;\n");
    let users = ("resources/users/mod.rs", "");
    let teams = ("resources/teams/mod.rs", "use crate::resources::records;\n");
    let activity = ("resources/activity/mod.rs", "use crate::resources::records;\n");
    assert_eq!(cycles(&[list, records, users, activity]), [""; 0]);
    let found = cycles(&[list, records, users, teams, activity]);
    assert!(found[0].ends_with("src/resources/teams/mod.rs:1: resources::records"), "{found:?}");
    let list = ("resources/mod.rs", "pub mod users;\nfn all() { users::User; }\n");
    let user = ("resources/users/mod.rs", "use crate::resources::all;\n");
    assert_eq!(cycles(&[list, user]).len(), 1);
}

#[test]
fn rules_and_handlers_are_modules_of_their_own() {
    let rules = ("resources/users/mod.rs", "use crate::store;\n");
    let (app, store) = (("app.rs", "use crate::resources::users;\n"), ("store.rs", ""));
    let handlers = ("resources/users/http.rs", "use crate::app;\nuse super::User;\n");
    let found = graphs(&[rules, handlers, app, store].map(|(path, text)| Source::new(path, text)));
    assert_eq!(found[0].cycle(), None);
    let layers = found[0].layers().concat();
    assert_eq!(layers, ["store", "resources/users", "app", "resources/users/http"]);
    let back = ("resources/users/mod.rs", "use crate::store;\nuse self::http::body;\n");
    assert_eq!(cycles(&[back, handlers, app, store]).len(), 1);
}
