//! Sections of RESULTS.md that are measured alone: each stands between two marks, so that it can be
//! replaced without the rest.

/// A section that has a run of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section(&'static str);

/// What accounts cost.
pub const ACCOUNTS: Section = Section("accounts");

/// Whether prices say their age while feeds break.
pub const HONESTY: Section = Section("honesty");

/// All of them, in the order of the document.
pub const ALL: [Section; 2] = [ACCOUNTS, HONESTY];

impl Section {
    fn marks(self) -> [String; 2] {
        ["begin", "end"].map(|edge| format!("<!-- {}: {edge} -->", self.0))
    }

    /// Puts the section into a document, in place of the one that is there or at the end.
    pub fn placed(self, document: &str, section: &str) -> String {
        let [begin, end] = self.marks();
        let marked = format!("{begin}\n{section}{end}\n");
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

    /// The section that stands in a document.
    pub fn found(self, document: &str) -> Option<&str> {
        let [begin, end] = self.marks();
        let (_, rest) = document.split_once(&begin)?;
        let (section, _) = rest.split_once(&end)?;
        Some(section.trim_start_matches('\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::{ACCOUNTS, HONESTY};

    #[test]
    fn a_section_replaces_itself_and_leaves_the_others() {
        let first = ACCOUNTS.placed("# Results\n", "old\n");
        let both = HONESTY.placed(&first, "two\n");
        let again = ACCOUNTS.placed(&both, "three\n");
        assert_eq!(ACCOUNTS.found(&again), Some("three\n"));
        assert_eq!(HONESTY.found(&again), Some("two\n"));
        assert!(again.starts_with("# Results\n") && !again.contains("old"));
        let between = ACCOUNTS.placed(&format!("{first}\n## Two\n"), "new\n");
        assert!(between.ends_with("-->\n\n## Two\n"), "{between}");
        assert_eq!(ACCOUNTS.placed(&first, "old\n"), first);
        assert_eq!(ACCOUNTS.found("# Results\n"), None);
    }
}
