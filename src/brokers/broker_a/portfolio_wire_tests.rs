//! portfolio_wire, tested.
