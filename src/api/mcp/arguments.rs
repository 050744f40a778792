//! The arguments of a tool, judged by the schema that the tool publishes. Pure.
//!
//! | published | taken |
//! |---|---|
//! | integer | a number without a fraction, however it is written: `7`, `7.0`, `-0.0`; no text |
//! | boolean | `true` and `false` |
//! | string | a text of the length, the form and the words that the schema names |
//! | array | a list; where a text may stand in its place, also a text that is the JSON of one |
//!
//! `null` counts as absent. Anything else is refused by the name of the argument, as is one that
//! the schema does not know or that comes twice.

use serde_json::Value;

use crate::api::body::{has_twice, names};
use crate::base::json::{Member, elements, unescaped};
use crate::base::{Isin, Symbol};
use crate::http::Problem;
use crate::ledger::row::AccountName;

/// The form of a cursor into a list that a tool cuts itself.
pub(super) const PAGE_CURSOR: &str = "^[0-9]{1,9}-[0-9]{1,9}$";
/// The form of a route's cursor.
const ROUTE_CURSOR: &str = "^[A-Za-z0-9_-]{27}$";
/// Either of them.
pub(super) const EITHER_CURSOR: &str = "^([A-Za-z0-9_-]{27}|[0-9]{1,9}-[0-9]{1,9})$";
/// The forms of an ISIN, of an account or a person, and of a financial year. The routes know more
/// of each, such as the last digit of an ISIN.
const ISIN: &str = "^[A-Z]{2}[A-Z0-9]{9}[0-9]$";
const NAME: &str = "^[a-z0-9_-]{1,40}$";
const FINANCIAL_YEAR: &str = "^[0-9]{4}-[0-9]{2}$";
/// Digits of the largest number that a schema may ask for.
const DIGITS_MAX: usize = 18;

/// An argument as its schema describes it.
#[derive(Debug)]
pub(super) struct Argument {
    pub name: String,
    form: Form,
    is_required: bool,
}

#[derive(Debug)]
enum Form {
    Whole {
        least: i64,
        most: i64,
    },
    Flag,
    Words(Vec<String>),
    Date,
    Text {
        least: usize,
        most: usize,
        pattern: Option<Pattern>,
    },
    List {
        each: Box<Form>,
        least: usize,
        most: usize,
    },
    /// A list, or a text in its place.
    ListOrText(Box<Form>, Box<Form>),
}

/// A pattern of a schema, as the code that decides the same.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Symbol,
    Isin,
    Name,
    FinancialYear,
    RouteCursor,
    PageCursor,
    EitherCursor,
}

/// What is wrong with an argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub name: String,
    said: String,
    /// Its value as a parameter of the route, which has a more exact refusal; `None` where it is no
    /// parameter at all.
    parameter: Option<String>,
}

/// The arguments as parameters of the route, and the first fault.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub parameters: Vec<(String, String)>,
    pub fault: Option<Fault>,
}

impl Fault {
    /// Whether the route can be asked for its own refusal.
    pub(super) fn is_for_route(&self) -> bool {
        self.parameter.is_some()
    }

    /// The refusal: the route's own if there is one, with the name of the argument in any case.
    pub(super) fn refused(self, own: Option<Problem>) -> Problem {
        let problem = own
            .unwrap_or_else(|| Problem::new(400, "validation_failed", "An argument is not valid."));
        match problem.errors.iter().any(|error| error.field == self.name) {
            true => problem,
            false => problem.field(self.name, self.said),
        }
    }
}

/// The arguments that a published schema describes.
pub(super) fn of_schema(schema: &Value) -> Vec<Argument> {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let argument = |(name, value): (&String, &Value)| Argument {
        name: name.clone(),
        form: Form::of(value, schema),
        is_required: required(name),
    };
    properties.map(argument).collect()
}

