//! The text that `steward serve` prints when it is ready.

use std::path::PathBuf;

use serde_json::json;

use crate::bootstrap::CreatedWorkspace;
use crate::store::Place;

use super::failure::write_out;

/// The records that a first start created, and the file with the API key if one was written.
pub(super) struct FirstRun {
    pub(super) workspace: CreatedWorkspace,
    pub(super) key_file: Option<PathBuf>,
    pub(super) console: FirstVisit,
}

/// How the first user opens the console.
pub(super) enum FirstVisit {
    /// With this link.
    Link(String),
    /// With the link that a command prints.
    Command,
    /// There is no console.
    None,
}

/// Prints the URL of the service, and on a first start how to use the API key. Logs if that is not possible.
pub(super) fn print(place: &Place, url: &str, first: Option<&FirstRun>, json: bool) {
    let text = if json { to_json(place, url, first) } else { to_text(place, url, first) };
    if let Err(error) = write_out(text.as_bytes()) {
        tracing::warn!(%error, "the first lines could not be written to stdout");
    }
}

fn to_json(place: &Place, url: &str, first: Option<&FirstRun>) -> String {
    let key_file = first.and_then(|first| first.key_file.as_deref());
    let printed = first.filter(|first| first.key_file.is_none());
    let console_url = first.and_then(|first| match &first.console {
        FirstVisit::Link(link) => Some(link),
        FirstVisit::Command | FirstVisit::None => None,
    });
    let greeting = json!({
        "url": url,
        "data": place.to_string(),
        "organization_id": first.map(|first| first.workspace.organization_id),
        "project_id": first.map(|first| first.workspace.project_id),
        "api_key": printed.map(|first| &first.workspace.api_key),
        "api_key_file": key_file.map(|path| path.display().to_string()),
        "console_url": console_url,
    });
    format!("{greeting}\n")
}

fn to_text(place: &Place, url: &str, first: Option<&FirstRun>) -> String {
    let serving = format!("Steward is serving {url} from {place}\n");
    let Some(FirstRun { workspace, key_file, console }) = first else { return serving };
    let try_it = |key: &str| {
        format!(
            "Try it:\n\n  curl -H \"Authorization: Bearer {key}\" {url}/api/projects/{}/dashboards/\n\n",
            workspace.project_id
        )
    };
    let key = if let Some(path) = key_file {
        let path = &path.display().to_string();
        format!(
            "The first API key is in {path}. {}",
            try_it(&format!("$(cat {})", shell_quote(path)))
        )
    } else {
        let key = &workspace.api_key;
        format!("The first API key, shown only once:\n\n  {key}\n\n{}", try_it(key))
    };
    let console = match console {
        FirstVisit::Link(link) => {
            format!("Open the console with this link, once within five minutes:\n\n  {link}\n\n")
        }
        FirstVisit::Command => {
            let place = match place {
                Place::File(path) => {
                    format!(" --data {}", shell_quote(&path.display().to_string()))
                }
                // The URL may have a password.
                Place::Shared { .. } => String::new(),
            };
            format!("For a link that opens the console:\n\n  steward console{place}\n\n")
        }
        FirstVisit::None => String::new(),
    };
    format!("Created a new workspace in {place}.\n{key}{console}{serving}")
}

/// Quotes `text` as one word of a shell command.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
