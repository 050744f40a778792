//! combine, tested.
