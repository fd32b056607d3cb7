//! What `steward serve` prints once it serves.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::bootstrap::Made;

/// What a first run made, and where its key was written, if it was.
pub(super) struct FirstRun {
    pub(super) made: Made,
    pub(super) key_file: Option<PathBuf>,
}

/// Tells where the service is, and on a first run how to get in. A closed stdout is nobody's fault.
pub(super) fn greet(data: &Path, url: &str, first: Option<&FirstRun>, json: bool) {
    let text = if json { greeting_json(data, url, first) } else { greeting(data, url, first) };
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn greeting_json(data: &Path, url: &str, first: Option<&FirstRun>) -> String {
    let key_file = first.and_then(|first| first.key_file.as_deref());
    let printed = first.filter(|first| first.key_file.is_none());
    let greeting = json!({
        "url": url,
        "data": data.display().to_string(),
        "organization_id": first.map(|first| first.made.organization_id),
        "project_id": first.map(|first| first.made.project_id),
        "api_key": printed.map(|first| &first.made.api_key),
        "api_key_file": key_file.map(|path| path.display().to_string()),
    });
    format!("{greeting}\n")
}

fn greeting(data: &Path, url: &str, first: Option<&FirstRun>) -> String {
    let serving = format!("Steward is serving {url} from {}\n", data.display());
    let Some(FirstRun { made, key_file }) = first else { return serving };
    let try_it = |key: &str| {
        format!(
            "Try it:\n\n  curl -H \"Authorization: Bearer {key}\" {url}/api/projects/{}/dashboards/\n\n",
            made.project_id
        )
    };
    let key = if let Some(path) = key_file {
        let path = &path.display().to_string();
        format!("Its first key is in {path}. {}", try_it(&format!("$(cat {})", shell_word(path))))
    } else {
        let key = &made.api_key;
        format!("Its first key, shown only this once:\n\n  {key}\n\n{}", try_it(key))
    };
    format!("Made a new workspace in {}.\n{key}{serving}", data.display())
}

/// `text` as a shell reads one word.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
