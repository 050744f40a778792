//! Parts of a document of which the route itself has pages, with a `limit` and a `cursor`. Pure.
//!
//! A part is the route's own page of fewer rows, so it is the route's answer to that limit. Two
//! things do not fit into that: lists beside the rows, which every page has, and a row that is
//! longer than an answer because of a list within it.

use crate::api::mcp::arguments::is_page_cursor;
use crate::api::mcp::pages::{
    DOCUMENT_BYTES_MAX, NEXT_CURSOR, Part, cost, cursor_invalid, fitting, list, member, part,
};
use crate::api::portfolio_errors;
use crate::base::json::members;
use crate::http::Problem;

/// Longest rest of a document that every page has. A longer one would leave too little for rows, so
/// its lists come first, on pages without rows.
const BESIDE_BYTES_MAX: usize = DOCUMENT_BYTES_MAX / 2;

/// The lists of a document that a route gives by pages.
#[derive(Clone, Copy)]
pub(super) struct RoutePages {
    rows: &'static str,
    within: Option<&'static str>,
    beside: &'static [&'static str],
}

/// The rows of the pages.
pub(super) const fn rows(rows: &'static str) -> RoutePages {
    RoutePages {
        rows,
        within: None,
        beside: &[],
    }
}

impl RoutePages {
    /// Each row has this list. A row that is too long comes with it empty.
    pub(super) const fn each_with(self, within: &'static str) -> Self {
        Self {
            within: Some(within),
            ..self
        }
    }

    /// Every page of the route has these lists, whole.
    pub(super) const fn beside(self, beside: &'static [&'static str]) -> Self {
        Self { beside, ..self }
    }

    /// Whether a cursor leads into the lists beside the rows, and is not the route's.
    pub(super) fn has_own_cursor(&self, cursor: &str) -> bool {
        self.has_beside() && is_page_cursor(cursor)
    }

    /// Whether there are lists beside the rows.
    pub(super) fn has_beside(&self) -> bool {
        !self.beside.is_empty()
    }

    /// Whether a whole page of the route can be the answer: any page, but where there are lists
    /// beside the rows, the first one alone.
    pub(super) fn may_be_whole(&self, own: Option<&str>, given: &[(String, String)]) -> bool {
        let is_there = own.is_some() || given.iter().any(|(name, _)| name == "cursor");
        !(self.has_beside() && is_there)
    }

    /// What to do about a page of the route that may be too long. `own` is a cursor into the lists
    /// beside the rows.
    pub(super) fn step(
        &self,
        document: &str,
        own: Option<&str>,
        is_first: bool,
        is_text: bool,
    ) -> Result<Step, Problem> {
        let (_, place) = list(document, self.rows).ok_or_else(Problem::internal)?;
        let rest = cost(document, is_text) - cost(&document[place], is_text);
        let without_beside = self.has_beside() && rest > BESIDE_BYTES_MAX;
        if own.is_some() && !without_beside {
            return Err(cursor_invalid());
        }
        if without_beside
            && (own.is_some() || is_first)
            && let Some(step) = self.beside_rows(document, own, is_text)?
        {
            return Ok(step);
        }
        let document = match without_beside {
            true => emptied(document, self.beside)?,
            false => document.to_owned(),
        };
        if cost(&document, is_text) <= DOCUMENT_BYTES_MAX {
            return Ok(Step::Done {
                document,
                shown: String::new(),
            });
        }
        let count = fitting(&document, self.rows, is_text)?;
        Ok(Step::Ask(Fewer {
            count,
            without_beside,
        }))
    }

    /// The part of the lists beside the rows to which the cursor leads; `None` behind them.
    fn beside_rows(
        &self,
        document: &str,
        own: Option<&str>,
        is_text: bool,
    ) -> Result<Option<Step>, Problem> {
        let mut count = 0;
        for path in self.beside {
            count += list(document, path).ok_or_else(Problem::internal)?.0.len();
        }
        let behind = format!("{count}-{count}");
        if own == Some(&*behind) {
            return Ok(None);
        }
        let has_rows = !list(document, self.rows)
            .ok_or_else(Problem::internal)?
            .0
            .is_empty();
        let document = with_cursor(&emptied(document, &[self.rows])?, None)?;
        let Part {
            document,
            shown,
            next,
        } = part(&document, self.beside, own, is_text)?;
        let next = next.or(has_rows.then_some(behind));
        let document = with_cursor(&document, next.as_deref())?;
        Ok(Some(Step::Done { document, shown }))
    }

    /// The page of the route that [`Step::Ask`] asked for, as it is answered, and a line about it.
    pub(super) fn rows(
        &self,
        document: String,
        fewer: Fewer,
        is_text: bool,
    ) -> Result<(String, String), Problem> {
        let mut document = document;
        let mut shown = format!(", {} {}", fewer.limit(), self.rows);
        if fewer.without_beside {
            document = emptied(&document, self.beside)?;
        }
        if fewer.count == 0 {
            let within = self.within.ok_or_else(portfolio_errors::export_too_long)?;
            document = with_first_emptied(&document, self.rows, within)?;
            shown.push_str(&format!(" without {within}, which are too many for an answer"));
        }
        if cost(&document, is_text) > DOCUMENT_BYTES_MAX {
            return Err(portfolio_errors::export_too_long());
        }
        Ok((document, shown))
    }
}

