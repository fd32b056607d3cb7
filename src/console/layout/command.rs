//! The command that sends the request of a page.

use std::iter;

use askama::Template;
use axum::http::Method;

use crate::base::error::Result;
use crate::base::json::escape_invisible;
use crate::console::api::Write;
use crate::console::visit::{SignedIn, Visit};
use crate::http::routes::RouteTable;

/// A `curl` command for a POSIX shell, shown on demand. Not `Debug`, because the body may contain secrets.
#[derive(Template)]
#[template(path = "console/layout/command.html")]
pub(crate) struct Command {
    pub(crate) text: String,
}

impl Command {
    /// Returns the command that reads `path`.
    pub(in crate::console) fn get(visit: &Visit, path: &str) -> Self {
        let url = format!("{}{path}", visit.base_url());
        Self { text: curl(&Method::GET, &url, &[KEY.to_owned()], None) }
    }

    /// Returns the command that sends the request of a form.
    pub(in crate::console) fn write(request: &SignedIn, write: &Write) -> Result<Self> {
        Self::of(&request.visit.base_url(), &request.api.table, write)
    }

    /// Returns the command that sends a request to the service at `base_url`.
    pub(in crate::console) fn of(
        base_url: &str,
        table: &RouteTable,
        write: &Write,
    ) -> Result<Self> {
        let (method, path) = write.operation.target(table)?;
        let others = write.headers(&method).into_iter();
        let others = others.map(|(name, value)| quote(&format!("{name}: {value}")));
        let headers: Vec<_> = iter::once(KEY.to_owned()).chain(others).collect();
        // A person reads the command before running it, so it shows every character of the body in its place.
        let body = write.body.as_ref().map(|body| escape_invisible(body.to_string()));
        let url = format!("{base_url}{path}");
        Ok(Self { text: curl(&method, &url, &headers, body.as_deref()) })
    }
}

/// The header with the key, from a variable of the shell.
const KEY: &str = "\"Authorization: Bearer $KEY\"";

/// Returns the command that sends a request. Each of the headers is a word of the shell.
pub(crate) fn curl(method: &Method, url: &str, headers: &[String], body: Option<&str>) -> String {
    let implied = if body.is_some() { Method::POST } else { Method::GET };
    let method = if *method == implied { String::new() } else { format!(" -X {method}") };
    let mut parts: Vec<_> = headers.iter().map(|header| format!("-H {header}")).collect();
    parts.extend(body.map(|body| format!("--data-raw {}", quote(body))));
    parts.push(quote(url));
    format!("curl{method} {}", parts.join(" \\\n    "))
}

/// Quotes a text for a POSIX shell.
pub(crate) fn quote(text: &str) -> String {
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
        let url = "http://a/b?c='d'&e";
        let start = "-H \"Authorization: Bearer $KEY\" \\\n    ";
        let end = "'http://a/b?c='\\''d'\\''&e'";
        assert_eq!(curl(&Method::GET, url, &[KEY.to_owned()], None), format!("curl {start}{end}"));
        let (headers, body) = ([KEY, "'If-Match: \"1\"'"].map(str::to_owned), r#"{"a":"it's @x"}"#);
        let middle = "-H 'If-Match: \"1\"' \\\n    --data-raw '{\"a\":\"it'\\''s @x\"}' \\\n    ";
        let command = curl(&Method::PATCH, url, &headers, Some(body));
        assert_eq!(command, format!("curl -X PATCH {start}{middle}{end}"));
    }
}
