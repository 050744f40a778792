//! The types of members' values, and how each is written. Numbers are written from decimal digits,
//! never by way of a binary float.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use sonic_rs::RawNumber;

use crate::base::{Symbol, clock, json};

/// Declares the structs of documents, without what every one of them has: they are written, and in
/// tests their schema is generated. A member `name?` is left out while it has its default, such as
/// `None`.
macro_rules! documents {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$of:lifetime $(, $with:ident)?>)? { $($members:tt)* }
    )+) => {$(
        $crate::views::values::document! {
            {
                #[derive(Debug, Clone, PartialEq, serde::Serialize)]
                #[cfg_attr(test, derive(schemars::JsonSchema))]
                $(#[$meta])*
                $vis struct $name $(<$of $(, $with)?>)?
            }
            {}
            $($members)*
        }
    )+};
}

/// One of them, member by member: its head, the members so far, and those to come.
macro_rules! document {
    ($head:tt $done:tt $(#[$about:meta])* $vis:vis $name:ident?: $kind:ty, $($rest:tt)*) => {
        $crate::views::values::document! {
            $head $done
            $(#[$about])*
            #[serde(skip_serializing_if = "crate::views::values::is_default")]
            $vis $name: $kind,
            $($rest)*
        }
    };
    (
        $head:tt { $($done:tt)* }
        $(#[$about:meta])* $vis:vis $name:ident: $kind:ty, $($rest:tt)*
    ) => {
        $crate::views::values::document! {
            $head { $($done)* $(#[$about])* $vis $name: $kind, } $($rest)*
        }
    };
    ({ $($head:tt)* } $done:tt) => { $($head)* $done };
}

/// [`documents!`] that this program also reads: a member that is absent has its default.
macro_rules! read_documents {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident { $($members:tt)* })+) => {
        $crate::views::values::documents! {$(
            $(#[$meta])*
            #[derive(Default, serde::Deserialize)]
            #[serde(default)]
            $vis struct $name { $($members)* }
        )+}
    };
}

pub(crate) use {document, documents, read_documents};

/// Rupees (index points for an index), rounded half away from zero to 2 places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Money(#[serde(serialize_with = "in_two_places")] pub Decimal);

/// Percent, rounded half away from zero to 2 places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percent(#[serde(serialize_with = "in_two_places")] pub Decimal);

/// Units, with every digit that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Quantity(#[serde(serialize_with = "exact")] pub Decimal);

/// A decimal with every digit that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Exact(#[serde(serialize_with = "exact")] pub Decimal);

/// A share or probability of 4 places: statistics, no money, so a binary float.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share(f64);

/// A time in India with its offset, whole seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
pub struct Instant(#[serde(serialize_with = "in_ist", deserialize_with = "parsed")] pub Timestamp);

/// A date in India.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Day(#[serde(serialize_with = "displayed", deserialize_with = "parsed")] pub Date);

/// Seconds by which a source runs behind the exchange by its nature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
pub struct Delay(pub u32);

/// A member that is `true` or absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Serialize)]
pub struct Mark(pub bool);

/// Marks what comes from the simulator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Simulated(pub bool);

impl Share {
    /// Rounds to 4 places, since more digits would pretend to more precision than there is.
    pub(crate) fn of(share: f64) -> Self {
        Self(rounded(share, 10_000.0))
    }
}

/// `value` with as many places as `unit` has zeros.
pub(crate) fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

impl Instant {
    /// The time of Unix milliseconds. An impossible time is written as 1970.
    pub(crate) fn of_ms(ms: i64) -> Self {
        Self(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

/// Whether a member `name?` of a document is left out.
pub(crate) fn is_default<T: Default + PartialEq>(member: &T) -> bool {
    *member == T::default()
}

impl Serialize for Symbol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Symbol {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let symbol = Self::parse(&String::deserialize(from)?);
        symbol.ok_or_else(|| de::Error::custom("not a symbol"))
    }
}

fn in_two_places<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    exact(&json::rounded(*value), serializer)
}

/// Writes `value` as a JSON number in its shortest form. The number type used is specific to
/// sonic-rs.
fn exact<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let text = json::shortest(*value).to_string();
    let number: RawNumber = sonic_rs::from_str(&text).map_err(ser::Error::custom)?;
    number.serialize(serializer)
}

fn in_ist<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&clock::iso(*at))
}

fn displayed<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn parsed<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?
        .parse()
        .map_err(de::Error::custom)
}

// ---- Json
//
// Writes a view as JSON.

/// Appends `view` to `out`.
pub(crate) fn write(out: &mut Vec<u8>, view: &(impl Serialize + ?Sized)) {
    // Views contain text, finite numbers and lists of these, which always serialise, and a `Vec`
    // accepts any length.
    let written = sonic_rs::to_writer(out, view);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// `view` as JSON.
pub(crate) fn to_vec(view: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, view);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_zero_has_no_sign() {
        let of = |text: &str| text.parse::<Decimal>().unwrap();
        let long = "7922816251426433759354.3950335";
        for (written, expected) in [
            (to_vec(&Money(of("801.78500"))), "801.79"),
            (to_vec(&Percent(of("-0.004"))), "0"),
            (to_vec(&Quantity(of("75.500"))), "75.5"),
            (to_vec(&Exact(of("-0.00"))), "0"),
            (to_vec(&Exact(of(long))), long),
            (to_vec(&[Some(Exact(of("801.7812500"))), None]), "[801.78125,null]"),
            (to_vec(&Share::of(0.541_781)), "0.5418"),
        ] {
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }

    #[test]
    fn times_are_in_india() {
        let at = Instant("2026-11-20T10:00:00.7Z".parse().unwrap());
        let both = (at, Day(Date::constant(2026, 11, 20)));
        let written = String::from_utf8(to_vec(&both)).unwrap();
        assert_eq!(written, "[\"2026-11-20T15:30:00+05:30\",\"2026-11-20\"]");
    }
}
