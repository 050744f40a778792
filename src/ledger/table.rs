//! A table's rows: cells that hold something, by their column, and headers found by names.
//!
//! A row is sparse, so that one far cell costs as much as a near one. The same `TableRow` serves
//! for every row of a table.

use crate::ledger::refusals::{Cause, FileError, RefusedReason};

/// Bytes of a line, or of the texts of a sheet's row.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Cells of a row, empty ones of a line included.
pub(crate) const CELLS_MAX: usize = 1_000;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellKind {
    Text,
    /// A workbook's number, as the shortest decimal of its double.
    Number,
    /// `true` or `false`.
    Bool,
    Formula,
    /// Such as `#N/A`.
    Error,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub kind: CellKind,
    /// Trimmed, never empty unless it is a formula.
    pub text: &'a str,
}

#[derive(Clone, Copy)]
struct Place {
    column: u32,
    kind: CellKind,
    start: usize,
    end: usize,
}

/// One row.
#[derive(Default)]
pub(crate) struct TableRow {
    /// Counts from 1.
    pub line: u32,
    /// What makes its cells doubtful as a whole.
    pub fault: Option<RefusedReason>,
    /// Whether the workbook counts its days from 1904.
    pub from_1904: bool,
    text: String,
    cells: Vec<Place>,
}

impl TableRow {
    /// An empty row; `from_1904`: whether its workbook counts days from there.
    pub(crate) fn new(from_1904: bool) -> Self {
        Self {
            from_1904,
            ..Self::default()
        }
    }

    /// Empties it for another line.
    pub(crate) fn begin(&mut self, line: u32) {
        self.line = line;
        self.fault = None;
        self.text.clear();
        self.cells.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.fault.is_none()
    }

    /// Adds a cell to the right of all others. Empty text is no cell.
    pub(crate) fn push(
        &mut self,
        column: u32,
        kind: CellKind,
        text: &str,
    ) -> Result<(), FileError> {
        let text = text.trim();
        if text.is_empty() && kind != CellKind::Formula {
            return Ok(());
        }
        if self.cells.len() == CELLS_MAX {
            return Err(FileError::not_understood(Cause::ManyCells));
        }
        if self.text.len() + text.len() > LINE_BYTES_MAX {
            return Err(FileError::not_understood(Cause::LongLine));
        }
        let start = self.text.len();
        self.text.push_str(text);
        self.cells.push(Place {
            column,
            kind,
            start,
            end: self.text.len(),
        });
        Ok(())
    }

    /// The cell of a column.
    pub(crate) fn at(&self, column: Option<u32>) -> Option<Cell<'_>> {
        let column = column?;
        let at = self
            .cells
            .binary_search_by_key(&column, |place| place.column)
            .ok()?;
        Some(self.cell(&self.cells[at]))
    }

    /// All cells, from left to right.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.cells.iter().map(|place| self.cell(place))
    }

    fn cell(&self, place: &Place) -> Cell<'_> {
        Cell {
            kind: place.kind,
            text: &self.text[place.start..place.end],
        }
    }
}

/// Letters and digits alone, in lower case: `Trade Date` and `trade_date` are one name.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// A row read as a header.
pub(crate) struct Header {
    names: Vec<(String, u32)>,
}

impl Header {
    pub(crate) fn of(row: &TableRow) -> Self {
        let text = |place: &&Place| place.kind == CellKind::Text;
        let name = |place: &Place| (plain(row.cell(place).text), place.column);
        Self {
            names: row.cells.iter().filter(text).map(name).collect(),
        }
    }

    /// The column of the first of the names that the header has; `Err` if two columns have it.
    pub(crate) fn column(&self, names: &[&str]) -> Result<Option<u32>, RepeatedColumn> {
        for wanted in names {
            let mut found = self.names.iter().filter(|(name, _)| name == wanted);
            if let Some((_, column)) = found.next() {
                return found
                    .next()
                    .map_or(Ok(Some(*column)), |_| Err(RepeatedColumn));
            }
        }
        Ok(None)
    }
}

/// Two columns have one name, so neither is known to be the one that is meant.
pub(crate) struct RepeatedColumn;

/// Declares the columns of a format: each with its names, as `plain` writes them. A header is the
/// format's if it has each `needed` one, and none twice.
macro_rules! columns {
    ($(#[$meta:meta])* struct $name:ident {
        $($(#[$doc:meta])* $column:ident: $need:ident [$($known_as:literal),+],)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        struct $name {
            $($(#[$doc])* $column: Option<u32>,)+
        }

        impl $name {
            fn find(header: &$crate::ledger::table::Header) -> Option<Self> {
                $(
                    let $column = header.column(&[$($known_as),+]).ok()?;
                    $crate::ledger::table::columns!(@$need $column);
                )+
                Some(Self { $($column),+ })
            }
        }
    };
    (@needed $column:ident) => {
        $column?;
    };
    (@optional $column:ident) => {};
}

pub(crate) use columns;
