//! Patterns in which `*` stands for any text without a separator.

/// Returns whether a text is like a pattern. Takes at most as many steps as the product of their lengths.
pub(super) fn matches_pattern(pattern: &str, text: &str, separator: u8) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut place) = (0, 0);
    // The last `*`: what follows it in the pattern, and where its text ends so far. An earlier one need not be longer.
    let mut last = None;
    loop {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                last = Some((at, place));
            }
            None if place == text.len() => return true,
            Some(wanted) if text.get(place) == Some(wanted) => {
                at += 1;
                place += 1;
            }
            _ => match last {
                Some((after, end)) if text.get(end).is_some_and(|byte| *byte != separator) => {
                    (at, place) = (after, end + 1);
                    last = Some((after, place));
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_anything_but_the_separator() {
        let matches = |pattern: &str, text: &str| matches_pattern(pattern, text, b'/');
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("/a/*/b", "/a/x/b"),
            ("/a*c", "/abcbc"),
            ("*/*", "/"),
            ("/*a*b", "/aabab"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("*", "/"), ("/a/*/b", "/a/x/y/b"), ("/a*", "/a/"), ("a", ""), ("*b", "bc")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(1000), &"a".repeat(999)), "and soon");
    }
}
