//! Writing JSON straight into a body: members in order, decimals as numbers with their own digits.
//! Pure.

use rust_decimal::Decimal;

use crate::base::decimal;

/// An object in the making; [`Object::close`] ends it.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    /// Opens an object at the end of `out`.
    pub fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a member's name; its value is to be written to what is returned. Names are our own
    /// words and need no escaping.
    pub fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
        self.empty = false;
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        write_text(self.member(name), text);
        self
    }

    /// `null` for `None`.
    pub fn text_or_null(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(name, text),
            None => self.null(name),
        }
    }

    /// Money or a percentage: two places, `null` for `None`.
    pub fn money(&mut self, name: &str, value: impl Into<Option<Decimal>>) -> &mut Self {
        match value.into() {
            Some(value) => decimal::write_json(self.member(name), value),
            None => return self.null(name),
        }
        self
    }

    /// A number with all its digits, `null` for `None`.
    pub fn exact(&mut self, name: &str, value: impl Into<Option<Decimal>>) -> &mut Self {
        match value.into() {
            Some(value) => write_exact(self.member(name), value),
            None => return self.null(name),
        }
        self
    }

    pub fn integer(&mut self, name: &str, value: i64) -> &mut Self {
        let mut digits = itoa::Buffer::new();
        self.member(name).extend_from_slice(digits.format(value).as_bytes());
        self
    }

    pub fn count(&mut self, name: &str, value: usize) -> &mut Self {
        let mut digits = itoa::Buffer::new();
        self.member(name).extend_from_slice(digits.format(value).as_bytes());
        self
    }

    pub fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.member(name).extend_from_slice(if value { b"true" } else { b"false" });
        self
    }

    /// A member that is `true` or not there.
    pub fn mark(&mut self, name: &str, value: bool) -> &mut Self {
        if value { self.flag(name, true) } else { self }
    }

    pub fn null(&mut self, name: &str) -> &mut Self {
        self.member(name).extend_from_slice(b"null");
        self
    }

    pub fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) -> &mut Self {
        write_list(self.member(name), items, write);
        self
    }

    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        write_object(self.member(name), write);
        self
    }

    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// A whole object.
pub fn write_object(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    let mut object = Object::open(out);
    write(&mut object);
    object.close();
}

/// A whole array.
pub fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// A string, escaped.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    // Text always serialises, and a Vec always takes it.
    let _ = sonic_rs::to_writer(out, text);
}

/// A number in its shortest form that has every digit.
pub fn write_exact(out: &mut Vec<u8>, value: Decimal) {
    use std::io::Write;
    let mut short = value.normalize();
    if short.is_zero() {
        short = Decimal::ZERO; // no "-0"
    }
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{short}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_order_and_are_json() {
        let mut out = Vec::new();
        write_object(&mut out, |object| {
            object.text("text", "a\"b\\\u{1}é").null("nothing").flag("yes", true);
            object.mark("absent", false).mark("there", true);
            object.money("money", "801.78125".parse::<Decimal>().unwrap());
            object.exact("exact", "801.7812500".parse::<Decimal>().unwrap());
            object.exact("none", None).integer("integer", -7).count("count", 3);
            object.list("list", [1, 2], |out, item| write_exact(out, item.into()));
            object.object("object", |_| {});
        });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"text\":\"a\\\"b\\\\\\u0001é\",\"nothing\":null,\"yes\":true,\"there\":true,\
             \"money\":801.78,\"exact\":801.78125,\"none\":null,\"integer\":-7,\"count\":3,\
             \"list\":[1,2],\"object\":{}}"
        );
    }

    #[test]
    fn zero_has_no_sign() {
        let mut out = Vec::new();
        write_exact(&mut out, "-0.00".parse().unwrap());
        assert_eq!(out, b"0");
    }
}