/// Judges what a client sent.
pub(super) fn judged(arguments: &[Argument], given: &[Member<'_>]) -> Judged {
    let mut judged = Judged {
        parameters: Vec::new(),
        fault: None,
    };
    let fault = |name: &str, said: &str, parameter| {
        Some(Fault {
            name: name.to_owned(),
            said: said.to_owned(),
            parameter,
        })
    };
    let unknown = given
        .iter()
        .find(|(name, _)| arguments.iter().all(|known| known.name != *name));
    if let Some((name, _)) = unknown {
        judged.fault = fault(name, "There is no such argument.", None);
        return judged;
    }
    for Argument {
        name,
        form,
        is_required,
    } in arguments
    {
        let values: Vec<&str> = given
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, raw)| raw.trim())
            .collect();
        if values.len() > 1 {
            judged.fault = fault(name, "Give it once.", None);
            return judged;
        }
        let Some(raw) = values.first().filter(|raw| **raw != "null") else {
            if *is_required && judged.fault.is_none() {
                judged.fault = fault(name, "This argument is required.", Some(String::new()));
            }
            continue;
        };
        match form.judge(raw) {
            Ok(text) => judged.parameters.push((name.clone(), text)),
            Err(parameter) => {
                if let Some(text) = &parameter {
                    judged.parameters.push((name.clone(), text.clone()));
                }
                let is_first = judged.fault.as_ref().is_none_or(Fault::is_for_route);
                if is_first && (judged.fault.is_none() || parameter.is_none()) {
                    judged.fault = fault(name, &form.wanted(), parameter);
                }
            }
        }
    }
    debug_assert!(!has_twice(names(given)) || judged.fault.is_some());
    judged
}

impl Form {
    fn of(value: &Value, schema: &Value) -> Self {
        let value = match value["$ref"].as_str() {
            Some(reference) => schema.pointer(&reference[1..]).unwrap_or(value),
            None => value,
        };
        let count = |name: &str, usual: usize| {
            value[name]
                .as_u64()
                .map_or(usual, |count| usize::try_from(count).unwrap_or(usual))
        };
        if let Some([list, text]) = value["anyOf"].as_array().map(Vec::as_slice) {
            let [list, text] = [list, text].map(|part| Box::new(Self::of(part, schema)));
            return Self::ListOrText(list, text);
        }
        if let Some(words) = value["enum"].as_array() {
            return Self::Words(
                words
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            );
        }
        match (value["type"].as_str(), value["format"].as_str()) {
            (Some("integer"), _) => Self::Whole {
                least: value["minimum"].as_i64().unwrap_or(i64::MIN),
                most: value["maximum"].as_i64().unwrap_or(i64::MAX),
            },
            (Some("boolean"), _) => Self::Flag,
            (Some("array"), _) => Self::List {
                each: Box::new(Self::of(&value["items"], schema)),
                least: count("minItems", 0),
                most: count("maxItems", usize::MAX),
            },
            (Some("string"), Some("date")) => Self::Date,
            (Some("string"), _) => Self::Text {
                least: count("minLength", 0),
                most: count("maxLength", usize::MAX),
                pattern: value["pattern"].as_str().map(Pattern::of),
            },
            other => unreachable!("no argument is of {other:?}: {value}"),
        }
    }

    /// The value as a parameter.
    ///
    /// # Errors
    /// The schema forbids it. It comes as a parameter if the route can say more.
    fn judge(&self, raw: &str) -> Result<String, Option<String>> {
        let keep = |text: String, is_good: bool| if is_good { Ok(text) } else { Err(Some(text)) };
        match self {
            Self::Whole { least, most } => match whole(raw) {
                Some(number) => keep(number.to_string(), (*least..=*most).contains(&number)),
                None => Err(None),
            },
            Self::Flag => match raw {
                "true" | "false" => Ok(raw.to_owned()),
                _ => Err(None),
            },
            Self::Words(words) => {
                let text = text(raw)?;
                let is_good = words.contains(&text);
                keep(text, is_good)
            }
            Self::Date => {
                let text = text(raw)?;
                let is_good = is_date(&text);
                keep(text, is_good)
            }
            Self::Text {
                least,
                most,
                pattern,
            } => {
                let text = text(raw)?;
                let fits = (*least..=*most).contains(&text.chars().count());
                let is_good = fits && pattern.is_none_or(|pattern| pattern.fits(&text));
                keep(text, is_good)
            }
            Self::List { each, least, most } => {
                let parts = elements(raw).ok_or(None)?;
                let mut is_good = (*least..=*most).contains(&parts.len());
                let mut texts = Vec::with_capacity(parts.len());
                for part in parts {
                    let judged = each.judge(part.trim());
                    is_good &= judged.is_ok();
                    texts.push(judged.or_else(|text| text.ok_or(None))?);
                }
                keep(texts.join(","), is_good)
            }
            Self::ListOrText(list, text_form) => {
                if raw.starts_with('[') {
                    return list.judge(raw);
                }
                let text = text(raw)?;
                match text.trim().starts_with('[') && elements(text.trim()).is_some() {
                    true => list.judge(text.trim()),
                    false => text_form.judge(raw),
                }
            }
        }
    }

