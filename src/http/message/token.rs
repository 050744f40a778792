//! The characters of a token (RFC 9110 5.6.2), such as a header's name.

/// Whether `byte` may be part of a token.
pub(crate) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_blanks_and_bytes_above_ascii_are_no_token() {
        let refused = (0..=u8::MAX).filter(|byte| !is_of_token(*byte) && byte.is_ascii_graphic());
        assert_eq!(refused.collect::<Vec<_>>(), b"\"(),/:;<=>?@[\\]{}");
        assert!(![b' ', b'\t', 0, 0x7f, 0x80, 0xff].into_iter().any(is_of_token));
    }
}
