//! Which of several access rules decides about an object. See `docs/spec/access-controls.md`.

use crate::base::error::Result;
use crate::resources::shared::access_subject::{Subject, highest};

use super::levels::AccessLevel;

/// Rules of equal precedence: those on one object or on all objects of its kind, for everyone or for subjects by name.
/// The highest of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// Whether the rules are on all objects of the kind.
    pub on_kind: bool,
    /// Whether the rule is for everyone, and not for the member or a role of the member.
    pub for_everyone: bool,
}

/// The tiers of rules on an object. The first that has a rule decides.
pub const OF_OBJECT: [Tier; 4] = [
    Tier { on_kind: false, for_everyone: false },
    Tier { on_kind: true, for_everyone: false },
    Tier { on_kind: true, for_everyone: true },
    Tier { on_kind: false, for_everyone: true },
];

/// The tiers of rules on all objects of a kind. The first that has a rule decides.
pub const OF_KIND: [Tier; 2] = [OF_OBJECT[1], OF_OBJECT[2]];

/// The rule that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidingRule {
    /// The tier of the rule.
    pub tier: Tier,
    /// Whom the rule names.
    pub subject: Subject,
    /// The level that the rule gives.
    pub level: AccessLevel,
}

/// Returns the rule of the first tier that has a rule. `named` are the member and the roles of the member; `level_of`
/// returns the level of the rule of a tier for a subject.
pub fn deciding_rule(
    tiers: &[Tier],
    named: &[Subject],
    mut level_of: impl FnMut(Tier, Subject) -> Result<Option<AccessLevel>>,
) -> Result<Option<DecidingRule>> {
    for &tier in tiers {
        let subjects = if tier.for_everyone { &[Subject::Everyone] } else { named };
        let found = highest(subjects.iter().copied(), |subject| level_of(tier, subject))?;
        if let Some((level, subject)) = found {
            return Ok(Some(DecidingRule { tier, subject, level }));
        }
    }
    Ok(None)
}