/// What to do about a page of the route.
pub(super) enum Step {
    /// This is the answer, with a line about it.
    Done { document: String, shown: String },
    /// The route has to be asked for fewer rows.
    Ask(Fewer),
}

/// The rows that fit.
#[derive(Clone, Copy)]
pub(super) struct Fewer {
    /// Not even one if it is zero.
    count: usize,
    without_beside: bool,
}

impl Fewer {
    /// The limit to ask the route for.
    pub(super) fn limit(&self) -> usize {
        self.count.max(1)
    }
}

/// The document with nothing in these lists.
fn emptied(document: &str, paths: &[&str]) -> Result<String, Problem> {
    let mut out = document.to_owned();
    for path in paths {
        let (_, place) = list(&out, path).ok_or_else(Problem::internal)?;
        out.replace_range(place, "[]");
    }
    Ok(out)
}

/// The document with nothing in a list of its first row.
fn with_first_emptied(document: &str, rows: &str, within: &str) -> Result<String, Problem> {
    let (elements, _) = list(document, rows).ok_or_else(Problem::internal)?;
    let first = elements.first().ok_or_else(Problem::internal)?.get();
    let (_, place) = list(first, within).ok_or_else(Problem::internal)?;
    let start = first.as_ptr() as usize - document.as_ptr() as usize;
    let mut out = document.to_owned();
    out.replace_range(start + place.start..start + place.end, "[]");
    Ok(out)
}

