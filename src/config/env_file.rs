//! Parses the settings file that `BHAV_ENV_FILE` names. It has systemd's format: lines
//! `NAME=value`, comments with `#` or `;`, values bare or in quotes.
//!
//! Runs on the main thread, at start and at each reload. The program reads the file itself, because
//! the environment of a running process cannot be changed by systemd. It is stricter than systemd,
//! which takes the last of two values and ignores lines that it does not understand.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::config::fault::Fault;
use crate::config::outside;
use crate::ops::state_lock;

/// The environment variable that names the file.
pub(crate) const NAME: &str = "BHAV_ENV_FILE";

/// Longest file accepted. The template with every setting has about 20 KiB.
const BYTES_MAX: usize = 256 * 1024;

/// A variable of the file. Wiped on drop, because it may be a secret.
#[derive(Debug)]
pub(crate) struct Entry {
    pub value: Zeroizing<String>,
    /// Line number, from 1.
    pub line: usize,
}

/// The parsed file.
#[derive(Debug, Default)]
pub(crate) struct EnvFile {
    pub path: PathBuf,
    pub entries: BTreeMap<String, Entry>,
}

/// Reads the file.
///
/// # Errors
/// All faults of the file, with line numbers.
pub(crate) fn read(path: &Path) -> Result<EnvFile, Vec<Fault>> {
    let unreadable = |why: String| vec![fault(path, format!("cannot be read: {why}"))];
    let bytes = File::open(path)
        .and_then(|file| state_lock::read(file, BYTES_MAX))
        .map_err(|why| unreadable(why.to_string()))?;
    let text = outside::decoded(&bytes).map_err(|why| {
        let place = Some(path.display().to_string());
        let problem = why.problem;
        let cure = why.cure;
        vec![Fault {
            name: NAME.into(),
            value: place,
            origin: None,
            problem,
            cure,
        }]
    })?;
    parse(text.strip_prefix('\u{feff}').unwrap_or(text), path)
}

fn parse(text: &str, path: &Path) -> Result<EnvFile, Vec<Fault>> {
    let mut file = EnvFile {
        path: path.to_owned(),
        entries: BTreeMap::new(),
    };
    let mut faults = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        match entry(text, line) {
            Ok((name, entry)) => {
                if let Some(before) = file.entries.get(name) {
                    let first = before.line;
                    let problem = format!("line {line}: {name} is set in line {first} already");
                    faults.push(fault(path, problem));
                } else {
                    file.entries.insert(name.to_owned(), entry);
                }
            }
            Err(problem) => faults.push(fault(path, format!("line {line}: {problem}"))),
        }
    }
    if faults.is_empty() {
        Ok(file)
    } else {
        Err(faults)
    }
}

/// Parses one line. Errors never quote the value, which may be a secret.
fn entry(text: &str, line: usize) -> Result<(&str, Entry), &'static str> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = |name: &str| !name.is_empty() && name.chars().all(plain);
    if text.starts_with("export ") || text.starts_with("set ") {
        return Err("begins with a word of a shell: write NAME=value alone");
    }
    if text.split_once(": ").is_some_and(|(name, _)| is_name(name)) {
        return Err("is NAME: value as in YAML: write NAME=value");
    }
    let (name, value) = text.split_once('=').ok_or("is no NAME=value")?;
    let name = name.trim_end();
    if !is_name(name) {
        return Err("is no NAME=value: names are letters, digits and _");
    }
    Ok((
        name,
        Entry {
            value: unquoted(value.trim())?,
            line,
        },
    ))
}

fn unquoted(value: &str) -> Result<Zeroizing<String>, &'static str> {
    let Some(quote) = value
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''))
    else {
        if value.ends_with('\\') {
            return Err("continues on the next line, which is not supported: write one line");
        }
        return Ok(Zeroizing::new(value.to_owned()));
    };
    let inner = value
        .strip_prefix(quote)
        .and_then(|rest| rest.strip_suffix(quote));
    let inner = inner
        .filter(|_| value.len() >= 2)
        .ok_or("has no closing quote")?;
    let mut plain = Zeroizing::new(String::with_capacity(inner.len()));
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quote == '"' => plain.push(letters.next().ok_or("ends with a backslash")?),
            letter if letter == quote => return Err("has text after its closing quote"),
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

fn fault(path: &Path, problem: String) -> Fault {
    Fault {
        name: NAME.into(),
        value: Some(path.display().to_string()),
        origin: None,
        problem,
        cure: "correct the file; `bhav config template` prints one with all settings".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<EnvFile, String> {
        parse(text, Path::new("bhav.env")).map_err(|faults| {
            let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
            texts.join("\n")
        })
    }

    #[test]
    fn lines_are_read_as_systemd_reads_them() {
        let text = "# a\n; b\n\nA=1\n B = two words \nC=\"say \\\"x\\\" \\\\ # no comment\"\n\
                    D='a\"b'\nE=\nF=a=b#c\n";
        let file = parsed(text).unwrap();
        let values: Vec<_> = file
            .entries
            .iter()
            .map(|(name, entry)| (&**name, &**entry.value))
            .collect();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "say \"x\" \\ # no comment"),
            ("D", "a\"b"),
            ("E", ""),
            ("F", "a=b#c"),
        ];
        assert_eq!(values, expected);
        assert_eq!(file.entries["F"].line, 9);
    }

    #[test]
    fn every_bad_line_is_named_and_no_value_shown() {
        let text = "A=1\nexport s3cr3t=1\ns3cr3t\nB=\"s3cr3t\nC=s3cr3t\\\nA=s3cr3t2\nD='a'b'\n";
        let faults = parsed(text).unwrap_err();
        for (text, part) in [("export A=1", "a word of a shell"), ("A: 1", "as in YAML")] {
            let faults = parsed(text).unwrap_err();
            assert!(faults.contains(part), "{faults}");
        }
        for line in [2, 3, 4, 5, 6, 7] {
            assert!(faults.contains(&format!("line {line}: ")), "{line} in {faults}");
        }
        assert!(
            faults.contains("line 6: A is set in line 1 already") && !faults.contains("s3cr3t")
        );
    }

    #[test]
    fn a_file_that_is_missing_or_too_long_or_not_utf8_is_a_fault() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bhav.env");
        assert!(read(&path).is_err());
        std::fs::write(&path, b"A=\xff").unwrap();
        assert!(read(&path).is_err());
        let wide: Vec<u8> = "\u{feff}A=1\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        std::fs::write(&path, wide).unwrap();
        assert!(read(&path).unwrap_err()[0].to_string().contains("UTF-16"));
        std::fs::write(&path, "\u{feff}A=1\r\nB='2'\r\n").unwrap();
        let file = read(&path).unwrap();
        assert_eq!((&**file.entries["A"].value, &**file.entries["B"].value), ("1", "2"));
        std::fs::write(&path, "#".repeat(BYTES_MAX + 1)).unwrap();
        assert!(
            read(&path).unwrap_err()[0]
                .to_string()
                .contains("more than")
        );
    }
}
