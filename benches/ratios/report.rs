//! The result table: one line per goal with the measured value, the goal, the floor and the
//! verdict.

use std::time::Duration;

/// The unit of a line's value.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// A ratio of two figures of one run.
    Times,
    Micros,
    Millis,
    Kilobytes,
    Megabytes,
    /// HTTP requests of a browser.
    Requests,
    /// Argon2id verifications on this machine.
    Verifies,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Times => format!("{value:.2}x"),
            Self::Micros => format!("{value:.2} us"),
            Self::Kilobytes => format!("{value:.1} KB"),
            Self::Requests => format!("{value:.0}"),
            Self::Millis if value < 10.0 => format!("{value:.2} ms"),
            Self::Millis => format!("{value:.0} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Verifies if value < 0.1 => format!("{value:.4} verifies"),
            Self::Verifies => format!("{value:.1} verifies"),
        }
    }
}

/// Whether a bound is a minimum or a maximum.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    AtLeast,
    AtMost,
}

impl Side {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
        }
    }

    fn show(self, bound: Option<f64>, unit: Unit) -> String {
        let sign = match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        };
        bound.map_or_else(|| "-".to_owned(), |bound| format!("{sign} {}", unit.show(bound)))
    }
}

/// A measured value with its goal.
#[derive(Clone, Debug)]
pub struct ReportLine {
    pub row: u8,
    what: String,
    figures: String,
    value: f64,
    unit: Unit,
    side: Side,
    goal: Option<f64>,
    floor: Option<f64>,
}

impl ReportLine {
    /// Creates a line of row `row` without bounds.
    pub fn new(row: u8, what: impl Into<String>, value: f64, unit: Unit) -> Self {
        let (what, figures) = (what.into(), String::new());
        Self { row, what, figures, value, unit, side: Side::AtMost, goal: None, floor: None }
    }

    /// Creates a line about a ratio of two figures of one run.
    pub fn ratio(row: u8, what: impl Into<String>, value: f64) -> Self {
        Self::new(row, what, value, Unit::Times)
    }

    /// Sets the figures behind the value.
    pub fn figures(self, figures: impl Into<String>) -> Self {
        Self { figures: figures.into(), ..self }
    }

    /// Sets a goal and a floor that the value should not be less than.
    pub fn at_least(self, goal: f64, floor: f64) -> Self {
        Self { side: Side::AtLeast, goal: Some(goal), floor: Some(floor), ..self }
    }

    /// Sets a goal and a floor that the value should not exceed.
    pub fn at_most(self, goal: f64, floor: f64) -> Self {
        Self { goal: Some(goal), floor: Some(floor), ..self }
    }

    /// Sets a goal that the value should not exceed, without a floor.
    pub fn hoped(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }

    fn verdict(&self) -> &'static str {
        let holds =
            |bound: Option<f64>| bound.is_some_and(|bound| self.side.holds(self.value, bound));
        match (holds(self.goal), holds(self.floor), self.floor) {
            (true, ..) => "goal met",
            (_, true, _) => "floor met",
            (_, _, Some(_)) => "BELOW FLOOR",
            _ if self.goal.is_some() => "goal missed",
            _ => "informative",
        }
    }

    fn cells(&self) -> [String; 7] {
        [
            self.row.to_string(),
            self.what.clone(),
            self.figures.clone(),
            self.unit.show(self.value),
            self.side.show(self.goal, self.unit),
            self.side.show(self.floor, self.unit),
            self.verdict().to_owned(),
        ]
    }
}

const HEAD: [&str; 7] = ["#", "what", "figures", "ratio", "goal", "floor", "verdict"];

/// Renders the lines in row order, as aligned text or as a Markdown table.
pub fn table(mut lines: Vec<ReportLine>, markdown: bool) -> String {
    lines.sort_by_key(|line| line.row);
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(lines.iter().map(ReportLine::cells));
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let render = |row: &[String; 7]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        if markdown {
            format!("| {} |", cells.join(" | "))
        } else {
            cells.join("  ").trim_end().to_owned()
        }
    };
    let mut text: Vec<String> = rows.iter().map(render).collect();
    if markdown {
        text.insert(1, format!("|{}", "---|".repeat(HEAD.len())));
    }
    text.join("\n")
}

/// Returns the median, or 0 for no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Returns the median of a figure over all rounds.
pub fn middle<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    median(rounds.iter().map(figure).collect())
}

/// Converts a duration to milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Converts bytes to megabytes (10^6 bytes).
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
