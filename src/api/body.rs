//! A request's JSON body: one object, read field by field, every fault of it told at once.
//!
//! Runs on the edge; pure. Fields that carry credentials are read straight from the request's
//! buffer into wiped memory, without a copy in between.

use secrecy::SecretString;
use sonic_rs::LazyValue;
use zeroize::Zeroizing;

use crate::base::json;
use crate::http::{Problem, Request};

/// Members of one body; the largest route has nine.
const MEMBERS_MAX: usize = 64;

/// The members of a body, and what was wrong with those read so far.
pub struct Fields<'a> {
    members: Vec<(&'a str, LazyValue<'a>)>,
    problem: Option<Problem>,
}

impl<'a> Fields<'a> {
    /// Reads the body's members.
    ///
    /// # Errors
    /// 415 for another type than JSON, 400 for what is not one JSON object.
    pub fn of(request: &Request<'a>) -> Result<Self, Problem> {
        if !request.header("content-type").is_some_and(is_json) {
            let detail = "Send the body as application/json.";
            return Err(Problem::new(415, "unsupported_media_type", detail));
        }
        let members = json::members(request.body, MEMBERS_MAX).ok_or_else(|| {
            let detail = "The body is not a JSON object in UTF-8.";
            Problem::new(400, "malformed_json", detail)
        })?;
        Ok(Self { members, problem: None })
    }

    /// The member's JSON text; the last of several, none for `null`.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let found = self.members.iter().rev().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_raw_str()).filter(|raw| *raw != "null")
    }

    /// Notes that a field is wrong; all of them are told together.
    pub fn fault(&mut self, field: &'static str, message: impl Into<String>) {
        let problem = self.problem.take().unwrap_or_else(|| {
            Problem::new(400, "validation_failed", "Some fields are missing or not valid.")
        });
        self.problem = Some(problem.field(field, message.into()));
    }

    /// A text of at most `chars_max` characters, if it is there.
    pub fn optional_text(&mut self, name: &'static str, chars_max: usize) -> Option<String> {
        let text = self.optional_secret(name, chars_max)?;
        Some(text.as_str().to_owned())
    }

    /// A text that must be there; empty where it is not, which is noted.
    pub fn text(&mut self, name: &'static str, chars_max: usize) -> String {
        self.secret_text(name, chars_max).as_str().to_owned()
    }

    /// A text that must be there and not empty, as a secret.
    pub fn secret(&mut self, name: &'static str, chars_max: usize) -> SecretString {
        // From a slice: exactly one allocation, which the secret owns and wipes.
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

    /// A text in wiped memory, if it is there.
    pub fn optional_secret(
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
        self.problem.as_ref().map_or(0, |problem| problem.errors.len())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 400 with every fault noted.
    pub fn done(self) -> Result<(), Problem> {
        self.problem.map_or(Ok(()), Err)
    }
}

/// `application/json`, with parameters or without; a charset other than UTF-8 is refused.
fn is_json(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
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
