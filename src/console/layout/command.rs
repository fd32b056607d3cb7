//! The command that sends the request of a page.

use std::fmt;

use axum::http::Method;

use crate::base::error::Result;
use crate::base::json::escape_invisible;
use crate::console::api::Write;
use crate::console::visit::{SignedIn, Visit};
use crate::http::routes::RouteTable;

/// A `curl` command for a POSIX shell. The key comes from the variable `KEY`. Not `Debug`, because the body may contain
/// secrets.
pub(in crate::console) struct Command {
    method: Method,
    url: String,
    /// Headers besides the key.
    headers: Vec<String>,
    body: Option<String>,
}

impl Command {
    /// Returns the command that reads `path`.
    pub(in crate::console) fn get(visit: &Visit, path: &str) -> Self {
        let url = format!("{}{path}", visit.base_url());
        Self { method: Method::GET, url, headers: Vec::new(), body: None }
    }

    /// Returns the command that sends the request of a form.
    pub(in crate::console) fn write(request: &SignedIn, write: &Write) -> Result<Self> {
        Self::of(&request.visit.base_url(), request.api.table(), write)
    }

    /// Returns the command that sends a request to the service at `base_url`.
    pub(in crate::console) fn of(
        base_url: &str,
        table: &RouteTable,
        write: &Write,
    ) -> Result<Self> {
        let (method, path) = write.operation.target(table)?;
        let mut headers = Vec::new();
        if let Some(version) = &write.version {
            headers.push(format!("If-Match: {version}"));
        }
        if let Some(key) = write.key.as_ref().filter(|_| method == Method::POST) {
            headers.push(format!("Idempotency-Key: {key}"));
        }
        if write.body.is_some() {
            headers.push("Content-Type: application/json".to_owned());
        }
        // A person reads the command before running it, so it shows every character of the body in its place.
        let body = write.body.as_ref().map(|body| escape_invisible(body.to_string()));
        Ok(Self { method, url: format!("{base_url}{path}"), headers, body })
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "curl ")?;
        let is_implied =
            self.method == Method::GET || self.method == Method::POST && self.body.is_some();
        if !is_implied {
            write!(f, "-X {} ", self.method)?;
        }
        write!(f, "-H \"Authorization: Bearer $KEY\" \\\n    ")?;
        for header in &self.headers {
            write!(f, "-H {} \\\n    ", quote(header))?;
        }
        if let Some(body) = &self.body {
            write!(f, "--data-raw {} \\\n    ", quote(body))?;
        }
        write!(f, "{}", quote(&self.url))
    }
}

/// Quotes a text for a POSIX shell.
pub(in crate::console) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn shell_reads_a_quoted_text_back(text in "[^\0]{0,20}") {
            let script = format!("printf %s {}", quote(&text));
            let shell = process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            prop_assert_eq!(shell.stdout, text.into_bytes());
        }
    }

    #[test]
    fn command_sends_the_key_of_the_shell() {
        let mut command = Command {
            method: Method::GET,
            url: "http://a/b?c='d'&e".to_owned(),
            headers: Vec::new(),
            body: None,
        };
        let start = "-H \"Authorization: Bearer $KEY\" \\\n    ";
        let end = "'http://a/b?c='\\''d'\\''&e'";
        assert_eq!(command.to_string(), format!("curl {start}{end}"));
        command.method = Method::PATCH;
        command.headers = vec!["If-Match: \"1\"".to_owned()];
        command.body = Some(r#"{"a":"it's @x"}"#.to_owned());
        let middle = "-H 'If-Match: \"1\"' \\\n    --data-raw '{\"a\":\"it'\\''s @x\"}' \\\n    ";
        assert_eq!(command.to_string(), format!("curl -X PATCH {start}{middle}{end}"));
    }
}
