//! Telling the address of a database from the path of a file. An address may have a password, so it is never taken for a path,
//! which messages show.

/// The text that replaces a password.
pub const MASK: &str = "********";

/// The keywords of PostgreSQL's connection strings that name a server, an account or a secret, between spaces.
const KEYWORDS: &str =
    "host hostaddr port dbname user password passfile sslmode sslpassword service";

/// Returns whether `text` looks like the address of a database, valid or not: a URL of any scheme, `user:password@host`, or a
/// list such as `host=db user=ann`. A path that begins with `/`, `./` or `../` is a path, unless it has a password's place.
pub fn looks_like_database_address(text: &str) -> bool {
    let text = text.trim().trim_matches(['"', '\'']);
    is_url(text) || has_credentials(text) || has_keywords(text)
}

/// Returns the text with a mask in place of each word that looks like an address.
pub fn mask_database_addresses(text: &str, words: impl IntoIterator<Item = String>) -> String {
    let mut masked = text.to_owned();
    for word in words {
        // The value of a flag is a word of its own in messages.
        let value = word.split_once('=').filter(|(flag, _)| flag.starts_with("--"));
        let value = value.map_or(word.as_str(), |(_, value)| value);
        if looks_like_database_address(value) {
            masked = masked.replace(value, MASK);
        }
    }
    masked
}

fn is_path(text: &str) -> bool {
    (text.starts_with('/') && !text.starts_with("//"))
        || text.starts_with("./")
        || text.starts_with("../")
}

/// Whether the text has a scheme, or one of PostgreSQL with an incomplete separator.
fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_scheme = |scheme: &str| {
        let rest = lower.strip_prefix(scheme);
        rest.is_some_and(|rest| rest.starts_with([':', ';']) || rest.starts_with("//"))
    };
    !is_path(text)
        && (lower.contains("://") || ["postgres", "postgresql"].into_iter().any(has_scheme))
}

/// Whether the text has a user and a password before a host, as in `user:password@host`.
fn has_credentials(text: &str) -> bool {
    let Some((before, _)) = text.rsplit_once('@') else { return false };
    if is_path(text) {
        return before.contains("://");
    }
    before.contains(':')
}

/// Whether the text has a keyword of PostgreSQL before an equals sign.
fn has_keywords(text: &str) -> bool {
    let is_keyword = |word: &str| KEYWORDS.split(' ').any(|known| known.eq_ignore_ascii_case(word));
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        let word = before.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        if word.is_some_and(is_keyword) {
            return !is_path(text);
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_spelling_are_told_from_paths() {
        for address in [
            "postgres://ann:hunter2@db/x",
            "postgresql://db",
            " postgres://ann:hunter2@db/x\n",
            "'postgres://ann:hunter2@db/x'",
            "POSTGRES://db/x",
            "postgre://ann:hunter2@db/x",
            "postgers://ann:hunter2@db/x",
            "mysql://ann:hunter2@db/x",
            "jdbc:postgresql://db/x?user=ann&password=hunter2",
            "://ann:hunter2@db/x",
            "postgres:/ann:hunter2@db/x",
            "postgres:ann:hunter2@db/x",
            "postgres//ann:hunter2@db/x",
            "postgres;//ann:hunter2@db/x",
            "//ann:hunter2@db/x",
            "ann:hunter2@db/x",
            "/postgres://ann:hunter2@db/x",
            "host=db user=ann password=hunter2",
            "host = db password = hunter2",
            "dbname=x",
            "user='ann' password='hunter2'",
            "PASSWORD=hunter2",
            "file://x",
        ] {
            assert!(looks_like_database_address(address), "{address}");
        }
        for path in [
            "steward.redb",
            "/srv/steward.redb",
            "/srv/a:b.redb",
            "/srv/steward@a/steward.redb",
            "/srv/2026-01-01T10:00@a.redb",
            "./host=db",
            "../ann:b@c.redb",
            "steward@a.redb",
            "a:b.redb",
            "postgres.redb",
            "postgres/steward.redb",
            "postgresql-copy.redb",
            "ghost=x.redb",
            "a=b.redb",
            "C:\\steward.redb",
        ] {
            assert!(!looks_like_database_address(path), "{path}");
        }
    }

    #[test]
    fn addresses_in_a_message_are_masked() {
        let words = ["serve", "--data=mysql://ann:hunter2@db", "ann:hunter2@db/x", "a.redb"];
        let text = "invalid value 'mysql://ann:hunter2@db'; unexpected argument 'ann:hunter2@db/x', a.redb";
        let masked = mask_database_addresses(text, words.map(str::to_owned));
        assert_eq!(masked, "invalid value '********'; unexpected argument '********', a.redb");
    }
}
