//! Writes a view as JSON.

use serde::Serialize;

/// Appends `view` to `out`.
pub fn write(out: &mut Vec<u8>, view: &(impl Serialize + ?Sized)) {
    // Views contain text, finite numbers and lists of these, which always serialise, and a `Vec`
    // accepts any length.
    let written = sonic_rs::to_writer(out, view);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// `view` as JSON.
pub fn to_vec(view: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, view);
    out
}
