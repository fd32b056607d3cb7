//! Pages of long lists, the links to the pages before and after, and the filters of lists.

use askama::Template;
use serde::de::DeserializeOwned;

use crate::base::error::Error;

use super::api::Answer;
use super::failure::Failure;
use super::layout::Command;
use super::model::List;
use super::urls::Query;
use super::visit::{SignedIn, Visit};

/// The parameter of the query with the number of items before the page.
pub(crate) const OFFSET: &str = "offset";

/// The number of items on a page of a list.
const PAGE_SIZE: u64 = 50;

/// The parameter of the API's query with the number of items on a page.
pub(super) const LIMIT: (&str, &str) = ("limit", "50");

/// A list of the API that a page shows.
pub(super) struct ListSpec {
    /// The path of the list in the API.
    pub(super) api: String,
    /// The query of the API, with [`LIMIT`] and without the offset.
    pub(super) api_query: Query,
    /// The path of the page.
    pub(super) page: String,
    /// The query of the page without the offset.
    pub(super) page_query: Query,
}

impl ListSpec {
    /// Describes a list without filters.
    pub(super) fn new(api: String, page: &str) -> Self {
        let (api_query, page_query) = (Query::of([LIMIT]), Query::default());
        Self { api, api_query, page: page.to_owned(), page_query }
    }

    /// Adds filters, which have the same names in the API and in the query of the page.
    pub(super) fn filtered<'p, F>(self, filters: F) -> Self
    where
        F: IntoIterator<Item = (&'p str, &'p str)> + Clone,
    {
        let api_query = self.api_query.and(filters.clone());
        Self { api_query, page_query: self.page_query.and(filters), ..self }
    }
}

/// The values of a choice, each with its label.
pub(crate) type Choices = &'static [(&'static str, &'static str)];

/// The filters of a list, which stand in the query of its page. An empty text filters nothing.
pub(crate) struct ListFilters(Vec<(&'static str, String)>);

impl ListFilters {
    /// Reads the filters with these names. `known` returns the text of a filter, or an empty text if it is not valid.
    pub(crate) fn of(
        visit: &Visit,
        names: &[&'static str],
        known: impl Fn(&str, &str) -> String,
    ) -> Self {
        let read = |name: &&'static str| (*name, known(name, visit.query(name).trim()));
        Self(names.iter().map(read).collect())
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// Sets a filter.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        for (_, text) in self.0.iter_mut().filter(|(known, _)| *known == name) {
            value.clone_into(text);
        }
        self
    }

    pub(crate) fn are_set(&self) -> bool {
        self.0.iter().any(|(_, value)| !value.is_empty())
    }

    /// Returns the text for a list without rows: the first one if filters are set.
    pub(crate) fn none(&self, of_filters: &'static str, of_all: &'static str) -> &'static str {
        if self.are_set() { of_filters } else { of_all }
    }

    /// Returns the names and the texts.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Returns the query of the page.
    pub(crate) fn to_query(&self) -> Query {
        Query::of(self.fields())
    }
}

/// Returns whether a text is a value of a choice.
pub(super) fn is_one_of(choices: Choices, text: &str) -> bool {
    choices.iter().any(|(value, _)| *value == text)
}

/// A page of a list.
pub(super) struct ListPage<Row> {
    pub(super) rows: Vec<Row>,
    pub(super) paging: Paging,
    /// The command that reads the page.
    pub(super) command: Command,
}

/// The answer of the API with the page of a list.
pub(super) struct ListAnswer<'r> {
    visit: &'r Visit,
    list: ListSpec,
    /// The path of the API.
    path: String,
    answer: Answer,
}

/// Requests the page of a list that the request names.
pub(super) async fn list_page(request: &SignedIn, list: ListSpec) -> ListAnswer<'_> {
    let path = list.api_query.clone().at(Paging::offset(&request.visit)).url(&list.api);
    let answer = request.api.get(&path).await;
    ListAnswer { visit: &request.visit, list, path, answer }
}

impl ListAnswer<'_> {
    /// Reads the page.
    ///
    /// # Errors
    /// Those of [`Paging::new`] and of the API.
    pub(super) fn read<Row: DeserializeOwned>(self) -> Result<ListPage<Row>, Failure> {
        let Self { visit, list, path, answer } = self;
        let List { count, results: rows } = answer.read::<List<Row>>()?;
        let url = |offset| list.page_query.clone().at(offset).url(&list.page);
        let paging = Paging::new(visit, OFFSET, rows.len(), count, PAGE_SIZE, &url)?;
        Ok(ListPage { rows, paging, command: Command::get(visit, &path) })
    }
}

/// The part of a list that a page shows.
#[derive(Template)]
#[template(path = "console/paging.html")]
pub(crate) struct Paging {
    /// The number of the first item, from 1.
    pub(super) first: u64,
    /// The number of the last item.
    pub(super) last: u64,
    pub(super) count: u64,
    /// The URLs of the pages before and after.
    pub(crate) previous: Option<String>,
    pub(super) next: Option<String>,
}

impl Paging {
    /// Returns the number of items before the page, from the query.
    pub(super) fn offset(visit: &Visit) -> u64 {
        Self::offset_named(visit, OFFSET)
    }

    /// Returns the number of items before the page of one of several lists, from its own parameter of the query.
    fn offset_named(visit: &Visit, parameter: &str) -> u64 {
        visit.query(parameter).parse::<u32>().map_or(0, u64::from)
    }

    /// Returns the page of a list that the API does not divide, and its description. `parameter` is the parameter of the
    /// query with the number of items before the page, and `url` returns the URL of the page that begins at an offset.
    ///
    /// # Errors
    /// The last page instead, or 404, if the page is beyond the end of the list.
    pub(crate) fn of_all<'a, T>(
        all: &'a [T],
        visit: &Visit,
        parameter: &str,
        size: usize,
        url: &dyn Fn(u64) -> String,
    ) -> Result<(&'a [T], Self), Failure> {
        let offset = Self::offset_named(visit, parameter);
        let start = usize::try_from(offset).map_or(all.len(), |offset| offset.min(all.len()));
        let (_, rest) = all.split_at(start);
        let (shown, _) = rest.split_at(size.min(rest.len()));
        let paging = Self::new(visit, parameter, shown.len(), all.len() as u64, size as u64, url)?;
        Ok((shown, paging))
    }

    /// Returns whether the list has other pages.
    pub(crate) const fn is_long(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }

    /// Describes the page of a request, with `shown` of `count` items. `parameter` and `url` are as in
    /// [`of_all`](Self::of_all).
    ///
    /// # Errors
    /// The last page instead, or 404, if the page is beyond the end of the list.
    pub(super) fn new(
        visit: &Visit,
        parameter: &str,
        shown: usize,
        count: u64,
        size: u64,
        url: &dyn Fn(u64) -> String,
    ) -> Result<Self, Failure> {
        let offset = Self::offset_named(visit, parameter);
        if shown == 0 && offset > 0 {
            let last = count.saturating_sub(1) / size * size;
            let value = if last == 0 { String::new() } else { last.to_string() };
            let last = (last < offset).then(|| visit.url_with(parameter, &value));
            let error = Error::not_found_as("The list has no such page.");
            return Err(Failure { instead: last, ..Failure::from(error) });
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
