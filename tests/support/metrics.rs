//! What a metrics listener answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use regex::Regex;
use steward::App;

use super::Workspace;

/// A sample: its name, labels and value.
pub type Sample = (String, BTreeMap<String, String>, f64);

/// Parsed metrics.
#[derive(Debug)]
pub struct Numbers {
    /// The type of each family.
    pub kinds: HashMap<String, String>,
    pub samples: Vec<Sample>,
}

impl Numbers {
    pub async fn of(workspace: &Workspace) -> Self {
        Self::read(&workspace.app.metrics().await.expect("numbers"))
    }

    /// Returns the current metrics without collecting gauges, which `of` collects at most once a second.
    pub fn at_once(app: &App) -> Self {
        Self::read(&app.config().metrics.render())
    }

    /// Parses the text format (0.0.4) strictly: each family occurs once, with HELP, then TYPE, then all its samples.
    #[track_caller]
    pub fn read(text: &str) -> Self {
        let name = r"[a-zA-Z_:][a-zA-Z0-9_:]*";
        let help = Regex::new(&format!("^# HELP ({name}) (.*[^ ])$")).unwrap();
        let kind = Regex::new(&format!("^# TYPE ({name}) (counter|gauge|histogram)$")).unwrap();
        let number = r"[+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf)|NaN";
        let sample = Regex::new(&format!(r"^({name})(?:\{{(.*)\}})? ({number})$")).unwrap();
        let label =
            Regex::new(r#"^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)"#).unwrap();
        assert!(text.ends_with('\n'), "the last line must end with a newline");
        let (mut told, mut kinds, mut samples) = (BTreeSet::new(), HashMap::new(), Vec::new());
        let mut family = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(found) = help.captures(line) {
                assert!(told.insert(found[1].to_owned()), "the family occurs twice: {line}");
                found[1].clone_into(&mut family);
            } else if let Some(found) = kind.captures(line) {
                assert_eq!(&found[1], family, "TYPE without HELP: {line}");
                assert_eq!(kinds.insert(found[1].to_owned(), found[2].to_owned()), None);
            } else {
                let found = sample.captures(line).unwrap_or_else(|| panic!("no sample: {line}"));
                let mut rest = found.get(2).map_or("", |labels| labels.as_str());
                let mut labels = BTreeMap::new();
                while !rest.is_empty() {
                    let one = label.captures(rest).unwrap_or_else(|| panic!("no label: {line}"));
                    assert_eq!(labels.insert(one[1].to_owned(), one[2].to_owned()), None, "{line}");
                    rest = &rest[one[0].len()..];
                }
                let of_histogram = kinds[&family] == "histogram";
                let own = ["_bucket", "_sum", "_count"].map(|end| format!("{family}{end}"));
                let belongs = if of_histogram {
                    own.contains(&found[1].to_owned())
                } else {
                    found[1] == *family
                };
                assert!(belongs, "{line} stands below {family}");
                samples.push((found[1].to_owned(), labels, found[3].parse().expect("a number")));
            }
        }
        let read = Self { kinds, samples };
        read.holds();
        read
    }

    /// Asserts properties of valid metrics that the syntax does not ensure.
    #[track_caller]
    fn holds(&self) {
        let mut seen = BTreeSet::new();
        for (name, labels, value) in &self.samples {
            assert!(seen.insert((name, labels)), "twice: {name} {labels:?}");
            if self.kinds.get(name).is_some_and(|kind| kind == "counter") {
                assert!(name.ends_with("_total") && *value >= 0.0, "{name} {value}");
            }
            assert!(name.starts_with("steward_") || name.starts_with("process_"), "{name}");
        }
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let mut by_labels: HashMap<BTreeMap<String, String>, Vec<(f64, f64)>> = HashMap::new();
            for (_, labels, value) in self.family(&format!("{family}_bucket")) {
                let mut labels = labels.clone();
                let end = labels.remove("le").expect("a bucket's end").replace("+Inf", "inf");
                by_labels.entry(labels).or_default().push((end.parse().expect("a number"), *value));
            }
            for (labels, buckets) in by_labels {
                assert!(buckets.is_sorted(), "{family}: buckets rise");
                let (end, last) = *buckets.last().expect("a bucket");
                assert!(end.is_infinite());
                let labels: Vec<_> = labels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
                let count = self.value(&format!("{family}_count"), &labels);
                assert!((last - count).abs() < 0.1);
                assert!(self.value(&format!("{family}_sum"), &labels) >= 0.0);
            }
        }
    }

    pub fn family(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |(found, ..)| found == name)
    }

    /// Returns the value of a sample, or 0 if it does not exist.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        self.family(name).find(|(_, found, _)| *found == labels).map_or(0.0, |(.., value)| *value)
    }

    pub fn requests(&self, method: &str, route: &str, status: &str) -> f64 {
        let labels = [("method", method), ("route", route), ("status", status)];
        self.value("steward_http_requests_total", &labels)
    }
}

/// Whether a value equals a count.
pub fn is(found: f64, expected: u32) -> bool {
    (found - f64::from(expected)).abs() < 0.1
}
