//! The state of the service, for sessions of the operator. The page changes nothing: it shows the commands that do.

use std::path::Path;

use bytesize::ByteSize;

use crate::app::Health;
use crate::console::layout::quote;

use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.operator("/console/health/", page);
}

/// Commands of the operator, each with what it does. They act on the data file of the service.
const COMMANDS: [(&str, &str); 5] = [
    ("Back up the data file", "backup copy.redb"),
    ("Check the data file for damage", "check"),
    ("Return unused space to the file system", "compact"),
    ("Create a user", "user create --email you@example.com"),
    ("Log every request", "log info,request=debug"),
];

/// Returns the commands to copy, each with what it does.
fn commands(file: &Path) -> Vec<(&'static str, String)> {
    let file = quote(&file.to_string_lossy());
    let text = |command: &str| format!("steward {command} --data {file}");
    COMMANDS.into_iter().map(|(what, command)| (what, text(command))).collect()
}

#[derive(Template)]
#[template(path = "console/pages/health/page.html")]
struct HealthPage {
    version: &'static str,
    health: Health,
    file: String,
    unused: Option<String>,
    memory: Option<String>,
    has_backups: bool,
    has_scrubs: bool,
    commands: Vec<(&'static str, String)>,
}

fn size(bytes: u64) -> String {
    ByteSize::b(bytes).to_string()
}

async fn page(request: SignedIn) -> PageResult {
    let app = &request.visit.app;
    let health = app.health().await?;
    let page = HealthPage {
        version: env!("CARGO_PKG_VERSION"),
        file: size(health.file_bytes),
        unused: health.unused_bytes.map(size),
        memory: health.memory_bytes.map(size),
        health,
        has_backups: app.config().backups.backup_dir.is_some(),
        has_scrubs: app.config().scrub.is_some(),
        commands: commands(app.store().path()),
    };
    Feedback::default().show(&request, "Health of the service", &page).await
}
