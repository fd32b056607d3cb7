//! The dashboards of a project.

mod arrange;
mod change;
mod choices;
mod forms;
mod grid;
mod list;
mod new;
mod one;
mod tile;
mod tiles;

use crate::console::registry::Pages;

pub(super) use choices::{dashboard_choices, dashboard_names};

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    new::routes(pages);
    one::routes(pages);
    forms::routes(pages);
    tiles::routes(pages);
    arrange::routes(pages);
}
