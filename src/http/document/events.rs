//! Server-sent events (WHATWG HTML 9.2) in both codings of streams: identity and gzip.
//!
//! A gzip stream here is a header and deflate blocks. No block refers to bytes before it and each
//! ends at a whole byte, so the same block can follow any other: it is compressed once for all
//! clients. Brotli cannot be shared like this, because its references into the dictionary depend on
//! how much was written before.
//!
//! Pure. Compressing takes about 0.2 ms, so it runs on OS threads and never on the edge. Texts of a
//! line or two are not compressed but stored, which any thread may do.

use flate2::{Compress, Compression, FlushCompress, Status};

use super::coding::GZIP_LEVEL;
use super::frames::Frame;
use super::negotiate::Coding;

/// `Content-Type` of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The header of a gzip stream without a name or a time (RFC 1952 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The end that [`FlushCompress::Full`] gives every block: an empty stored block (RFC 1951 3.2.4).
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// A frame in both codings.
#[derive(Debug)]
pub struct CodedFrame {
    identity: Frame,
    gzip: Frame,
}

impl CodedFrame {
    /// Compresses `text`. For OS threads, not the edge.
    pub fn compressed(text: &[u8]) -> Self {
        Self { identity: Frame::of(text), gzip: Frame::of(&deflated(text)) }
    }

    /// Keeps `text`, of at most 64 KiB, as it is in both codings.
    pub fn stored(text: &[u8]) -> Self {
        Self { identity: Frame::of(text), gzip: Frame::of(&stored(text)) }
    }

    /// The same, as the beginning of a stream.
    pub fn opening(text: &[u8]) -> Self {
        let gzip = [&GZIP_HEADER[..], &stored(text)].concat();
        Self { identity: Frame::of(text), gzip: Frame::of(&gzip) }
    }

    /// The frame in `coding`, which is identity or gzip.
    pub fn of(&self, coding: Coding) -> &Frame {
        match coding {
            Coding::Gzip => &self.gzip,
            Coding::Identity | Coding::Br => &self.identity,
        }
    }
}

/// An event's text. `data` is JSON, which has no raw line end.
pub fn event(name: &str, id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let mut text = format!("event: {name}\n").into_bytes();
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"data: ");
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n\n");
    text
}

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut encoder = Compress::new(Compression::new(GZIP_LEVEL), false);
    let mut block = Vec::with_capacity(text.len() / 2 + 64);
    loop {
        let taken = encoder.total_in() as usize;
        let status = encoder.compress_vec(&text[taken..], &mut block, FlushCompress::Full);
        assert!(!matches!(status, Err(_) | Ok(Status::StreamEnd)), "compressing does not fail");
        let is_whole = encoder.total_in() as usize == text.len() && block.len() < block.capacity();
        if is_whole && block.ends_with(&FLUSHED) {
            return block;
        }
        block.reserve(64.max(text.len()));
    }
}

/// A stored block that is not the last one (RFC 1951 3.2.4).
fn stored(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a stored block has at most 64 KiB");
    let mut block = vec![0];
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&(!length).to_le_bytes());
    block.extend_from_slice(text);
    block
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;
    use crate::http::document::frames::Framing;

    /// All that a decoder gives before it asks for more.
    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut decoder = GzDecoder::new(bytes);
        let (mut all, mut room) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = decoder.read(&mut room) {
            all.extend_from_slice(&room[..count]);
        }
        all
    }

    fn payload(frame: &CodedFrame, coding: Coding) -> &[u8] {
        frame.of(coding).bytes(Framing::UntilClose)
    }

    #[test]
    fn an_event_has_its_fields_in_order_and_ends_with_an_empty_line() {
        let text = event("snapshot", Some("9f2c"), b"{\"a\":1}");
        assert_eq!(text, b"event: snapshot\nid: 9f2c\ndata: {\"a\":1}\n\n");
        assert_eq!(event("beat", None, b"{}"), b"event: beat\ndata: {}\n\n");
    }

    #[test]
    fn a_compressed_event_is_smaller() {
        let data = br#"{"symbol":"NSE:INFY","last_price":1764.9}"#.repeat(40);
        let frame = CodedFrame::compressed(&data);
        assert!(payload(&frame, Coding::Gzip).len() * 4 < data.len());
        assert_eq!(payload(&frame, Coding::Identity), data);
    }

    proptest! {
        #[test]
        fn blocks_in_any_order_and_choice_decode_to_their_texts(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..5_000), 1..5),
            order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
        ) {
            let frames: Vec<_> = texts
                .iter()
                .map(|text| (CodedFrame::compressed(text), CodedFrame::stored(text)))
                .collect();
            let opening = CodedFrame::opening(b": hello\n\n");
            let mut stream = payload(&opening, Coding::Gzip).to_vec();
            let mut expected = b": hello\n\n".to_vec();
            for (index, is_stored) in order {
                let at = index.index(texts.len());
                let (compressed, stored) = &frames[at];
                let frame = if is_stored { stored } else { compressed };
                stream.extend_from_slice(payload(frame, Coding::Gzip));
                expected.extend_from_slice(&texts[at]);
                // Each block can be read as soon as it has arrived.
                prop_assert_eq!(&unzipped(&stream), &expected);
            }
        }
    }
}
