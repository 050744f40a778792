//! `DELETE /api/portfolio/data`.

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PortfolioDeleted {
    pub message: &'static str,
    pub deleted: DeletedRows,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeletedRows {
    pub holdings: u64,
    pub positions: u64,
    pub pnl_snapshots: u64,
}
