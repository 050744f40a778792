//! Names and directions of patterns, compared with the library and with hand-made candles.

use std::collections::BTreeSet;

use jiff::civil::Date;
use proptest::prelude::*;

use super::*;

/// Functions whose value is not signed; the literature gives the direction.
const BULLISH: &str = "CDL3STARSINSOUTH CDL3WHITESOLDIERS CDLCONCEALBABYSWALL CDLDRAGONFLYDOJI \
    CDLHAMMER CDLHOMINGPIGEON CDLINVERTEDHAMMER CDLLADDERBOTTOM CDLMATCHINGLOW CDLMATHOLD \
    CDLMORNINGDOJISTAR CDLMORNINGSTAR CDLPIERCING CDLSTICKSANDWICH CDLTAKURI CDLUNIQUE3RIVER";
const BEARISH: &str = "CDL2CROWS CDL3BLACKCROWS CDLADVANCEBLOCK CDLDARKCLOUDCOVER \
    CDLEVENINGDOJISTAR CDLEVENINGSTAR CDLGRAVESTONEDOJI CDLHANGINGMAN CDLIDENTICAL3CROWS \
    CDLINNECK CDLONNECK CDLSHOOTINGSTAR CDLSTALLEDPATTERN CDLTHRUSTING CDLUPSIDEGAP2CROWS";

/// Open, high, low, close in paise.
type Paise = [i64; 4];

fn candles(bars: &[Paise]) -> Vec<Candle> {
    let mut date = Date::constant(2020, 1, 1);
    let candle = |bar: &Paise| {
        date = date.tomorrow().unwrap();
        let [open_e4, high_e4, low_e4, close_e4] = bar.map(|paise| paise * PRICE_E4 / 100);
        let candle = Candle {
            date,
            open_e4,
            high_e4,
            low_e4,
            close_e4,
            volume: 1,
        };
        assert_eq!(candle.check(), Ok(()));
        candle
    };
    bars.iter().map(candle).collect()
}

/// A bar from its open price, body (up or down) and shadows.
fn bar(open: i64, body: i64, above: i64, below: i64) -> Paise {
    let close = open + body;
    [
        open,
        open.max(close) + above,
        open.min(close) - below,
        close,
    ]
}

/// A random walk of bars with short and long bodies, gaps and equal prices.
fn walk(seed: u64, count: usize) -> Vec<Paise> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut close = 50_000;
    let bars = (0..count).map(|_| {
        let open = close + [0, 0, 5, -5, 60, -60][random.usize(..6)];
        let body = [0, 0, 5, -5, 40, -40, 150, -150, 300, -300][random.usize(..10)];
        let shadow = [0, 0, 5, 20, 100, 250];
        let made = bar(open, body, shadow[random.usize(..6)], shadow[random.usize(..6)]);
        // Back towards the middle, so that prices stay positive.
        close = made[3] + (50_000 - made[3]) / 50;
        made
    });
    bars.collect()
}

fn names(columns: &Columns) -> Vec<&'static str> {
    Detector::default()
        .newest(columns)
        .into_iter()
        .map(Key::name)
        .collect()
}

#[test]
fn there_are_55_functions_with_79_keys_of_different_names() {
    assert_eq!(FUNCTIONS.len(), 55);
    let functions: BTreeSet<_> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(functions.len(), 55);
    let names: BTreeSet<_> = Key::all().map(Key::name).collect();
    assert_eq!((Key::all().count(), names.len()), (79, 79));
    for key in Key::all() {
        assert_eq!(Key::from_name(key.name()), Some(key));
        assert!(key.index() < KEYS);
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(key.name().chars().all(word), "{}", key.name());
    }
    assert_eq!(Key::from_name("doji"), None, "a shape without a direction");
}

#[test]
fn directions_equal_the_published_table() {
    let words = |list: &'static str| list.split_whitespace().collect::<BTreeSet<_>>();
    for function in FUNCTIONS {
        let expected = match function.name {
            name if words(BULLISH).contains(name) => Reads::Always(Direction::Bullish),
            name if words(BEARISH).contains(name) => Reads::Always(Direction::Bearish),
            _ => Reads::Sign,
        };
        assert_eq!(function.reads, expected, "{}", function.name);
    }
    assert_eq!((words(BULLISH).len(), words(BEARISH).len()), (16, 15));
}

