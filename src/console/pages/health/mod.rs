//! The state of the service, for sessions of the operator. The page changes nothing: it shows the commands that do.

use askama::Template;
use axum::http::Method;
use bytesize::ByteSize;

use crate::console::assets::icon;
use crate::console::layout::{self, Frame, In, Section};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::state::Health;

const HEALTH: &str = "/console/health/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.operator(Method::GET, HEALTH, page);
}

/// Commands of the operator, each with what it does.
const COMMANDS: &[(&str, &str)] = &[
    ("Back up the data file", "steward backup copy.redb"),
    ("Check the data file for damage", "steward check"),
    ("Return unused space to the file system", "steward compact"),
    ("Create a user", "steward user create --email you@example.com"),
    ("Log every request", "steward log info,request=debug"),
];

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
}

fn size(bytes: u64) -> String {
    ByteSize::b(bytes).to_string()
}

async fn page(request: SignedIn) -> PageResult {
    let app = &request.visit.app;
    let health = app.health().await?;
    let frame = Frame::load(&request, Section::Health, In::Nothing).await?;
    let page = HealthPage {
        version: env!("CARGO_PKG_VERSION"),
        file: size(health.file_bytes),
        unused: health.unused_bytes.map(size),
        memory: health.memory_bytes.map(size),
        health,
        has_backups: app.config().backups.backup_dir.is_some(),
        has_scrubs: app.config().scrub.is_some(),
    };
    Ok(layout::page(&frame.titled("Health of the service"), &page)?)
}
