//! Columns by name: a statement selects or writes a list of columns, and what reads or fills a row
//! names each. Positions are found when the program is compiled, so that a name costs nothing, and
//! one that is not in the list is an error of the compiler.

/// Columns in the order in which a statement has them.
pub(super) struct Columns {
    /// As they stand in the statement.
    pub(super) sql: &'static str,
    /// Those that come before `names`.
    pub(super) first: Option<&'static Columns>,
    pub(super) names: &'static [&'static str],
}

impl Columns {
    const fn count(&self) -> usize {
        match self.first {
            Some(first) => first.count() + self.names.len(),
            None => self.names.len(),
        }
    }

    const fn found(&self, name: &str) -> Option<usize> {
        let before = match self.first {
            Some(first) => match first.found(name) {
                Some(at) => return Some(at),
                None => first.count(),
            },
            None => 0,
        };
        let mut at = 0;
        while at < self.names.len() {
            if is_same(self.names[at], name) {
                return Some(before + at);
            }
            at += 1;
        }
        None
    }

    /// The position of a column in a row. For `at!`, when the program is compiled.
    pub(super) const fn position(&self, name: &str) -> usize {
        match self.found(name) {
            Some(at) => at,
            None => panic!("the statement has no column of this name"),
        }
    }

    /// Whether these are all columns, in this order.
    pub(super) const fn are(&self, names: &[&str]) -> bool {
        let mut at = 0;
        while at < names.len() {
            match self.found(names[at]) {
                Some(found) if found == at => at += 1,
                _ => return false,
            }
        }
        at == self.count()
    }

    /// The parameters of these columns, the first with this number: `?3, ?4, ?5`.
    pub(super) const fn parameters(&self, number: usize) -> &'static str {
        let text = behind(PARAMETERS, number - 1);
        let rest = behind(text, self.count());
        // The blank and the comma before the rest.
        text.split_at(text.len() - rest.len() - 2).0
    }
}

/// More than any statement has.
const PARAMETERS: &str = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
                          ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30";

/// What follows the first `count` parts of a list with commas.
const fn behind(list: &'static str, count: usize) -> &'static str {
    let mut passed = 0;
    let mut at = 0;
    while passed < count {
        if list.as_bytes()[at] == b',' {
            passed += 1;
        }
        at += 1;
    }
    // The blank behind a comma.
    list.split_at(if count == 0 { 0 } else { at + 1 }).1
}

const fn is_same(one: &str, other: &str) -> bool {
    let one = one.as_bytes();
    let other = other.as_bytes();
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Length of the parts of a text.
pub(super) const fn length(parts: &[&str]) -> usize {
    let mut length = 0;
    let mut at = 0;
    while at < parts.len() {
        length += parts[at].len();
        at += 1;
    }
    length
}

/// The bytes of all parts, which have `N` together.
pub(super) const fn bytes<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut end = 0;
    let mut part = 0;
    while part < parts.len() {
        let from = parts[part].as_bytes();
        let mut at = 0;
        while at < from.len() {
            bytes[end] = from[at];
            end += 1;
            at += 1;
        }
        part += 1;
    }
    bytes
}

/// Joins texts when the program is compiled.
macro_rules! joined {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const BYTES: [u8; $crate::store::columns::length(PARTS)] =
            $crate::store::columns::bytes(PARTS);
        match str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("parts of text are text"),
        }
    }};
}

/// Declares lists of columns. A column that is selected by an expression has it before its name. A
/// list may begin with another one.
macro_rules! columns {
    ($(
        $(#[$about:meta])*
        const $name:ident = [$(..$first:ident,)? $($($sql:literal as)? $column:ident),+ $(,)?];
    )+) => {$(
        $(#[$about])*
        pub(super) const $name: $crate::store::columns::Columns = $crate::store::columns::Columns {
            sql: $crate::store::columns::joined!(
                $($first.sql, ", ",)?
                $crate::store::columns::listed!($($($sql as)? $column),+)
            ),
            first: [$(Some(&$first),)? None][0],
            names: &[$(stringify!($column)),+],
        };
    )+};
}

/// Columns as they stand in a statement.
macro_rules! listed {
    ($sql:literal as $column:ident $(, $($rest:tt)+)?) => {
        concat!($sql, $(", ", $crate::store::columns::listed!($($rest)+))?)
    };
    ($column:ident $(, $($rest:tt)+)?) => {
        concat!(stringify!($column), $(", ", $crate::store::columns::listed!($($rest)+))?)
    };
}

/// The position of a column of a list.
macro_rules! at {
    ($columns:ident.$name:ident) => {
        const { $columns.position(stringify!($name)) }
    };
}

/// A record whose members are columns of a list, of the same names, with its other members.
macro_rules! record {
    ($row:ident of $columns:ident, $type:ident [$($member:ident),+ $(,)?] $($other:tt)*) => {
        $type { $($member: $row.get($crate::store::columns::at!($columns.$member))?,)+ $($other)* }
    };
}

/// The arguments of all columns of a list, in its order, each with its name.
macro_rules! values {
    ($columns:ident { $($name:ident: $value:expr),+ $(,)? }) => {{
        const { assert!($columns.are(&[$(stringify!($name)),+]), "not the list's columns") };
        [$($crate::store::arg::Arg::from($value)),+]
    }};
}

pub(super) use {at, columns, joined, listed, record, values};

#[cfg(test)]
mod tests {
    columns! {
        const FEW = [a, b];
        const ALL = [..FEW, "x.d IS NOT NULL" as has_d, "x.c" as c];
    }

    #[test]
    fn columns_stand_in_the_statement_as_they_are_read() {
        assert_eq!(ALL.sql, "a, b, x.d IS NOT NULL, x.c");
        let positions = [at!(ALL.a), at!(ALL.b), at!(ALL.has_d), at!(ALL.c)];
        assert_eq!(positions, [0, 1, 2, 3]);
        assert_eq!(at!(FEW.b), 1);
        assert!(ALL.found("d").is_none() && ALL.found("has_").is_none());
        assert!(ALL.are(&["a", "b", "has_d", "c"]));
        assert!(!ALL.are(&["a", "b", "c", "has_d"]) && !ALL.are(&["a", "b", "has_d"]));
        assert!(!FEW.are(&["a", "b", "c"]));
    }

    #[test]
    fn parameters_are_numbered_from_the_first() {
        assert_eq!(FEW.parameters(1), "?1, ?2");
        assert_eq!(ALL.parameters(9), "?9, ?10, ?11, ?12");
    }
}
