//! The members of an organization.

mod list;
mod member;
mod one;

use crate::console::registry::Pages;

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    one::routes(pages);
}
