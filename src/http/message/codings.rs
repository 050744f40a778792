//! `Transfer-Encoding` (RFC 9112 6.1), over all of its lines. Pure.
//!
//! The end of the body is known only if the last coding is `chunked`. Other codings before it are
//! not implemented (501). Anything else is malformed (400).

use crate::http::message::head_fault::HeadFault;

/// The codings in the lines read so far.
#[derive(Default)]
pub(crate) struct Codings {
    chunked: bool,
    /// A coding other than `chunked` was read.
    unknown: bool,
}

impl Codings {
    /// Reads one line's value.
    pub(crate) fn note(&mut self, value: &[u8]) -> Result<(), HeadFault> {
        let mut rest = Rest(value);
        loop {
            let coding = rest.coding().ok_or(HeadFault::BadTransferEncoding)?;
            if self.chunked {
                // Applied twice, or not last.
                return Err(HeadFault::BadTransferEncoding);
            }
            match coding {
                Coding::Chunked => self.chunked = true,
                Coding::Unknown => self.unknown = true,
            }
            if !rest.skip(b',') {
                let whole = rest.0.is_empty();
                return whole.then_some(()).ok_or(HeadFault::BadTransferEncoding);
            }
        }
    }

    /// Whether any line was read.
    pub(crate) fn are_there(&self) -> bool {
        self.chunked || self.unknown
    }

    /// Checks all codings together. `alone`: there is no `Content-Length`, and the version is not
    /// HTTP/1.0.
    pub(crate) fn end_in_chunked(&self, alone: bool) -> Result<(), HeadFault> {
        match self {
            Self {
                chunked: true,
                unknown: false,
            } if alone => Ok(()),
            Self {
                chunked: true,
                unknown: true,
            } if alone => Err(HeadFault::UnknownCoding),
            _ => Err(HeadFault::BadTransferEncoding),
        }
    }
}

enum Coding {
    Chunked,
    Unknown,
}

/// The unread rest of a value.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Reads `token *( OWS ";" OWS token BWS "=" BWS ( token / quoted-string ) )`. `chunked` takes
    /// no parameters. Empty elements are refused, because implementations read them differently.
    fn coding(&mut self) -> Option<Coding> {
        self.blanks();
        let name = self.token()?;
        let mut parameters = false;
        while self.skip(b';') {
            parameters = true;
            self.blanks();
            self.token()?;
            if !self.skip(b'=') {
                return None;
            }
            self.blanks();
            match self.0.first() {
                Some(b'"') => self.quoted()?,
                _ => self.token().map(|_| ())?,
            }
        }
        match name.eq_ignore_ascii_case(b"chunked") {
            true if parameters => None,
            true => Some(Coding::Chunked),
            false => Some(Coding::Unknown),
        }
    }

    /// Skips blanks, then `byte` if it is next; returns whether it was.
    fn skip(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.0.first() == Some(&byte);
        self.0 = &self.0[usize::from(found)..];
        found
    }

    fn blanks(&mut self) {
        let blanks = self
            .0
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        self.0 = &self.0[blanks..];
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let (token, rest) = self
            .0
            .split_at(self.0.iter().take_while(|b| is_of_token(**b)).count());
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    fn quoted(&mut self) -> Option<()> {
        let mut at = 1;
        loop {
            at += match self.0.get(at)? {
                b'"' => break,
                b'\\' => 2,
                _ => 1,
            };
        }
        self.0 = &self.0[at + 1..];
        Some(())
    }
}

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
        assert!(
            ![b' ', b'\t', 0, 0x7f, 0x80, 0xff]
                .into_iter()
                .any(is_of_token)
        );
    }
}
