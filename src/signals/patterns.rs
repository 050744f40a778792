//! The 55 candlestick pattern functions that claim a direction: their names, their directions and
//! their calls.
//!
//! The `ta-lib` crate detects the patterns, with the results of the C library. Pure; run on the
//! signals lane and by the evaluation. Candles must be checked before, since the functions accept
//! nonsense silently. Prices are binary floats only here, because the functions take nothing else;
//! no price is read back from them. Six functions that name a shape without a direction are left
//! out: doji, long-legged doji, rickshaw man, high wave, spinning top, short line.

use ta_lib::{Core, OutRange, RetCode};

use crate::base::candle::PRICE_E4;
use crate::base::{Candle, words};

/// Open, high, low and close as columns, the form that the functions take.
#[derive(Debug, Default, Clone)]
pub struct Columns {
    pub open: Vec<f64>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
}

impl Columns {
    /// The columns of `candles`, oldest first.
    pub fn of<'a>(candles: impl IntoIterator<Item = &'a Candle>) -> Self {
        let mut columns = Self::default();
        for candle in candles {
            columns.open.push(rupees(candle.open_e4));
            columns.high.push(rupees(candle.high_e4));
            columns.low.push(rupees(candle.low_e4));
            columns.close.push(rupees(candle.close_e4));
        }
        columns
    }

    /// Number of bars.
    pub(crate) fn len(&self) -> usize {
        self.close.len()
    }

    /// Whether there are no bars.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.close.is_empty()
    }
}

/// The float nearest to the exact price. Both operands are exact, and a division rounds correctly.
fn rupees(price_e4: i64) -> f64 {
    price_e4 as f64 / PRICE_E4 as f64
}

/// How a function's value becomes a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// The sign of the value is the direction.
    Sign,
    /// Any value but zero means this direction.
    Always(Direction),
}

type Detect = fn(&Core, usize, usize, &Columns, &mut [i32]) -> Result<OutRange, RetCode>;

struct Function {
    /// TA-Lib's name.
    name: &'static str,
    bullish: &'static str,
    bearish: &'static str,
    reads: Reads,
    detect: Detect,
}

macro_rules! function {
    ($detect:ident $name:literal, $base:literal, sign $(, $penetration:ident)?) => {
        Function {
            name: $name,
            bullish: concat!("bullish_", $base),
            bearish: concat!("bearish_", $base),
            reads: Reads::Sign,
            detect: function!(@ $detect $($penetration)?),
        }
    };
    ($detect:ident $name:literal, $base:literal, $direction:ident $(, $penetration:ident)?) => {
        Function {
            name: $name,
            bullish: $base,
            bearish: $base,
            reads: Reads::Always(Direction::$direction),
            detect: function!(@ $detect $($penetration)?),
        }
    };
    (@ $detect:ident) => {
        |core, from, to, c, out| core.$detect(from, to, &c.open, &c.high, &c.low, &c.close, out)
    };
    (@ $detect:ident penetration) => {
        |core, from, to, c, out| {
            let usual = Core::REAL_DEFAULT;
            core.$detect(from, to, &c.open, &c.high, &c.low, &c.close, usual, out)
        }
    };
}

