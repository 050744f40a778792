//! What the portfolio and the calendar tell the ledger: each account's latest sync, and when trades
//! settle. Pure.

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Account, Broker, Holding, Isin, SoldHolding, clock};
use crate::ledger::file::{ClientId, ClientIdKind};
use crate::ledger::reconciliation::{Settlement, SyncedAccount, SyncedHolding};
use crate::ledger::row::AccountName;
use crate::market::MarketCalendar;
use crate::store::{Portfolio, SyncState};

/// The ledger's name of a synced account.
pub(super) fn name_of(account: Account) -> Option<AccountName> {
    AccountName::parse(account.as_str())
}

/// The id by which the broker of a sync knows the person.
pub(super) fn client_of(sync: &SyncState) -> Option<ClientId> {
    client_at(sync.account.broker(), sync.broker_user.as_deref()?)
}

/// The id by which a broker knows a person.
pub(super) fn client_at(broker: Broker, broker_user: &str) -> Option<ClientId> {
    ClientId::of(ClientIdKind::user_at(broker), broker_user)
}

/// Whether the ids that an account has of this kind are all of others. Where it has none, this may
/// be its first.
pub(super) fn is_of_others(client: &ClientId, known: impl Iterator<Item = ClientId>) -> bool {
    let mut same_kind = known.filter(|known| known.kind == client.kind).peekable();
    same_kind.peek().is_some() && same_kind.all(|known| known != *client)
}

/// The latest sync of each account, in the order of their names.
pub(super) fn synced(portfolio: &Portfolio, calendar: &MarketCalendar) -> Vec<SyncedAccount> {
    let syncs = portfolio.syncs.iter().filter_map(|sync| {
        let at = Timestamp::from_millisecond(sync.synced_ms).ok()?;
        let on = clock::zoned(at).date();
        let day = calendar.market_day(at);
        let holdings = portfolio
            .holdings
            .iter()
            .filter(|row| row.account == sync.account);
        let sold = portfolio
            .sold_holdings
            .iter()
            .filter(|row| row.account == sync.account);
        Some(SyncedAccount {
            account: name_of(sync.account)?,
            by: sync.account.broker(),
            at_ms: sync.synced_ms,
            on,
            trading_date: day.day.unwrap_or(day.session),
            holdings: holdings
                .map(holding)
                .chain(sold.map(sold_holding))
                .collect(),
        })
    });
    syncs.collect()
}

fn holding(row: &Holding) -> SyncedHolding {
    SyncedHolding {
        isin: row.isin.as_deref().and_then(Isin::parse),
        symbol: row.tradingsymbol.clone(),
        owned: row
            .quantity()
            .saturating_add(row.used_quantity)
            .saturating_add(row.mtf_quantity),
        pledged: row.pledged_quantity,
        action_seen: row.mark.map(|mark| mark.on),
    }
}

/// What was sold today counts as the broker's until the trades tell of the sale.
fn sold_holding(row: &SoldHolding) -> SyncedHolding {
    SyncedHolding {
        isin: row.isin.as_deref().and_then(Isin::parse),
        symbol: row.tradingsymbol.clone(),
        owned: row.used_quantity,
        pledged: Decimal::ZERO,
        action_seen: None,
    }
}

impl Settlement for MarketCalendar {
    fn settlement_day(&self, traded: Date) -> Option<Date> {
        let mut day = self.next_trading_date(traded)?;
        while !self.settles(day) {
            day = self.next_trading_date(day)?;
        }
        Some(day)
    }
}
