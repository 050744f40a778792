//! Settings of the evening's close, and of one node among several.

/// The evening's revaluation of stored portfolios.
#[derive(Debug, Clone)]
pub struct CloseSettings {
    /// Users valued and written in one transaction.
    pub page_users: usize,
    /// Held symbols whose closing price one evening asks for.
    pub symbols_max: usize,
}

impl Default for CloseSettings {
    fn default() -> Self {
        // All shares of both exchanges are fewer than half as many.
        Self { page_users: 200, symbols_max: 20_000 }
    }
}

/// The kernel's name of this machine.
const MACHINE_NAME: &str = "/proc/sys/kernel/hostname";
/// PostgreSQL cuts longer names of a connection off.
const CONNECTION_NAME_BYTES_MAX: usize = 63;

/// One node among several.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// What this node is called; no other is called so. The machine's name where none is given.
    pub name: Option<String>,
    /// How long a leader leads after it was last heard by those who decide.
    pub lease_ms: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self { name: None, lease_ms: 5_000 }
    }
}

impl NodeSettings {
    /// What this node is called.
    pub fn called(&self) -> String {
        let machine = || std::fs::read_to_string(MACHINE_NAME).unwrap_or_default();
        self.name.clone().unwrap_or_else(|| machine().trim().to_owned())
    }

    /// What its connections to the database and to the shared server are called there:
    /// `bhav/NODE`, of letters that both take.
    pub fn connection_name(&self) -> String {
        let name = format!("bhav/{}", self.called());
        let plain = name.chars().filter(char::is_ascii_graphic);
        plain.take(CONNECTION_NAME_BYTES_MAX).collect()
    }
}
