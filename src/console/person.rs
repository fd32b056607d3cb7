//! A user, as the API describes one in other objects.

use serde::Deserialize;

/// The names and the address of a user.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Person {
    #[serde(default)]
    pub(super) first_name: String,
    #[serde(default)]
    pub(super) last_name: String,
    #[serde(default)]
    pub(super) email: String,
}

impl Person {
    /// Returns the name, or the address if there is no name.
    pub(super) fn name(&self) -> String {
        match format!("{} {}", self.first_name.trim(), self.last_name.trim()).trim() {
            "" => self.email.clone(),
            name => name.to_owned(),
        }
    }

    /// Returns the name with the address, for a choice among people.
    pub(super) fn label(&self) -> String {
        let name = self.name();
        if name == self.email || self.email.is_empty() {
            return name;
        }
        format!("{name}, {}", self.email)
    }

    /// Returns the first letters of the names, or of the address.
    pub(super) fn initials(&self) -> String {
        match (self.first_name.trim(), self.last_name.trim()) {
            ("", "") => initial(&self.email),
            (first, "") => initial(first),
            ("", last) => initial(last),
            (first, last) => initial(first) + &initial(last),
        }
    }
}

/// A user with the ids.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct User {
    pub(super) id: u64,
    pub(super) uuid: String,
    #[serde(flatten)]
    pub(super) person: Person,
}

/// Returns the first letter of a name.
pub(super) fn initial(text: &str) -> String {
    text.trim().chars().next().map_or("·".to_owned(), |first| first.to_uppercase().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_without_a_name_are_shown_by_their_address() {
        let person = |first: &str, last: &str| Person {
            first_name: first.to_owned(),
            last_name: last.to_owned(),
            email: "ada@x.example".to_owned(),
        };
        let shown = |first, last| (person(first, last).name(), person(first, last).initials());
        assert_eq!(shown("Ada", " Lovelace "), ("Ada Lovelace".to_owned(), "AL".to_owned()));
        assert_eq!(shown(" ", "éric"), ("éric".to_owned(), "É".to_owned()));
        assert_eq!(shown("", ""), ("ada@x.example".to_owned(), "A".to_owned()));
        assert_eq!(Person::default().initials(), "·");
    }
}
