//! Reads the repository's own files for the tests that judge them.

use std::path::{Path, PathBuf};

/// Folders that are built or fetched, not written.
const NOT_OURS: [&str; 6] = [
    "target",
    ".git",
    "corpus",
    "artifacts",
    "bhav-state",
    "node_modules",
];

/// One text file of the repository.
#[derive(Debug)]
pub struct Source {
    /// Path from the root, with slashes: `src/http/conn.rs`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The lines that are neither empty nor comments, without items of `#[cfg(test)]`.
    pub fn code_lines(&self) -> Vec<&str> {
        let (mut found, mut skipped) = (Vec::new(), None::<String>);
        let mut lines = self.text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(end) = &skipped {
                if line.starts_with(end.as_str()) {
                    skipped = None;
                }
                continue;
            }
            let code = line.trim();
            let is_test = code.starts_with("#[cfg(test)") || code.starts_with("#[cfg(all(test");
            if is_test && lines.peek().is_some_and(|next| next.ends_with('{')) {
                skipped = Some(format!("{}}}", &line[..line.len() - line.trim_start().len()]));
            } else if !code.is_empty() && !code.starts_with("//") {
                found.push(line);
            }
        }
        found
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every UTF-8 file below `folder` (empty for the root), in the order of their paths.
pub fn below(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(at) = open.pop() {
        let name = at
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let path = at
            .strip_prefix(root())
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if at.is_dir() && !NOT_OURS.contains(&&*name) && path != "loadtest/work" {
            open.extend(
                std::fs::read_dir(&at)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if at.is_file()
            // In a linked worktree it is a file.
            && name != ".git"
            && let Ok(text) = std::fs::read_to_string(&at)
        {
            found.push(Source { path, text });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The Rust files below `folders`.
pub fn rust(folders: &[&str]) -> Vec<Source> {
    folders
        .iter()
        .filter(|folder| root().join(folder).exists())
        .flat_map(|folder| below(folder))
        .filter(|source| source.path.ends_with(".rs"))
        .collect()
}

/// `text` without its line comments. A `//` in a string, as in an address, is no comment.
pub fn without_comments(text: &str) -> String {
    text.lines()
        .map(without_comment)
        .collect::<Vec<_>>()
        .join("\n")
}

fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in line.char_indices() {
        match letter {
            '/' if !quoted && line[at..].starts_with("//") => return &line[..at],
            // A quotation mark as a character opens no string.
            '"' if !escaped && !line[..at].ends_with('\'') => quoted = !quoted,
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    line
}

#[test]
fn an_address_in_a_string_is_no_comment() {
    let text = "let a = \"http://x\"; // b\nlet c = '\"'; // d\nlet e = \"\\\"//f\"; // g";
    let code = "let a = \"http://x\"; \nlet c = '\"'; \nlet e = \"\\\"//f\"; ";
    assert_eq!(without_comments(text), code);
}

/// The identifier at the start of `text`.
pub fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    &text[..end]
}

/// Fails with all complaints, one a line.
pub fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// If set, files that a test generates are written.
const BLESS: &str = "BHAV_BLESS";

/// Fails at the first line in which the file `path` differs from the generated text `made`.
pub fn expect_made(path: &str, made: &str) {
    let file = root().join(path);
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&file, made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    for (at, (before, now)) in kept.lines().zip(made.lines()).enumerate() {
        assert_eq!(before, now, "line {} of {path}; after a wanted change: {BLESS}=1", at + 1);
    }
    assert_eq!(kept.len(), made.len(), "{path} ends elsewhere");
}