/// The functions in TA-Lib's order, which also decides ties between keys of one name.
#[rustfmt::skip]
const FUNCTIONS: &[Function] = &[
    function!(cdl2crows "CDL2CROWS", "two_crows", Bearish),
    function!(cdl3blackcrows "CDL3BLACKCROWS", "three_black_crows", Bearish),
    function!(cdl3inside "CDL3INSIDE", "three_inside", sign),
    function!(cdl3linestrike "CDL3LINESTRIKE", "three_line_strike", sign),
    function!(cdl3outside "CDL3OUTSIDE", "three_outside", sign),
    function!(cdl3starsinsouth "CDL3STARSINSOUTH", "three_stars_in_the_south", Bullish),
    function!(cdl3whitesoldiers "CDL3WHITESOLDIERS", "three_white_soldiers", Bullish),
    function!(cdlabandonedbaby "CDLABANDONEDBABY", "abandoned_baby", sign, penetration),
    function!(cdladvanceblock "CDLADVANCEBLOCK", "advance_block", Bearish),
    function!(cdlbelthold "CDLBELTHOLD", "belt_hold", sign),
    function!(cdlbreakaway "CDLBREAKAWAY", "breakaway", sign),
    function!(cdlclosingmarubozu "CDLCLOSINGMARUBOZU", "closing_marubozu", sign),
    function!(cdlconcealbabyswall "CDLCONCEALBABYSWALL", "concealing_baby_swallow", Bullish),
    function!(cdlcounterattack "CDLCOUNTERATTACK", "counterattack", sign),
    function!(cdldarkcloudcover "CDLDARKCLOUDCOVER", "dark_cloud_cover", Bearish, penetration),
    function!(cdldojistar "CDLDOJISTAR", "doji_star", sign),
    function!(cdldragonflydoji "CDLDRAGONFLYDOJI", "dragonfly_doji", Bullish),
    function!(cdlengulfing "CDLENGULFING", "engulfing", sign),
    function!(cdleveningdojistar "CDLEVENINGDOJISTAR", "evening_doji_star", Bearish, penetration),
    function!(cdleveningstar "CDLEVENINGSTAR", "evening_star", Bearish, penetration),
    function!(cdlgapsidesidewhite "CDLGAPSIDESIDEWHITE", "gap_side_by_side_white", sign),
    function!(cdlgravestonedoji "CDLGRAVESTONEDOJI", "gravestone_doji", Bearish),
    function!(cdlhammer "CDLHAMMER", "hammer", Bullish),
    function!(cdlhangingman "CDLHANGINGMAN", "hanging_man", Bearish),
    function!(cdlharami "CDLHARAMI", "harami", sign),
    function!(cdlharamicross "CDLHARAMICROSS", "harami_cross", sign),
    function!(cdlhikkake "CDLHIKKAKE", "hikkake", sign),
    function!(cdlhikkakemod "CDLHIKKAKEMOD", "modified_hikkake", sign),
    function!(cdlhomingpigeon "CDLHOMINGPIGEON", "homing_pigeon", Bullish),
    function!(cdlidentical3crows "CDLIDENTICAL3CROWS", "identical_three_crows", Bearish),
    function!(cdlinneck "CDLINNECK", "in_neck", Bearish),
    function!(cdlinvertedhammer "CDLINVERTEDHAMMER", "inverted_hammer", Bullish),
    function!(cdlkicking "CDLKICKING", "kicking", sign),
    function!(cdlkickingbylength "CDLKICKINGBYLENGTH", "kicking_by_length", sign),
    function!(cdlladderbottom "CDLLADDERBOTTOM", "ladder_bottom", Bullish),
    function!(cdllongline "CDLLONGLINE", "long_line", sign),
    function!(cdlmarubozu "CDLMARUBOZU", "marubozu", sign),
    function!(cdlmatchinglow "CDLMATCHINGLOW", "matching_low", Bullish),
    function!(cdlmathold "CDLMATHOLD", "mat_hold", Bullish, penetration),
    function!(cdlmorningdojistar "CDLMORNINGDOJISTAR", "morning_doji_star", Bullish, penetration),
    function!(cdlmorningstar "CDLMORNINGSTAR", "morning_star", Bullish, penetration),
    function!(cdlonneck "CDLONNECK", "on_neck", Bearish),
    function!(cdlpiercing "CDLPIERCING", "piercing", Bullish),
    function!(cdlrisefall3methods "CDLRISEFALL3METHODS", "three_methods", sign),
    function!(cdlseparatinglines "CDLSEPARATINGLINES", "separating_lines", sign),
    function!(cdlshootingstar "CDLSHOOTINGSTAR", "shooting_star", Bearish),
    function!(cdlstalledpattern "CDLSTALLEDPATTERN", "stalled_pattern", Bearish),
    function!(cdlsticksandwich "CDLSTICKSANDWICH", "stick_sandwich", Bullish),
    function!(cdltakuri "CDLTAKURI", "takuri", Bullish),
    function!(cdltasukigap "CDLTASUKIGAP", "tasuki_gap", sign),
    function!(cdlthrusting "CDLTHRUSTING", "thrusting", Bearish),
    function!(cdltristar "CDLTRISTAR", "tristar", sign),
    function!(cdlunique3river "CDLUNIQUE3RIVER", "unique_three_river", Bullish),
    function!(cdlupsidegap2crows "CDLUPSIDEGAP2CROWS", "upside_gap_two_crows", Bearish),
    function!(cdlxsidegap3methods "CDLXSIDEGAP3METHODS", "gap_three_methods", sign),
];

