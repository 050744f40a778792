//! Reads a request's JSON body: one object, field by field. All faults are reported at once.
//!
//! Runs on the edge; pure. Fields that carry credentials are read straight from the request's
//! buffer into wiped memory, without a copy in between.
//!
//! `null` counts as absent. Unknown members are ignored, so that clients may send more. A duplicate
//! name is refused, because JSON parsers disagree about which one counts.

use jiff::civil::Date;
use rust_decimal::Decimal;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::base::{json, visible};
use crate::http::{Problem, Request};

/// Most characters that are composed to one.
const COMPOSED_OF_MAX: usize = 4;

/// The members of a body, and the faults of those read so far.
pub(crate) struct Fields<'a> {
    members: Vec<json::Member<'a>>,
    problem: Option<Problem>,
}

/// Limits of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    pub zero: bool,
    /// Digits before and after the point; trailing zeros do not count.
    pub whole_digits: u32,
    pub places: u32,
}

impl<'a> Fields<'a> {
    /// Reads the body's members.
    ///
    /// # Errors
    /// 415 for another type than JSON or for a body with a content coding. 400 for anything but one
    /// JSON object with distinct names.
    pub(super) fn of(request: &Request<'a>) -> Result<Self, Problem> {
        expect_json(request)?;
        let members = json::members(request.body).ok_or_else(|| {
            let detail = "The body is not a JSON object in UTF-8.";
            Problem::new(400, "malformed_json", detail)
        })?;
        if has_twice(names(&members)) {
            let detail = "A member of the body is there twice.";
            return Err(Problem::new(400, "malformed_json", detail));
        }
        Ok(Self {
            members,
            problem: None,
        })
    }

