//! The projects of an organization, with their settings and their access rules.

mod access;
mod list;
mod new;
mod settings;

use crate::console::registry::Pages;

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    new::routes(pages);
    settings::routes(pages);
    access::routes(pages);
}
