//! Arguments of statements. Each carries its type, also if it is null.

use std::borrow::{Borrow, Cow};

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::store::account_id::AccountId;

/// An argument of a statement. `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg<'a> {
    Integer(Option<i64>),
    Real(Option<f64>),
    Boolean(Option<bool>),
    Text(Option<Cow<'a, str>>),
}

/// A value that can be an argument.
pub(crate) trait Argument<'a>: Sized {
    /// The argument, or null of the value's type.
    fn arg(value: Option<Self>) -> Arg<'a>;
}

impl<'a, T: Argument<'a>> From<T> for Arg<'a> {
    fn from(value: T) -> Self {
        T::arg(Some(value))
    }
}

impl<'a, T: Argument<'a>> From<Option<T>> for Arg<'a> {
    fn from(value: Option<T>) -> Self {
        T::arg(value)
    }
}

/// The arguments of a statement, in order.
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        [$($crate::store::arg::Arg::from($value)),*]
    };
}
pub(crate) use args;

impl<'a> Argument<'a> for i64 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value)
    }
}

impl<'a> Argument<'a> for u32 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(i64::from))
    }
}

/// A limit or a count. A value above the engines' range means no limit.
impl<'a> Argument<'a> for usize {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl<'a> Argument<'a> for AccountId {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Integer(value.map(|id| id.0))
    }
}

impl<'a> Argument<'a> for f64 {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Real(value)
    }
}

impl<'a> Argument<'a> for bool {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Boolean(value)
    }
}

impl<'a, T: Borrow<str> + ?Sized> Argument<'a> for &'a T {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|text| Cow::Borrowed(text.borrow())))
    }
}

impl<'a> Argument<'a> for String {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(Cow::Owned))
    }
}

/// Stored as text, since no engine's number keeps all digits.
impl<'a> Argument<'a> for Decimal {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|decimal| Cow::Owned(decimal.to_string())))
    }
}

/// Stored as text, which sorts by time.
impl<'a> Argument<'a> for Date {
    fn arg(value: Option<Self>) -> Arg<'a> {
        Arg::Text(value.map(|date| Cow::Owned(date.to_string())))
    }
}
