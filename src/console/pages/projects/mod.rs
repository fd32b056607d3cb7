//! The projects of an organization: their list, and a new project.

mod access;
mod settings;

use super::form_page::FormPage;
use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/organizations/{organization_id}/projects/", list);
    pages.form("/console/organizations/{organization_id}/projects/new/", new);
    settings::routes(pages);
    access::routes(pages);
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
    let list = list_page(&request, list).await?;
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

/// The projects that the session may create.
enum Creatable {
    Any,
    Demo,
    /// Nothing, for this reason.
    None(String),
}

impl Creatable {
    /// Asks the API.
    async fn of(request: &SignedIn, organization: &str) -> Result<Self> {
        let try_with = async |body: Value| {
            let write = Write::new(CREATE, [organization]).body(body);
            request.api.refusal(&write).await
        };
        let Some(refusal) = try_with(json!({})).await? else { return Ok(Self::Any) };
        match try_with(json!({ "is_demo": true })).await? {
            None => Ok(Self::Demo),
            Some(_) => Ok(Self::None(refusal)),
        }
    }

    const fn form(&self) -> &'static FormSpec {
        match self {
            Self::Any | Self::None(_) => &FORM,
            Self::Demo => &DEMO_FORM,
        }
    }
}

async fn new(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let list = format!("/console/organizations/{organization}/projects/");
    let (create, action) = (Operation::new(CREATE, [&organization]), format!("{list}new/"));
    let creatable = Creatable::of(&request, &organization).await?;
    let form = if request.visit.sends_form() {
        let mut sent = creatable.form().sent(&request, create, &action)?;
        if let Creatable::Demo = creatable {
            sent.body.insert("is_demo".to_owned(), json!(true));
        }
        match sent.send(&request).await? {
            Outcome::Done(project) => {
                let settings = page_of("/console/projects/", &project) + "settings/";
                return finish(&settings, "project-created");
            }
            Outcome::Again(form) => *form,
        }
    } else {
        let form = creatable.form().empty(&request, &create, &action)?;
        let refusal = match creatable {
            Creatable::None(reason) => Some(reason),
            Creatable::Any | Creatable::Demo => None,
        };
        form.with_value("timezone", &json!("UTC")).refused_for(refusal)
    };
    FormPage::new("New project", form).below(list, "Projects").show(&request).await
}
