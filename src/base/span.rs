//! A span of time in words. Pure.

/// `3 d 4 h`, `2 h 5 min`, `4 min 10 s`, `7 s`.
pub(crate) fn span(seconds: u64) -> String {
    let d = seconds / 86_400;
    let h = seconds / 3_600 % 24;
    let min = seconds / 60 % 60;
    let s = seconds % 60;
    match (d, h, min) {
        (0, 0, 0) => format!("{s} s"),
        (0, 0, _) => format!("{min} min {s} s"),
        (0, _, _) => format!("{h} h {min} min"),
        _ => format!("{d} d {h} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_in_its_two_largest_units() {
        for (seconds, text) in [
            (7, "7 s"),
            (250, "4 min 10 s"),
            (7_500, "2 h 5 min"),
            (273_600, "3 d 4 h"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
