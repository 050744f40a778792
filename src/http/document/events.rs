//! Server-sent events (WHATWG HTML 9.2) in both codings of streams: identity and gzip.
//!
//! A gzip stream here is a header and deflate blocks. No block refers to bytes before it and each
//! ends at a whole byte, so the same block can follow any other: it is compressed once for all
//! clients. Brotli cannot be shared like this, because its references into the dictionary depend on
//! how much was written before.
//!
//! A text is compressed when the first client takes it compressed. That takes about 0.2 ms, so it
//! happens on the OS threads that write streams and never on the edge. Texts of a line or two are
//! not compressed but stored, which any thread may do.

use std::cell::RefCell;
use std::sync::OnceLock;

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::http::document::coding::{GZIP_HEADER, GZIP_LEVEL};
use crate::http::document::frames::{Frame, Framing};
use crate::http::document::negotiate::Coding;

/// `Content-Type` of a stream of events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The end that [`FlushCompress::Full`] gives every block: an empty stored block (RFC 1951 3.2.4).
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// A frame in both codings.
#[derive(Debug)]
pub(crate) struct CodedFrame {
    identity: Frame,
    gzip: OnceLock<Frame>,
}

impl CodedFrame {
    /// A frame that is compressed when it is first taken so.
    pub(crate) fn new(text: &[u8]) -> Self {
        Self {
            identity: Frame::of(text),
            gzip: OnceLock::new(),
        }
    }

    /// Keeps `text`, of at most 64 KiB, as it is in both codings.
    pub(crate) fn stored(text: &[u8]) -> Self {
        Self {
            identity: Frame::of(text),
            gzip: Frame::of(&stored(text)).into(),
        }
    }

    /// The same as [`Self::stored`], for the beginning of a stream.
    pub(crate) fn opening(text: &[u8]) -> Self {
        let gzip = [&GZIP_HEADER[..], &stored(text)].concat();
        Self {
            identity: Frame::of(text),
            gzip: Frame::of(&gzip).into(),
        }
    }

    /// The frame in `coding`, which is identity or gzip. Of one made with [`Self::new`] gzip is for
    /// OS threads, not the edge.
    pub(crate) fn of(&self, coding: Coding) -> &Frame {
        match coding {
            Coding::Gzip => self.gzip.get_or_init(|| {
                let text = self.identity.bytes(Framing::UntilClose);
                Frame::of(&DEFLATER.with_borrow_mut(|deflater| deflated(deflater, text)))
            }),
            Coding::Identity | Coding::Br => &self.identity,
        }
    }
}

/// An event's text. `data` is JSON, which has no raw line end.
pub(crate) fn event(name: &str, id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let mut text = format!("event: {name}\n").into_bytes();
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"data: ");
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n\n");
    text
}

thread_local! {
    /// Kept, because making one and freeing it takes longer than to compress a snapshot. It is
    /// never reset: a full flush forgets all that was before.
    static DEFLATER: RefCell<Compress> =
        RefCell::new(Compress::new(Compression::new(GZIP_LEVEL), false));
}

fn deflated(encoder: &mut Compress, text: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(text.len() / 2 + 64);
    let before = encoder.total_in();
    loop {
        let taken = (encoder.total_in() - before) as usize;
        let status = encoder.compress_vec(&text[taken..], &mut block, FlushCompress::Full);
        assert!(!matches!(status, Err(_) | Ok(Status::StreamEnd)), "compressing does not fail");
        let taken = (encoder.total_in() - before) as usize;
        let is_whole = taken == text.len() && block.len() < block.capacity();
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

    /// The output of a decoder before it needs more input.
    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut decoder = GzDecoder::new(bytes);
        let mut all = Vec::new();
        let mut room = [0; 4096];
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
        let frame = CodedFrame::new(&data);
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
                .map(|text| (CodedFrame::new(text), CodedFrame::stored(text)))
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
