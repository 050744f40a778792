//! Writes a view as JSON.

use serde::Serialize;

/// Appends `view` to `out`.
pub fn write(out: &mut Vec<u8>, view: &(impl Serialize + ?Sized)) {
    // Views hold text, finite numbers and lists of them, which always have JSON; a Vec takes it.
    let written = sonic_rs::to_writer(out, view);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// `view` alone.
pub fn to_vec(view: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, view);
    out
}
