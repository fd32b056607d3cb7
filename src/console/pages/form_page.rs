//! A page with one form and nothing else.

use super::prelude::*;

#[derive(Template)]
#[template(path = "console/pages/form_page.html")]
pub(super) struct FormPage {
    title: &'static str,
    /// The path of the list above the page, and its name.
    list: Option<(String, &'static str)>,
    /// The path of the object above the page, and its name.
    object: Option<(String, String)>,
    lede: &'static str,
    form: Form,
}

impl FormPage {
    pub(super) fn new(title: &'static str, form: Form) -> Self {
        Self { title, list: None, object: None, lede: "", form }
    }

    /// Links to the list above the page.
    pub(super) fn below(mut self, list: String, name: &'static str) -> Self {
        self.list = Some((list, name));
        self
    }

    /// Links to a dashboard above the page.
    pub(super) fn of_dashboard(mut self, dashboard: &ObjectPath, name: String) -> Self {
        self.object = Some((dashboard.page(""), name));
        self.below(dashboard.list(), "Dashboards")
    }

    /// Adds a text below the title.
    pub(super) fn with_lede(mut self, lede: &'static str) -> Self {
        self.lede = lede;
        self
    }

    /// Shows the page with the status of its form.
    pub(super) async fn show(self, request: &SignedIn) -> PageResult {
        let frame = Frame::load(request).await?.titled(self.title).with_status(self.form.status);
        Ok(layout::page(&frame, &self)?)
    }
}