    /// The member's JSON text; `None` if it is absent or `null`.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.members.iter().find(|(key, _)| *key == name);
        found.map(|(_, raw)| *raw).filter(|raw| *raw != "null")
    }

    /// Records a fault of a field. All faults are reported together.
    pub(super) fn fault(&mut self, field: &'static str, message: impl Into<String>) {
        let problem = self.problem.take().unwrap_or_else(|| {
            Problem::new(400, "validation_failed", "Some fields are missing or not valid.")
        });
        self.problem = Some(problem.field(field, message.into()));
    }

    /// A text of at most `chars_max` characters; `None` if it is absent.
    pub(crate) fn optional_text(&mut self, name: &'static str, chars_max: usize) -> Option<String> {
        let text = self.optional_secret(name, chars_max)?;
        Some(text.as_str().to_owned())
    }

    /// A required text. If it is missing, a fault is recorded and an empty text returned.
    pub(super) fn text(&mut self, name: &'static str, chars_max: usize) -> String {
        self.secret_text(name, chars_max).as_str().to_owned()
    }

    /// A required name as people see it. One of blanks alone counts as missing.
    pub(super) fn name(&mut self, name: &'static str, chars_max: usize) -> String {
        let given = self.text(name, chars_max);
        let seen = self.seen(name, &given);
        if seen.is_empty() && !given.is_empty() {
            self.fault(name, "This field is required.");
        }
        seen
    }

    /// A name as people see it. A fault is recorded for what nobody sees.
    pub(super) fn seen(&mut self, name: &'static str, given: &str) -> String {
        let seen = visible::name(given);
        if let Some(unseen) = visible::unseen_in_name(&seen) {
            self.fault(name, format!("{unseen}: a name has none of these."));
        }
        seen
    }

    /// A required password of at most `chars_max` characters, with its letters composed or not.
    pub(super) fn password(&mut self, name: &'static str, chars_max: usize) -> SecretString {
        let password = self.secret(name, chars_max * COMPOSED_OF_MAX);
        let given = password.expose_secret();
        let is_long = |text: &str| text.chars().count() > chars_max;
        if is_long(given) && is_long(&visible::composed(given)) {
            self.fault(name, format!("At most {chars_max} characters."));
        }
        password
    }

    /// A required text that is not empty, as a secret.
    pub(super) fn secret(&mut self, name: &'static str, chars_max: usize) -> SecretString {
        // Made from a slice, so that there is exactly one allocation, which the secret owns and
        // wipes.
        SecretString::from(self.secret_text(name, chars_max).as_str())
    }

    fn secret_text(&mut self, name: &'static str, chars_max: usize) -> Zeroizing<String> {
        let faults = self.faults();
        match self.optional_secret(name, chars_max) {
            Some(text) if !text.is_empty() => text,
            _ => {
                if self.faults() == faults {
                    self.fault(name, "This field is required.");
                }
                Zeroizing::default()
            }
        }
    }

    /// A required value that `read` reads.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<T> {
        let faults = self.faults();
        let found = read(self, name);
        if found.is_none() && self.faults() == faults {
            self.fault(name, "This field is required.");
        }
        found
    }

    /// An exact number that is not negative; `None` if it is absent.
    pub(crate) fn optional_decimal(
        &mut self,
        name: &'static str,
        amount: Amount,
    ) -> Option<Decimal> {
        let read = read_decimal(self.raw(name)?, amount);
        read.map_err(|message| self.fault(name, message)).ok()
    }

    /// `true` or `false`; `false` if it is absent.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        match self.raw(name) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.fault(name, "This field must be true or false.");
                false
            }
        }
    }

    /// A date as `YYYY-MM-DD`; `None` if it is absent.
    pub(crate) fn optional_date(&mut self, name: &'static str) -> Option<Date> {
        let date = json::unescaped(self.raw(name)?).and_then(|text| parse_date(&text));
        if date.is_none() {
            self.fault(name, "This field must be a date as a string, YYYY-MM-DD.");
        }
        date
    }

    /// A list of texts, each of 1 to `chars_max` characters; empty if it is absent.
    pub(super) fn texts(
        &mut self,
        name: &'static str,
        count_max: usize,
        chars_max: usize,
    ) -> Vec<String> {
        let Some(raw) = self.raw(name) else {
            return Vec::new();
        };
        let texts = json::elements(raw).and_then(|elements| {
            elements
                .into_iter()
                .map(json::unescaped)
                .collect::<Option<Vec<_>>>()
        });
        let Some(texts) = texts else {
            self.fault(name, "This field must be a short list of strings.");
            return Vec::new();
        };
        if texts.len() > count_max {
            self.fault(name, format!("At most {count_max} of them."));
        }
        if texts
            .iter()
            .any(|text| text.is_empty() || text.chars().count() > chars_max)
        {
            self.fault(name, format!("Each has 1 to {chars_max} characters."));
        }
        texts
            .into_iter()
            .map(|text| text.as_str().to_owned())
            .collect()
    }

    /// A list of objects, of which `read` reads one; `None` if it is absent or no such list. Faults
    /// of an object are the list's, with the object's place in it.
    pub(super) fn objects<T>(
        &mut self,
        name: &'static str,
        count_max: usize,
        read: impl Fn(&mut Self) -> T,
    ) -> Option<Vec<T>> {
        let elements = json::elements(self.raw(name)?);
        let objects = elements.and_then(|elements| {
            let members =
                |raw: &'a str| json::members(raw.as_bytes()).filter(|all| !has_twice(names(all)));
            elements
                .into_iter()
                .map(members)
                .collect::<Option<Vec<_>>>()
        });
        let Some(objects) = objects else {
            self.fault(name, "This field must be a short list of objects.");
            return None;
        };
        if objects.len() > count_max {
            self.fault(name, format!("At most {count_max} of them."));
            return None;
        }
        let mut found = Vec::with_capacity(objects.len());
        for (at, members) in objects.into_iter().enumerate() {
            let mut object = Self {
                members,
                problem: None,
            };
            found.push(read(&mut object));
            for fault in object
                .problem
                .into_iter()
                .flat_map(|problem| problem.errors)
            {
                let message = format!("Number {}, {}: {}", at + 1, fault.field, fault.message);
                self.fault(name, message);
            }
        }
        Some(found)
    }

    /// A text in wiped memory; `None` if it is absent.
    pub(crate) fn optional_secret(
        &mut self,
        name: &'static str,
        chars_max: usize,
    ) -> Option<Zeroizing<String>> {
        let raw = self.raw(name)?;
        let Some(text) = json::unescaped(raw) else {
            self.fault(name, "This field must be a string.");
            return None;
        };
        if text.chars().count() > chars_max {
            self.fault(name, format!("At most {chars_max} characters."));
            return None;
        }
        Some(text)
    }

    fn faults(&self) -> usize {
        self.problem
            .as_ref()
            .map_or(0, |problem| problem.errors.len())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 400 with every recorded fault.
    pub(super) fn done(self) -> Result<(), Problem> {
        self.problem.map_or(Ok(()), Err)
    }
}

