//! The links to the pages of a long list.

use crate::console::failure::Failure;
use crate::console::visit::Visit;

/// The parameter of the query with the number of items before the page.
const OFFSET: &str = "offset";

/// The part of a list that a page shows.
pub(super) struct Paging {
    /// The number of the first item, from 1.
    pub(super) first: u64,
    /// The number of the last item.
    pub(super) last: u64,
    pub(super) count: u64,
    /// The URLs of the pages before and after.
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
}

impl Paging {
    /// Returns the number of items before the page, from the query.
    pub(super) fn offset(visit: &Visit) -> u64 {
        Self::offset_named(visit, OFFSET)
    }

    /// Returns the number of items before the page of one of several lists, from its own parameter of the query.
    pub(super) fn offset_named(visit: &Visit, parameter: &str) -> u64 {
        visit.query(parameter).parse::<u32>().map_or(0, u64::from)
    }

    /// Returns the page of a list that the API does not divide, and its description. `parameter` is the parameter of the
    /// query with the number of items before the page, and `url` returns the URL of the page that begins at an offset.
    ///
    /// # Errors
    /// The last page instead, or 404, if the page is beyond the end of the list.
    pub(super) fn of_all<'a, T>(
        all: &'a [T],
        visit: &Visit,
        parameter: &str,
        size: usize,
        url: impl Fn(u64) -> String,
    ) -> Result<(&'a [T], Self), Failure> {
        let offset = Self::offset_named(visit, parameter);
        let start = usize::try_from(offset).map_or(all.len(), |offset| offset.min(all.len()));
        let (_, rest) = all.split_at(start);
        let (shown, _) = rest.split_at(size.min(rest.len()));
        let paging =
            Self::named(visit, parameter, shown.len(), all.len() as u64, size as u64, url)?;
        Ok((shown, paging))
    }

    /// Returns whether the list has other pages.
    pub(super) const fn is_long(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }

    /// Describes the page of a request, with `shown` of `count` items. `url` returns the URL of the page that begins at an
    /// offset.
    ///
    /// # Errors
    /// The last page instead, or 404, if the page is beyond the end of the list.
    pub(super) fn new(
        visit: &Visit,
        shown: usize,
        count: u64,
        size: u64,
        url: impl Fn(u64) -> String,
    ) -> Result<Self, Failure> {
        Self::named(visit, OFFSET, shown, count, size, url)
    }

    fn named(
        visit: &Visit,
        parameter: &str,
        shown: usize,
        count: u64,
        size: u64,
        url: impl Fn(u64) -> String,
    ) -> Result<Self, Failure> {
        let offset = Self::offset_named(visit, parameter);
        if shown == 0 && offset > 0 {
            let last = count.saturating_sub(1) / size * size;
            let value = if last == 0 { String::new() } else { last.to_string() };
            let last = (last < offset).then(|| visit.url_with(parameter, &value));
            return Err(Failure::beyond_the_end(last));
        }
        let last = offset + shown as u64;
        Ok(Self {
            first: offset + 1,
            last,
            count,
            previous: (offset > 0).then(|| url(offset.saturating_sub(size))),
            next: (last < count).then(|| url(last)),
        })
    }
}
