//! Sentences that say what was done, with names in them.

use askama::Template;

use crate::console::pages::people::People;

use super::entry::Entry;
use super::labels;
use super::log::Log;
use super::words;

/// Words with names in them.
#[derive(Template)]
#[template(path = "console/pages/activity/sentence.html")]
pub(super) struct Sentence {
    pieces: Vec<Piece>,
}

impl Sentence {
    /// Returns the sentence without links.
    pub(super) fn text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Words(text) | Piece::Name(text) | Piece::Link(text, _) => text.as_str(),
        });
        texts.collect()
    }
}

/// A piece of a sentence.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// Words of the console.
    Words(String),
    /// A name that people chose.
    Name(String),
    /// The name of the object, with its page.
    Link(String, String),
}

impl Entry {
    /// Says what was done.
    pub(super) fn sentence(&self, log: &Log, people: &People) -> Sentence {
        let field = match self.detail.changes.as_slice() {
            [only] => Some(labels::label(&only.field)),
            _ => None,
        };
        self.pieces(&words::sentence(&self.scope, &self.activity, field.as_deref()), log, people)
    }

    /// Names the object of the entry.
    pub(super) fn object(&self, log: &Log, people: &People) -> Sentence {
        self.pieces(&words::object(&self.scope), log, people)
    }

    /// Fills the placeholders of a template.
    fn pieces(&self, template: &str, log: &Log, people: &People) -> Sentence {
        let template = template.replace("{target}", &self.target());
        let mut pieces = Vec::new();
        let mut rest = template.as_str();
        while let Some((words, (placeholder, after))) =
            rest.split_once('{').and_then(|(words, inner)| Some((words, inner.split_once('}')?)))
        {
            pieces.push(Piece::Words(words.to_owned()));
            pieces.push(if placeholder == "who" { self.who(people) } else { self.name(log) });
            rest = after;
        }
        pieces.push(Piece::Words(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Words(String::new()));
        Sentence { pieces }
    }

    fn name(&self, log: &Log) -> Piece {
        let name = self.detail.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let text = match name {
            Some(name) => crate::console::pages::excerpt(name),
            None => return Piece::Words("without a name".to_owned()),
        };
        match log.page_of(self).filter(|_| self.activity != "deleted") {
            Some(href) => Piece::Link(text, href),
            None => Piece::Name(text),
        }
    }

    /// Returns the member that the entry is about.
    fn who(&self, people: &People) -> Piece {
        let last = self.item_id.rsplit(':').next().unwrap_or_default();
        let known = match self.scope.as_str() {
            "OrganizationMembership" => people.by_membership(last).map(|user| user.person.name()),
            "RoleMembership" => {
                let user = self.detail.changes.iter().find(|change| change.field == "user");
                let text = user.and_then(|user| user.after.as_str().or(user.before.as_str()));
                text.map(str::to_owned)
            }
            _ if last == "*" => return Piece::Words("everyone".to_owned()),
            _ => people.by_number(last).map(|user| user.person.name()),
        };
        let is_role = self.scope == "AccessControl" && last.contains('-');
        let unknown = if is_role { "a role" } else { "a member" };
        known.map_or_else(|| Piece::Words(unknown.to_owned()), Piece::Name)
    }

    /// Returns the object of an access rule, whose `item_id` is `<project>:<subject>` or
    /// `<project>:<kind>:<object or *>:<subject>`.
    fn target(&self) -> String {
        let mut parts = self.item_id.split(':').skip(1);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some("*"), Some(_)) => {
                format!("all {}s of the project {{}}", kind.replace('_', " "))
            }
            (Some(kind), Some(_), Some(_)) => format!("the {} {{}}", kind.replace('_', " ")),
            _ => "the project {}".to_owned(),
        }
    }
}
