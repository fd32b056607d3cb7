//! The number of an installation among several that share one space of ids.
//!
//! Sequences of different cells hand out different ids, so an organization keeps all of its ids when it moves from one
//! cell to another. The id of an object shows which cell created it.

use std::fmt;
use std::str::FromStr;

use crate::base::error::{Error, Result};
use crate::store::values::key::Key;
use crate::store::values::payload::damaged;
use crate::store::values::raw::{Raw, read_number};
use crate::store::values::schema::{CELL_KEY, Table};

use super::WriteTx;

/// How many ids of each kind a cell can create.
const IDS_PER_CELL: u64 = 100_000_000;
/// The highest cell: its last id is below 2^31, because clients may read ids into 32 bits.
const MAX_CELL: u64 = 20;

/// The number of an installation: 0 to 20. An installation that was founded without a number is cell 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell(u64);

impl Cell {
    /// Returns the cell with this number, or `None` if the number is too high.
    pub const fn new(number: u64) -> Option<Self> {
        if number <= MAX_CELL { Some(Self(number)) } else { None }
    }

    /// Returns the number of the cell.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the highest number below the ids of this cell.
    const fn floor(self) -> u64 {
        self.0 * IDS_PER_CELL
    }

    /// Returns the last id of this cell.
    const fn last(self) -> u64 {
        self.floor() + IDS_PER_CELL
    }

    /// Returns whether this cell created the id.
    const fn contains(self, id: u64) -> bool {
        self.floor() < id && id <= self.last()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cell = text.parse().ok().and_then(Self::new);
        cell.ok_or_else(|| format!("write a number from 0 to {MAX_CELL}"))
    }
}

/// Returns the cell of a file.
pub fn stored_cell(tx: &impl Raw) -> Result<Cell> {
    let number = read_number(tx, Table::Meta, CELL_KEY)?;
    Cell::new(number).ok_or_else(|| damaged(Table::Meta, &"not the number of a cell"))
}

impl WriteTx<'_> {
    /// Makes a new file a cell. A file without a number is cell 0.
    pub fn set_cell(&mut self, cell: Cell) {
        if cell != Cell::default() {
            self.put_raw(Table::Meta, CELL_KEY, &cell.number().encoded());
        }
    }

    /// Returns the next id of the sequence of `table`, from the ids of this cell. The first of cell 0 is 1.
    ///
    /// # Errors
    /// 400 `limit_reached` if the cell has no id left.
    pub fn next_number(&mut self, table: Table) -> Result<u64> {
        let cell = stored_cell(self)?;
        let number = self.next_above(cell.floor(), table)?;
        if number > cell.last() {
            let text = "This installation has no id left for another object of this kind.";
            return Err(Error::limit_reached(text));
        }
        Ok(number)
    }

    /// Returns the next number of the sequence of `table`, which may leave the ids of this cell.
    pub(in crate::store) fn next_in_sequence(&mut self, table: Table) -> Result<u64> {
        let floor = stored_cell(self)?.floor();
        self.next_above(floor, table)
    }

    fn next_above(&mut self, floor: u64, table: Table) -> Result<u64> {
        let key = table.name().to_owned().encoded();
        let number = read_number(self, Table::Sequences, &key)?.max(floor) + 1;
        self.put_raw(Table::Sequences, &key, &number.encoded());
        Ok(number)
    }

    /// Notes that `number` of the sequence of `table` is in use, so that this cell does not hand it out. Numbers of other
    /// cells need no note.
    pub(in crate::store) fn reserve_number(&mut self, table: Table, number: u64) -> Result<()> {
        let key = table.name().to_owned().encoded();
        if stored_cell(self)?.contains(number)
            && read_number(self, Table::Sequences, &key)? < number
        {
            self.put_raw(Table::Sequences, &key, &number.encoded());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_cells_do_not_meet_and_stay_below_two_to_the_31() {
        let cells: Vec<_> = (0..=MAX_CELL).filter_map(Cell::new).collect();
        assert_eq!(cells.len(), 21);
        for pair in cells.windows(2) {
            assert_eq!(pair[0].last(), pair[1].floor());
            assert!(!pair[1].contains(pair[0].last()) && pair[0].contains(pair[0].last()));
        }
        assert!(cells[20].last() < 1 << 31);
        assert_eq!("21".parse::<Cell>(), Err("write a number from 0 to 20".to_owned()));
    }
}
