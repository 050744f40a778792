//! Takes the broken rows out of a broker's list in CSV, before it is read. Pure; runs where the
//! list is read, on lanes or at the start.
//!
//! No row of such a list spans lines. A quotation mark that is never closed would swallow the lines
//! behind it up to the next mark, and every instrument in them.

/// The list without its broken rows.
pub(super) struct WholeRows {
    pub(super) list: Vec<u8>,
    /// Rows that were taken out.
    pub(super) broken: u64,
}

/// The lines of `list` in which every quoted cell ends.
pub(super) fn whole_rows(list: &[u8]) -> WholeRows {
    let mut whole = WholeRows {
        list: Vec::with_capacity(list.len()),
        broken: 0,
    };
    for line in list.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        if ends_within_quotes(line) {
            whole.broken += 1;
        } else {
            whole.list.extend_from_slice(line);
        }
    }
    whole
}

/// A place within a row, as readers of CSV tell them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a cell. Only here does a mark begin a quoted cell. Some headers
    /// have a space before the mark, which makes it a plain cell with marks in it.
    CellBegins,
    Plain,
    Quoted,
    /// Behind a mark in a quoted cell: the end of the quotes, or the first of two marks.
    MarkInQuoted,
}

fn ends_within_quotes(line: &[u8]) -> bool {
    let mut place = Place::CellBegins;
    for byte in line {
        place = match (place, byte) {
            (Place::Quoted, b'"') => Place::MarkInQuoted,
            (Place::Quoted, _) | (Place::CellBegins | Place::MarkInQuoted, b'"') => Place::Quoted,
            (_, b',') => Place::CellBegins,
            _ => Place::Plain,
        };
    }
    place == Place::Quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_quotes_do_not_end_is_taken_out_alone() {
        for (line, is_broken) in [
            ("1,INFY,INFOSYS", false),
            ("1,M&M,\"MAHINDRA, MAHINDRA\",0", false),
            ("1,Q,\"SAYS \"\"HELLO\"\"\",0", false),
            ("1,Q,\"\",0", false),
            ("1,Q,5\" PIPES,0", false),
            ("\"Token\", \"ShortName\", \"Series\"", false),
            ("", false),
            ("1,Q,\"INDIAN METALS,0.0,,EQ,NSE,NSE", true),
            ("\"1,Q,INDIAN METALS", true),
            ("1,Q,INDIAN METALS,\"", true),
            ("1,Q,\"SAYS \"\"HELLO,0", true),
            ("1,Q,\"a\"b\",0,\"c", true),
            // Two marks, one of them within a plain cell.
            ("1,A\"B,\"C,D", true),
        ] {
            for end in ["\n", "\r\n"] {
                let list = format!("head,er{end}{line}{end}2,TCS,TATA{end}");
                let whole = whole_rows(list.as_bytes());
                let expected = match is_broken {
                    // The end of a line of two bytes is an empty line then.
                    true => list.replace(&format!("{line}{}", &end[..1]), ""),
                    false => list.clone(),
                };
                assert_eq!(String::from_utf8(whole.list).unwrap(), expected, "{line}");
                assert_eq!(whole.broken, u64::from(is_broken), "{line}");
            }
        }
    }

    proptest::proptest! {
        /// Whatever is in a list, the reader gives no row that spans lines, and loses none.
        #[test]
        fn no_row_spans_lines(list in "([A-B\",]{0,12}\n){0,9}") {
            let whole = whole_rows(list.as_bytes());
            let lines = whole.list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(whole.list.as_slice());
            proptest::prop_assert_eq!(reader.records().count(), lines.count());
        }
    }
}
