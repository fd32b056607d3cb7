//! The state of the service, for sessions of the operator. The page changes nothing: it shows the commands that do.

use bytesize::ByteSize;

use crate::app::Health;
use crate::console::layout::quote;

use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.operator("/console/health/", &page);
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
    /// The path of the data file, which the commands act on, for a shell.
    path: String,
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
        path: quote(&app.store().path().to_string_lossy()),
    };
    Feedback::default().show(&request, "Health of the service", &page).await
}
