//! The fields of parts of a dashboard in its entries: `tiles__3__color`, `texts__4__body`. An update sets them in its list of
//! tiles.

use serde_json::{Map, Value, json};

use super::entry::Change;

/// A field of a part of a dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartField<'f> {
    list: &'f str,
    id: u64,
    name: &'f str,
}

impl<'f> PartField<'f> {
    /// Reads the name of a field. Returns `None` for a field of the object itself.
    pub(super) fn of(field: &'f str) -> Option<Self> {
        let mut parts = field.splitn(3, "__");
        let (list, id, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { list, id: id.parse().ok()?, name })
    }

    /// Returns whether an update can set the field to its former value. `changes` are those of the entry.
    pub(super) fn is_settable(self, before: &Value, changes: &[Change]) -> bool {
        match (self.list, self.name) {
            ("tiles", "deleted" | "layouts") | ("texts", "body") => !before.is_null(),
            (
                "tiles",
                "color" | "show_description" | "transparent_background" | "filters_overrides",
            ) => {
                let of_new_tile = |name: &str| {
                    let part = PartField { name, ..self };
                    changes.iter().any(|change| PartField::of(&change.field) == Some(part))
                };
                !(of_new_tile("insight") || of_new_tile("text"))
            }
            _ => false,
        }
    }

    /// Returns the value in a dashboard, or `None` if the dashboard does not show the part.
    pub(super) fn value(self, dashboard: &Value) -> Option<Value> {
        match (self.list, self.name) {
            ("tiles", "deleted") => Some(self.tile(dashboard).is_none().into()),
            ("texts", name) => self.tile(dashboard)?.get("text")?.get(name).cloned(),
            (_, name) => self.tile(dashboard)?.get(name).cloned(),
        }
    }

    /// Adds the field with a value to the list of tiles in the body of an update.
    pub(super) fn set(self, dashboard: &Value, value: &Value, tiles: &mut Vec<Value>) {
        let tile = match self.list {
            "texts" => self.tile(dashboard).map_or(Value::Null, |tile| tile["id"].clone()),
            _ => self.id.into(),
        };
        let at = tiles.iter().position(|known| known["id"] == tile).unwrap_or_else(|| {
            tiles.push(json!({ "id": tile }));
            tiles.len() - 1
        });
        let Some(Value::Object(patch)) = tiles.get_mut(at) else { return };
        if self.list == "texts" {
            let text = [("id", self.id.into()), (self.name, value.clone())];
            let text: Map<_, _> =
                text.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            patch.insert("text".to_owned(), text.into());
        } else {
            patch.insert(self.name.to_owned(), value.clone());
        }
    }

    /// Returns the tile that is the part, or that shows it.
    fn tile(self, dashboard: &Value) -> Option<&Value> {
        let tiles = dashboard.get("tiles")?.as_array()?;
        tiles.iter().find(|tile| {
            let id = if self.list == "texts" { tile.pointer("/text/id") } else { tile.get("id") };
            id.is_some_and(|id| *id == self.id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_from_names_of_fields() {
        assert_eq!(
            PartField::of("tiles__3__show_description"),
            Some(PartField { list: "tiles", id: 3, name: "show_description" })
        );
        for other in ["name", "destination__secrets", "tiles__x__color", "tiles__3"] {
            assert_eq!(PartField::of(other), None, "{other}");
        }
    }

    #[test]
    fn values_of_parts_are_found_and_set_in_tiles() {
        let dashboard = json!({ "tiles": [
            { "id": 3, "color": "blue", "text": null },
            { "id": 5, "color": null, "text": { "id": 4, "body": "Hello" } },
        ] });
        let part = |field| PartField::of(field).expect("a part");
        let mut tiles = Vec::new();
        for (field, now) in [
            ("tiles__3__color", Some(json!("blue"))),
            ("tiles__3__deleted", Some(json!(false))),
            ("tiles__9__deleted", Some(json!(true))),
            ("texts__4__body", Some(json!("Hello"))),
            ("texts__6__body", None),
        ] {
            assert_eq!(part(field).value(&dashboard), now, "{field}");
            if now.is_some() {
                part(field).set(&dashboard, &json!("x"), &mut tiles);
            }
        }
        let expected = json!([
            { "id": 3, "color": "x", "deleted": "x" },
            { "id": 9, "deleted": "x" },
            { "id": 5, "text": { "id": 4, "body": "x" } },
        ]);
        assert_eq!(json!(tiles), expected);
    }
}
