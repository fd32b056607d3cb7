//! The insights of a project.

mod forms;
mod list;
mod one;

use crate::console::registry::Pages;

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    forms::routes(pages);
    one::routes(pages);
}
