//! A value of a setting that was refused: what is wrong with it, and the cure. Of usual slips (a
//! unit after a number, separators within it, a comment after it) the cure says exactly what to
//! write. Pure.

/// Units that people write, with what each is in the smallest of its kind.
const TIMES_MS: [(&[&str], u64); 5] = [
    (&["ms", "msec", "millis"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];
const SIZES_BYTES: [(&[&str], u64); 4] = [
    (&["b", "byte", "bytes"], 1),
    (&["k", "kb", "kib"], 1 << 10),
    (&["m", "mb", "mib"], 1 << 20),
    (&["g", "gb", "gib"], 1 << 30),
];

/// The refusal of a value with what probably was meant. `unit` is the setting's.
pub(super) fn explained(text: &str, unit: &str, refused: Refused) -> Refused {
    if text.contains(" #") {
        let problem = format!("{}, and what looks like a comment is part of it", refused.problem);
        let cure = "put the comment on a line of its own".to_owned();
        return Refused {
            problem,
            cure: format!("{cure}; {}", refused.cure),
        };
    }
    let is_number = refused.problem == NOT_WHOLE;
    let is_part = |letter: char| letter.is_ascii_digit() || "_,' ".contains(letter);
    let (number, rest) = text.split_at(text.find(|letter| !is_part(letter)).unwrap_or(text.len()));
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let Ok(count) = digits.parse::<u64>() else {
        return refused;
    };
    let word = rest.trim();
    if !is_number || !word.chars().all(char::is_alphabetic) {
        return refused;
    }
    if word.is_empty() {
        let problem = "has separators between its digits".to_owned();
        return Refused {
            problem,
            cure: format!("give {digits}"),
        };
    }
    let cure = match converted(count, &word.to_lowercase(), unit) {
        Some(count) => format!("give {count}, which is {text}"),
        None => "give the number alone".to_owned(),
    };
    Refused {
        problem: "has a word after the number; the unit is fixed".to_owned(),
        cure,
    }
}

/// The count in the setting's unit.
fn converted(count: u64, word: &str, unit: &str) -> Option<u64> {
    let (units, own): (&[(&[&str], u64)], u64) = match unit {
        "ms" => (&TIMES_MS, 1),
        "seconds" => (&TIMES_MS, 1_000),
        "bytes" => (&SIZES_BYTES, 1),
        "KiB" => (&SIZES_BYTES, 1 << 10),
        _ => return None,
    };
    let (_, factor) = units.iter().find(|(words, _)| words.contains(&word))?;
    let smallest = count.checked_mul(*factor)?;
    (smallest % own == 0).then_some(smallest / own)
}

/// Why a text is not a valid value, and what to give instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub problem: String,
    pub cure: String,
}

/// What is no whole number; see [`super::value::number`].
pub(super) const NOT_WHOLE: &str = "is not a whole number in range";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_separators_and_comments_are_recognised() {
        for (text, unit, problem, cure) in [
            ("10s", "ms", "has a word after", "give 10000, which is 10s"),
            ("5 min", "ms", "has a word after", "give 300000"),
            ("500ms", "ms", "has a word after", "give 500,"),
            ("2m", "seconds", "has a word after", "give 120,"),
            ("500ms", "seconds", "has a word after", "give the number alone"),
            ("64MB", "bytes", "has a word after", "give 67108864"),
            ("64KiB", "bytes", "has a word after", "give 65536"),
            ("1G", "KiB", "has a word after", "give 1048576"),
            ("64MB", "threads", "has a word after", "give the number alone"),
            ("99999999999999999g", "bytes", "has a word after", "give the number alone"),
            ("10_000", "ms", "separators", "give 10000"),
            ("10,000", "connections", "separators", "give 10000"),
            ("1'000", "connections", "separators", "give 1000"),
            ("100 # many", "connections", "looks like a comment", "line of its own; give any"),
            ("1.5", "ms", NOT_WHOLE, "give any"),
            ("-1", "ms", NOT_WHOLE, "give any"),
            ("1e3", "ms", NOT_WHOLE, "give any"),
            ("0x10", "ms", NOT_WHOLE, "give any"),
            ("ten", "ms", NOT_WHOLE, "give any"),
        ] {
            let refused = Refused {
                problem: NOT_WHOLE.into(),
                cure: "give any".into(),
            };
            let found = explained(text, unit, refused);
            assert!(found.problem.contains(problem), "{text}: {found:?}");
            assert!(found.cure.contains(cure), "{text}: {found:?}");
        }
        let other = Refused {
            problem: "is no URL".into(),
            cure: "give one".into(),
        };
        assert_eq!(explained("10s", "ms", other.clone()), other);
    }
}
