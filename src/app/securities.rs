//! The securities by which portfolios know codes: the operator's security master before the
//! compiled-in shares. Main thread, at start and at a reload.

use std::path::PathBuf;

use crate::brokers::security_master;
use crate::config::Config;
use crate::market::instruments::{Kind, embedded_instruments};
use crate::market::list_limits::is_cut_short;
use crate::portfolio::{Listed, Securities};

/// The security master cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MasterError {
    #[error("{setting} {}: {cause}", .path.display(), setting = security_master::SETTING)]
    Unreadable { path: PathBuf, cause: String },
    /// As by a download that broke off.
    #[error(
        "{setting} has {rows} shares, and the one in force {before}: download it again; a restart \
         takes it as it is",
        setting = security_master::SETTING
    )]
    CutShort { rows: usize, before: usize },
}

/// The securities at the start. A master that cannot be used is left out, with an error in the log.
pub(super) fn at_start(config: &Config) -> Securities {
    let master = master_shares(config).unwrap_or_else(|error| {
        tracing::error!(
            %error,
            "the security master cannot be used: shares keep their broker's short codes"
        );
        Vec::new()
    });
    // The operator's rows before the compiled-in ones.
    Securities::of(vec![master, embedded_shares()])
}

/// The securities at a reload, in place of those in force.
///
/// # Errors
/// [`MasterError`].
pub(super) fn at_reload(config: &Config, in_force: &Securities) -> Result<Securities, MasterError> {
    let master = master_shares(config)?;
    let embedded = embedded_shares();
    let rows = master.len();
    let before = in_force.len() - embedded.len();
    if config.security_master().is_some() && is_cut_short(rows, before) {
        return Err(MasterError::CutShort { rows, before });
    }
    Ok(Securities::of(vec![master, embedded]))
}

/// The operator's security master; empty if the settings name none.
fn master_shares(config: &Config) -> Result<Vec<Listed>, MasterError> {
    let Some(path) = config.security_master() else {
        return Ok(Vec::new());
    };
    let master = security_master::load(path).map_err(|error| MasterError::Unreadable {
        path: path.to_owned(),
        cause: error.to_string(),
    })?;
    let rows = master.rows.len();
    let skipped = master.skipped;
    tracing::info!(rows, skipped, "security master read");
    let listed = master.rows.into_iter().map(|row| Listed {
        exchange: row.exchange.into(),
        ticker: row.ticker,
        isin: row.isin,
        short_code: Some(row.short_code),
    });
    Ok(listed.collect())
}

/// The compiled-in shares in the form of the portfolio.
fn embedded_shares() -> Vec<Listed> {
    let shares = embedded_instruments()
        .into_iter()
        .filter(|row| row.kind == Kind::Share);
    let listed = shares.map(|row| Listed {
        exchange: row.symbol.exchange().as_str().into(),
        ticker: row.symbol.ticker().into(),
        isin: row.isin,
        short_code: row.short_code,
    });
    listed.collect()
}
