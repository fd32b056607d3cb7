//! Histories of all requests: searches for an order in which the model gives every response.

use std::collections::HashSet;

use crate::model::service::difference;
use crate::model::steps::Step;
use crate::model::world::World;
use crate::support::TestResponse;

/// When a request was sent and when its response arrived, by one clock.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub begin: u64,
    pub end: u64,
}

/// A request and its response.
#[derive(Debug)]
pub struct Done {
    pub span: Span,
    pub step: Step,
    pub answer: TestResponse,
    /// The model's number for the created object, instead of the next one.
    pub number: usize,
}

impl Done {
    /// Returns the id of the dashboard or project that this request created.
    fn made(&self) -> Option<usize> {
        let body = &self.answer.body;
        let id = body["id"].as_u64().or_else(|| body.pointer("/projects/0/id")?.as_u64())?;
        usize::try_from(id).ok()
    }

    /// Returns the world after this request, if the model gives the same response.
    fn after(&self, world: &World) -> Option<World> {
        let mut after = world.clone();
        after.number(self.number, self.made());
        let expected = after.take(&self.step)?;
        difference(&self.answer, &expected).is_none().then_some(after)
    }
}

/// Returns an order of all requests in which the model gives their responses, each at some moment of its
/// span. Returns `None` if there is no such order.
pub fn order(begin: &World, done: &[Done]) -> Option<Vec<usize>> {
    let mut search =
        Search { done, taken: vec![false; done.len()], path: Vec::new(), tried: HashSet::new() };
    search.goes_on(begin).then_some(search.path)
}

struct Search<'d> {
    done: &'d [Done],
    taken: Vec<bool>,
    path: Vec<usize>,
    /// States from which the search failed.
    tried: HashSet<(Vec<bool>, String)>,
}

impl Search<'_> {
    fn goes_on(&mut self, world: &World) -> bool {
        let left: Vec<usize> = (0..self.done.len()).filter(|at| !self.taken[*at]).collect();
        // A request cannot come before one that had ended when it began.
        let Some(end) = left.iter().map(|at| self.done[*at].span.end).min() else { return true };
        if !self.tried.insert((self.taken.clone(), format!("{:?}", world.file))) {
            return false;
        }
        for at in left.into_iter().filter(|at| self.done[*at].span.begin <= end) {
            let Some(after) = self.done[at].after(world) else { continue };
            self.taken[at] = true;
            self.path.push(at);
            if self.goes_on(&after) {
                return true;
            }
            self.path.pop();
            self.taken[at] = false;
        }
        false
    }
}

mod tests {
    use axum::http::HeaderMap;

    use super::*;
    use crate::model::steps::What::{self, *};
    use crate::model::world::{NAMES, PEOPLE};
    use crate::prelude::*;

    fn done(
        (begin, end): (u64, u64),
        (what, by, whom, how): (What, usize, usize, usize),
        (status, body): (u16, Value),
    ) -> Done {
        let step = Step { what, by, at: 0, which: 0, whom, how, fits: false };
        let answer = TestResponse { status, headers: HeaderMap::new(), body, bytes: Vec::new() };
        Done {
            span: Span { begin, end },
            step,
            answer,
            number: 100 + usize::try_from(begin).unwrap(),
        }
    }

    fn added(span: (u64, u64)) -> Done {
        done(span, (AddDomain, 0, 0, 0), (201, json!({ "domain": NAMES[0], "is_verified": false })))
    }

    fn taken(span: (u64, u64)) -> Done {
        let detail = "domain with this domain already exists.";
        done(span, (AddDomain, 1, 0, 0), (400, json!({ "code": "unique", "detail": detail })))
    }

    fn listed(span: (u64, u64), names: &[&str]) -> Done {
        let rows: Vec<_> = names.iter().map(|name| json!({ "domain": name })).collect();
        done(span, (ListDomains, 2, 0, 0), (200, json!({ "count": names.len(), "results": rows })))
    }

    #[test]
    fn possible_order_is_found() {
        let world = World::new();
        let history =
            [taken((0, 9)), listed((1, 9), &[]), added((2, 9)), listed((3, 9), &NAMES[..1])];
        assert_eq!(order(&world, &history), Some(vec![1, 2, 0, 3]));
    }

    #[test]
    fn impossible_order_is_not_found() {
        let world = World::new();
        let lowered = |by, whom| {
            let body = json!({ "level": 1, "user": { "email": PEOPLE[whom] } });
            done((2, 9), (SetLevel, by, whom, 0), (200, body))
        };
        let raised = {
            let body = json!({ "level": 15, "user": { "email": PEOPLE[1] } });
            move || done((0, 1), (SetLevel, 0, 1, 3), (200, body.clone()))
        };
        for (case, history) in [
            ("a name taken twice", vec![added((0, 9)), Done { number: 7, ..added((0, 9)) }]),
            ("refused without a reason", vec![taken((0, 1)), added((2, 3))]),
            ("not yet listed", vec![added((0, 1)), listed((2, 3), &[])]),
            ("listed too soon", vec![listed((0, 1), &NAMES[..1]), added((2, 3))]),
            ("no owner left", vec![raised(), lowered(0, 1), lowered(1, 0)]),
        ] {
            assert_eq!(order(&world, &history), None, "{case}");
        }
        assert_eq!(order(&world, &[raised(), lowered(0, 1)]), Some(vec![0, 1]));
    }
}
