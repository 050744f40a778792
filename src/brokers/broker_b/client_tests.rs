//! client, tested.
