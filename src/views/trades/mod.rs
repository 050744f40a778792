//! Documents of the trades ledger.

pub(crate) mod accounts;
pub(crate) mod agreement;
pub(crate) mod corrections;
pub(crate) mod gains;
pub(crate) mod imports;
pub(crate) mod list;
pub(crate) mod lots;
pub(crate) mod reconciliation;
pub(crate) mod returns;
