//! Description and tags of a dashboard, each with a small form on the page of the dashboard.

use axum::http::Method;

use crate::console::api::Versioned;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::with_notice;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Result;

const DESCRIPTION: &str = "/console/projects/{project_id}/dashboards/{id}/description/";
const TAGS: &str = "/console/projects/{project_id}/dashboards/{id}/tags/";

const UPDATE: &str = "dashboards_partial_update";

/// A property that the page edits in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Description,
    Tags,
}

impl Part {
    /// Returns the name of the property, which is also the end of the path and the id of the form.
    const fn name(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Tags => "tags",
        }
    }

    const fn spec(self) -> &'static FormSpec {
        const OF_DESCRIPTION: FormSpec =
            FormSpec::change("Save", &[Input::new("description").label("Description").area()]);
        const OF_TAGS: FormSpec = FormSpec::change("Save", &[Input::new("tags").label("Tags")]);
        match self {
            Self::Description => &OF_DESCRIPTION,
            Self::Tags => &OF_TAGS,
        }
    }
}

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, DESCRIPTION, |request| save(request, Part::Description));
    pages.signed_in(Method::POST, TAGS, |request| save(request, Part::Tags));
}

async fn save(request: SignedIn, part: Part) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let action = object.page(&format!("{}/", part.name()));
    let sent = part.spec().sent(&request, object.operation(UPDATE), &action)?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&object.page(""), "dashboard-saved"))?),
        Outcome::Again(form) => {
            let feedback = super::Feedback { sent: Some(Sent { part, form }), refusal: None };
            super::show(&request, object, feedback).await
        }
    }
}

/// A form that was sent and has to be corrected.
pub(super) struct Sent {
    part: Part,
    form: Box<Form>,
}

impl Sent {
    pub(super) const fn status(&self) -> axum::http::StatusCode {
        self.form.status()
    }
}

/// The forms on the page.
pub(super) struct InPlace {
    pub(super) description: Form,
    pub(super) tags: Form,
    /// The property whose form was sent and has to be corrected. Its form is open.
    open: Option<Part>,
}

impl InPlace {
    /// Returns the forms, filled from the dashboard. A form that was sent stays as it was sent.
    ///
    /// # Errors
    /// 500 if the API has no such operation.
    pub(super) fn of(
        request: &SignedIn,
        object: &ObjectPath,
        dashboard: &Versioned,
        sent: Option<Sent>,
    ) -> Result<Self> {
        let form = |part: Part| {
            let action = object.page(&format!("{}/", part.name()));
            let form = part.spec().filled(request, &object.operation(UPDATE), &action, dashboard);
            form.map(|form| form.with_id(part.name()))
        };
        let (description, tags) = (form(Part::Description)?, form(Part::Tags)?);
        let mut forms = Self { description, tags, open: None };
        if let Some(Sent { part, form }) = sent {
            let form = form.with_id(part.name());
            match part {
                Part::Description => forms.description = form,
                Part::Tags => forms.tags = form,
            }
            forms.open = Some(part);
        }
        Ok(forms)
    }

    pub(super) fn opens_description(&self) -> bool {
        self.open == Some(Part::Description)
    }

    pub(super) fn opens_tags(&self) -> bool {
        self.open == Some(Part::Tags)
    }
}
