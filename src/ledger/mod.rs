//! The trades ledger: what was bought and sold and when, from a person's files and from the
//! brokers.
//!
//! Pure: no I/O, no clock, no SQL, no HTTP. It runs on the lane `ledger` and never on the edge. The
//! ledger is a function of the live rows and corrections, so the order of imports, their
//! repetition and their undoing cannot matter. What is not proved against the broker is named and
//! never summed.

pub(crate) mod amount;
mod archive;
mod averaged_orders;
mod bonus_stripping;
mod cells;
pub(crate) mod contracts;
pub(crate) mod corrections;
pub(crate) mod csv_cell;
mod day_order;
mod day_trades;
pub(crate) mod effort;
pub mod file;
mod file_format;
#[cfg(test)]
mod file_limits_tests;
#[cfg(test)]
mod file_samples;
#[cfg(test)]
mod file_tests;
pub(crate) mod financial_year;
pub(crate) mod gains;
pub(crate) mod grandfathering;
mod limits;
pub(crate) mod lots;
pub(crate) mod mends;
pub(crate) mod positions;
mod proposals;
pub(crate) mod reasons;
pub(crate) mod reconciliation;
mod refusals;
pub(crate) mod report_agreement;
pub(crate) mod report_charges;
mod report_line;
pub(crate) mod report_offers;
pub(crate) mod reported;
mod reports;
pub(crate) mod returns;
pub(crate) mod row;
pub(crate) mod rules;
pub(crate) mod securities;
mod shares;
pub(crate) mod stated;
#[cfg(test)]
mod story;
pub(crate) mod synced_rows;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod tradebooks;
pub(crate) mod trades;
mod workbook;
pub(crate) mod worksheet;
pub(crate) mod xirr;
