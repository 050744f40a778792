//! portfolio, tested.
