//! The simulated exchange: its shares, its day, and every price of it, from one seed. Pure.

pub(crate) mod day;
pub(crate) mod minutes;
mod scale;
pub(crate) mod trading;
pub(crate) mod universe;