/// Compares every key with the library's own value, function by function.
#[test]
fn every_value_of_the_library_becomes_its_direction() {
    let columns = Columns::of(&candles(&walk(7, 30_000)));
    let mut found = BTreeSet::new();
    Detector::default().scan(&columns, |at, key| {
        assert!(found.insert((at, key)), "{at} {} twice", key.name());
    });
    let core = Core::default();
    let mut seen = BTreeSet::new();
    let mut expected = BTreeSet::new();
    for (number, function) in FUNCTIONS.iter().enumerate() {
        let mut values = vec![0; columns.len()];
        let last = columns.len() - 1;
        let range = (function.detect)(&core, 0, last, &columns, &mut values).unwrap();
        for (offset, value) in values[..range.count]
            .iter()
            .enumerate()
            .filter(|(_, v)| **v != 0)
        {
            seen.insert((function.name, *value));
            let bearish = match function.name {
                "CDLGRAVESTONEDOJI" => true,
                _ => *value < 0,
            };
            let direction = if bearish {
                Direction::Bearish
            } else {
                Direction::Bullish
            };
            expected.insert((range.beg_idx + offset, Key::new(number, direction)));
        }
    }
    assert_eq!(found, expected);
    for value in [
        ("CDLGRAVESTONEDOJI", 100),
        ("CDLHARAMI", 80),
        ("CDLHARAMI", -80),
        ("CDLHARAMI", 100),
        ("CDLHARAMI", -100),
        ("CDLHARAMICROSS", 80),
        ("CDLHARAMICROSS", -80),
        ("CDLENGULFING", 80),
        ("CDLENGULFING", -80),
        ("CDLHIKKAKE", 200),
        ("CDLHIKKAKE", -200),
        ("CDLHIKKAKE", 100),
        ("CDLHANGINGMAN", -100),
    ] {
        assert!(seen.contains(&value), "{value:?} never came");
    }
}

#[test]
fn known_shapes_get_their_pattern_names() {
    // Quiet days, which set the functions' measures of long and short.
    let quiet: Vec<Paise> = (0..15)
        .map(|day| bar(10_000 + day % 2, 40, 20, 20))
        .collect();
    let with = |bars: &[Paise]| names(&Columns::of(&candles(&[&quiet, bars].concat())));
    let gravestone = with(&[bar(10_100, 0, 150, 0)]);
    assert!(gravestone.contains(&"gravestone_doji"), "{gravestone:?}");
    assert_eq!(Key::from_name("gravestone_doji").unwrap().direction(), Direction::Bearish);
    let engulfing = with(&[bar(10_050, -60, 5, 5), bar(9_970, 120, 5, 5)]);
    assert!(engulfing.contains(&"bullish_engulfing"), "{engulfing:?}");
    let harami = with(&[bar(10_050, 200, 5, 5), bar(10_200, -20, 5, 5)]);
    assert!(harami.contains(&"bearish_harami"), "{harami:?}");
    // The small body ends where the long one does: the library says 80 instead of 100.
    let touching = with(&[bar(10_050, -200, 5, 5), bar(9_850, 20, 5, 5)]);
    assert!(touching.contains(&"bullish_harami"), "{touching:?}");
    // An inside day, then a false break downwards.
    let hikkake = with(&[
        bar(10_000, 50, 60, 60),
        bar(10_010, 20, 20, 20),
        bar(9_990, -20, 5, 40),
    ]);
    assert!(hikkake.contains(&"bullish_hikkake"), "{hikkake:?}");
}

#[test]
fn too_few_bars_give_no_signal() {
    let mut none = Vec::new();
    Detector::default().scan(&Columns::default(), |at, key| none.push((at, key)));
    assert_eq!((none, names(&Columns::default())), (vec![], vec![]));
    assert!(Columns::default().is_empty());
    assert!(names(&Columns::of(&candles(&walk(1, 1)))).is_empty());
}

proptest! {
    /// A look during the day evaluates the newest bar only and must find the same as a full scan.
    #[test]
    fn the_newest_bar_has_the_same_signals_as_in_a_full_scan(
        bars in prop::collection::vec((-80_i64..80, -300_i64..300, 0_i64..250, 0_i64..250), 1..60),
        tick in prop::sample::select(vec![1_i64, 5, 50]),
    ) {
        let mut close = 100_000;
        let bars: Vec<Paise> = bars.iter().map(|(gap, body, above, below)| {
            let to = |paise: i64| paise / tick * tick;
            let made = bar(close + to(*gap), to(*body), to(*above), to(*below));
            close = made[3];
            made
        }).collect();
        let candles = candles(&bars);
        let detector = Detector::default();
        for end in 1..=candles.len() {
            let columns = Columns::of(&candles[..end]);
            let mut scanned = Vec::new();
            detector.scan(&columns, |at, key| if at == end - 1 { scanned.push(key) });
            prop_assert_eq!(detector.newest(&columns), scanned);
        }
    }
}
