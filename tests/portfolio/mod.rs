//! Portfolios: syncs, money, the close, live prices, the journal and the export.

mod broker_clients;
mod broker_sessions;
pub mod close;
mod close_late;
mod close_waiting;
mod emptied;
mod equal_rows;
mod exports;
mod journal;
mod journal_search;
mod live_prices;
mod money;
mod money_rows;
mod previous_closes;
mod redirects;
mod short_rows;
mod sync_limits;
mod unknown_prices;
pub mod user;
mod user_lock;
