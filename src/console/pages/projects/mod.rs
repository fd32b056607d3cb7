//! The projects of an organization: their list, and a new project; the settings of a project, its token, and its deletion.

mod access;

use super::dashboards::dashboard_choices;
use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/organizations/{organization_id}/projects/", &list);
    pages.form("/console/organizations/{organization_id}/projects/new/", &new);
    pages.page("/console/projects/{project_id}/settings/", &show_settings, &|request| {
        save(request, &SETTINGS_FORM, "")
    });
    pages.post("/console/projects/{project_id}/settings/access/", &|request| {
        save(request, &ACCESS_FORM, "access/")
    });
    pages.form("/console/projects/{project_id}/settings/token/", &reset_token);
    pages.form("/console/projects/{project_id}/settings/delete/", &delete);
    pages.page("/console/projects/{project_id}/access/", &access::show, &access::apply);
}

#[derive(Template)]
#[template(path = "console/pages/projects/list.html")]
struct ProjectsPage {
    base: String,
    list: ListPage<Project>,
    may_create: bool,
}

async fn list(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let base = format!("/console/organizations/{organization}/projects/");
    let list = ListSpec::new(format!("/api/organizations/{organization}/projects/"), &base);
    let list = list_page(&request, list).await.read()?;
    let create = Operation::new(CREATE, [&organization]);
    let page = ProjectsPage { base, list, may_create: request.api.may(&create).await? };
    Feedback::default().show(&request, "Projects", &page).await
}

const CREATE: &str = "organizations_projects_create";

const TIME_ZONE: Input = Input::new("timezone")
    .label("Time zone")
    .hint("A name of the IANA database, for example Europe/Berlin.");

const FORM: FormSpec = FormSpec::create(
    "Create the project",
    &[
        Input::new("name").label("Name").required(),
        TIME_ZONE,
        Input::new("is_demo").label("Demo project").hint("The project holds demo data."),
    ],
);

/// For members who may create demo projects only.
const DEMO_FORM: FormSpec = FormSpec::create(
    "Create the demo project",
    &[
        Input::new("name").label("Name").hint("Members create demo projects only.").required(),
        TIME_ZONE,
    ],
);

/// Returns whether the session may create demo projects only, and why it may create none.
async fn creatable(request: &SignedIn, organization: &str) -> Result<(bool, Option<String>)> {
    let try_with = async |body: Value| {
        let write = Write::new(CREATE, [organization]).body(body);
        request.api.refusal(&write).await
    };
    let refusal = try_with(json!({})).await?;
    let is_demo = refusal.is_some() && try_with(json!({ "is_demo": true })).await?.is_none();
    Ok((is_demo, refusal.filter(|_| !is_demo)))
}

async fn new(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let list = format!("/console/organizations/{organization}/projects/");
    let (create, action) = (Operation::new(CREATE, [&organization]), format!("{list}new/"));
    let (is_demo, refusal) = creatable(&request, &organization).await?;
    let spec = if is_demo { &DEMO_FORM } else { &FORM };
    let form = if request.visit.sends_form() {
        let mut sent = spec.sent(&request, create, &action)?;
        if is_demo {
            sent.body.insert("is_demo".to_owned(), json!(true));
        }
        match sent.send(&request).await? {
            Ok(project) => {
                let settings = page_of("/console/projects/", &project) + "settings/";
                return finish(&settings, "project-created");
            }
            Err(form) => *form,
        }
    } else {
        let form = spec.empty(&request, &create, &action)?;
        form.with_value("timezone", &json!("UTC")).refused_for(refusal)
    };
    FormPage::new("New project", form).below(list, "Projects").show(&request).await
}

const UPDATE: &str = "projects_partial_update";

fn path(project: &str) -> String {
    format!("/console/projects/{project}/settings/")
}

fn update(project: &str) -> Operation {
    Operation::new(UPDATE, [project])
}

#[derive(Template)]
#[template(path = "console/pages/projects/settings.html")]
struct SettingsPage {
    base: String,
    project: Project,
    form: Form,
    access: Form,
    may_reset: bool,
    may_delete: bool,
}

/// Answers a form of the page. `rest` ends the path that the browser sends it to.
async fn save(request: SignedIn, form: &'static FormSpec, rest: &str) -> PageResult {
    let project = request.visit.project_id()?;
    let base = path(&project);
    let sent = form.sent(&request, update(&project), &format!("{base}{rest}"))?;
    submit(request, sent, &base, "settings-saved", &show_settings).await
}

async fn show_settings(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let project = &request.visit.project_id()?;
    let found = request.api.get_versioned(&format!("/api/projects/{project}/")).await?;
    let (base, operation) = (path(project), update(project));
    let form = SETTINGS_FORM.shown(&request, &operation, &base, &found, &mut feedback)?;
    let action = format!("{base}access/");
    let access = ACCESS_FORM.shown(&request, &operation, &action, &found, &mut feedback)?;
    let about = Project::deserialize(&found.body).map_err(Error::internal)?;
    let change = |body| Write::new(UPDATE, [project]).body(body);
    let refusal = request.api.refusal(&change(json!({}))).await?;
    // Every member may send the value that the project has.
    let other = json!({ "access_control": !about.access_control });
    let access_refusal = request.api.refusal(&change(other)).await?;
    let may = async |id| request.api.may(&Operation::new(id, [project])).await;
    let page = SettingsPage {
        form: offer_dashboards(&request, project, form).await?.refused_for(refusal),
        access: access.refused_for(access_refusal),
        may_reset: may("projects_reset_token_partial_update").await?,
        may_delete: may("projects_destroy").await?,
        base,
        project: about,
    };
    feedback.show(&request, "Project settings", &page).await
}

