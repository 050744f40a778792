//! RESULTS.md: an introduction, then sections between marks, so that one can be replaced without
//! the others.

/// What stands above the sections.
pub const INTRODUCTION: &str = "# Load test results\n\nWritten by the driver; `README.md` says how \
    to read it. Figures are medians over the rounds; a ratio is taken within each round, and the \
    median of these ratios is shown.\n";

/// Puts a section into a document, in place of the one with that name or at the end.
pub fn with_section(document: &str, name: &str, section: &str) -> String {
    let [begin, end] = ["begin", "end"].map(|edge| format!("<!-- {name}: {edge} -->"));
    let marked = format!("{begin}\n{}\n{end}\n", section.trim_end());
    let around = document.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after.trim_start_matches('\n')))
    });
    match around {
        Some((before, "")) => format!("{before}{marked}"),
        Some((before, after)) => format!("{before}{marked}\n{after}"),
        None => format!("{}\n\n{marked}", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn a_section_replaces_itself_and_leaves_the_others() {
        let first = with_section("# Results\n", "one", "old\n");
        let both = with_section(&first, "two", "2\n");
        let again = with_section(&both, "one", "new\n");
        assert_eq!(again, both.replace("old", "new"));
        assert!(again.starts_with("# Results\n\n<!-- one: begin -->\nnew\n<!-- one: end -->\n\n<"));
        assert!(again.ends_with("<!-- two: begin -->\n2\n<!-- two: end -->\n"));
        assert_eq!(with_section(&again, "one", "new\n"), again);
    }
}
