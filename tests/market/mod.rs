//! The snapshot, live prices, their age, and the exchange's days.

mod after_close;
mod age;
mod coalescing;
pub mod days;
mod far_prices;
pub mod figures;
mod hours;
mod instrument_lists;
mod leading;
mod movers;
mod phases;
mod prices;
mod prices_waiting;
mod pushed;
mod search;
mod snapshot;
mod ticker;
mod ticker_line;
mod ticker_secrets;
