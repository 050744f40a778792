//! The decoder against the vendor's client, and against an encoder written from the table.

use proptest::prelude::*;

use super::*;

/// Three packets: a share's last price, an index in full, a share's quote.
const EXAMPLE: &str = "0003\
    0008 002d1001 000560e0\
    0020 0003e909 0025f049 0025fefe 0025c3fd 0025d780 0025c44d 00002bfc 6affe56b\
    002c 000b4501 00048f0d 00000019 00048bac 003eeb40 000c6539 000dd0d8 00048828 000490f2 00048639 \
    000484b8";

/// Made once and decoded by the vendor's Python client (5.2.2); its output is [`GOLDEN`].
const MESSAGE: &str = include_str!("../../../tests/fixtures/broker_a/ticks.hex");

/// Token, last price, then open, high, low and close, then the exchange time.
type Row = (u32, &'static str, Option<[&'static str; 4]>, Option<i64>);

const GOLDEN: [Row; 6] = [
    (
        738_561,
        "297583.89",
        Some(["297588.46", "297603.89", "297563.89", "297583.25"]),
        Some(1_795_155_307),
    ),
    (
        260_105,
        "68341.80",
        Some(["68342.57", "68385.01", "68329.46", "68336.25"]),
        Some(1_795_155_308),
    ),
    (
        128_028_676,
        "254080.26",
        Some(["254077.50", "254100.26", "254060.26", "254079.85"]),
        Some(1_795_155_307),
    ),
    (265, "78052.72", Some(["78053.49", "78095.93", "78040.38", "78047.17"]), None),
    (
        408_065,
        "136568.15",
        Some(["136575.98", "136588.15", "136548.15", "136568.00"]),
        None,
    ),
    (2_953_217, "42949672.95", None, None),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn read(message: &[u8]) -> Vec<Result<Tick, Bad>> {
    packets(message).unwrap().collect()
}

fn golden(rows: &[Row]) -> Vec<Result<Tick, Bad>> {
    let decimal = |text: &str| text.parse::<Decimal>().unwrap();
    let tick = |(token, last, day, at): &Row| {
        let day = day.map(|day| {
            let [open, high, low, previous_close] = day.map(decimal);
            Day {
                open,
                high,
                low,
                previous_close,
            }
        });
        let at = at.map(|at| Timestamp::from_second(at).unwrap());
        Ok(Tick {
            token: *token,
            last_price: decimal(last),
            day,
            at,
        })
    };
    rows.iter().map(tick).collect()
}

/// One packet, written from the table of the wire document and from nothing in the decoder.
#[derive(Clone, Debug)]
struct Packet {
    token: u32,
    last: u32,
    /// Open, high, low, close.
    day: [u32; 4],
    at: u32,
    /// Any content of the fields that are not read.
    other: u32,
    bytes: usize,
}

impl Packet {
    fn encoded(&self) -> Vec<u8> {
        let Self {
            token,
            last,
            day: [open, high, low, close],
            at,
            other,
            bytes,
        } = self.clone();
        let words = match bytes {
            8 => vec![token, last],
            28 => vec![token, last, high, low, open, close, other],
            32 => vec![token, last, high, low, open, close, other, at],
            _ => {
                let mut words = vec![token, last, other, other, other, other, other];
                words.extend([open, high, low, close]);
                if bytes == 184 {
                    words.extend([other, other, other, other, at]);
                    // Ten levels of twelve bytes.
                    words.extend([other; 30]);
                }
                words
            }
        };
        let body: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        assert_eq!(body.len(), bytes);
        body
    }

    fn expected(&self) -> Tick {
        let price = |paise: u32| Decimal::from(paise) / Decimal::ONE_HUNDRED;
        let [open, high, low, previous_close] = self.day.map(price);
        let timed = matches!(self.bytes, 32 | 184);
        Tick {
            token: self.token,
            last_price: price(self.last),
            day: (self.bytes > 8).then_some(Day {
                open,
                high,
                low,
                previous_close,
            }),
            at: timed.then(|| Timestamp::from_second(i64::from(self.at)).unwrap()),
        }
    }
}

fn framed(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut message = (bodies.len() as u16).to_be_bytes().to_vec();
    for body in bodies {
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
    }
    message
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let bytes = prop::sample::select(vec![8_usize, 28, 32, 44, 184]);
    let token = (0..1_u32 << 24, prop::sample::select(SEGMENTS.to_vec()))
        .prop_map(|(number, segment)| number << 8 | segment);
    (token, any::<u32>(), any::<[u32; 4]>(), any::<u32>(), any::<u32>(), bytes).prop_map(
        |(token, last, day, at, other, bytes)| Packet {
            token,
            last,
            day,
            at,
            other,
            bytes,
        },
    )
}

#[test]
fn the_example_is_read_as_it_was_meant() {
    let expected: [Row; 3] = [
        (2_953_217, "3524.80", None, None),
        (
            256_265,
            "24863.45",
            Some(["24800.00", "24901.10", "24750.05", "24750.85"]),
            Some(1_795_155_307),
        ),
        (738_561, "2987.65", Some(["2970.00", "2992.50", "2965.05", "2961.20"]), None),
    ];
    let ticks = read(&bytes(EXAMPLE));
    assert_eq!(ticks, golden(&expected));
    let time = ticks[1].unwrap().at.unwrap();
    assert_eq!(time, "2026-11-20T11:45:07+05:30".parse().unwrap());
}

#[test]
fn every_layout_is_read_as_the_vendors_client_reads_it() {
    assert_eq!(read(&bytes(MESSAGE)), golden(&GOLDEN));
}

#[test]
fn an_index_has_high_and_low_first_and_a_share_has_open_first() {
    for (bytes, order) in [(28, [1, 2, 0, 3]), (32, [1, 2, 0, 3]), (44, [0, 1, 2, 3])] {
        let first = if bytes == 44 { 28 } else { 8 };
        let mut body = vec![0_u8; bytes];
        body[3] = 9;
        for (place, field) in order.into_iter().enumerate() {
            body[first + 4 * place + 3] = 10 + field;
        }
        let day = read(&framed(&[body]))[0].unwrap().day.unwrap();
        let fields = [day.open, day.high, day.low, day.previous_close];
        assert_eq!(fields, [10, 11, 12, 13].map(|paise| Decimal::new(paise, 2)), "{bytes}");
    }
}

#[test]
fn prices_are_exact_to_the_last_paisa() {
    for (paise, text) in [
        (1, "0.01"),
        (5, "0.05"),
        (99, "0.99"),
        (100, "1.00"),
        (u32::MAX, "42949672.95"),
    ] {
        let body = [256_265_u32.to_be_bytes(), paise.to_be_bytes()].concat();
        assert_eq!(read(&framed(&[body]))[0].unwrap().last_price.to_string(), text);
    }
}

#[test]
fn other_segments_and_lengths_are_refused_and_the_rest_of_the_message_is_read() {
    let ltp = |segment: u32| [(77 << 8 | segment).to_be_bytes(), 5_u32.to_be_bytes()].concat();
    for segment in 0..=255 {
        let read = read(&framed(&[ltp(segment), ltp(1)]));
        match segment {
            1 | 4 | 9 => assert!(read[0].is_ok()),
            _ => assert_eq!(read[0], Err(Bad::Segment), "{segment}"),
        }
        assert!(read[1].is_ok());
    }
    for length in (0..=300).filter(|length| ![8, 28, 32, 44, 184].contains(length)) {
        let read = read(&framed(&[vec![1; length], ltp(4)]));
        assert_eq!(read[0], Err(Bad::Length), "{length}");
        assert!(read[1].is_ok());
    }
}

#[test]
fn a_heartbeat_has_no_packets_and_bad_framing_gives_none() {
    for heartbeat in [&[][..], &[0], &[7], &[0, 0]] {
        assert!(read(heartbeat).is_empty());
    }
    let whole = bytes(EXAMPLE);
    for length in HEADER_BYTES..whole.len() {
        assert!(packets(&whole[..length]).is_err(), "cut at {length}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(packets(&longer).is_err(), "a byte too many");
    for count in [0_u16, 1, 2, 4, u16::MAX] {
        let miscounted = [&count.to_be_bytes(), &whole[2..]].concat();
        assert!(packets(&miscounted).is_err(), "{count} packets");
    }
}

proptest! {
    #[test]
    fn what_is_encoded_from_the_table_is_read_back(
        of in prop::collection::vec(any_packet(), 0..20),
    ) {
        let bodies: Vec<Vec<u8>> = of.iter().map(Packet::encoded).collect();
        let expected: Vec<_> = of.iter().map(|packet| Ok(packet.expected())).collect();
        prop_assert_eq!(read(&framed(&bodies)), expected);
    }

    #[test]
    fn a_message_with_a_damaged_byte_is_refused_or_read_to_its_count(
        of in prop::collection::vec(any_packet(), 1..6),
        place: prop::sample::Index,
        value: u8,
    ) {
        let bodies: Vec<Vec<u8>> = of.iter().map(Packet::encoded).collect();
        let mut message = framed(&bodies);
        let place = place.index(message.len());
        message[place] = value;
        let count = usize::from(u16::from_be_bytes([message[0], message[1]]));
        if let Ok(read) = packets(&message) {
            prop_assert_eq!(read.count(), count);
        }
    }
}