/// The members' names.
pub(super) fn names<'a>(members: &'a [json::Member<'_>]) -> impl Iterator<Item = &'a str> {
    members.iter().map(|(name, _)| &**name)
}

pub(super) fn has_twice<T: Ord>(values: impl Iterator<Item = T>) -> bool {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// # Errors
/// 415 for another type than JSON, or for a body with a content coding.
pub(super) fn expect_json(request: &Request<'_>) -> Result<(), Problem> {
    if request.header("content-encoding").is_some() {
        let detail = "Send the body without a Content-Encoding.";
        let problem = Problem::new(415, "unsupported_media_type", detail);
        // The acceptable codings (RFC 9110 15.5.16).
        return Err(problem.with("Accept-Encoding", "identity"));
    }
    if !request.header("content-type").is_some_and(is_json) {
        let detail = "Send the body as application/json.";
        return Err(Problem::new(415, "unsupported_media_type", detail));
    }
    Ok(())
}

/// The exact number of a JSON text. It is built from the digits and the position of the point,
/// because the decimal type would silently round what it cannot hold. Linear in the text, whose
/// length the limit on bodies bounds.
fn read_decimal(raw: &str, amount: Amount) -> Result<Decimal, String> {
    if !raw.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err("This field must be a number.".into());
    }
    let Amount {
        zero,
        whole_digits,
        places,
    } = amount;
    let too_long =
        || format!("At most {whole_digits} digits before the point and {places} after it.");
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let count = whole.len() + fraction.len();
    let leading = digits().take_while(|digit| *digit == b'0').count();
    if leading == count {
        return if zero {
            Ok(Decimal::ZERO)
        } else {
            Err("This field must be above zero.".into())
        };
    }
    if unsigned.len() < mantissa.len() {
        return Err("This field must not be negative.".into());
    }
    let trailing = digits().rev().take_while(|digit| *digit == b'0').count();
    let significant = count - leading - trailing;
    // An exponent that overflows is beyond any number of digits that is allowed.
    let exponent: i32 = exponent.parse().map_err(|_| too_long())?;
    // The number is its significant digits times ten to this power.
    let power = i64::from(exponent) - fraction.len() as i64 + trailing as i64;
    let whole_used = significant as i64 + power;
    if whole_used > i64::from(whole_digits) || -power > i64::from(places) {
        return Err(too_long());
    }
    let append = |number: i128, digit: u8| number * 10 + i128::from(digit - b'0');
    let number = digits().skip(leading).take(significant).fold(0, append);
    // Both are at most the number of allowed digits.
    let zeros = power.max(0).unsigned_abs() as u32;
    Ok(Decimal::from_i128_with_scale(
        number * 10_i128.pow(zeros),
        (-power).max(0) as u32,
    ))
}

fn parse_date(text: &str) -> Option<Date> {
    // The parser also accepts other forms of ISO 8601.
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    (shape && text.len() == 10).then(|| text.parse().ok())?
}

/// `application/json`, with or without parameters. A charset other than UTF-8 is refused.
fn is_json(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    media.eq_ignore_ascii_case("application/json")
        && parts.all(|part| match part.split_once('=') {
            Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
                charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
