//! The recorded counts, and how measured counts compare with them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::{Context, Result, fail, grouped};

/// The largest difference from the recorded count, in percent.
const TOLERANCE: f64 = 3.0;

/// What to do when the comparison fails.
pub const ADVICE: &str = "\
operations became dearer than benches/instructions/counts.txt allows, by more than 3 %, or the file lacks some.
Make them cheaper, or record their counts and give the reason in the commit message. To record:
cargo bench --features jemalloc --profile instructions --bench instructions -- --update";

/// What to do when an operation became cheaper.
const CHEAPER: &str = "\
Warning: operations became cheaper. Record their counts with --update, so that a later change cannot take the gain back
unnoticed.";

const HEADER: &str = "\
# Instructions of one operation, all threads together. `docs/performance.md` says how to update this file.";

/// What the counts depend on besides the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(String);

impl Environment {
    /// Returns the compiler, the target and the C library of this machine.
    pub fn current() -> Result<Self> {
        let compiler = first_line(&["rustc", "--version"])?;
        let library = first_line(&["getconf", "GNU_LIBC_VERSION"])?;
        let processor = std::env::consts::ARCH;
        Ok(Self(format!("{compiler}, {processor}{}, {library}", vector_extension())))
    }
}

/// Libraries choose their code by this extension when they run.
fn vector_extension() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return " with AVX2";
    }
    ""
}

fn first_line(command: &[&str]) -> Result<String> {
    let [program, args @ ..] = command else { return fail("no command") };
    let output = Command::new(program).args(args).output().context(program)?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(str::to_owned).ok_or_else(|| format!("{program} prints nothing").into())
}

/// The instructions of each operation, in order.
#[derive(Debug, Default)]
pub struct Counts {
    environment: Environment,
    operations: Vec<(String, u64)>,
}

impl Counts {
    /// Returns the counts that were measured in `environment`.
    pub const fn of(environment: Environment, operations: Vec<(String, u64)>) -> Self {
        Self { environment, operations }
    }

    /// Reads the recorded counts.
    pub fn read(path: &Path) -> Result<Self> {
        let mut counts = Self::default();
        for line in std::fs::read_to_string(path).context(path.display())?.lines() {
            if let Some(environment) = line.strip_prefix("environment: ") {
                counts.environment = Environment(environment.to_owned());
            } else if let Some((name, count)) = line.split_once(' ')
                && name != "#"
            {
                let count = count.trim().replace(',', "").parse();
                let count = count.context(format!("{}: {line}", path.display()))?;
                counts.operations.push((name.to_owned(), count));
            }
        }
        Ok(counts)
    }

    fn by_name(&self) -> BTreeMap<&str, u64> {
        self.operations.iter().map(|(name, count)| (name.as_str(), *count)).collect()
    }

    /// Compares `measured` with these counts.
    pub fn compare(&self, measured: &Self) -> Comparison {
        let (old, new) = (self.by_name(), measured.by_name());
        let gone = self.operations.iter().filter(|(name, _)| !new.contains_key(name.as_str()));
        let gone =
            gone.map(|(name, count)| Row { name: name.clone(), old: Some(*count), new: None });
        let rows = measured.operations.iter().map(|(name, count)| Row {
            name: name.clone(),
            old: old.get(name.as_str()).copied(),
            new: Some(*count),
        });
        let comparable = self.environment == measured.environment;
        Comparison {
            rows: rows.chain(gone).collect(),
            environments: (!comparable)
                .then(|| (self.environment.clone(), measured.environment.clone())),
        }
    }

    /// Returns `measured`, with the recorded count of each operation that is within the tolerance. So a series of small
    /// increases is noticed when they sum up. In another environment all counts are new.
    pub fn updated(&self, measured: Self) -> Self {
        let comparison = self.compare(&measured);
        if comparison.environments.is_some() {
            return measured;
        }
        let rows = comparison.rows.iter().filter_map(|row| {
            let count = if row.verdict() == Verdict::Same { row.old } else { row.new };
            Some((row.name.clone(), count?))
        });
        Self { operations: rows.collect(), ..measured }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}\nenvironment: {}", self.environment.0)?;
        for (name, count) in &self.operations {
            writeln!(f, "{name:<24}{:>12}", grouped(*count))?;
        }
        Ok(())
    }
}

/// The comparison of measured counts with the recorded ones.
pub struct Comparison {
    rows: Vec<Row>,
    /// The recorded and the current environment, if they differ.
    environments: Option<(Environment, Environment)>,
}

struct Row {
    name: String,
    old: Option<u64>,
    new: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Dearer,
    Cheaper,
    NotRecorded,
    NotMeasured,
}

impl Row {
    /// Returns the difference from the recorded count, in percent.
    fn change(&self) -> Option<f64> {
        Some((self.new? as f64 / self.old? as f64 - 1.0) * 100.0)
    }

    fn verdict(&self) -> Verdict {
        match self.change() {
            Some(change) if change > TOLERANCE => Verdict::Dearer,
            Some(change) if change < -TOLERANCE => Verdict::Cheaper,
            Some(_) => Verdict::Same,
            None if self.old.is_none() => Verdict::NotRecorded,
            None => Verdict::NotMeasured,
        }
    }
}

impl Comparison {
    /// Whether no operation costs more than is recorded. In another environment, counts are not comparable, and only the
    /// set of operations must be the same.
    pub fn passes(&self) -> bool {
        self.rows.iter().all(|row| match row.verdict() {
            Verdict::Same | Verdict::Cheaper => true,
            Verdict::Dearer => self.environments.is_some(),
            Verdict::NotRecorded | Verdict::NotMeasured => false,
        })
    }

    fn is_cheaper(&self) -> bool {
        let is_cheaper = |row: &Row| row.verdict() == Verdict::Cheaper;
        self.environments.is_none() && self.rows.iter().any(is_cheaper)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>12}{:>12}{:>9}", "operation", "recorded", "measured", "change")?;
        for row in &self.rows {
            let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
            let change = row.change().map_or_else(String::new, |change| format!("{change:+.2} %"));
            let verdict = match row.verdict() {
                Verdict::Same => "",
                Verdict::Dearer => "  DEARER",
                Verdict::Cheaper => "  CHEAPER",
                Verdict::NotRecorded => "  NOT RECORDED",
                Verdict::NotMeasured => "  NOT MEASURED",
            };
            let (old, new) = (count(row.old), count(row.new));
            writeln!(f, "{:<24}{old:>12}{new:>12}{change:>9}{verdict}", row.name)?;
        }
        if self.is_cheaper() {
            writeln!(f, "\n{CHEAPER}")?;
        }
        if let Some((old, new)) = &self.environments {
            writeln!(f, "\nNot compared: the counts depend on the compiler and the C library.")?;
            writeln!(f, "recorded with {}\nmeasured with {}", old.0, new.0)?;
        }
        Ok(())
    }
}
