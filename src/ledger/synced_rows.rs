//! Which rows of a sync's answer its import lacks. Each sync asks again for what earlier ones were
//! told.

use foldhash::{HashMap, HashMapExt};

use crate::ledger::row::Row;

/// The rows of `answer` that the import with the rows `own` has to be given so that, with the
/// account's `others` of syncs, all of them are there. Equal rows without an id are counted in each
/// import, so of those that no other import has in full, this one gets all.
pub(crate) fn lacking(others: &[&[Row]], own: &[Row], answer: Vec<Row>) -> Vec<Row> {
    let own_counts = counts(own);
    let other_counts: Vec<HashMap<Row, usize>> = others.iter().map(|rows| counts(rows)).collect();
    let wanted = counts(&answer);
    let mut left: HashMap<Row, usize> = HashMap::new();
    for (row, count) in wanted {
        let is_whole = |counts: &HashMap<Row, usize>| counts.get(&row) >= Some(&count);
        let has = own_counts.get(&row).copied().unwrap_or_default();
        if count > has && !other_counts.iter().any(is_whole) {
            left.insert(row, count - has);
        }
    }
    let mut line = own.len() as u32;
    let mut lacking = Vec::new();
    for row in answer {
        let Some(count) = left.get_mut(&said(&row)).filter(|count| **count > 0) else {
            continue;
        };
        *count -= 1;
        line += 1;
        lacking.push(Row { line, ..row });
    }
    lacking
}

/// How often each row is among these, wherever it stands.
fn counts(rows: &[Row]) -> HashMap<Row, usize> {
    let mut counts = HashMap::with_capacity(rows.len());
    for row in rows {
        *counts.entry(said(row)).or_default() += 1;
    }
    counts
}

/// What a row says, without its place.
fn said(row: &Row) -> Row {
    Row {
        line: 0,
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::testing::rows;

    const ONE: &str = "2025-02-05 buy 10 RELIND 1277.35";
    const OTHER: &str = "2025-02-06 sell 4 RELIND 1300 o7";

    /// Lines and places of what is lacking.
    fn found(others: &[&[&str]], own: &[&str], answer: &[&str]) -> Vec<(u32, String)> {
        let others: Vec<Vec<Row>> = others.iter().map(|lines| rows(lines)).collect();
        let others: Vec<&[Row]> = others.iter().map(Vec::as_slice).collect();
        let lacking = lacking(&others, &rows(own), rows(answer)).into_iter();
        lacking
            .map(|row| (row.line, row.date.to_string()))
            .collect()
    }

    fn lines(of: &[(u32, &str)]) -> Vec<(u32, String)> {
        of.iter()
            .map(|(line, date)| (*line, (*date).to_owned()))
            .collect()
    }

    #[test]
    fn what_was_told_before_is_not_added_again() {
        let both = lines(&[(1, "2025-02-05"), (2, "2025-02-06")]);
        assert_eq!(found(&[], &[], &[ONE, OTHER]), both);
        assert_eq!(found(&[], &[ONE, OTHER], &[OTHER, ONE]), []);
        assert_eq!(found(&[], &[OTHER], &[ONE, OTHER]), lines(&[(2, "2025-02-05")]));
        assert_eq!(found(&[&[ONE], &[OTHER]], &[], &[ONE, OTHER]), []);
    }

    #[test]
    fn equal_rows_are_counted_within_one_import() {
        assert_eq!(found(&[], &[ONE], &[ONE, ONE]), lines(&[(2, "2025-02-05")]));
        assert_eq!(found(&[&[ONE, ONE]], &[], &[ONE, ONE]), []);
        // One of two in another import is the first of both here.
        let both = lines(&[(1, "2025-02-05"), (2, "2025-02-05")]);
        assert_eq!(found(&[&[ONE]], &[], &[ONE, ONE]), both);
    }
}
