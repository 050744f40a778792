//! HTTP versions that httparse does not know. Pure.

use super::HeadFault;

/// A version of HTTP/1 above 1.1. It must be handled like HTTP/1.1 (RFC 9110 2.5).
pub(crate) struct Newer {
    /// Position of the minor version's digit in the window.
    pub digit_at: usize,
}

/// Judges a version other than `HTTP/1.0` and `HTTP/1.1`: another major version is 505, a malformed
/// version 400. `None` while the line is incomplete, so that the result does not depend on how the
/// bytes arrive.
pub(crate) fn other(window: &[u8]) -> Result<Option<HeadFault>, Newer> {
    const SHAPE: &[u8; 10] = b"HTTP/0.0\r\n";
    let start = window.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
    let Some(version) = window[start..].splitn(3, |byte| *byte == b' ').nth(2) else {
        return Ok(None);
    };
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == shape,
    };
    let known = version.iter().zip(SHAPE).take_while(|pair| fits(*pair)).count();
    // A line may end in a line feed alone.
    let is_whole =
        known == SHAPE.len() || (known == SHAPE.len() - 2 && version.get(known) == Some(&b'\n'));
    match version.get(known) {
        _ if is_whole && version.starts_with(b"HTTP/1.") => {
            let version_at = version.as_ptr() as usize - window.as_ptr() as usize;
            Err(Newer { digit_at: version_at + b"HTTP/1.".len() })
        }
        _ if is_whole => Ok(Some(HeadFault::Version)),
        Some(_) => Ok(Some(HeadFault::Malformed)),
        None => Ok(None),
    }
}
