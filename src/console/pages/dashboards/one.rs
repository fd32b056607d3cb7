//! One dashboard: its tiles on the grid that their layouts describe, and the forms of its description and tags.

use crate::console::model::{Dashboard, Rights};
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::fair::low_priority::{Priority, run_low_priority};

use super::tile::{self, Card};
use super::tiles;

const DESCRIPTION: &str = "/console/projects/{project_id}/dashboards/{id}/description/";
const TAGS: &str = "/console/projects/{project_id}/dashboards/{id}/tags/";

/// With more tiles than this, the page is rendered on a thread of its own.
const MAX_INLINE_TILES: usize = 16;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/projects/{project_id}/dashboards/{id}/", page);
    pages.post("/console/projects/{project_id}/dashboards/{id}/tiles/", change_tile);
    pages.post(DESCRIPTION, |request| save(request, Part::Description));
    pages.post(TAGS, |request| save(request, Part::Tags));
}

/// The actions that the page offers.
#[expect(clippy::struct_excessive_bools, reason = "each is a control of its own")]
struct Offers {
    edit: bool,
    duplicate: bool,
    share: bool,
    access: bool,
    activity: bool,
    /// The pages of insights.
    insights: bool,
}

impl Offers {
    async fn of(request: &SignedIn, object: &ObjectPath, rights: &Rights) -> Result<Self> {
        let may_write = DASHBOARD.may_write(request, &object.tenant).await?;
        Ok(Self {
            edit: may_write && rights.may_edit(),
            duplicate: DASHBOARD.may_create(request, &object.tenant).await?,
            share: request.api.may(&object.operation("dashboards_sharing_retrieve")).await?,
            access: request.api.may(&object.operation("dashboards_access_list")).await?,
            activity: request
                .api
                .may(&Operation::new("activity_log_list", [&object.tenant]))
                .await?,
            insights: request
                .api
                .may(&Operation::new("insights_retrieve", [&object.tenant, "0"]))
                .await?,
        })
    }
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/one.html")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct DashboardPage {
    title: String,
    object: ObjectPath,
    description: String,
    tags: Vec<String>,
    is_pinned: bool,
    is_restricted: bool,
    is_shared: bool,
    offers: Offers,
    /// Why the session may not edit, although its key may.
    reason: Option<String>,
    /// The forms of description and tags, if the session may edit.
    in_place: Option<InPlace>,
    cards: Vec<Card>,
    version: Option<String>,
    /// Whether the dashboard has changed since the page was opened whose action was refused.
    is_stale: bool,
    command: Command,
}

/// Returns the form that restores the tile that was just removed.
fn undo(request: &SignedIn, object: &ObjectPath) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let fields = vec![("only", format!("restore {id}"))];
    Some(Undo { action: object.page("tiles/"), fields })
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    show(&request, object, Feedback::default()).await
}

async fn change_tile(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    match tiles::apply(&request, &object).await? {
        Ok(done) => Ok(see_other(&done)?),
        Err(refusal) => {
            show(&request, object, Feedback { refusal: Some(refusal), sent: None }).await
        }
    }
}

/// The feedback of the page on a form that was sent.
#[derive(Default)]
struct Feedback {
    /// Why an action was refused.
    refusal: Option<Error>,
    sent: Option<Sent>,
}

/// Shows the dashboard, and what became of a form.
async fn show(request: &SignedIn, object: ObjectPath, feedback: Feedback) -> PageResult {
    let Feedback { refusal, sent } = feedback;
    let path = object.api("");
    let versioned = request.api.get_versioned(&path).await?;
    let found: Dashboard = versioned.read()?;
    let offers = Offers::of(request, &object, &found.rights).await?;
    let frame = object.frame(request).await?;
    let command = Command::get(&request.visit, &path);
    let name = found.name().to_owned();
    let is_long = found.tiles.len() > MAX_INLINE_TILES;
    let is_stale = refusal.as_ref().is_some_and(|refusal| refusal.status() == 412);
    let refusal = refusal.filter(|_| !is_stale);
    let frame = frame.titled(name).with_undo(undo(request, &object)).with_refusal(refusal);
    let status = sent.as_ref().map(Sent::status);
    let is_editable = offers.edit || sent.is_some();
    let in_place =
        is_editable.then(|| InPlace::of(request, &object, &versioned, sent)).transpose()?;
    let version = versioned.version;
    let render = move || {
        let style = tile::grid_style(&found.tiles);
        let is_restricted = found.is_restricted();
        let page = DashboardPage {
            title: frame.title.clone(),
            object,
            description: found.description.trim().to_owned(),
            tags: found.tags,
            is_pinned: found.pinned,
            is_restricted,
            is_shared: found.is_shared,
            reason: DASHBOARD.reason(&found.rights),
            offers,
            in_place,
            cards: tile::cards(found.tiles),
            version,
            is_stale,
            command,
        };
        layout::page_with_style(&frame, &page, &style)
    };
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    let mut page = page?;
    if let Some(status) = is_stale.then_some(StatusCode::PRECONDITION_FAILED).or(status) {
        *page.status_mut() = status;
    }
    Ok(page)
}

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

async fn save(request: SignedIn, part: Part) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let action = object.page(&format!("{}/", part.name()));
    let sent = part.spec().sent(&request, object.operation(DASHBOARD.update), &action)?;
    match sent.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "dashboard-saved"),
        Outcome::Again(form) => {
            let feedback = Feedback { sent: Some(Sent { part, form }), refusal: None };
            show(&request, object, feedback).await
        }
    }
}

/// A form that was sent and has to be corrected.
struct Sent {
    part: Part,
    form: Box<Form>,
}

impl Sent {
    const fn status(&self) -> StatusCode {
        self.form.status()
    }
}

/// The forms on the page.
struct InPlace {
    description: Form,
    tags: Form,
    /// The property whose form was sent and has to be corrected. Its form is open.
    open: Option<Part>,
}

impl InPlace {
    /// Returns the forms, filled from the dashboard. A form that was sent stays as it was sent.
    fn of(
        request: &SignedIn,
        object: &ObjectPath,
        dashboard: &Versioned,
        sent: Option<Sent>,
    ) -> Result<Self> {
        let form = |part: Part| {
            let action = object.page(&format!("{}/", part.name()));
            let operation = object.operation(DASHBOARD.update);
            let form = part.spec().filled(request, &operation, &action, dashboard);
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

    fn opens_description(&self) -> bool {
        self.open == Some(Part::Description)
    }

    fn opens_tags(&self) -> bool {
        self.open == Some(Part::Tags)
    }
}
