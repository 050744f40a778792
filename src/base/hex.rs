//! Bytes as text. Not for secrets, whose text has to be wiped.

/// Two lower-case hexadecimal digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
