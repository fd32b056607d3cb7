//! The batch exports of a project.

mod destinations;
mod list;
mod new;
mod one;
mod state;

use crate::console::registry::Pages;

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    new::routes(pages);
    one::routes(pages);
}
