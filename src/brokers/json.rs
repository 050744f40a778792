//! Reading an upstream's JSON: the checks that the parser lacks, then the parser. Pure.

use serde::Deserialize;

/// Deepest nesting in any known answer is 8 (the chart's events); the rest is room.
const DEPTH_MAX: usize = 32;

/// Parses `body`; `None` if it is not JSON, not a `T`, or nested too deeply.
///
/// The parser (sonic-rs 0.5.10) skips unknown values by recursion without a bound, so a body of
/// opening brackets would overflow the stack and end the process; and it hands out lazy values of a
/// byte slice without checking that they are UTF-8. It must not get to see either.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    let text = std::str::from_utf8(body).ok()?;
    if !shallow(body) {
        return None;
    }
    sonic_rs::from_str(text).ok()
}

/// Whether brackets outside strings nest at most [`DEPTH_MAX`] deep. Says nothing about validity.
fn shallow(body: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_strings_only() {
        let deepest = ["[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)].concat();
        assert!(shallow(deepest.as_bytes()));
        assert!(!shallow(format!("[{deepest}]").as_bytes()));
        let flat = format!(r#"["{}", "\"{}"]"#, "[".repeat(100), "{".repeat(100));
        assert!(shallow(flat.as_bytes()));
        assert!(shallow("[]".repeat(100).as_bytes()));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(parse::<sonic_rs::LazyValue<'_>>(b"[\"\x80\"]").is_none());
    }

    #[test]
    fn a_million_brackets_are_refused() {
        for bracket in ["[", "{\"a\":"] {
            let body = bracket.repeat(1_000_000);
            assert!(parse::<sonic_rs::LazyValue<'_>>(body.as_bytes()).is_none());
        }
    }
}
