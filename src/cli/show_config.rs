//! `steward config`: the settings of `steward serve`, as a configuration file.

use std::path::Path;

use clap::ArgAction;
use serde_json::{Value as Json, json};
use toml::Value;

use super::args::{ArgValue, Source};
use super::config_file::{accepts_numbers, is_secret, key, mask};

/// Formats the settings as a valid configuration file, except for masked values. Defaults are comments, so that the
/// file does not pin them for later releases.
pub(super) fn to_toml(settings: &[ArgValue], file: Option<&Path>) -> String {
    let head = match file {
        Some(file) => {
            format!("# {}, overridden by flags and environment variables", file.display())
        }
        None => "# no file: flags, environment variables and defaults".to_owned(),
    };
    let lines = settings.iter().map(ArgValue::to_toml_line);
    [head].into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// Formats the settings as JSON.
pub(super) fn to_json(settings: &[ArgValue]) -> Json {
    let one = |setting: &ArgValue| {
        json!({
            "key": key(&setting.flag),
            "value": setting.value(),
            "source": setting.source.as_str(),
            "masked": setting.is_masked(),
        })
    };
    json!({ "results": settings.iter().map(one).collect::<Vec<_>>() })
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

impl ArgValue {
    /// Returns the value as it would be in a file, with secrets masked.
    fn value(&self) -> Option<Value> {
        let one = |text: &String| match text.parse() {
            _ if is_secret(&self.flag) => Value::String(mask(&self.flag, text)),
            Ok(number) if accepts_numbers(&self.flag) => Value::Integer(number),
            _ => Value::String(text.clone()),
        };
        let first = self.values.first();
        match self.flag.get_action() {
            ArgAction::SetTrue => first.map(|text| Value::Boolean(text == "true")),
            ArgAction::Append if self.values.is_empty() && self.source == Source::Default => None,
            ArgAction::Append => Some(Value::Array(self.values.iter().map(one).collect())),
            _ => first.map(one),
        }
    }

    fn to_toml_line(&self) -> String {
        let (name, source) = (key(&self.flag), self.source.as_str());
        match self.value() {
            Some(value) if self.source == Source::Default => {
                format!("# {name} = {value} # {source}")
            }
            Some(value) if self.is_masked() => format!("{name} = {value} # {source}, masked"),
            Some(value) => format!("{name} = {value} # {source}"),
            None => format!("# {name} is not set"),
        }
    }

    /// Returns whether a part of the value is masked.
    fn is_masked(&self) -> bool {
        is_secret(&self.flag) && self.values.iter().any(|text| mask(&self.flag, text) != *text)
    }
}
