//! Exact amounts of money: sums, products and parts without any rounding until they are written.
//!
//! What a sale of 7 of 30 shares takes of their cost may have no end as a decimal. Most amounts
//! have one and are kept as digits; the others are fractions, of big integers where 128 bits are
//! short, because the denominators of a year's sales multiply.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use num_bigint::BigInt;
use num_rational::{BigRational, Ratio};
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul, One, Signed, ToPrimitive, Zero};
use rust_decimal::Decimal;

/// Digits after the point above which zeros at the end are removed.
const SCALE_KEPT: u32 = 12;
/// Digits after the point that are tried before an amount becomes a fraction.
const SCALE_MORE: u32 = 8;

/// An exact amount.
#[derive(Clone)]
pub(crate) struct Amount(Form);

#[derive(Clone)]
enum Form {
    /// `mantissa` / 10^`scale`.
    Digits { mantissa: i128, scale: u32 },
    /// Of which few are: in a box, each amount is a third shorter.
    Fraction(Box<Ratio<i128>>),
    /// Of which 128 bits are too few.
    Large(Box<BigRational>),
}

impl Amount {
    pub(crate) const ZERO: Self = Self(Form::Digits {
        mantissa: 0,
        scale: 0,
    });

    pub(crate) fn product(left: Decimal, right: Decimal) -> Self {
        Self::from(left).times(&Self::from(right))
    }

