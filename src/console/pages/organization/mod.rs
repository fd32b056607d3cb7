//! The settings of an organization, its deletion, and a new organization.

use super::prelude::*;

const NEW: &str = "/console/organizations/new/";

const UPDATE: &str = "organizations_partial_update";

const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("name").label("Name").heading("General"),
        Input::new("logo_media_id").label("Logo").hint("The id of an uploaded logo."),
        Input::new("members_can_invite").label("Members may invite").heading("Members"),
        Input::new("members_can_use_personal_api_keys")
            .label("Members may use API keys")
            .hint("Otherwise API keys of plain members cannot access the organization."),
        Input::new("default_role_id").label("Default role").hint("Users get it when they join."),
        Input::new("is_member_join_email_enabled")
            .label("Mail admins and owners when a user joins"),
        Input::new("enforce_2fa")
            .label("Members need a second factor")
            .heading("Stored for programs"),
        Input::new("is_ai_data_processing_approved"),
    ],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/settings/", &settings, &save);
    pages.form("/console/organizations/{organization_id}/settings/delete/", &delete);
    pages.form(NEW, &new);
}

fn path(organization: &str) -> String {
    format!("/console/organizations/{organization}/settings/")
}

#[derive(Template)]
#[template(path = "console/pages/organization/page.html")]
struct OrganizationPage {
    id: String,
    base: String,
    organization: Organization,
    form: Form,
    may_delete: bool,
}

async fn save(request: SignedIn) -> PageResult {
    let id = request.visit.organization_id()?;
    let sent = FORM.sent(&request, Operation::new(UPDATE, [&id]), &path(&id))?;
    submit(request, sent, &path(&id), "settings-saved", &settings).await
}

async fn settings(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let id = &request.visit.organization_id()?;
    let (base, update) = (path(id), Operation::new(UPDATE, [id]));
    let found = request.api.get_versioned(&format!("/api/organizations/{id}/")).await?;
    let form = FORM.shown(&request, &update, &base, &found, &mut feedback)?;
    let refusal = request.api.refusal(&Write::new(UPDATE, [id]).body(json!({}))).await?;
    let page = OrganizationPage {
        id: id.clone(),
        organization: Organization::deserialize(&found.body).map_err(Error::internal)?,
        form: offer_roles(&request, id, form).await?.refused_for(refusal),
        may_delete: request.api.may(&Operation::new("organizations_destroy", [id])).await?,
        base,
    };
    feedback.show(&request, "Organization settings", &page).await
}

/// Offers the roles by name, if the session may read them.
async fn offer_roles(request: &SignedIn, organization: &str, form: Form) -> Result<Form> {
    let path = format!("/api/organizations/{organization}/roles/?limit=500&basic=true");
    let Some(found) = request.api.get(&path).await.read_if_allowed::<List<Role>>()? else {
        return Ok(form);
    };
    let named = found.results.into_iter().map(|role| Choice::new(role.id, role.name));
    let choices = std::iter::once(Choice::new(Value::Null, "None")).chain(named);
    Ok(form.with_choices("default_role_id", choices.collect()))
}

async fn delete(request: SignedIn) -> PageResult {
    let id = request.visit.organization_id()?;
    let done = with_notice("/console/", "organization-deleted");
    let found = request.api.get(&format!("/api/organizations/{id}/")).await.read::<Organization>();
    let found = found.map_err(|error| answered_before(&request, error, &done))?;
    let question = format!("Delete the organization {}?", found.name);
    let text = "The organization and everything in it disappear at once: projects, dashboards, members, invites, roles and domains. This cannot be undone.";
    let write = Write::new("organizations_destroy", [&id]);
    let confirm = Confirm::new(&question, text, "Delete the organization", write);
    confirm.by_name(found.name).respond(&request, &path(&id), &done).await
}

const CREATE: &str = "organizations_create";

const NEW_FORM: FormSpec = FormSpec::create(
    "Create the organization",
    &[Input::new("name")
        .label("Name")
        .hint("The organization starts with one project. You become its owner.")],
);

async fn new(request: SignedIn) -> PageResult {
    let create = Operation::new(CREATE, []);
    let form = if request.visit.sends_form() {
        match NEW_FORM.sent(&request, create, NEW)?.send(&request).await? {
            Ok(organization) => {
                let settings = page_of("/console/organizations/", &organization) + "settings/";
                return finish(&settings, "organization-created");
            }
            Err(form) => *form,
        }
    } else {
        let example = Write::new(CREATE, []).body(json!({ "name": "New organization" }));
        let refusal = request.api.refusal(&example).await?;
        NEW_FORM.empty(&request, &create, NEW)?.refused_for(refusal)
    };
    FormPage::new("New organization", form).show(&request).await
}
