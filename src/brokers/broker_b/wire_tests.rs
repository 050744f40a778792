//! wire, tested.
