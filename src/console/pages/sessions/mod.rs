//! The browsers that are signed in as the user, and a button to end each session.

use super::prelude::*;

const LIST: &str = "/console/sessions/";

const API: &str = "/api/users/@me/sessions/";
const DESTROY: &str = "users_sessions_destroy";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(LIST, list);
    pages.post("/console/sessions/{id}/end/", end);
}

/// A session, as the API describes it.
#[derive(Deserialize)]
struct Session {
    id: String,
    created_at: String,
    last_used_at: String,
    expires_at: String,
    user_agent: String,
    ip_address: String,
    source: String,
    key: Option<Key>,
    current: bool,
}

/// The key that a session is bound to.
#[derive(Deserialize)]
struct Key {
    label: String,
    mask_value: String,
}

impl Session {
    /// Names the browser and the system of a `User-Agent` that is known.
    fn browser(&self) -> String {
        let find = |names: &[(&str, &'static str)]| {
            names.iter().find(|(part, _)| self.user_agent.contains(part)).map(|(_, name)| *name)
        };
        // The order matters: most browsers name others too.
        let browser = find(&[
            ("Edg/", "Edge"),
            ("OPR/", "Opera"),
            ("Firefox/", "Firefox"),
            ("Chrome/", "Chrome"),
            ("Safari/", "Safari"),
        ]);
        let system = find(&[
            ("Android", "Android"),
            ("iPhone", "iPhone"),
            ("iPad", "iPad"),
            ("Windows", "Windows"),
            ("Mac OS", "macOS"),
            ("Linux", "Linux"),
        ]);
        match (browser, system) {
            (Some(browser), Some(system)) => format!("{browser} on {system}"),
            (Some(browser), None) => browser.to_owned(),
            _ if self.user_agent.trim().is_empty() => "Unknown browser".to_owned(),
            _ => excerpt(&self.user_agent),
        }
    }
}

#[derive(Template)]
#[template(path = "console/pages/sessions/page.html")]
struct SessionsPage {
    sessions: Vec<Session>,
    /// Whether the session may end sessions.
    may_end: bool,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let sessions: Vec<Session> = request.api.get(API).await?;
    let command = Command::get(&request.visit, API);
    let own = sessions.first().map_or("", |session| &session.id);
    let may_end = request.api.may(&Operation::new(DESTROY, [own])).await?;
    let page = SessionsPage { sessions, may_end, command };
    Feedback::default().show(&request, "Sessions", &page).await
}

async fn end(request: SignedIn) -> PageResult {
    let id = request.visit.parameter("id");
    request.api.write(&Write::new(DESTROY, [&id])).await?;
    Ok(see_other(LIST)?)
}