/// Number of possible keys, whether or not a function can give them.
pub const KEYS: usize = FUNCTIONS.len() * 2;

/// A key: a pattern with its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u8);

impl Key {
    fn new(function: usize, direction: Direction) -> Self {
        Self((function * 2 + usize::from(direction == Direction::Bearish)) as u8)
    }

    /// Every key that a function can give.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KEYS)
            .map(|index| Self(index as u8))
            .filter(|key| match key.function().reads {
                Reads::Sign => true,
                Reads::Always(direction) => direction == key.direction(),
            })
    }

    /// The key of a name such as `bullish_engulfing`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|key| key.name() == name)
    }

    /// Index of the key, below [`KEYS`].
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The direction that the pattern claims.
    pub fn direction(self) -> Direction {
        if self.0.is_multiple_of(2) {
            Direction::Bullish
        } else {
            Direction::Bearish
        }
    }

    /// Name in the API, such as `bullish_engulfing` or `morning_star`.
    pub fn name(self) -> &'static str {
        match self.direction() {
            Direction::Bullish => self.function().bullish,
            Direction::Bearish => self.function().bearish,
        }
    }

    /// TA-Lib's name of the function.
    pub fn function_name(self) -> &'static str {
        self.function().name
    }

    fn function(self) -> &'static Function {
        &FUNCTIONS[self.index() / 2]
    }
}

/// Runs the functions. Cheap to make and safe to share.
#[derive(Default)]
pub struct Detector {
    core: Core,
}

impl Detector {
    /// Calls `found` with the bar and the key of every signal in the series, function by function,
    /// oldest bar first.
    pub fn scan(&self, columns: &Columns, mut found: impl FnMut(usize, Key)) {
        let Some(last) = columns.len().checked_sub(1) else {
            return;
        };
        self.scan_range(columns, 0, last, &mut vec![0; columns.len()], &mut found);
    }

    /// The keys of the newest bar alone.
    pub fn newest(&self, columns: &Columns) -> Vec<Key> {
        let mut keys = Vec::new();
        if let Some(last) = columns.len().checked_sub(1) {
            self.scan_range(columns, last, last, &mut [0; 1], &mut |_, key| keys.push(key));
        }
        keys
    }

    fn scan_range(
        &self,
        columns: &Columns,
        from: usize,
        to: usize,
        values: &mut [i32],
        found: &mut impl FnMut(usize, Key),
    ) {
        for (number, function) in FUNCTIONS.iter().enumerate() {
            // Fails only for columns of different lengths or without bars.
            let Ok(range) = (function.detect)(&self.core, from, to, columns, values) else {
                continue;
            };
            for (offset, value) in values[..range.count].iter().enumerate() {
                if *value != 0 {
                    let direction = match function.reads {
                        Reads::Always(direction) => direction,
                        Reads::Sign if *value > 0 => Direction::Bullish,
                        Reads::Sign => Direction::Bearish,
                    };
                    found(range.beg_idx + offset, Key::new(number, direction));
                }
            }
        }
    }
}

// ---- Direction
//
// The direction that a signal claims, and the horizon after which it is judged.

/// Sessions after which a signal is judged, counted in the sessions of its symbol.
pub const HORIZON_SESSIONS: usize = 5;

words! {
    /// The claim of a signal: the close [`HORIZON_SESSIONS`] later is higher, or it is lower.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Direction {
        Bullish = "bullish",
        Bearish = "bearish",
    }
}

impl Direction {
    /// Whether the move between two closes is in this direction. No move is a miss.
    pub(crate) fn is_hit(self, from_e4: i64, to_e4: i64) -> bool {
        match self {
            Self::Bullish => to_e4 > from_e4,
            Self::Bearish => to_e4 < from_e4,
        }
    }
}

#[cfg(test)]
#[path = "patterns_tests.rs"]
mod tests;
