//! Mailboxes: the keys by which mails to an address are counted, and the masking of addresses in logs.

use email_address::{EmailAddress, Options};

/// The domains of a mail service that ignores dots in the local part.
const GMAIL: [&str; 2] = ["gmail.com", "googlemail.com"];

/// Returns the mailbox of an address in a canonical spelling: in lower case, without quotes, and without the tag
/// after a `+`. Dots are removed from Gmail addresses. Mails to all spellings of a mailbox count together.
///
/// The result is a key for counting, not an address to send to: some servers distinguish case and tags. The mailbox
/// of an invalid address is its text in lower case.
pub(super) fn mailbox(address: &str) -> String {
    let options = Options::default().without_display_text();
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_lowercase() };
    // The parser refuses marks at the end of a label, as many scripts have them, but not their Punycode.
    let ascii = idna::domain_to_ascii(domain).unwrap_or_else(|_| domain.to_owned());
    let Ok(parsed) = EmailAddress::parse_with_options(&format!("{local}@{ascii}"), options) else {
        return address.to_lowercase();
    };
    let local = unquote(parsed.local_part());
    let untagged = match local.split_once('+') {
        Some((name, _)) if !name.is_empty() => name,
        _ => &local,
    };
    let (untagged, domain) = (untagged.to_lowercase(), domain.to_lowercase());
    if GMAIL.contains(&domain.as_str()) {
        return format!("{}@{}", untagged.replace('.', ""), GMAIL[0]);
    }
    format!("{untagged}@{domain}")
}

/// Returns the local part of a valid address without quotes. Inside quotes, a backslash escapes the next character.
fn unquote(local: &str) -> String {
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

/// Replaces each `address` in `line` with `[address]`, ignoring case.
pub(super) fn mask(line: &str, address: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = strip_prefix_ignore_case(rest, address) {
            out.push_str("[address]");
            rest = after;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Replaces every address in `line` with `[address]`.
pub(super) fn mask_all(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before_local_part(before));
        out.push_str("[address]");
        rest = &after[domain_length(after)..];
    }
    out.push_str(rest);
    out
}

/// Returns `text` without the local part at its end, which may be in quotes.
fn before_local_part(text: &str) -> &str {
    let is_open = |at: &usize| !text[..*at].ends_with('\\');
    let quote = text
        .strip_suffix('"')
        .and_then(|quoted| quoted.rmatch_indices('"').map(|(at, _)| at).find(is_open));
    let is_local = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    quote.map_or_else(|| text.trim_end_matches(is_local), |at| &text[..at])
}

/// Returns the length of the domain at the beginning of `text`, without a dot at its end.
fn domain_length(text: &str) -> usize {
    if let Some(end) = text.find(']').filter(|_| text.starts_with('[')) {
        return end + 1;
    }
    // Letters of many scripts are written with marks, which are not alphanumeric.
    let is_domain = |c: char| {
        c.is_ascii_alphanumeric() || "-_.".contains(c) || !c.is_ascii() && !c.is_whitespace()
    };
    let rest = text.trim_start_matches(is_domain).len();
    text[..text.len() - rest].trim_end_matches('.').len()
}

/// Returns the rest of `text` after `prefix`, ignoring case, or `None` if `text` does not start with it.
fn strip_prefix_ignore_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut rest = text.chars();
    for expected in prefix.chars() {
        if !rest.next()?.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    Some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_are_ignored_at_domains_of_every_script() {
        let long = "उदाहरण".repeat(4);
        for domain in
            ["தமிழ்.example", "ไทย์.example", "ශ්\u{200d}රී.example", &format!("{long}.example")]
        {
            assert_eq!(mailbox(&format!("Victim+1@{domain}")), format!("victim@{domain}"));
        }
    }

    #[test]
    fn gmail_dots_and_domain_aliases_name_the_same_mailbox() {
        for address in ["victim@gmail.com", "vic.tim@GMAIL.com", "v.i.c.t.i.m+x@googlemail.com"] {
            assert_eq!(mailbox(address), mailbox("victim@gmail.com"), "{address}");
        }
        assert_eq!(mailbox("vic.tim@gmail.com.x.example"), "vic.tim@gmail.com.x.example");
    }

    #[test]
    fn email_address_is_masked_in_any_case() {
        let line = "550 <ann@x.example>: no; ANN@X.EXAMPLE, anna@x.example, Ann@x.exampl";
        let masked = "550 <[address]>: no; [address], anna@x.example, Ann@x.exampl";
        assert_eq!(mask(line, "Ann@x.example"), masked);
        assert_eq!(mask("550 Ann@BÜCHER.example", "ann@bücher.example"), "550 [address]");
    }

    #[test]
    fn every_address_in_a_line_is_masked() {
        for (line, masked) in [
            ("550 5.1.1 <ann@x.example> is unknown.", "550 5.1.1 <[address]> is unknown."),
            ("ask postmaster@x.example.", "ask [address]."),
            ("550 <a@उदाहरण.परीक्षा>: no", "550 <[address]>: no"),
            ("Ann@BÜCHER.example, \"b \\\"c\\\" d\"@[10.0.0.1]: no", "[address], [address]: no"),
            ("SRS0=a+b=ann=x.example@relay.example;x", "[address];x"),
            ("\"ann lee\"@x.example \"quoted\"", "[address] \"quoted\""),
            ("a@b@c @ @d e@ f@[x", "[address][address] [address] [address] [address] [address][x"),
            ("451 4.3.0 come back later", "451 4.3.0 come back later"),
            ("", ""),
        ] {
            assert_eq!(mask_all(line), masked);
        }
    }

    #[test]
    fn different_addresses_are_different_mailboxes() {
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

    /// Quotes a local part, with a backslash before the characters whose entry in `escaped` is true.
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
        fn quotes_case_and_tags_do_not_change_the_mailbox(
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
        fn unquoting_restores_every_printable_local_part(
            local in "[ !-~]{1,20}",
            escaped in proptest::collection::vec(any::<bool>(), 20),
        ) {
            // In quotes, a space needs no backslash.
            let escaped: Vec<_> =
                local.chars().zip(escaped).map(|(c, escaped)| escaped && c != ' ').collect();
            prop_assert_eq!(unquote(&quoted(&local, &escaped)), local);
        }

        #[test]
        fn masked_text_contains_no_at_sign(text in "\\PC{0,40}|[@\\[\\]\"\\\\a. é]{0,20}") {
            prop_assert!(!mask_all(&text).contains('@'));
        }

        #[test]
        fn mailbox_of_any_text_is_lower_case(text in "\\PC{0,40}|[\"\\\\@+a-z.]{0,20}") {
            let counted = mailbox(&text);
            prop_assert_eq!(counted.to_lowercase(), counted.clone());
            prop_assert_eq!(mailbox(&text), counted);
        }
    }
}
