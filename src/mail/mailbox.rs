//! Mailboxes: what mails to an address are counted by.

use email_address::{EmailAddress, Options};

/// The mailbox that an address leads to, in one spelling: in lower case, without quotes, and without the tag behind a
/// `+`. Mails to all spellings of a mailbox count together.
///
/// The result is a key for counting, not an address to send to: some servers keep case and tags apart. A text that is
/// not an address is its own mailbox.
pub(super) fn mailbox(address: &str) -> String {
    let options = Options::default().without_display_text();
    let Ok(parsed) = EmailAddress::parse_with_options(address, options) else {
        return address.to_lowercase();
    };
    let local = unquoted(parsed.local_part());
    let untagged = match local.split_once('+') {
        Some((name, _)) if !name.is_empty() => name,
        _ => &local,
    };
    format!("{untagged}@{}", parsed.domain()).to_lowercase()
}

/// The local part of a valid address without its quotes. In quotes a backslash stands before the character that it
/// quotes.
fn unquoted(local: &str) -> String {
    let Some(quoted) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return local.to_owned();
    };
    let mut characters = quoted.chars();
    let next = || match characters.next() {
        Some('\\') => characters.next(),
        character => character,
    };
    std::iter::from_fn(next).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_mailbox_is_one() {
        for address in [
            "victim@x.example",
            "Victim@X.example",
            "victim+1@x.example",
            "victim+1+2@x.example",
            "\"victim\"@x.example",
            "\"v\\ictim\"@x.example",
            "\"V\\i\\c\\t\\i\\m+tag\"@x.example",
        ] {
            assert_eq!(mailbox(address), "victim@x.example", "{address}");
        }
    }

    #[test]
    fn other_addresses_are_other_mailboxes() {
        for (address, counted) in [
            ("+tag@x.example", "+tag@x.example"),
            ("\"+a\"@x.example", "+a@x.example"),
            ("a.b@x.example", "a.b@x.example"),
            ("\"a@b\"@x.example", "a@b@x.example"),
            ("\"a\\\\b\"@x.example", "a\\b@x.example"),
            ("Ä@BÜCHER.example", "ä@bücher.example"),
            ("No Address", "no address"),
            ("", ""),
        ] {
            assert_eq!(mailbox(address), counted);
        }
    }

    /// A local part in quotes, with a backslash before the characters where the second item says so.
    fn quoted(local: &str, escaped: &[bool]) -> String {
        let escape = |(at, c): (usize, char)| match c {
            '"' | '\\' => format!("\\{c}"),
            c if escaped.get(at).copied().unwrap_or_default() => format!("\\{c}"),
            c => c.to_string(),
        };
        let inner: String = local.chars().enumerate().map(escape).collect();
        format!("\"{inner}\"")
    }

    proptest! {
        #[test]
        fn quotes_case_and_tags_make_no_other_mailbox(
            local in "[a-z0-9_-]{1,8}(\\.[a-z0-9_-]{1,8}){0,2}",
            domain in "[a-z0-9]{1,8}\\.[a-z]{2,6}",
            tag in proptest::option::of("[a-zA-Z0-9]{0,6}"),
            escaped in proptest::collection::vec(any::<bool>(), 0..40),
        ) {
            let plain = mailbox(&format!("{local}@{domain}"));
            prop_assert_eq!(&plain, &format!("{local}@{domain}"));
            let tagged = tag.map_or(local.clone(), |tag| format!("{local}+{tag}"));
            prop_assert_eq!(&mailbox(&format!("{tagged}@{domain}")), &plain);
            prop_assert_eq!(&mailbox(&format!("{}@{domain}", tagged.to_uppercase())), &plain);
            prop_assert_eq!(&mailbox(&format!("{}@{domain}", quoted(&tagged, &escaped))), &plain);
        }

        #[test]
        fn quoting_keeps_every_printable_local_part(
            local in "[ !-~]{1,20}",
            escaped in proptest::collection::vec(any::<bool>(), 20),
        ) {
            // A space is quoted as it is.
            let escaped: Vec<_> =
                local.chars().zip(escaped).map(|(c, escaped)| escaped && c != ' ').collect();
            prop_assert_eq!(unquoted(&quoted(&local, &escaped)), local);
        }

        #[test]
        fn any_text_has_a_mailbox_in_lower_case(text in "\\PC{0,40}|[\"\\\\@+a-z.]{0,20}") {
            let counted = mailbox(&text);
            prop_assert_eq!(counted.to_lowercase(), counted.clone());
            prop_assert_eq!(mailbox(&text), counted);
        }
    }
}
