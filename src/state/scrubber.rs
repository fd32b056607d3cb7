//! Looking through the data file now and then, for what no request would notice.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::resources::checks;
use crate::store::Findings;
use crate::time::Timestamp;

use super::{App, Inner};

/// What the last look through the data file came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scrubbed {
    /// When it ended.
    pub at: Timestamp,
    /// How many values were read.
    pub values: u64,
    /// How many problems there are.
    pub problems: u64,
}

/// How long it waits where the file could not be read.
const RETRY: Duration = Duration::from_mins(1);

impl App {
    /// What the last look through the data file came to; none before the first has ended.
    pub fn last_scrub(&self) -> Option<Scrubbed> {
        self.0.scrubbed.load().as_deref().copied()
    }

    /// Looks through the data file at once and then as often as is asked for, if it is.
    pub(super) fn keep_looking(&self) {
        let Some(every) = self.0.config.scrub else { return };
        let (inner, clock) = (Arc::downgrade(&self.0), self.0.clock.clone());
        tokio::spawn(async move {
            let mut next = clock.now();
            loop {
                clock.reaches(next).await;
                let Some(found) = look_through(&inner).await else { return };
                next = clock.now().plus(if found { every } else { every.min(RETRY) });
            }
        });
    }
}

/// Whether the file could be read; none once nobody serves it any more.
async fn look_through(inner: &Weak<Inner>) -> Option<bool> {
    let store = inner.upgrade()?.store.clone();
    let findings = store.scrub(checks()).await;
    drop(store);
    let app = inner.upgrade()?;
    match findings {
        Ok(findings) => {
            report(&findings);
            let (values, problems) = (findings.values, findings.problem_count);
            let at = app.clock.now();
            app.scrubbed.store(Some(Arc::new(Scrubbed { at, values, problems })));
            Some(true)
        }
        Err(error) => {
            tracing::warn!(%error, "the data file was not looked through");
            Some(false)
        }
    }
}

fn report(findings: &Findings) {
    for problem in &findings.problems {
        tracing::error!(problem, "the data file does not hold together");
    }
    let (values, problems) = (findings.values, findings.problem_count);
    tracing::info!(values, problems, "the data file was looked through");
}
