//! The command that sends the request of a page.

use std::fmt;

use crate::console::visit::Visit;

/// A `curl` command for a POSIX shell. The key comes from the variable `KEY`.
pub(in crate::console) struct Command(String);

impl Command {
    /// Returns the command that reads `path`.
    pub(in crate::console) fn get(visit: &Visit, path: &str) -> Self {
        Self(format!("{}{path}", visit.base_url()))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "curl -H \"Authorization: Bearer $KEY\" \\\n    {}", quote(&self.0))
    }
}

/// Quotes a text for a POSIX shell.
fn quote(text: &str) -> String {
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
        let command = Command("http://a/b?c='d'&e".to_owned());
        assert_eq!(
            command.to_string(),
            "curl -H \"Authorization: Bearer $KEY\" \\\n    'http://a/b?c='\\''d'\\''&e'"
        );
    }
}