    /// Mantissa and scale of both, if both are digits.
    fn digits_of_both(&self, other: &Self) -> Option<((i128, u32), (i128, u32))> {
        let digits = |amount: &Self| match amount.0 {
            Form::Digits { mantissa, scale } => Some((mantissa, scale)),
            Form::Fraction(_) | Form::Large(_) => None,
        };
        digits(self).zip(digits(other))
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        if let Some(((left, left_scale), (right, right_scale))) = self.digits_of_both(other) {
            let scale = left_scale.max(right_scale);
            let sum = at_scale(left, left_scale, scale)
                .zip(at_scale(right, right_scale, scale))
                .and_then(|(left, right)| left.checked_add(right));
            if let Some(mantissa) = sum {
                return Self::digits(mantissa, scale);
            }
        }
        self.combined(other, CheckedAdd::checked_add, |left, right| left + right)
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    pub(crate) fn negated(&self) -> Self {
        match &self.0 {
            Form::Digits { mantissa, scale } => Self(Form::Digits {
                mantissa: -mantissa,
                scale: *scale,
            }),
            Form::Fraction(fraction) => Self(Form::Fraction(Box::new(-**fraction))),
            Form::Large(fraction) => Self(Form::Large(Box::new(-(**fraction).clone()))),
        }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        if let Some(((left, left_scale), (right, right_scale))) = self.digits_of_both(other)
            && let Some(mantissa) = left.checked_mul(right)
        {
            return Self::digits(mantissa, left_scale + right_scale);
        }
        self.combined(other, CheckedMul::checked_mul, |left, right| left * right)
    }

    /// The part that `taken` of `held` shares bears. Nothing is held of nothing.
    pub(crate) fn part(&self, taken: Decimal, held: Decimal) -> Self {
        if taken == held {
            return self.clone();
        }
        if held.is_zero() {
            return Self::ZERO;
        }
        self.times(&Self::from(taken)).over(&Self::from(held))
    }

    /// The quotient. `other` is not zero.
    pub(crate) fn over(&self, other: &Self) -> Self {
        if let (
            Form::Digits { mantissa, scale },
            Form::Digits {
                mantissa: divisor,
                scale: divisor_scale,
            },
        ) = (&self.0, &other.0)
            && *divisor != 0
        {
            for more in [0, SCALE_MORE] {
                let digits = at_scale(*mantissa, 0, *divisor_scale + more);
                if let Some(digits) = digits
                    && digits % divisor == 0
                {
                    return Self::digits(digits / divisor, scale + more);
                }
            }
        }
        self.combined(other, CheckedDiv::checked_div, |left, right| left / right)
    }

    pub(crate) fn is_negative(&self) -> bool {
        match &self.0 {
            Form::Digits { mantissa, .. } => *mantissa < 0,
            Form::Fraction(fraction) => fraction.is_negative(),
            Form::Large(fraction) => fraction.is_negative(),
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        match &self.0 {
            Form::Digits { mantissa, .. } => *mantissa == 0,
            Form::Fraction(fraction) => fraction.is_zero(),
            Form::Large(fraction) => fraction.is_zero(),
        }
    }

    pub(crate) fn abs(&self) -> Self {
        if self.is_negative() {
            self.negated()
        } else {
            self.clone()
        }
    }

    /// Rounded to paise, half away from zero. `None` if it does not fit a decimal.
    pub(crate) fn rounded(&self) -> Option<Decimal> {
        let paise = match &self.0 {
            Form::Digits { mantissa, scale } if *scale <= 2 => at_scale(*mantissa, *scale, 2),
            Form::Digits { mantissa, scale } => {
                let unit = 10_i128.checked_pow(scale - 2);
                // A unit of more digits than fit is more than twice any mantissa.
                unit.map_or(Some(0), |unit| {
                    let rest = (mantissa % unit).abs();
                    let away = i128::from(rest >= unit - rest) * mantissa.signum();
                    Some(mantissa / unit + away)
                })
            }
            Form::Fraction(_) | Form::Large(_) => {
                let fraction = self.as_fraction();
                let hundred = BigInt::from(100);
                let doubled: BigInt = fraction.numer().abs() * hundred * 2 + fraction.denom();
                let paise: BigInt = doubled / (fraction.denom() * 2);
                let sign = if fraction.is_negative() { -1 } else { 1 };
                paise.to_i128().map(|paise| paise * sign)
            }
        };
        Decimal::try_from_i128_with_scale(paise?, 2).ok()
    }

    /// The amount as a decimal of at most so many places; `None` if it has more.
    pub(crate) fn exact(&self, places: u32) -> Option<Decimal> {
        let Form::Digits { mantissa, scale } = &self.0 else {
            return None;
        };
        let decimal = Decimal::try_from_i128_with_scale(*mantissa, *scale)
            .ok()?
            .normalize();
        (decimal.scale() <= places).then_some(decimal)
    }

    /// Machine words of a fraction of which 128 bits are too few; 0 of any other amount.
    pub(crate) fn large_words(&self) -> u64 {
        match &self.0 {
            Form::Digits { .. } | Form::Fraction(_) => 0,
            Form::Large(fraction) => (fraction.numer().bits() + fraction.denom().bits()) / 64,
        }
    }

    /// The nearest binary number, for rates of return.
    pub(crate) fn to_f64(&self) -> f64 {
        match &self.0 {
            Form::Digits { mantissa, scale } => *mantissa as f64 / 10_f64.powi(*scale as i32),
            Form::Fraction(fraction) => *fraction.numer() as f64 / *fraction.denom() as f64,
            Form::Large(fraction) => fraction.to_f64().unwrap_or_default(),
        }
    }

    fn digits(mut mantissa: i128, mut scale: u32) -> Self {
        while scale > SCALE_KEPT && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self(Form::Digits { mantissa, scale })
    }

    /// The result of an operation on fractions, of 128 bits if they hold it.
    fn combined(
        &self,
        other: &Self,
        small: fn(&Ratio<i128>, &Ratio<i128>) -> Option<Ratio<i128>>,
        large: fn(BigRational, BigRational) -> BigRational,
    ) -> Self {
        let both = self.as_small().zip(other.as_small());
        match both.and_then(|(left, right)| small(&left, &right)) {
            Some(fraction) if fraction.denom().is_one() => Self::digits(*fraction.numer(), 0),
            Some(fraction) => Self(Form::Fraction(Box::new(fraction))),
            None => Self::fraction(large(self.as_fraction(), other.as_fraction())),
        }
    }

    fn fraction(fraction: BigRational) -> Self {
        match fraction.numer().to_i128().zip(fraction.denom().to_i128()) {
            Some((mantissa, 1)) => Self::digits(mantissa, 0),
            Some((numer, denom)) => Self(Form::Fraction(Box::new(Ratio::new_raw(numer, denom)))),
            None => Self(Form::Large(Box::new(fraction))),
        }
    }

    fn as_small(&self) -> Option<Ratio<i128>> {
        match &self.0 {
            Form::Digits { mantissa, scale } => {
                Some(Ratio::new(*mantissa, 10_i128.checked_pow(*scale)?))
            }
            Form::Fraction(fraction) => Some(**fraction),
            Form::Large(_) => None,
        }
    }

    fn as_fraction(&self) -> BigRational {
        match &self.0 {
            Form::Digits { mantissa, scale } => {
                BigRational::new((*mantissa).into(), BigInt::from(10).pow(*scale))
            }
            Form::Fraction(fraction) => {
                BigRational::new_raw((*fraction.numer()).into(), (*fraction.denom()).into())
            }
            Form::Large(fraction) => (**fraction).clone(),
        }
    }
}

/// The mantissa of the same number with more digits after the point.
fn at_scale(mantissa: i128, scale: u32, wanted: u32) -> Option<i128> {
    if scale == wanted || mantissa == 0 {
        return Some(mantissa);
    }
    mantissa.checked_mul(10_i128.checked_pow(wanted - scale)?)
}

impl From<Decimal> for Amount {
    fn from(value: Decimal) -> Self {
        let value = value.normalize();
        Self(Form::Digits {
            mantissa: value.mantissa(),
            scale: value.scale(),
        })
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let difference = self.minus(other);
        match () {
            () if difference.is_negative() => Ordering::Less,
            () if difference.is_zero() => Ordering::Equal,
            () => Ordering::Greater,
        }
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Amount {}

impl Default for Amount {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The reduced fraction, so that equal amounts are equal texts.
impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = self.as_fraction();
        write!(f, "{}/{}", fraction.numer(), fraction.denom())
    }
}

/// A sum of many amounts. Fractions are added up by denominator and brought to a common one last.
#[derive(Clone, Default)]
pub(crate) struct Sum {
    digits: Amount,
    /// Numerators by denominator.
    fractions: BTreeMap<i128, i128>,
    large: BTreeMap<BigInt, BigInt>,
}

impl Sum {
    pub(crate) fn add(&mut self, amount: &Amount) {
        match &amount.0 {
            Form::Digits { .. } => self.digits = self.digits.plus(amount),
            Form::Fraction(fraction) => {
                let sum = self.fractions.entry(*fraction.denom()).or_default();
                match sum.checked_add(*fraction.numer()) {
                    Some(more) => *sum = more,
                    None => self.add_large(&amount.as_fraction()),
                }
            }
            Form::Large(fraction) => self.add_large(fraction),
        }
    }

    fn add_large(&mut self, fraction: &BigRational) {
        *self.large.entry(fraction.denom().clone()).or_default() += fraction.numer();
    }

    pub(crate) fn total(&self) -> Amount {
        let small = self.fractions.iter().map(|(denominator, numerator)| {
            BigRational::new((*numerator).into(), (*denominator).into())
        });
        let large = self.large.iter().map(|(denominator, numerator)| {
            BigRational::new(numerator.clone(), denominator.clone())
        });
        let mut fractions: Vec<BigRational> = small.chain(large).collect();
        // In pairs, so that only the last additions are of long numbers.
        while fractions.len() > 1 {
            fractions = fractions
                .chunks(2)
                .map(|pair| pair.iter().fold(BigRational::zero(), |sum, one| sum + one))
                .collect();
        }
        match fractions.pop() {
            Some(fraction) => Amount::fraction(fraction + self.digits.as_fraction()),
            None => self.digits.clone(),
        }
    }
}

impl<'a> FromIterator<&'a Amount> for Sum {
    fn from_iter<I: IntoIterator<Item = &'a Amount>>(amounts: I) -> Self {
        let mut sum = Self::default();
        for amount in amounts {
            sum.add(amount);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::from(text.parse::<Decimal>().unwrap())
    }

    fn of(numerator: i128, denominator: i128) -> Amount {
        Amount::fraction(BigRational::new(numerator.into(), denominator.into()))
    }

    #[test]
    fn amounts_are_rounded_half_away_from_zero_and_once() {
        for (given, expected) in [
            (amount("0.005"), "0.01"),
            (amount("-0.005"), "-0.01"),
            (amount("0.0049999"), "0.00"),
            (amount("1234.5"), "1234.50"),
            (amount("7"), "7.00"),
            (of(1, 3), "0.33"),
            (of(-2, 3), "-0.67"),
            (of(1, 200), "0.01"),
            (of(-1, 200), "-0.01"),
            (of(7, 6), "1.17"),
            (amount("0.0000000000000000000000000001"), "0.00"),
        ] {
            assert_eq!(given.rounded().unwrap().to_string(), expected, "{given:?}");
        }
        let third = amount("100").part(1.into(), 3.into());
        let sum: Sum = [&third, &third, &third].into_iter().collect();
        assert_eq!(sum.total().rounded().unwrap().to_string(), "100.00");
    }

    #[test]
    fn what_does_not_fit_is_a_fraction_and_comes_back() {
        let large = Amount::product("1000000000000".parse().unwrap(), Decimal::MAX);
        let square = large.times(&large);
        assert!(matches!(square.0, Form::Large(_)));
        assert_eq!(square.rounded(), None);
        assert_eq!(square.over(&large), large);
        assert!(matches!(square.minus(&square).0, Form::Digits { mantissa: 0, .. }));
        assert_eq!(large.part(Decimal::ONE, Decimal::ZERO), Amount::ZERO);
    }

    proptest! {
        #[test]
        fn digits_and_fractions_compute_the_same(
            left in (-10_i64.pow(15)..10_i64.pow(15), 0_u32..9),
            right in (1..10_i64.pow(15), 0_u32..9),
            taken in 1_u32..1000,
            held in 1_u32..1000,
        ) {
            let decimal = |(mantissa, scale): (i64, u32)| Decimal::new(mantissa, scale);
            let both = [Amount::from(decimal(left)), Amount::from(decimal(right))];
            let as_fractions = both.clone().map(|amount| amount.as_fraction());
            let [left, right] = &both;
            let [left_fraction, right_fraction] = as_fractions;
            let same = |amount: Amount, fraction: BigRational| amount.as_fraction() == fraction;
            prop_assert!(same(left.plus(right), &left_fraction + &right_fraction));
            prop_assert!(same(left.minus(right), &left_fraction - &right_fraction));
            prop_assert!(same(left.times(right), &left_fraction * &right_fraction));
            prop_assert!(same(left.over(right), &left_fraction / &right_fraction));
            prop_assert_eq!(left.cmp(right), left_fraction.cmp(&right_fraction));
            let ratio = BigRational::new(taken.into(), held.into());
            let part = left.part(taken.into(), held.into());
            prop_assert!(same(part.clone(), &left_fraction * ratio));
            // Rounding is the nearest paisa.
            let paise = Amount::from(part.rounded().unwrap());
            prop_assert!(paise.minus(&part).abs() <= Amount::from(Decimal::new(5, 3)));
            let rest = left.part(Decimal::from(held) - Decimal::from(taken), held.into());
            let sum: Sum = [&part, &rest, right].into_iter().collect();
            prop_assert_eq!(sum.total(), left.plus(right));
        }
    }
}
