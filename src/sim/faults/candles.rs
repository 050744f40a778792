//! Faults in the candles of an otherwise good answer, in either upstream's form: broker
//! A's rows under `candles`, the public provider's parallel columns. Pure.

use super::kind::Kind;
use crate::sim::server::json::Json;

/// The public provider's columns; `timestamp` stands elsewhere.
const COLUMNS: [&str; 5] = ["open", "high", "low", "close", "volume"];

/// Rewrites one member of an answer, if it holds candles; `kind` is one of candles.
pub(crate) fn rewrite(kind: Kind, name: &str, value: &mut Json) {
    let Json::List(items) = value else { return };
    let (rows, column) = (name == "candles", COLUMNS.contains(&name));
    match kind {
        // As broken serialisers write it; only the middle one, so that the rest could be kept.
        Kind::NanCandle if rows || column => {
            let middle = items.len() / 2;
            match items.get_mut(middle) {
                Some(Json::List(row)) => row.iter_mut().skip(1).for_each(not_a_number),
                Some(value) => not_a_number(value),
                None => {}
            }
        }
        // Rows end halfway; of columns the times are all there.
        Kind::HalfHistory if rows || column => items.truncate(items.len() / 2),
        Kind::LateCandle if rows || column || name == "timestamp" => {
            items.pop();
        }
        _ => {}
    }
}

fn not_a_number(value: &mut Json) {
    *value = "NaN".into();
}
