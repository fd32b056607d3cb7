//! The style sheet, the script and the icons of the console. `VENDORED.md` names the files that others wrote.

use std::fmt;
use std::sync::LazyLock;

use askama::FastWritable;
use askama::filters::HtmlSafe;
use axum::response::Response;

use crate::base::error::Result;
use crate::http::assets::{Asset, Assets};

/// Where the files are.
pub(crate) const FOLDER: &str = "/console/assets/";

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let script = "text/javascript; charset=utf-8";
    Assets::new(
        FOLDER,
        vec![
            Asset::new(
                "console.css",
                "text/css; charset=utf-8",
                compact(include_str!("console.css")),
            ),
            Asset::new("console.js", script, compact(include_str!("console.js"))),
            Asset::new("idiomorph.min.js", script, include_str!("idiomorph.min.js")),
            Asset::new(ICONS, "image/svg+xml", include_str!("icons.svg")),
        ],
    )
});

const ICONS: &str = "icons.svg";

/// Returns a style sheet or a script without what browsers do not need: comments on lines of their own, and the space around
/// lines.
fn compact(text: &str) -> String {
    let is_comment =
        |line: &str| line.starts_with("//") || line.starts_with("/*") && line.ends_with("*/");
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !is_comment(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the response with a file, which may be cached permanently if `version` is the current one.
///
/// # Errors
/// 404 if there is no such file.
pub(super) fn response(name: &str, version: Option<&str>) -> Result<Response> {
    ASSETS.response(name, version)
}

/// Returns the URL of a file. An unknown name, which tests exclude, returns an empty text.
pub(crate) fn url(name: &str) -> String {
    ASSETS.url(name).unwrap_or_default()
}

/// An icon of the sprite, as HTML.
#[derive(Clone, Copy)]
pub(crate) struct Icon(&'static str);

/// Returns the icon with this name.
pub(crate) const fn icon(name: &'static str) -> Icon {
    Icon(name)
}

impl Icon {
    /// Returns the URL of the icon in the sprite.
    pub(crate) fn url(self) -> String {
        static SPRITE: LazyLock<String> = LazyLock::new(|| url(ICONS));
        format!("{}#{}", *SPRITE, self.0)
    }
}

impl fmt::Display for Icon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        write!(f, r#"<svg class="icon" aria-hidden="true"><use href="{url}"/></svg>"#)
    }
}

impl FastWritable for Icon {
    fn write_into(&self, out: &mut dyn fmt::Write, _: &dyn askama::Values) -> askama::Result<()> {
        Ok(write!(out, "{self}")?)
    }
}

impl HtmlSafe for Icon {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use regex::Regex;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Returns the text of all files of the console with this ending.
    fn sources(ending: &str) -> String {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console")];
        let mut text = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|is| is == ending) {
                    text += &std::fs::read_to_string(path).unwrap();
                }
            }
        }
        text
    }

    fn matches(pattern: &str, text: &str) -> BTreeSet<String> {
        let pattern = Regex::new(pattern).unwrap();
        pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
    }

    #[test]
    fn vendored_files_have_the_documented_hashes() {
        let page = include_str!("VENDORED.md");
        for (name, text) in [
            (ICONS, include_str!("icons.svg")),
            ("idiomorph.min.js", include_str!("idiomorph.min.js")),
        ] {
            let hash = Sha256::digest(text);
            let hash = hash.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
            assert!(page.contains(&format!("`{hash}`")), "{name} has the SHA-256 {hash}");
        }
    }

    #[test]
    fn files_are_served_without_comments() {
        let text = "/* A rule. */\na {\n  b: c; /* d */\n}\n\n// Says x.\nlet x = `//`;\n";
        assert_eq!(compact(text), "a {\nb: c; /* d */\n}\nlet x = `//`;");
    }

    #[test]
    fn sprite_contains_exactly_the_icons_that_pages_use() {
        let named = sources("html") + &sources("rs");
        let used = matches(r#"icon(?:\(|: )"([a-z0-9-]+)""#, &named);
        assert_eq!(used, matches(r#"<symbol id="([^"]+)""#, include_str!("icons.svg")));
    }

    #[test]
    fn pages_name_only_files_that_exist() {
        let names = matches(r#"assets::url\("([^"]+)"\)"#, &sources("html"));
        assert!(names.len() >= 3);
        for name in names {
            assert!(url(&name).starts_with(FOLDER), "{name}");
        }
    }
}
