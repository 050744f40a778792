//! Broker codes that are resolved to tickers, and codes that must not be.

use super::*;
use crate::base::{Account, Broker, Position, PositionKind};
use crate::portfolio::testing::holding;

fn listed(exchange: &str, ticker: &str, isin: &str, code: &str) -> Listed {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Listed {
        exchange: exchange.into(),
        ticker: ticker.into(),
        isin: some(isin),
        short_code: some(code),
    }
}

fn securities() -> Securities {
    let master = vec![
        listed("NSE", "RELIANCE", "INE002A01018", "RELIND"),
        listed("BSE", "RELIANCE", "INE002A01018", "RELIND"),
        listed("NSE", "AXISBANK", "INE238A01034", "AXIOFS"),
        listed("NSE", "ONE", "INE000000001", "TWICE"),
        listed("NSE", "OTHER", "INE000000002", "TWICE"),
        listed("NSE", "SBIN", "INE062A01020", "STABAN"),
        listed("NSE", "SBIN", "INE062A01020", "STABAN"),
        listed("BSE", "ONLYBSE", "INE000000003", "ONLBSE"),
    ];
    let embedded = vec![
        listed("NSE", "STALE", "INE062A01020", "STABAN"),
        listed("NSE", "INFY", "INE009A01021", "INFTEC"),
    ];
    Securities::of(vec![master, embedded])
}

fn resolved(code: &str, exchange: &str, isin: Option<&str>) -> Holding {
    let mut row = holding(code, 1, 1);
    row.account = Account::at(Broker::B);
    row.exchange = exchange.into();
    row.isin = isin.map(Into::into);
    row.unresolved = true;
    let mut synced = Synced {
        holdings: vec![row],
        ..Synced::default()
    };
    securities().resolve(&mut synced);
    synced.holdings.remove(0)
}

fn name(row: &Holding) -> Option<String> {
    (!row.unresolved).then(|| format!("{}:{}", row.exchange, row.tradingsymbol))
}

#[test]
fn a_code_is_resolved_by_isin_first_and_then_by_itself() {
    let by_isin = resolved("WHATEVER", "NSE", Some("INE002A01018"));
    assert_eq!(name(&by_isin).as_deref(), Some("NSE:RELIANCE"));
    let by_code = resolved("RELIND", "BSE", None);
    assert_eq!(name(&by_code).as_deref(), Some("BSE:RELIANCE"));
    assert_eq!(by_code.isin.as_deref(), Some("INE002A01018"));
    let earlier_list = resolved("STABAN", "NSE", None);
    assert_eq!(name(&earlier_list).as_deref(), Some("NSE:SBIN"));
    assert_eq!(name(&resolved("INFTEC", "NSE", None)).as_deref(), Some("NSE:INFY"));
    assert_eq!(name(&resolved("InfTec", "NSE", None)).as_deref(), Some("NSE:INFY"), "any case");
    let lower = resolved("WHATEVER", "NSE", Some("ine002a01018"));
    assert_eq!(name(&lower).as_deref(), Some("NSE:RELIANCE"));
    // A share that is listed on the other exchange only.
    assert_eq!(name(&resolved("ONLBSE", "NSE", None)).as_deref(), Some("BSE:ONLYBSE"));
    // After a split the broker's ISIN is newer than the list's.
    let split = resolved("RELIND", "NSE", Some("INE002A01026"));
    assert_eq!(name(&split).as_deref(), Some("NSE:RELIANCE"));
    assert_eq!(split.isin.as_deref(), Some("INE002A01026"));
}

#[test]
fn an_unknown_or_ambiguous_code_stays_unresolved() {
    for code in ["AXIOFS", "TWICE", "NOSUCH", "RELIANCE", ""] {
        let row = resolved(code, "NSE", None);
        assert!(row.unresolved, "{code}");
        assert_eq!((row.tradingsymbol.as_str(), row.isin), (code, None));
    }
    assert!(Securities::default().is_empty());
    assert_eq!(securities().len(), 10);
}

#[test]
fn positions_resolve_on_their_exchange_only_and_contracts_stay() {
    let position = |exchange: &str, code: &str| Position {
        account: Account::at(Broker::B),
        kind: PositionKind::Net,
        exchange: exchange.into(),
        tradingsymbol: code.into(),
        product: "Cash".into(),
        quantity: 1.into(),
        multiplier: 1.into(),
        average_price: None,
        last_price: None,
        close_price: None,
        pnl: None,
        realised: None,
        unrealised: None,
        unresolved: true,
    };
    let positions = vec![
        position("NSE", "RELIND"),
        position("NFO", "NIFTY 27-Feb-2025 24800 Call"),
        position("NSE", "ONLBSE"),
    ];
    let mut synced = Synced {
        positions,
        ..Synced::default()
    };
    securities().resolve(&mut synced);
    let names: Vec<_> = synced
        .positions
        .iter()
        .map(|row| (row.tradingsymbol.as_str(), row.unresolved))
        .collect();
    assert_eq!(
        names,
        [
            ("RELIANCE", false),
            ("NIFTY 27-Feb-2025 24800 Call", true),
            ("ONLBSE", true)
        ]
    );
}
