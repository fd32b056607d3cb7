//! Insights in the model, and their tiles on dashboards.

use super::world::{
    ACCESS, At, Checked, EDITOR, Id, NAMES, Outcome, Rules, VIEWER, World, answer, deny, invalid,
    level_on, missing,
};
use crate::prelude::*;

#[derive(Debug, Clone, Default)]
pub struct Insight {
    pub project: Id,
    pub name: String,
    pub maker: usize,
    pub deleted: bool,
    /// The dashboards that ever showed the insight, and whether they do.
    pub tiles: BTreeMap<Id, bool>,
    pub rules: Rules,
}

impl Insight {
    /// Returns the dashboards that show the insight.
    fn shown_on(&self) -> impl Iterator<Item = Id> {
        self.tiles.iter().filter(|(_, live)| **live).map(|(board, _)| *board)
    }
}

const RESTRICTED: &str = "This insight is on a dashboard that can only be edited by its owner, team members invited to editing the dashboard, and project admins.";

impl World {
    /// Returns the number of tiles of a dashboard that show an insight.
    pub fn insight_tiles(&self, board: Id) -> usize {
        let shown =
            |insight: &&Insight| !insight.deleted && insight.tiles.get(&board) == Some(&true);
        self.file.insights.values().filter(shown).count()
    }

    /// Deletes the tiles of a deleted dashboard.
    pub fn remove_tiles(&mut self, board: Id) {
        for insight in self.file.insights.values_mut() {
            if let Some(live) = insight.tiles.get_mut(&board) {
                *live = false;
            }
        }
    }

    /// Restores the tiles of a restored dashboard, and their insights that the caller may edit.
    pub fn restore_tiles(&mut self, board: Id, at: &At) {
        for insight in self.file.insights.values_mut() {
            if let Some(live) = insight.tiles.get_mut(&board) {
                *live = true;
                if level_on(&insight.rules, insight.maker, at) >= EDITOR {
                    insight.deleted = false;
                }
            }
        }
    }

    fn sees_board(&self, project: Id, board: Id, at: &At) -> bool {
        self.board(project, board).is_some_and(|board| Self::access(board, at) >= VIEWER)
    }

    fn edits_board(&self, board: Id, at: &At) -> bool {
        self.file.boards.get(&board).is_some_and(|board| Self::require_edit(board, at).is_ok())
    }

    /// Returns the restriction and the privilege level of an insight.
    fn levels(&self, insight: &Insight, at: &At) -> (i64, i64) {
        let boards = || insight.shown_on().filter_map(|id| self.file.boards.get(&id));
        if !boards().any(|board| board.restricted) {
            return (21, 37);
        }
        let edits =
            boards().any(|board| Self::access(board, at) >= VIEWER && Self::may_edit(board, at));
        (37, if edits { 37 } else { 21 })
    }

    fn insight_body(&self, id: Id, at: &At) -> Vec<(&'static str, Value)> {
        let insight = &self.file.insights[&id];
        let (restriction, privilege) = self.levels(insight, at);
        let shown = insight.shown_on().filter(|id| self.sees_board(insight.project, *id, at));
        vec![
            ("/id", json!(id)),
            ("/name", json!(insight.name)),
            ("/deleted", json!(insight.deleted)),
            ("/dashboards", json!(shown.collect::<Vec<_>>())),
            ("/effective_restriction_level", json!(restriction)),
            ("/effective_privilege_level", json!(privilege)),
            ("/user_access_level", json!(ACCESS[level_on(&insight.rules, insight.maker, at)])),
        ]
    }

    /// Returns an insight of the project, which may be deleted.
    pub fn insight(&self, project: Id, id: Id) -> Checked<&Insight> {
        let found = self.file.insights.get(&id).filter(|insight| insight.project == project);
        found.map_or_else(|| missing("Not found."), Ok)
    }

    pub fn add_insight(&mut self, by: Id, project: Id, name: usize, on: &BTreeSet<Id>) -> Outcome {
        let at = self.in_project(by, project, "insight:write")?;
        let (name, maker) = (NAMES[name].to_owned(), at.person);
        let insight = Insight { project, name, maker, ..Insight::default() };
        let insight = self.placed(insight, on, &at)?;
        let id = self.file.next_insight;
        self.file.next_insight += 1;
        self.file.insights.insert(id, insight);
        answer(201, self.insight_body(id, &at))
    }

