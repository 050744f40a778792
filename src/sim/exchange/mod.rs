//! The simulated exchange: its shares, its day, and every price of it, from one seed. Pure.

pub(crate) mod day;
pub(crate) mod hours;
pub(crate) mod minutes;
pub(crate) mod noise;
pub(crate) mod splits;
pub(crate) mod trading;
pub(crate) mod universe;
