//! What an API key permits: scopes, and sets of them.

use crate::base::words;

words! {
    /// What an API key permits.
    pub enum Scope {
        MarketRead = "market:read",
        PortfolioRead = "portfolio:read",
        TradesRead = "trades:read",
        TradesWrite = "trades:write",
        JournalRead = "journal:read",
        JournalWrite = "journal:write",
        SignalsRead = "signals:read",
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether the scope is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// The scopes, in the order of their declaration.
    pub(crate) fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    /// The words, as they are stored and printed.
    pub(crate) fn spelled(self) -> String {
        self.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(
            scopes
                .into_iter()
                .fold(0, |bits, scope| bits | 1 << scope as u8),
        )
    }
}
