//! `GET /api/trades/tax/{fy}/112a.csv`: Schedule 112A as a worksheet.

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::gains::{FY, person_in};
use crate::base::Isin;
use crate::http::{Problem, Response};
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::Gains;
use crate::ledger::worksheet::worksheet;

const PATH_BEFORE: &[u8] = b"/api/trades/tax/";
/// Securities that a refusal names.
const NAMED_MAX: usize = 20;

/// `GET /api/trades/tax/{fy}/112a.csv`. With `strict` nothing may be left out.
pub(crate) fn csv(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let fy = year(call).ok_or_else(|| {
        Problem::new(400, "validation_failed", "The path names no year.").field("fy", FY)
    })?;
    let person = person_in(call.query())?;
    let strict = parameter(call.query(), "strict", "Either true or false.", |text| match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    })?;
    answer(state, call, response, move |book: &Book| {
        let year = book.gains(fy, &person);
        let sheet = worksheet(&year.gains).map_err(|_| not_notified(fy))?;
        if strict == Some(true) && sheet.left_out > 0 {
            return Err(incomplete(&year.gains, sheet.left_out));
        }
        let mut document =
            Document::csv(sheet.csv.into_bytes(), &format!("worksheet-112a-{fy}.csv"));
        document
            .headers
            .push(("X-Left-Out", sheet.left_out.to_string()));
        Ok(document)
    })
}

fn year(call: &Call<'_>) -> Option<FinancialYear> {
    let path = call.request.path().strip_prefix(PATH_BEFORE)?;
    let segment = path.split(|byte| *byte == b'/').next()?;
    FinancialYear::parse(std::str::from_utf8(segment).ok()?)
}

fn not_notified(fy: FinancialYear) -> Problem {
    let detail = format!("No form of the year {fy} is known. Its gains are.");
    Problem::new(409, "form_not_notified", detail)
}

fn incomplete(gains: &Gains, count: usize) -> Problem {
    let mut names: Vec<&str> = gains
        .left_out
        .iter()
        .filter_map(|row| {
            row.isin
                .as_ref()
                .map(Isin::as_str)
                .or(row.symbol.as_deref())
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(NAMED_MAX);
    let names = names.join(", ");
    let detail =
        format!("{count} securities are left out, as the gains say with their reasons: {names}.");
    Problem::new(409, "incomplete", detail)
}