    /// What the schema asks for, for a person or an assistant.
    fn wanted(&self) -> String {
        match self {
            Self::Whole { least, most } => {
                format!("This is a whole number from {least} to {most}.")
            }
            Self::Flag => "This is true or false.".to_owned(),
            Self::Words(words) => format!("This is one of {}.", words.join(", ")),
            Self::Date => "This is a date as a string, YYYY-MM-DD.".to_owned(),
            Self::Text {
                pattern: Some(pattern),
                ..
            } => pattern.wanted().to_owned(),
            Self::Text {
                least,
                most: usize::MAX,
                ..
            } => {
                format!("This is a string of {least} characters or more.")
            }
            Self::Text { least, most, .. } => {
                format!("This is a string of {least} to {most} characters.")
            }
            Self::List { least, most, .. } => {
                format!("This is a list of {least} to {most} strings.")
            }
            Self::ListOrText(list, _) => list.wanted(),
        }
    }
}

impl Pattern {
    /// # Panics
    /// If the pattern has no code: a test builds all tools.
    fn of(pattern: &str) -> Self {
        match pattern {
            ROUTE_CURSOR => Self::RouteCursor,
            PAGE_CURSOR => Self::PageCursor,
            EITHER_CURSOR => Self::EitherCursor,
            ISIN => Self::Isin,
            NAME => Self::Name,
            FINANCIAL_YEAR => Self::FinancialYear,
            symbol if symbol.starts_with("^(NSE|BSE):") => Self::Symbol,
            other => unreachable!("no code decides the pattern {other}"),
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Symbol => Symbol::parse(text).is_some(),
            Self::Isin => Isin::parse(text).is_some(),
            Self::Name => AccountName::parse(text).is_some(),
            Self::FinancialYear => text.split_once('-').is_some_and(|(year, next)| {
                year.len() == 4 && next.len() == 2 && are_digits(year) && are_digits(next)
            }),
            Self::RouteCursor => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                text.len() == 27 && text.bytes().all(plain)
            }
            Self::PageCursor => is_page_cursor(text),
            Self::EitherCursor => Self::RouteCursor.fits(text) || is_page_cursor(text),
        }
    }

    /// What it asks for.
    fn wanted(self) -> &'static str {
        match self {
            Self::Symbol => "This is a symbol as a string, such as NSE:INFY.",
            Self::Isin => "This is an ISIN as a string, such as INE009A01021.",
            Self::Name => "This is a name of 1 to 40 of a-z, 0-9, _ and -.",
            Self::FinancialYear => "This is a financial year as a string, such as 2025-26.",
            Self::RouteCursor | Self::PageCursor | Self::EitherCursor => {
                "This is next_cursor of an answer, as a string."
            }
        }
    }
}

/// Whether it has the form of a cursor into a list that a tool cuts itself.
pub(super) fn is_page_cursor(text: &str) -> bool {
    let is_number = |text: &str| (1..=9).contains(&text.len()) && are_digits(text);
    text.split_once('-')
        .is_some_and(|(from, of)| is_number(from) && is_number(of))
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text of a JSON string; no parameter if it is none.
fn text(raw: &str) -> Result<String, Option<String>> {
    unescaped(raw)
        .map(|text| text.as_str().to_owned())
        .ok_or(None)
}

fn is_date(text: &str) -> bool {
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    shape && text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// The whole number of a JSON number, however it is written: without rounding, since a float would
/// take 7.0000000000000001 for 7. `None` for a fraction and beyond [`DIGITS_MAX`].
fn whole(raw: &str) -> Option<i64> {
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (before, after) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits: String = [before, after].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    // An exponent that overflows makes a fraction or a number beyond any limit.
    let exponent: i32 = exponent.parse().ok()?;
    let power = i64::from(exponent) - after.len() as i64 + trailing as i64;
    let zeros = usize::try_from(power).ok()?;
    if significant.len() + zeros > DIGITS_MAX {
        return None;
    }
    let number: i64 = format!("{significant}{}", "0".repeat(zeros)).parse().ok()?;
    Some(if mantissa.starts_with('-') {
        -number
    } else {
        number
    })
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
