//! Which tests exist.

use std::fs;
use std::path::Path;

/// Whether a test binary has a test of this name, in a module that is compiled.
pub fn is_test(name: &str) -> bool {
    ["it", "system", "chaos"].iter().any(|binary| is_test_of(binary, name))
}

fn is_test_of(binary: &str, name: &str) -> bool {
    let Some((module, test)) = name.rsplit_once("::") else { return false };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(binary);
    let read = |file: String| fs::read_to_string(folder.join(file)).ok();
    let source = |module: &[&str]| match module.join("/") {
        at if at.is_empty() => read("main.rs".to_owned()),
        at => read(format!("{at}.rs")).or_else(|| read(format!("{at}/mod.rs"))),
    };
    let parts: Vec<&str> = module.split("::").collect();
    let is_built = parts.iter().enumerate().all(|(at, part)| {
        let is_declared = |line: &str| line.trim_start_matches("pub ") == format!("mod {part};");
        source(&parts[..at]).is_some_and(|parent| parent.lines().any(is_declared))
    });
    let source = source(&parts).unwrap_or_default();
    // The attributes of the function follow the last empty line before it.
    let item = source
        .split_once(&format!("fn {test}("))
        .and_then(|(before, _)| before.rsplit("\n\n").next());
    let is_marked =
        item.is_some_and(|item| item.contains("#[test]") || item.contains("#[tokio::test"));
    is_built && is_marked
}

/// Whether a text in backticks has the form of a test's name.
pub fn means_a_test(name: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    name.contains("::") && name.split("::").all(is_word)
}
