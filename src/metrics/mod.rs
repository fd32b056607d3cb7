//! Metrics in the text format of Prometheus.
//!
//! Each [`App`](crate::state::App) has its own registry, so the metrics of two apps in one process are separate. A
//! caller creates a handle once and then updates it with atomic operations. If metrics are disabled, handles do
//! nothing.

mod process;
mod series;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    CounterVec, GaugeVec, HistogramOpts, HistogramVec, Opts, Registry, Result, TextEncoder,
};

pub use series::Series;

use process::Process;
pub use process::resident_memory;
use series::{ALL, MetricType};

/// The media type of the text that [`Metrics::render`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of one service, or nothing if metrics are disabled.
#[derive(Clone, Default)]
pub struct Metrics(Option<Arc<Inner>>);

struct Inner {
    registry: Registry,
    families: HashMap<&'static str, Family>,
    process: Option<Process>,
}

/// The metrics of one series, one for each combination of label values.
enum Family {
    Counter(CounterVec),
    Gauge(GaugeVec),
    Histogram(HistogramVec),
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_enabled() { "on" } else { "off" })
    }
}

impl Metrics {
    /// Enables metrics.
    pub fn enabled() -> Self {
        Self(Inner::new().ok().map(Arc::new))
    }

    /// Whether metrics are enabled.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the counter of `series` with these label values, in the order of the series' labels.
    pub fn counter(&self, series: Series, labels: &[&str]) -> Counter {
        Counter(match self.family(series) {
            Some(Family::Counter(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    /// Returns the gauge of `series` with these label values.
    pub fn gauge(&self, series: Series, labels: &[&str]) -> Gauge {
        Gauge(match self.family(series) {
            Some(Family::Gauge(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    /// Returns the histogram of `series` with these label values.
    pub fn histogram(&self, series: Series, labels: &[&str]) -> Histogram {
        Histogram(match self.family(series) {
            Some(Family::Histogram(family)) => family.get_metric_with_label_values(labels).ok(),
            _ => None,
        })
    }

    fn family(&self, series: Series) -> Option<&Family> {
        self.0.as_ref()?.families.get(series.name)
    }

    /// Returns all metrics as text. Reads `/proc`, so do not call it on a thread that serves requests.
    pub fn render(&self) -> String {
        let Some(inner) = &self.0 else { return String::new() };
        if let Some(process) = &inner.process {
            process.update();
        }
        TextEncoder::new().encode_to_string(&inner.registry.gather()).unwrap_or_default()
    }
}

impl Inner {
    fn new() -> Result<Self> {
        let registry = Registry::new();
        let mut families = HashMap::new();
        for series in ALL {
            let opts = Opts::new(series.name, series.help);
            let family = match series.metric_type {
                MetricType::Counter => {
                    Family::Counter(registered(&registry, CounterVec::new(opts, series.labels)?)?)
                }
                MetricType::Gauge => {
                    Family::Gauge(registered(&registry, GaugeVec::new(opts, series.labels)?)?)
                }
                MetricType::Histogram => {
                    let opts = HistogramOpts::from(opts).buckets(series.buckets().to_vec());
                    let family = HistogramVec::new(opts, series.labels)?;
                    Family::Histogram(registered(&registry, family)?)
                }
            };
            families.insert(series.name, family);
        }
        let process = Process::registered(&registry)?;
        Ok(Self { registry, families, process })
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> Result<C> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

/// A number that only rises.
#[derive(Debug, Clone)]
pub struct Counter(Option<prometheus::Counter>);

impl Counter {
    /// Adds `number`.
    pub fn increment(&self, number: u64) {
        if let Some(counter) = &self.0 {
            counter.inc_by(to_f64(number));
        }
    }

    /// Raises the counter to `number`, which is counted elsewhere. One caller at a time may do so.
    pub fn absolute(&self, number: u64) {
        if let Some(counter) = &self.0 {
            counter.inc_by((to_f64(number) - counter.get()).max(0.0));
        }
    }
}

/// A number that rises and falls.
#[derive(Debug, Clone)]
pub struct Gauge(Option<prometheus::Gauge>);

impl Gauge {
    /// Adds `number`.
    pub fn increment(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.add(number.into());
        }
    }

    /// Subtracts `number`.
    pub fn decrement(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.sub(number.into());
        }
    }

    /// Sets the gauge to `number`.
    pub fn set(&self, number: impl Into<f64>) {
        if let Some(gauge) = &self.0 {
            gauge.set(number.into());
        }
    }
}

/// A distribution of numbers.
#[derive(Debug, Clone)]
pub struct Histogram(Option<prometheus::Histogram>);

impl Histogram {
    /// Adds `number` to the distribution.
    pub fn record(&self, number: impl Into<f64>) {
        if let Some(histogram) = &self.0 {
            histogram.observe(number.into());
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "what Prometheus reads are floats")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Records a duration in seconds.
pub fn record_seconds(histogram: &Histogram, time: Duration) {
    histogram.record(time.as_secs_f64());
}