    /// Returns the insight on these dashboards, if the caller may put it there.
    fn placed(&self, mut insight: Insight, boards: &BTreeSet<Id>, at: &At) -> Checked<Insight> {
        for board in boards {
            if !self.sees_board(insight.project, *board, at) {
                let text = format!("Invalid pk \"{board}\" - object does not exist.");
                return invalid("does_not_exist", &text);
            }
        }
        let before: Vec<Id> = insight.shown_on().collect();
        for board in &before {
            if boards.contains(board) || !self.sees_board(insight.project, *board, at) {
                continue;
            }
            if !self.edits_board(*board, at) {
                let what = "to remove insights from dashboard";
                return deny(&format!("You don't have permission {what}: {board}"));
            }
            insight.tiles.insert(*board, false);
        }
        for board in boards.iter().filter(|board| !before.contains(board)) {
            if !self.edits_board(*board, at) {
                let what = "to add insights to dashboard";
                return deny(&format!("You don't have permission {what}: {board}"));
            }
            insight.tiles.insert(*board, true);
        }
        Ok(insight)
    }

    pub fn get_insight(&self, by: Id, project: Id, id: Id) -> Outcome {
        let at = self.in_project(by, project, "insight:read")?;
        let insight = self.insight(project, id)?;
        if insight.deleted {
            return missing("Not found.");
        }
        if level_on(&insight.rules, insight.maker, &at) < VIEWER {
            return deny("You do not have viewer access to this resource.");
        }
        answer(200, self.insight_body(id, &at))
    }

    pub fn list_insights(&self, by: Id, project: Id) -> Outcome {
        let at = self.in_project(by, project, "insight:read")?;
        let seen = |(_, insight): &(&Id, &Insight)| {
            let live = insight.project == project && !insight.deleted;
            live && level_on(&insight.rules, insight.maker, &at) >= VIEWER
        };
        let ids: Vec<_> = self.file.insights.iter().filter(seen).map(|(id, _)| *id).collect();
        answer(200, vec![("/count", json!(ids.len())), ("ids", json!(ids))])
    }

    /// Changes an insight. A deleted one is only found if the request restores it.
    fn change_insight(
        &mut self,
        by: Id,
        (project, id): (Id, Id),
        restores: bool,
        change: impl FnOnce(&Self, Insight, &At) -> Checked<Insight>,
    ) -> Outcome {
        let at = self.in_project(by, project, "insight:write")?;
        let insight = self.insight(project, id)?;
        if insight.deleted && !restores {
            return missing("Not found.");
        }
        if level_on(&insight.rules, insight.maker, &at) < EDITOR {
            return deny("You do not have editor access to this resource.");
        }
        if self.levels(insight, &at).1 < 37 {
            return deny(RESTRICTED);
        }
        let changed = change(self, insight.clone(), &at)?;
        self.file.insights.insert(id, changed);
        answer(200, self.insight_body(id, &at))
    }

    pub fn rename_insight(&mut self, by: Id, of: (Id, Id), name: usize) -> Outcome {
        let name = NAMES[name].to_owned();
        self.change_insight(by, of, false, |_, insight, _| Ok(Insight { name, ..insight }))
    }

    /// Puts an insight on exactly these dashboards, of those that the caller sees.
    pub fn place_insight(&mut self, by: Id, of: (Id, Id), boards: &BTreeSet<Id>) -> Outcome {
        self.change_insight(by, of, false, |world, insight, at| world.placed(insight, boards, at))
    }

    pub fn remove_insight(&mut self, by: Id, of: (Id, Id)) -> Outcome {
        self.change_insight(by, of, false, |_, mut insight, _| {
            insight.tiles.values_mut().for_each(|live| *live = false);
            Ok(Insight { deleted: true, ..insight })
        })
    }

    pub fn restore_insight(&mut self, by: Id, of: (Id, Id)) -> Outcome {
        self.change_insight(by, of, true, |_, insight, _| Ok(Insight { deleted: false, ..insight }))
    }
}
