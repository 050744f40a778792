//! Decodes the chunked transfer coding of request bodies (RFC 9112 section 7.1) as bytes arrive.
//!
//! Pure. Extensions and trailers are read and dropped, each within a limit.

use crate::http::message::codings::is_of_token;

/// Longest chunk-size line, including extensions, and longest trailer line.
const LINE_BYTES_MAX: usize = 1024;
/// Longest trailer section.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Decoder state between reads.
#[derive(Debug, Default)]
pub struct Chunked {
    state: State,
    /// Bytes of the line being read.
    line_bytes: usize,
    trailer_bytes: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    SizeStart,
    Size(u64),
    /// Blanks after the size, which are allowed only before an extension.
    SizeBlank(u64),
    Extension(u64),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    Done,
}

/// The reason for refusing a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFault {
    Malformed,
    /// The decoded body would exceed its limit.
    TooLarge,
}

impl Chunked {
    /// Decodes `input` and appends the data to `body`. Returns how many bytes were consumed and
    /// whether the body is complete; bytes after its end are not consumed.
    ///
    /// # Errors
    /// [`ChunkFault`].
    pub fn decode(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        body_bytes_max: usize,
    ) -> Result<(usize, bool), ChunkFault> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if let State::Data(left) = self.state {
                let take = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(input.len() - at);
                body.extend_from_slice(&input[at..at + take]);
                at += take;
                let left = left - take as u64;
                self.state = if left == 0 {
                    State::DataCr
                } else {
                    State::Data(left)
                };
                continue;
            }
            self.state = self.step(input[at], body.len(), body_bytes_max)?;
            at += 1;
        }
        Ok((at, self.state == State::Done))
    }

    fn step(&mut self, byte: u8, collected: usize, max: usize) -> Result<State, ChunkFault> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX || self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(ChunkFault::Malformed);
        }
        Ok(match (self.state, byte) {
            (State::SizeStart, _) => State::Size(hex(byte)?),
            (State::Size(size), b'\r') => State::SizeLf(size),
            (State::Size(size) | State::SizeBlank(size), b';') => State::Extension(size),
            (State::Size(size) | State::SizeBlank(size), b' ' | b'\t') => State::SizeBlank(size),
            (State::Size(size), _) => {
                let size = size.checked_mul(16).ok_or(ChunkFault::TooLarge)? + hex(byte)?;
                if size > (max - collected.min(max)) as u64 {
                    return Err(ChunkFault::TooLarge);
                }
                State::Size(size)
            }
            (State::Extension(size), b'\r') => State::SizeLf(size),
            (State::Extension(_), b'\n' | 0) => return Err(ChunkFault::Malformed),
            (State::Extension(size), _) => State::Extension(size),
            (State::SizeLf(size), b'\n') => {
                self.line_bytes = 0;
                if size > (max - collected.min(max)) as u64 {
                    return Err(ChunkFault::TooLarge);
                }
                if size == 0 {
                    State::TrailerStart
                } else {
                    State::Data(size)
                }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => {
                self.line_bytes = 0;
                State::SizeStart
            }
            (State::TrailerStart, b'\r') => State::LastLf,
            (State::TrailerStart | State::TrailerName, _) if is_of_token(byte) => {
                self.trailer_bytes += 1;
                State::TrailerName
            }
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, _) if byte != b'\n' && byte != 0 => {
                self.trailer_bytes += 1;
                State::TrailerValue
            }
            (State::TrailerLf, b'\n') => {
                self.line_bytes = 0;
                State::TrailerStart
            }
            (State::LastLf, b'\n') => State::Done,
            _ => return Err(ChunkFault::Malformed),
        })
    }
}

fn hex(byte: u8) -> Result<u64, ChunkFault> {
    (byte as char)
        .to_digit(16)
        .map(u64::from)
        .ok_or(ChunkFault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_in(pieces: &[&[u8]], max: usize) -> Result<(Vec<u8>, usize, bool), ChunkFault> {
        let mut decoder = Chunked::default();
        let mut body = Vec::new();
        let mut used = 0;
        let mut done = false;
        for piece in pieces {
            let (n, finished) = decoder.decode(piece, &mut body, max)?;
            used += n;
            done = finished;
        }
        Ok((body, used, done))
    }

    #[test]
    fn chunks_are_joined_and_extensions_and_trailers_dropped() {
        let wire = b"4;x=\"y\"\r\nWiki\r\n5\r\npedia\r\n0\r\nX-Sum: 1\r\n\r\nGET /";
        let (body, used, done) = decode_in(&[wire], 100).unwrap();
        assert_eq!((body.as_slice(), used, done), (&b"Wikipedia"[..], wire.len() - 5, true));
    }

    #[test]
    fn malformed_and_oversized_bodies_are_refused() {
        for wire in [
            &b"\r\n"[..],
            b"g\r\n",
            b"-1\r\n",
            b"0x4\r\n",
            b"4\nWiki\r\n",
            b"4\r\nWikiX\r\n",
            b"0\r\n folded\r\n\r\n",
            b"4;\n",
            b"2 \r\n",
            b"0\r\nno colon\r\n",
            b"0\r\nname\r\n",
            b"0\r\nname : x\r\n",
            b"0\r\n: x\r\n",
        ] {
            assert_eq!(decode_in(&[wire], 100), Err(ChunkFault::Malformed), "{wire:?}");
        }
        assert_eq!(decode_in(&[b"65\r\n"], 100), Err(ChunkFault::TooLarge));
        assert_eq!(decode_in(&[b"fffffffffffffffff\r\n"], 100), Err(ChunkFault::TooLarge));
        let many = b"32\r\n"
            .iter()
            .chain([b'a'; 50].iter())
            .chain(b"\r\n33\r\n".iter());
        let many: Vec<u8> = many.copied().collect();
        assert_eq!(decode_in(&[&many], 100), Err(ChunkFault::TooLarge));
        let trailer = [&b"0\r\n"[..], &b"a: b\r\n".repeat(3_000)].concat();
        assert_eq!(decode_in(&[&trailer], 100), Err(ChunkFault::Malformed));
    }

    proptest! {
        #[test]
        fn a_body_decodes_the_same_however_it_is_fragmented(
            data in proptest::collection::vec(any::<u8>(), 1..200),
            sizes in proptest::collection::vec(1usize..40, 1..20),
            cut in 1usize..17,
        ) {
            let mut wire = Vec::new();
            let mut rest = &data[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, tail) = rest.split_at((*size).min(rest.len()));
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
                rest = tail;
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let pieces: Vec<&[u8]> = wire.chunks(cut).collect();
            let (body, used, done) = decode_in(&pieces, 1_000).unwrap();
            prop_assert!(done);
            prop_assert_eq!(used, wire.len());
            prop_assert_eq!(body, data);
        }

        #[test]
        fn no_more_comes_out_than_went_in_or_is_allowed(
            wire in proptest::collection::vec(
                proptest::sample::select(&b"0123aF;= \r\n\xff"[..]), 0..300,
            ),
        ) {
            if let Ok((body, used, _)) = decode_in(&[&wire], 64) {
                prop_assert!(body.len() <= 64 && body.len() < used.max(1) && used <= wire.len());
            }
        }
    }
}