/// Offers the dashboards of the project by name, if there are few.
async fn offer_dashboards(request: &SignedIn, project: &str, form: Form) -> Result<Form> {
    let found = dashboard_choices(request, project).await?;
    let Some(found) = found.filter(List::is_complete) else { return Ok(form) };
    let named = found.results.iter();
    let named = named.map(|one| Choice::new(one.id, format!("{} ({})", one.name(), one.id)));
    let choices = std::iter::once(Choice::new(Value::Null, "None")).chain(named);
    Ok(form.with_choices("primary_dashboard", choices.collect()))
}

async fn reset_token(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let back = path(&project);
    let text = "The project gets a new token at once. Clients that send the old one have to be configured again.";
    let write = Write::new("projects_reset_token_partial_update", [&project]);
    let confirm = Confirm::new("Replace the project token?", text, "Replace the token", write);
    confirm.respond(&request, &back, &with_notice(&back, "token-replaced")).await
}

async fn delete(request: SignedIn) -> PageResult {
    let id = request.visit.project_id()?;
    // The organization of a deleted project is unknown.
    let done = with_notice("/console/", "project-deleted");
    let project = request.api.get(&format!("/api/projects/{id}/")).await.read::<Project>();
    let project = project.map_err(|error| answered_before(&request, error, &done))?;
    let question = format!("Delete the project {}?", project.name);
    let text = "The project and everything in it disappear at once: dashboards, insights, batch exports and public links. This cannot be undone.";
    let write = Write::new("projects_destroy", [&id]);
    let confirm = Confirm::new(&question, text, "Delete the project", write).by_name(project.name);
    let done = format!("/console/organizations/{}/projects/", project.organization);
    let done = with_notice(&done, "project-deleted");
    confirm.respond(&request, &path(&id), &done).await
}

/// The text below an object that an update merges with the stored one.
const MERGED: &str = "Members that you remove keep their values: the service merges the object. To clear all of it, leave it empty.";

/// All settings except who sees the project.
const SETTINGS_FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("name").label("Name").heading("General"),
        Input::new("product_description"),
        Input::new("app_urls"),
        TIME_ZONE,
        Input::new("week_start_day").label("First day of the week").choices(&[
            ("", "Not set"),
            ("0", "Sunday"),
            ("1", "Monday"),
        ]),
        Input::new("primary_dashboard"),
        Input::new("slack_incoming_webhook"),
        Input::new("is_demo"),
        Input::new("autocapture_opt_out").heading("Autocapture"),
        Input::new("data_attributes"),
        Input::new("heatmaps_opt_in"),
        Input::new("autocapture_web_vitals_opt_in"),
        Input::new("autocapture_web_vitals_allowed_metrics"),
        Input::new("autocapture_exceptions_opt_in"),
        Input::new("autocapture_exceptions_errors_to_ignore"),
        Input::new("session_recording_opt_in").heading("Recordings"),
        Input::new("recording_domains"),
        Input::new("session_recording_sample_rate"),
        Input::new("session_recording_minimum_duration_milliseconds"),
        Input::new("capture_console_log_opt_in"),
        Input::new("capture_performance_opt_in"),
        Input::new("session_recording_linked_flag"),
        Input::new("session_recording_network_payload_capture_config"),
        Input::new("session_replay_config").hint(MERGED),
        Input::new("path_cleaning_filters").heading("Web"),
        Input::new("cookieless_server_hash_mode").label("Visitors without cookies").choices(&[
            ("", "Not set"),
            ("0", "Are not distinguished"),
            ("1", "Are distinguished by a stateless hash"),
            ("2", "Are distinguished by a stateful hash"),
        ]),
        Input::new("inject_web_apps"),
        Input::new("flags_persistence_default"),
        Input::new("surveys_opt_in").heading("Surveys"),
        Input::new("survey_config").hint(MERGED),
        Input::new("anonymize_ips").heading("Data"),
        Input::new("test_account_filters"),
        Input::new("test_account_filters_default_checked")
            .label("The filters of the team's own traffic are on by default"),
        Input::new("person_display_name_properties"),
        Input::new("correlation_config"),
        Input::new("live_events_columns"),
        Input::new("modifiers"),
        Input::new("completed_snippet_onboarding").heading("Onboarding and others"),
        Input::new("has_completed_onboarding_for"),
        Input::new("extra_settings"),
    ],
);

/// The setting that decides who sees the project.
const ACCESS_FORM: FormSpec = FormSpec::change(
    "Save access",
    &[Input::new("access_control")
        .label("Private project")
        .hint("Other than admins, only members with access see a private project.")],
)
.with_id("access");
