//! The positions of tiles on the grid of 12 columns. Tiles fall up: no tile has free space for it above.

use std::fmt::Write;

use serde_json::Value;

use super::tile::Tile;

pub(super) const COLUMNS: usize = 12;
/// The size of a tile without a layout.
const DEFAULT_SIZE: (usize, usize) = (6, 5);
/// The maximum height of a tile, in rows.
pub(super) const MAX_HEIGHT: usize = 50;
/// The coordinate of a tile without a layout: at the end.
pub(super) const LAST: usize = 10_000;

/// The place of a tile, in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Place {
    /// Reads the layout for wide screens. Clients may store any JSON there.
    fn of(layouts: &Value) -> Self {
        let wide = layouts.get("sm");
        let read = |name, otherwise| {
            wide.and_then(|wide| coordinate(wide.get(name)?)).unwrap_or(otherwise)
        };
        let width = read("w", DEFAULT_SIZE.0).clamp(1, COLUMNS);
        Self {
            x: read("x", 0).min(COLUMNS - width),
            y: read("y", LAST).min(LAST),
            width,
            height: read("h", DEFAULT_SIZE.1).clamp(1, MAX_HEIGHT),
        }
    }
}

/// Reads a number, or a text with a number. Fractions and negative numbers are rounded to a whole cell.
fn coordinate(value: &Value) -> Option<usize> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse::<f64>().ok()?,
        _ => return None,
    };
    let whole = number.is_finite().then(|| number.clamp(0.0, 10_000.0).round())?;
    format!("{whole}").parse().ok()
}

/// Returns the places of tiles with these layouts, in the same order. No two places overlap.
fn arrange<'l>(layouts: impl Iterator<Item = &'l Value>) -> Vec<Place> {
    let mut places: Vec<_> = layouts.map(Place::of).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|index| places.get(*index).map(|place| (place.y, place.x)));
    let mut heights = [0; COLUMNS];
    for index in order {
        let Some(place) = places.get_mut(index) else { continue };
        let columns = heights.iter_mut().skip(place.x).take(place.width);
        let columns: Vec<_> = columns.collect();
        place.y = columns.iter().map(|height| **height).max().unwrap_or_default();
        for height in columns {
            *height = place.y + place.height;
        }
    }
    places
}

/// Returns the places of tiles, in the same order.
pub(super) fn places(tiles: &[Tile]) -> Vec<Place> {
    arrange(tiles.iter().map(|tile| &tile.layouts))
}

/// Returns a style sheet with the places of the tiles. On narrow screens, tiles stand below each other.
pub(super) fn style(tiles: &[Tile]) -> String {
    let places = places(tiles);
    let mut style = "@media (min-width:56.01rem){".to_owned();
    for (tile, Place { x, y, width, height }) in tiles.iter().zip(places) {
        // Writing to a string cannot fail.
        let _written = write!(
            style,
            "#tile-{}{{grid-area:{}/{}/span {height}/span {width}}}",
            tile.id,
            y + 1,
            x + 1
        );
    }
    style + "}"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arranged(layouts: &[Value]) -> Vec<(usize, usize, usize, usize)> {
        let places = arrange(layouts.iter());
        places.iter().map(|place| (place.x, place.y, place.width, place.height)).collect()
    }

    #[test]
    fn tiles_stand_where_their_layouts_say() {
        let at = |x: i32, y: i32, w: i32, h: i32| json!({"sm": {"x": x, "y": y, "w": w, "h": h}});
        assert_eq!(
            arranged(&[at(0, 0, 6, 5), at(6, 0, 6, 3), at(6, 3, 6, 2), at(0, 5, 12, 4)]),
            [(0, 0, 6, 5), (6, 0, 6, 3), (6, 3, 6, 2), (0, 5, 12, 4)]
        );
        assert_eq!(arranged(&[at(0, 100, 4, 2), at(0, 7, 4, 2)]), [(0, 2, 4, 2), (0, 0, 4, 2)]);
    }

    #[test]
    fn odd_layouts_become_places_on_the_grid() {
        assert_eq!(
            arranged(&[json!({}), json!(null), json!({"sm": []})]),
            [(0, 0, 6, 5), (0, 5, 6, 5), (0, 10, 6, 5)]
        );
        let odd = json!({"sm": {"x": "3", "y": -5, "w": 1e300, "h": " 2.6 "}});
        assert_eq!(arranged(&[odd]), [(0, 0, 12, 3)]);
        let odd = json!({"sm": {"x": 99, "y": "NaN", "w": 0, "h": 9e9}});
        assert_eq!(arranged(&[odd]), [(11, 0, 1, 50)]);
    }

    proptest! {
        #[test]
        fn tiles_never_overlap_or_leave_the_grid(
            sent in proptest::collection::vec((-3..20_i32, -3..20_i32, -3..20_i32, -3..20_i32), 0..30),
        ) {
            let layouts: Vec<_> = sent
                .iter()
                .map(|(x, y, w, h)| json!({"sm": {"x": x, "y": y, "w": w, "h": h}}))
                .collect();
            let places = arrange(layouts.iter());
            for (index, one) in places.iter().enumerate() {
                prop_assert!(one.width > 0 && one.height > 0 && one.x + one.width <= COLUMNS);
                for other in &places[..index] {
                    let apart = one.x >= other.x + other.width
                        || other.x >= one.x + one.width
                        || one.y >= other.y + other.height
                        || other.y >= one.y + one.height;
                    prop_assert!(apart, "{one:?} {other:?}");
                }
            }
        }
    }
}
