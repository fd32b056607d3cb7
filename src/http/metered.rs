//! What is counted of requests: how many, and how long they took, by route.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::Method;

use crate::meters::{Counter, Gauge, Histogram, Meters, Series, took};

use super::routes::Routes;

/// The classes of status that are told apart; a client that went away counts in the fourth.
const CLASSES: [(u16, &str); 4] = [(2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

/// Where requests are counted. Its labels are those of the route table: no client can add one.
pub struct Requests {
    meters: Meters,
    in_flight: Gauge,
    overloads: Counter,
    /// By each path's spelling.
    routes: HashMap<String, Arc<Route>>,
    unmatched: Route,
}

/// A path, and its methods.
struct Route {
    methods: Vec<(Method, Numbers)>,
    /// What a path answers to methods that it lacks.
    other: Numbers,
}

/// The numbers of one method of one path. They are there from its first request on, so that what nobody uses takes no
/// room.
struct Numbers {
    method: String,
    route: &'static str,
    made: OnceLock<(Histogram, [Counter; CLASSES.len()])>,
}

impl Numbers {
    fn of(method: &str, route: &'static str) -> Self {
        Self { method: method.to_owned(), route, made: OnceLock::new() }
    }

    fn record(&self, meters: &Meters, status: u16, time: Duration) {
        let (times, counts) = self.made.get_or_init(|| {
            let labels = [("method", self.method.as_str()), ("route", self.route)];
            let count = |(_, class)| {
                let labels = [labels[0], labels[1], ("status", class)];
                meters.counter(Series::REQUESTS, &labels)
            };
            (meters.histogram(Series::REQUEST_TIME, &labels), CLASSES.map(count))
        });
        took(times, time);
        let class = CLASSES.iter().position(|(class, _)| *class == status / 100);
        if let Some(count) = class.and_then(|at| counts.get(at)) {
            count.increment(1);
        }
    }
}

impl Requests {
    /// Counts the requests of `routes` in `meters`; none where these are off.
    pub fn of(routes: &Routes, meters: &Meters) -> Option<Arc<Self>> {
        meters.is_on().then(|| {
            let mut by_path: HashMap<_, Vec<_>> = HashMap::new();
            for row in routes.rows() {
                let numbers = Numbers::of(row.method.as_str(), row.path);
                by_path.entry(row.path).or_default().push((row.method.clone(), numbers));
            }
            let mut known = HashMap::new();
            for (path, methods) in by_path {
                let route = Arc::new(Route { methods, other: Numbers::of("other", path) });
                let spelled = super::routes::spellings(path).into_iter();
                known.extend(spelled.map(|path| (path, Arc::clone(&route))));
            }
            Arc::new(Self {
                in_flight: meters.gauge(Series::IN_FLIGHT, &[]),
                overloads: meters.counter(Series::OVERLOADS, &[]),
                meters: meters.clone(),
                routes: known,
                unmatched: Route { methods: Vec::new(), other: Numbers::of("other", "unmatched") },
            })
        })
    }

    /// A request came.
    pub(super) fn begin(&self) {
        self.in_flight.increment(1);
    }

    /// It was refused because a limit is in use.
    pub(super) fn refuse(&self) {
        self.overloads.increment(1);
    }

    /// It is over; `route` is the spelling that it matched. HEAD counts as GET.
    pub(super) fn end(&self, route: Option<&str>, method: &Method, status: u16, time: Duration) {
        self.in_flight.decrement(1);
        let route = route.and_then(|route| self.routes.get(route).map(AsRef::as_ref));
        let route = route.unwrap_or(&self.unmatched);
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let known = route.methods.iter().find(|(known, _)| known == method);
        known.map_or(&route.other, |(_, numbers)| numbers).record(&self.meters, status, time);
    }
}
