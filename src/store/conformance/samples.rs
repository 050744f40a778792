//! Users, rows and points to work with.

use jiff::civil::{Date, date};
use rust_decimal::Decimal;

use crate::base::{
    Account, ActionSign, BaseRatio, Broker, Cost, Holding, Mark, Position, PositionKind,
    SoldHolding, Synced,
};
use crate::portfolio::{DayPoint, Derived, MadeOf, PointSource, Repriced, SyncOutcome};
use crate::store::{AccountId, Derive, JournalFields, NewPortfolio, NewUser, Side, Store, Turn};

pub(crate) fn user(store: &Store, email: &str) -> AccountId {
    let user = NewUser {
        email: email.to_owned(),
        name: Some("A. Person".to_owned()),
        password_hash: "hash one".to_owned(),
        created_ms: 5,
    };
    store.create_user(user).unwrap().user.id
}

pub(crate) fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub(crate) fn holding(broker: Broker, ticker: &str, quantity: &str) -> Holding {
    Holding {
        account: Account::at(broker),
        exchange: "NSE".to_owned(),
        tradingsymbol: ticker.to_owned(),
        isin: Some("INE009A01021".to_owned()),
        settled_quantity: dec(quantity),
        t1_quantity: dec("1"),
        pledged_quantity: dec("0"),
        mtf_quantity: dec("0"),
        used_quantity: dec("3"),
        disputed_quantity: dec("2"),
        cost: Some(Cost::PerShare(dec("1412.9500"))),
        last_price: None,
        close_price: Some(dec("0.10")),
        change_pct: Some(dec("-1.25")),
        as_of_ms: 77,
        broker_pnl: Some(dec("-12.345")),
        discrepancy: true,
        unresolved: false,
        mark: None,
    }
}

pub(crate) fn sold(broker: Broker) -> SoldHolding {
    SoldHolding {
        account: Account::at(broker),
        exchange: "NSE".to_owned(),
        tradingsymbol: "GONE".to_owned(),
        isin: None,
        used_quantity: dec("12.50"),
    }
}

pub(crate) fn position(broker: Broker, kind: PositionKind, ticker: &str) -> Position {
    Position {
        account: Account::at(broker),
        kind,
        exchange: "NFO".to_owned(),
        tradingsymbol: ticker.to_owned(),
        product: "NRML".to_owned(),
        quantity: dec("-75"),
        multiplier: dec("1"),
        average_price: Some(dec("101.05")),
        last_price: Some(dec("99.9")),
        close_price: None,
        pnl: Some(dec("86.25")),
        realised: None,
        unrealised: Some(dec("86.25")),
        unresolved: true,
    }
}

pub(crate) fn point(on: Date, value: &str, source: PointSource) -> DayPoint {
    DayPoint {
        date: on,
        total_invested: dec("100.00"),
        total_current_value: dec(value),
        total_pnl: dec(value) - dec("100.00"),
        value_without_cost: Some(dec("0.50")),
        source,
        left_out: 1,
        carried: 2,
        suspect: true,
        made_of: Some(MadeOf {
            accounts: [Account::at(Broker::B)].into_iter().collect(),
            holdings: 7,
            discrepancies: 3,
        }),
    }
}

/// Writes the rows unchanged.
pub(crate) fn derived(point: DayPoint, synced: &Synced) -> Derived {
    let holdings = synced.holdings.clone();
    let outcome = SyncOutcome {
        holdings: holdings.len(),
        ..SyncOutcome::default()
    };
    Derived {
        point,
        holdings,
        repriced: Repriced::default(),
        outcome,
    }
}

pub(crate) const DAY: Date = date(2026, 11, 20);
pub(crate) const MARK: Option<Mark> = Some(Mark {
    on: DAY,
    sign: ActionSign::BasePrice,
    ratio: Some(BaseRatio(Decimal::from_parts(75, 0, 0, false, 2))),
});

pub(crate) fn sync(store: &Store, id: AccountId, broker: Broker, at_ms: i64, tickers: &[&str]) {
    let synced = Synced {
        holdings: tickers
            .iter()
            .map(|ticker| holding(broker, ticker, "10.50"))
            .collect(),
        positions: vec![
            position(broker, PositionKind::Net, "NIFTY26NOVFUT"),
            position(broker, PositionKind::Day, "NIFTY26NOVFUT"),
        ],
        sold_holdings: vec![sold(broker)],
        simulated: true,
        broker_user: Some(format!("USER-{}", broker.as_str())),
    };
    let derive: Derive =
        Box::new(|_, synced| derived(point(DAY, "120.5", PointSource::Sync), synced));
    store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio::of(Account::at(broker), at_ms, synced, derive),
        )
        .unwrap();
}

pub(crate) fn fields(on: Date, symbol: &str) -> JournalFields {
    JournalFields {
        traded_on: on,
        symbol: symbol.to_owned(),
        side: Side::Buy,
        quantity: dec("10"),
        price: dec("99.50"),
        fees: None,
        strategy: Some("swing".to_owned()),
        notes: None,
        tags: vec!["a \"quoted\" tag".to_owned(), "b".to_owned()],
    }
}
