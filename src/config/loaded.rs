//! The result of reading all settings.

use std::collections::BTreeMap;

use super::composed::Config;
use super::fault::Fault;
use super::origin::Origin;

/// Valid settings, the origin of each, and warnings for the operator.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// By variable name, including secrets; a name that is absent has its default.
    pub origins: BTreeMap<&'static str, Origin>,
    pub warnings: Vec<String>,
}

/// Reads all settings again, as at the start.
pub type Reread<'a> = dyn Fn() -> Result<Loaded, Vec<Fault>> + 'a;
