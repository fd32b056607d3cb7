//! What the service tells about itself in numbers, in the form that Prometheus reads.
//!
//! Each [`App`](crate::state::App) has meters of its own, so that two in one process do not mix. Who counts
//! something holds a handle that was made once; using it is an atomic operation, and nothing at all where no
//! numbers are asked for.

mod series;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use metrics_process::Collector;

pub use metrics::{Counter, Gauge, Histogram};
pub use series::Series;

use series::{ALL, Shape, buckets};

/// The type of what [`Meters::render`] answers.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is known of where a number comes from; nobody asks.
const SOURCE: Metadata<'static> = Metadata::new("steward", Level::INFO, None);

/// The numbers of one service, or nothing where nobody asks for them.
#[derive(Clone, Default)]
pub struct Meters(Option<Arc<Inner>>);

struct Inner {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    process: Collector,
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}

impl Meters {
    /// Meters that count.
    pub fn on() -> Self {
        let recorder = buckets(PrometheusBuilder::new()).build_recorder();
        for Series { name, shape, help } in ALL {
            let (name, help) = (KeyName::from_const_str(name), (*help).into());
            match shape {
                Shape::Counter => recorder.describe_counter(name, None, help),
                Shape::Gauge => recorder.describe_gauge(name, None, help),
                Shape::Histogram => recorder.describe_histogram(name, None, help),
            }
        }
        let process = Collector::default();
        metrics::with_local_recorder(&recorder, || process.describe());
        Self(Some(Arc::new(Inner { handle: recorder.handle(), recorder, process })))
    }

    /// Whether they count.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The counter of `series` with these labels.
    pub fn counter(&self, series: Series, labels: &[(&'static str, &str)]) -> Counter {
        let Some(inner) = &self.0 else { return Counter::noop() };
        inner.recorder.register_counter(&key(series, labels), &SOURCE)
    }

    /// The gauge of `series` with these labels.
    pub fn gauge(&self, series: Series, labels: &[(&'static str, &str)]) -> Gauge {
        let Some(inner) = &self.0 else { return Gauge::noop() };
        inner.recorder.register_gauge(&key(series, labels), &SOURCE)
    }

    /// The histogram of `series` with these labels.
    pub fn histogram(&self, series: Series, labels: &[(&'static str, &str)]) -> Histogram {
        let Some(inner) = &self.0 else { return Histogram::noop() };
        inner.recorder.register_histogram(&key(series, labels), &SOURCE)
    }

    /// Adds up what histograms took in since the last time, so that it does not pile up.
    pub fn add_up(&self) {
        if let Some(inner) = &self.0 {
            inner.handle.run_upkeep();
        }
    }

    /// Everything, as text. It asks the operating system about this process: not for request threads.
    pub fn render(&self) -> String {
        let Some(inner) = &self.0 else { return String::new() };
        metrics::with_local_recorder(&inner.recorder, || inner.process.collect());
        inner.handle.render()
    }
}

fn key(series: Series, labels: &[(&'static str, &str)]) -> Key {
    let labels = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned()));
    Key::from_parts(series.name, labels.collect::<Vec<_>>())
}

/// Takes note of a time in seconds.
pub fn took(histogram: &Histogram, time: Duration) {
    histogram.record(time.as_secs_f64());
}
