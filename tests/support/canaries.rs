//! Canaries: values that cannot occur by chance, and the search for them in another process and in
//! its output.
//!
//! A canary is one short unit four times over, so that a part of it is still recognised: freed
//! memory loses its first bytes to the allocator.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use memchr::memmem;
use parking_lot::Mutex;

/// Digits of the number in each unit.
const DIGITS: usize = 5;
const UNITS: usize = 4;
/// Bytes read at once. A canary cut at the end of a piece still shows three of its units.
const PIECE_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;
/// Reads the number behind a mark, and how many bytes each digit takes.
type Number<'a> = &'a dyn Fn(&[u8]) -> Option<(String, usize)>;

/// Bytes shown around a find.
const AROUND_BYTES: usize = 64;

/// The canaries of one test.
pub struct Canaries {
    mark: String,
    /// Kind and path of each canary, by number.
    made: Mutex<Vec<(&'static str, String)>>,
}

/// The result of a search: the count of each canary, and the surroundings of each find.
#[derive(Default)]
pub struct Found {
    counts: BTreeMap<usize, usize>,
    pub places: Vec<(usize, String)>,
}

impl Canaries {
    pub fn new() -> Self {
        let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 1);
        let mark = format!("~{:07x}", number & 0xfff_ffff);
        Self {
            mark,
            made: Mutex::default(),
        }
    }

    /// A new value of this kind, for this path.
    pub fn make(&self, kind: &'static str, path: &str) -> String {
        let mut made = self.made.lock();
        let unit = format!("{}{:0DIGITS$}", self.mark, made.len());
        made.push((kind, path.to_owned()));
        unit.repeat(UNITS)
    }

    pub fn made_of(&self, kind: &str) -> usize {
        self.made
            .lock()
            .iter()
            .filter(|(made, _)| *made == kind)
            .count()
    }

    /// Copies of canaries of this kind.
    pub fn copies_of(&self, kind: &str, found: &Found) -> usize {
        let made = self.made.lock();
        found
            .counts
            .iter()
            .filter(|(number, _)| made[**number].0 == kind)
            .map(|(_, n)| n)
            .sum()
    }

    /// Each canary of this kind that was found, with its path and its surroundings.
    pub fn told(&self, kind: &str, found: &Found) -> Vec<String> {
        let made = self.made.lock();
        let of_kind = found
            .places
            .iter()
            .filter(|(number, _)| made[*number].0 == kind);
        of_kind
            .map(|(number, place)| format!("{}: {place}", made[*number].1))
            .collect()
    }

    /// Searches `bytes`; `place` names where they are.
    pub fn look(&self, bytes: &[u8], place: &str, found: &mut Found) {
        let plain = |text: &[u8]| Some((std::str::from_utf8(text.get(..DIGITS)?).ok()?.into(), 1));
        self.look_for(self.mark.as_bytes(), bytes, place, found, &plain);
        let escaped = |text: &[u8]| {
            let text = std::str::from_utf8(text.get(..DIGITS * 6)?).ok()?;
            let digits = text
                .split("\\u00")
                .skip(1)
                .map(|hex| u8::from_str_radix(hex, 16));
            let digits: Option<Vec<u8>> = digits.map(Result::ok).collect();
            Some((String::from_utf8(digits?).ok()?, 6))
        };
        self.look_for(self::escaped(&self.mark).as_bytes(), bytes, place, found, &escaped);
    }

    fn look_for(
        &self,
        mark: &[u8],
        bytes: &[u8],
        place: &str,
        found: &mut Found,
        number: Number<'_>,
    ) {
        let count = self.made.lock().len();
        let mut last = None;
        for at in memmem::find_iter(bytes, mark) {
            let Some((digits, scale)) = number(&bytes[at + mark.len()..]) else {
                continue;
            };
            let Some(number) = digits.parse().ok().filter(|number| *number < count) else {
                continue;
            };
            let unit = mark.len() + DIGITS * scale;
            let goes_on = last == Some((at.wrapping_sub(unit), number));
            last = Some((at, number));
            if goes_on {
                continue;
            }
            *found.counts.entry(number).or_default() += 1;
            let from = at.saturating_sub(AROUND_BYTES);
            let around = &bytes[from..bytes.len().min(at + 2 * AROUND_BYTES)];
            found
                .places
                .push((number, format!("{place}: {}", around.escape_ascii())));
        }
    }

    /// Everything that a process can read of its own memory.
    pub fn in_memory_of(&self, process: u32) -> Found {
        let mut found = Found::default();
        let mut memory = File::open(format!("/proc/{process}/mem")).unwrap();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
        let mut piece = vec![0; PIECE_BYTES];
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next().unwrap(), words.next().unwrap());
            let name = words.nth(3).unwrap_or("anonymous");
            let (start, end) = range.split_once('-').unwrap();
            let mut at = u64::from_str_radix(start, 16).unwrap();
            let end = u64::from_str_radix(end, 16).unwrap();
            // The kernel's own pages cannot be read.
            if !rights.starts_with('r') || name.starts_with("[vv") {
                continue;
            }
            while at < end {
                let wanted = PIECE_BYTES.min((end - at) as usize);
                // A region may have gone since the list was made.
                if memory.seek(SeekFrom::Start(at)).is_err()
                    || memory.read_exact(&mut piece[..wanted]).is_err()
                {
                    break;
                }
                if !empty(&piece[..wanted]) {
                    self.look(&piece[..wanted], &format!("{name} {at:x}"), &mut found);
                }
                at += wanted as u64;
            }
        }
        found
    }

    /// Every file below `folder`.
    pub fn in_files_below(&self, folder: &Path, found: &mut Found) -> usize {
        let mut files = 0;
        let mut open = vec![folder.to_path_buf()];
        while let Some(at) = open.pop() {
            if at.is_dir() {
                open.extend(
                    fs::read_dir(&at)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            } else if at.is_file() {
                self.look(&fs::read(&at).unwrap(), &at.display().to_string(), found);
                files += 1;
            }
        }
        files
    }

    /// Every file that a process holds open, those without a name too.
    pub fn in_open_files_of(&self, process: u32, found: &mut Found) -> usize {
        let mut files = 0;
        for entry in fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let path = entry.unwrap().path();
            // A socket or a pipe cannot be opened.
            if path.is_file()
                && let Ok(bytes) = fs::read(&path)
            {
                self.look(&bytes, &path.display().to_string(), found);
                files += 1;
            }
        }
        files
    }
}

/// Compared by the system's own routine: most of a process's memory is empty.
fn empty(bytes: &[u8]) -> bool {
    bytes
        .chunks(PAGE_BYTES)
        .all(|page| *page == [0; PAGE_BYTES][..page.len()])
}

/// Every character as a JSON escape.
pub fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

#[test]
fn whole_and_broken_and_escaped_ones_are_found() {
    let canaries = Canaries::new();
    let value = canaries.make("word", "here");
    let other = canaries.make("word", "there");
    let mut found = Found::default();
    let text = format!("..{value}..{}..{}..", &value[13..], escaped(&value));
    canaries.look(text.as_bytes(), "text", &mut found);
    assert_eq!(canaries.copies_of("word", &found), 3, "{:?}", found.places);
    assert!(
        canaries
            .told("word", &found)
            .iter()
            .all(|told| told.starts_with("here"))
    );
    canaries.look(other.as_bytes(), "text", &mut found);
    assert_eq!(canaries.copies_of("word", &found), 4);
    assert_eq!(canaries.made_of("word"), 2);
}
