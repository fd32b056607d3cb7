//! The list of dashboards.

use askama::Template;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::layout::{self, Command};
use crate::console::levels::is_restricted;
use crate::console::operation::Operation;
use crate::console::pages::bulk::{BulkFeedback, Refusals};
use crate::console::pages::chosen::Chosen;
use crate::console::pages::creation::may_create_dashboards;
use crate::console::pages::object::DASHBOARDS;
use crate::console::pages::people::People;
use crate::console::pages::shareable::{DASHBOARD, Rights};
use crate::console::pages::{dashboard_name, project_id};
use crate::console::paging::{ListPage, ListSpec, Paging, list_page};
use crate::console::person::Person;
use crate::console::registry::PageResult;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::filters::Filters;
use super::{change, undo};

/// A dashboard in the list.
#[derive(Deserialize)]
struct Dashboard {
    id: u64,
    name: Option<String>,
    description: String,
    pinned: bool,
    created_at: String,
    is_shared: bool,
    tags: Vec<String>,
    restriction_level: u8,
    created_by: Option<Person>,
    #[serde(flatten)]
    rights: Rights,
}

impl Dashboard {
    fn name(&self) -> &str {
        dashboard_name(self.name.as_deref())
    }

    fn is_restricted(&self) -> bool {
        is_restricted(self.restriction_level)
    }

    fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }

    /// Returns the time of creation without its fraction, which compresses badly.
    fn created_second(&self) -> String {
        let second = self.created_at.get(..19);
        second.map_or_else(|| self.created_at.clone(), |second| format!("{second}Z"))
    }
}

/// The actions that the page offers.
struct Offers {
    /// Change dashboards, as far as each dashboard lets it.
    write: bool,
    create: bool,
    /// See who may do what.
    access: bool,
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/page.html")]
struct DashboardsPage {
    base: String,
    filters: Filters,
    people: People,
    dashboards: Vec<Dashboard>,
    offers: Offers,
    paging: Paging,
    /// The URL of this page.
    here: String,
    chosen: Chosen,
    refusals: Option<Refusals>,
    command: Command,
}

impl DashboardsPage {
    /// Whether a row can be selected.
    fn selects(&self) -> bool {
        self.dashboards.iter().any(|dashboard| self.may_edit(dashboard))
    }

    fn may_edit(&self, dashboard: &Dashboard) -> bool {
        self.offers.write && dashboard.rights.may_edit()
    }

    /// Returns which entries of the menu apply to a dashboard: those that pin or unpin and edit it, or only those for
    /// everyone who may view it. `None` if none applies.
    fn menu_of(&self, dashboard: &Dashboard) -> Option<&'static str> {
        match self.may_edit(dashboard) {
            true if dashboard.pinned => Some("unpin"),
            true => Some("pin"),
            false => (self.offers.create || self.offers.access).then_some("view"),
        }
    }
}

pub(super) async fn list(request: SignedIn) -> PageResult {
    show(&request, BulkFeedback::default()).await
}

/// Shows the list, and what became of a form.
pub(super) async fn show(request: &SignedIn, feedback: BulkFeedback) -> PageResult {
    let project = project_id(&request.visit)?;
    let filters = Filters::of(&request.visit);
    let base = DASHBOARDS.list(&project);
    let list = ListSpec {
        api: DASHBOARDS.api(&project),
        api_query: filters.to_api_query(),
        page: base.clone(),
        page_query: filters.to_query(),
    };
    let ListPage { rows: dashboards, paging, command } =
        list_page::<Dashboard>(request, list).await?;
    let frame = DASHBOARDS.frame(request, &project).await?;
    let frame = frame.titled("Dashboards").with_undo(undo::of_query(request, &base));
    let frame = frame.with_refusal(feedback.refusal);
    let name = |id: &str| {
        let known = dashboards.iter().find(|one| one.id.to_string() == id);
        known.map_or_else(|| format!("Dashboard {id}"), |known| known.name().to_owned())
    };
    let refusals = feedback.outcome.refusals(name);
    let page = DashboardsPage {
        people: People::load(&request.api, frame.organization()).await?,
        here: filters.to_query().at(Paging::offset(&request.visit)).url(&base),
        chosen: Chosen::of(request),
        command,
        offers: offers(request, &project).await?,
        refusals: refusals.map(|refusals| refusals.with_undo(feedback.undo)),
        base,
        filters,
        paging,
        dashboards,
    };
    Ok(layout::page_with_status(&frame, &page, feedback.outcome.status())?)
}

async fn offers(request: &SignedIn, project: &str) -> Result<Offers> {
    let access = Operation::new("dashboards_access_list", [project, "0"]);
    Ok(Offers {
        write: DASHBOARD.may_write(request, project).await?,
        create: may_create_dashboards(request, project).await?,
        access: request.api.may(&access).await?,
    })
}
