//! JSON bodies of clients on arbitrary bytes: what is split is JSON, and each string decodes to
//! what another parser makes of it.
//!
//! `cargo fuzz run body fuzz/corpus/body fuzz/seeds/body`.

#![no_main]

use bhav::base::json::{elements, members, unescaped};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    if let Some(members) = members(data) {
        // Lone surrogates are JSON by its grammar; the reference refuses them when it decodes.
        for (name, raw) in members {
            assert!(!name.contains('\\'));
            agrees(raw);
            for element in elements(raw).unwrap_or_default() {
                agrees(element);
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        // Any text at all must not make it panic.
        let decoded = unescaped(text);
        if let Ok(Value::String(expected)) = serde_json::from_str(text) {
            assert_eq!(decoded.as_deref(), Some(&expected));
        }
    }
});

/// Ours on a piece of well-formed JSON is the reference's, or both refuse.
fn agrees(raw: &str) {
    let expected = match serde_json::from_str(raw) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    };
    assert_eq!(unescaped(raw).as_deref(), expected.as_ref(), "{raw}");
}
