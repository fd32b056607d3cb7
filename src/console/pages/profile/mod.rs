//! The user's own account, and the browsers that are signed in as the user, with a button to end each session.

use super::prelude::*;

const PROFILE: &str = "/console/profile/";

const UPDATE: &str = "users_partial_update";

const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("first_name").label("Given name"),
        Input::new("last_name").label("Family name"),
        Input::new("role_at_organization").label("Role").hint("Your role in the organization."),
        Input::new("theme_mode")
            .label("Theme")
            .hint("Without one, the console follows your system."),
        Input::new("toolbar_mode").heading("Stored for programs"),
        Input::new("anonymize_data"),
        Input::new("notification_settings").label("Notifications"),
        Input::new("events_column_config"),
        Input::new("has_seen_product_intro_for"),
        Input::new("hedgehog_config"),
    ],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form(PROFILE, &profile);
    pages.get(LIST, &list);
    pages.post("/console/sessions/{id}/end/", &end);
}

async fn profile(request: SignedIn) -> PageResult {
    let update = Operation::new(UPDATE, []);
    let form = if request.visit.sends_form() {
        match FORM.sent(&request, update, PROFILE)?.send(&request).await? {
            Ok(_) => return finish(PROFILE, "profile-saved"),
            Err(form) => *form,
        }
    } else {
        let user = request.api.get_versioned("/api/users/@me/").await?;
        let form = FORM.filled(&request, &update, PROFILE, &user)?;
        let nothing = Write::new(UPDATE, []).body(json!({}));
        form.refused_for(request.api.refusal(&nothing).await?)
    };
    let lede =
        "What others see of you, and what programs that show the workspace remember for you.";
    FormPage { lede, ..FormPage::new("Profile", form) }.show(&request).await
}

const LIST: &str = "/console/sessions/";

const API: &str = "/api/users/@me/sessions/";
const DESTROY: &str = "users_sessions_destroy";

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
#[template(path = "console/pages/profile/sessions.html")]
struct SessionsPage {
    sessions: Vec<Session>,
    /// Whether the session may end sessions.
    may_end: bool,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let sessions: Vec<Session> = request.api.get(API).await.read()?;
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
