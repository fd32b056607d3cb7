//! The domains of an organization.

mod list;
mod one;

use crate::console::registry::Pages;

pub(super) fn routes(pages: &mut Pages<'_>) {
    list::routes(pages);
    one::routes(pages);
}
