//! The links to the pages of a long list.

use crate::console::visit::Visit;
use crate::error::{Error, Result};

/// The part of a list that a page shows.
pub(in crate::console) struct Paging {
    /// The number of the first item, from 1.
    pub(in crate::console) first: u64,
    /// The number of the last item.
    pub(in crate::console) last: u64,
    pub(in crate::console) count: u64,
    /// The URLs of the pages before and after.
    pub(in crate::console) previous: Option<String>,
    pub(in crate::console) next: Option<String>,
}

impl Paging {
    /// Returns the number of items before the page, from the query.
    pub(in crate::console) fn offset(visit: &Visit) -> u64 {
        Self::offset_named(visit, "offset")
    }

    /// Returns the number of items before the page of one of several lists, from its own parameter of the query.
    pub(in crate::console) fn offset_named(visit: &Visit, parameter: &str) -> u64 {
        visit.query(parameter).parse::<u32>().map_or(0, u64::from)
    }

    /// Returns the page of a list that the API does not divide, and its description. `url` returns the URL of the page
    /// that begins at an offset.
    ///
    /// # Errors
    /// 404 if the page is beyond the end of the list.
    pub(in crate::console) fn of_all<T>(
        all: &[T],
        offset: u64,
        size: usize,
        url: impl Fn(u64) -> String,
    ) -> Result<(&[T], Self)> {
        let start = usize::try_from(offset).map_or(all.len(), |offset| offset.min(all.len()));
        let (_, rest) = all.split_at(start);
        let (shown, _) = rest.split_at(size.min(rest.len()));
        let paging = Self::new(offset, shown.len(), all.len() as u64, size as u64, url)?;
        Ok((shown, paging))
    }

    /// Returns whether the list has other pages.
    pub(in crate::console) const fn is_long(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }

    /// Describes a page with `shown` of `count` items. `url` returns the URL of the page that begins at an offset.
    ///
    /// # Errors
    /// 404 if the page is beyond the end of the list.
    pub(in crate::console) fn new(
        offset: u64,
        shown: usize,
        count: u64,
        size: u64,
        url: impl Fn(u64) -> String,
    ) -> Result<Self> {
        if shown == 0 && offset > 0 {
            return Err(Error::not_found_as("The list has no such page."));
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