/// The document with another cursor of the next page.
fn with_cursor(document: &str, cursor: Option<&str>) -> Result<String, Problem> {
    let all = members(document.as_bytes()).ok_or_else(Problem::internal)?;
    let raw = member(&all, NEXT_CURSOR).ok_or_else(Problem::internal)?;
    let start = raw.as_ptr() as usize - document.as_ptr() as usize;
    let cursor = cursor.map_or("null".to_owned(), |cursor| format!("\"{cursor}\""));
    let mut out = document.to_owned();
    out.replace_range(start..start + raw.len(), &cursor);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
    use serde_json::Value;

    use super::*;

    const LIST: RoutePages = rows("rows")
        .each_with("within")
        .beside(&["left", "s.right"]);
    /// The route's own limit.
    const LIMIT: usize = 9;

    /// A text whose quotes cost two bytes each in a text.
    fn text(size: usize) -> String {
        format!("\"{}\"", "\\\"".repeat(size))
    }

    /// A route with pages of `rows`, each with a list of one text, and two lists on every page.
    struct Route {
        rows: Vec<String>,
        left: Vec<String>,
        right: Vec<String>,
    }

    impl Route {
        fn page(&self, cursor: Option<&str>, limit: usize) -> String {
            let from: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
            let to = (from + limit).min(self.rows.len());
            let next = match to < self.rows.len() {
                true => format!("\"{to:027}\""),
                false => "null".to_owned(),
            };
            let of = |rows: &[String]| rows.join(",");
            let rows = of(&self.rows[from..to]);
            let left = of(&self.left);
            let right = of(&self.right);
            format!(
                "{{\"rows\":[{rows}],\"n\":1.50,\"left\":[{left}],\"s\":{{\"right\":[{right}]}},\
                 \"next_cursor\":{next}}}"
            )
        }

        /// An answer, as the tool makes it.
        fn answer(&self, cursor: Option<&str>, is_text: bool) -> String {
            let own = cursor.filter(|cursor| LIST.has_own_cursor(cursor));
            let of_route = cursor.filter(|_| own.is_none());
            let given: Vec<(String, String)> = of_route
                .iter()
                .map(|text| ("cursor".into(), (*text).to_owned()))
                .collect();
            let document = self.page(of_route, LIMIT);
            let may_be_whole = LIST.may_be_whole(own, &given);
            if may_be_whole && cost(&document, is_text) <= DOCUMENT_BYTES_MAX {
                return document;
            }
            match LIST.step(&document, own, may_be_whole, is_text).unwrap() {
                Step::Done { document, .. } => document,
                Step::Ask(fewer) => {
                    let document = self.page(of_route, fewer.limit());
                    LIST.rows(document, fewer, is_text).unwrap().0
                }
            }
        }
    }

    fn elements(document: &str, path: &str) -> Vec<String> {
        let (elements, _) = list(document, path).unwrap();
        elements
            .iter()
            .map(|element| element.get().to_owned())
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn parts_fit_and_have_every_row_once(
            sizes in vec(1_usize..18_000, 0..24),
            left in vec(1_usize..3_000, 0..12),
            right in vec(1_usize..3_000, 0..4),
            is_text in any::<bool>(),
        ) {
            let row = |(at, size): (usize, &usize)| {
                format!(r#"{{"id":{at},"within":[{}],"b":0}}"#, text(*size))
            };
            let route = Route {
                rows: sizes.iter().enumerate().map(row).collect(),
                left: left.iter().map(|size| text(*size)).collect(),
                right: right.iter().map(|size| text(*size)).collect(),
            };
            let mut cursor = None::<String>;
            let mut rows = Vec::new();
            let mut beside = Vec::new();
            loop {
                let answer = route.answer(cursor.as_deref(), is_text);
                prop_assert!(cost(&answer, is_text) <= DOCUMENT_BYTES_MAX, "{}", answer.len());
                let read: Value = serde_json::from_str(&answer).unwrap();
                prop_assert_eq!(&read["n"], 1.5);
                rows.extend(elements(&answer, "rows"));
                beside.push([elements(&answer, "left"), elements(&answer, "s.right")].concat());
                match read[NEXT_CURSOR].as_str() {
                    Some(next) => cursor = Some(next.to_owned()),
                    None => break,
                }
            }
            prop_assert_eq!(rows.len(), route.rows.len());
            for (at, (shown, row)) in rows.iter().zip(&route.rows).enumerate() {
                let without = format!(r#"{{"id":{at},"within":[],"b":0}}"#);
                let is_long = cost(row, is_text) > BESIDE_BYTES_MAX - 500;
                prop_assert!(shown == row || (is_long && *shown == without), "{}", shown.len());
            }
            // Each page has them all, or all pages together have each once.
            let all = [&*route.left, &*route.right].concat();
            let once: Vec<String> = beside.concat();
            prop_assert!(beside.iter().all(|page| *page == all) || once == all);
        }
    }
}
