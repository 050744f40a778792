//! The revaluation at the close: pages of holders, stored prices, and rows and points written only
//! if nothing changed since.

use jiff::civil::Date;

use super::engine::{Engine, on_each_engine};
use super::samples::{DAY, MARK, dec, derived, fields, holding, point, sync, user};
use crate::base::{Account, BaseRatio, Broker, ClosingPrice, Symbol, Synced};
use crate::portfolio::{DayPoint, Derived, PointSource, Repriced};
use crate::store::Epoch;
use crate::store::{
    AccountId, ClosePage, Derive, NewPortfolio, PriceOfClose, Store, StoreError, Turn, Valued,
};

on_each_engine! {
    a_sync_sees_the_closing_prices_and_writes_the_other_broker_s,
    every_write_of_a_portfolio_makes_another_version,
    held_symbols_come_each_once_and_in_order,
    pages_go_through_those_who_are_not_complete,
    prices_are_kept_until_the_next_run_has_finished,
    a_symbol_without_a_close_opens_a_closed_portfolio,
    rows_points_and_later_points_are_written_where_nothing_came_between,
}

fn symbol(name: &str) -> Symbol {
    Symbol::parse(name).unwrap()
}

fn close(price: &str, as_of_ms: i64) -> ClosingPrice {
    ClosingPrice {
        price: dec(price),
        previous_close: Some(dec("1.05")),
        as_of_ms,
        official: true,
        base_ratio: Some(BaseRatio(dec("0.75"))),
    }
}

/// The user's portfolio as a page of the run values it.
fn valued(store: &Store, id: AccountId, synced_ms: i64, is_complete: bool) -> Valued {
    let mut holdings = store.portfolio(id).unwrap().holdings;
    for row in &mut holdings {
        (row.last_price, row.as_of_ms, row.mark) = (Some(dec("7.50")), 99, MARK);
    }
    let changed = (0..holdings.len()).collect();
    Valued {
        id,
        synced_ms,
        point: point(DAY, "7", PointSource::Close),
        writes_point: true,
        repriced: Repriced { holdings, changed },
        next_session: DAY.tomorrow().unwrap().tomorrow().unwrap(),
        priced: 9,
        is_complete,
    }
}

fn ids(page: &ClosePage) -> Vec<AccountId> {
    page.portfolios.iter().map(|(id, _)| *id).collect()
}

fn prices_are_kept_until_the_next_run_has_finished<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let infy: PriceOfClose = (symbol("NSE:INFY"), close("1.20", 5));
    store
        .keep_closes(Epoch::ALONE, DAY, &[(symbol("NSE:INFY"), close("1.10", 4))])
        .unwrap();
    store
        .keep_closes(Epoch::ALONE, DAY, std::slice::from_ref(&infy))
        .unwrap();
    assert_eq!(store.closes(DAY).unwrap(), [infy]);
    assert!(!store.is_closed(DAY).unwrap());
    let quiet = vec![symbol("NSE:QUIET"), symbol("BSE:QUIET")];
    store.finish_close(Epoch::ALONE, DAY, 1, quiet).unwrap();
    assert!(store.is_closed(DAY).unwrap());
    assert_eq!(store.closes(DAY).unwrap().len(), 1, "for syncs until then");
    let silent = |after: Option<&Symbol>, limit| store.silent_symbols(after, limit).unwrap();
    assert_eq!(silent(None, 9), [symbol("BSE:QUIET"), symbol("NSE:QUIET")]);
    assert_eq!(silent(None, 1), [symbol("BSE:QUIET")]);
    assert_eq!(silent(Some(&symbol("BSE:QUIET")), 9), [symbol("NSE:QUIET")]);
    let next = DAY.tomorrow().unwrap();
    store
        .finish_close(Epoch::ALONE, next, 2, vec![symbol("NSE:QUIET")])
        .unwrap();
    assert_eq!(store.closes(DAY).unwrap(), [], "the day after, nobody needs them");
    assert_eq!(silent(None, 9), [symbol("NSE:QUIET")], "the other one was heard again");
}

fn held_symbols_come_each_once_and_in_order<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    for (number, tickers) in [&["TCS", "INFY"][..], &["INFY"], &["ABB"], &["ZEEL"]]
        .iter()
        .enumerate()
    {
        let id = user(&store, &format!("{number}@example.com"));
        sync(&store, id, Broker::A, 10, tickers);
    }
    let symbols = |after: Option<&Symbol>, limit| {
        let found = store.held_symbols(after, limit).unwrap();
        found
            .iter()
            .map(|symbol| symbol.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(symbols(None, 10), ["NSE:ABB", "NSE:INFY", "NSE:TCS", "NSE:ZEEL"]);
    assert_eq!(symbols(None, 2), ["NSE:ABB", "NSE:INFY"]);
    assert_eq!(symbols(Some(&symbol("NSE:INFY")), 10), ["NSE:TCS", "NSE:ZEEL"]);
}

fn pages_go_through_those_who_are_not_complete<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let users: Vec<_> = (0..5)
        .map(|n| user(&store, &format!("{n}@example.com")))
        .collect();
    for id in [0, 2, 3, 4] {
        sync(&store, users[id], Broker::A, 10, &["INFY"]);
    }
    let page = |date, after, limit| store.portfolios_to_close(date, after, limit).unwrap();
    let first = page(DAY, AccountId(0), 2);
    assert_eq!((ids(&first), first.more), (vec![users[0], users[2]], true));
    assert_eq!(first.portfolios[0].1, store.portfolio(users[0]).unwrap());
    let rest = page(DAY, users[2], 9);
    assert_eq!((ids(&rest), rest.more), (vec![users[3], users[4]], false));
    let points = [(0, true), (2, false)].map(|(at, done)| valued(&store, users[at], 10, done));
    store.keep_points(Epoch::ALONE, DAY, points.into()).unwrap();
    assert_eq!(ids(&page(DAY, AccountId(0), 9)), [users[2], users[3], users[4]]);
    assert_eq!(ids(&page(DAY.tomorrow().unwrap(), AccountId(0), 9)).len(), 4, "the next date");
    assert_eq!(
        ids(&page(DAY.yesterday().unwrap(), AccountId(0), 9)).len(),
        3,
        "not an older one"
    );
}

/// Syncs two rows of broker A, which give a point of this date.
fn sync_of_later(store: &Store, id: AccountId, date: Date) {
    let derive: Derive = Box::new(move |_, synced| {
        derived(
            DayPoint {
                suspect: false,
                ..point(date, "1", PointSource::Sync)
            },
            synced,
        )
    });
    let rows = vec![
        holding(Broker::A, "TCS", "10.50"),
        holding(Broker::A, "INFY", "10.50"),
    ];
    let synced = Synced {
        holdings: rows,
        ..Synced::default()
    };
    let new = NewPortfolio::of(Account::at(Broker::A), 10, synced, derive);
    store.replace_portfolio(&Turn::alone(id), new).unwrap();
}

fn rows_points_and_later_points_are_written_where_nothing_came_between<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let users: Vec<_> = (0..4)
        .map(|n| user(&store, &format!("{n}@example.com")))
        .collect();
    for id in &users {
        sync(&store, *id, Broker::A, 10, &["TCS", "INFY"]);
    }
    sync(&store, users[0], Broker::B, 10, &["INFY"]);
    let later = [
        DAY.tomorrow().unwrap(),
        DAY.tomorrow().unwrap().tomorrow().unwrap(),
    ];
    for date in later {
        sync_of_later(&store, users[0], date);
    }
    let points: Vec<_> = users
        .iter()
        .map(|id| valued(&store, *id, 10, true))
        .collect();
    let first = points[0].repriced.holdings.clone();
    sync(&store, users[1], Broker::B, 11, &["INFY"]);
    store.delete_portfolio(&Turn::alone(users[2])).unwrap();
    store.erase_user(users[3]).unwrap();
    store.keep_points(Epoch::ALONE, DAY, points).unwrap();

    assert_eq!(store.portfolio(users[0]).unwrap().holdings, first, "both brokers' rows");
    let found = store.points(users[0], DAY).unwrap();
    assert_eq!(found[0], point(DAY, "7", PointSource::Close));
    for (point, carried) in found[1..].iter().zip([2, 9]) {
        assert_eq!(point.total_current_value, dec("7"), "{point:?}");
        assert_eq!((point.source, point.carried), (PointSource::Sync, carried), "{point:?}");
        assert!(point.suspect, "{point:?}");
    }
    let source = |at: usize| {
        store
            .points(users[at], DAY)
            .unwrap()
            .first()
            .map(|p| p.source)
    };
    assert_eq!(source(1), Some(PointSource::Sync), "synced meanwhile");
    assert!(
        store
            .portfolio(users[1])
            .unwrap()
            .holdings
            .iter()
            .all(|row| row.as_of_ms == 77)
    );
    assert_eq!((source(2), source(3)), (None, None));
}

/// A sync that brings a symbol without a closing price has the user valued again, and no other
/// sync does. The point of a late valuation is left alone if it is told so.
fn a_symbol_without_a_close_opens_a_closed_portfolio<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::A, 10, &["INFY"]);
    store
        .keep_closes(Epoch::ALONE, DAY, &[(symbol("NSE:INFY"), close("1.20", 5))])
        .unwrap();
    let left = || ids(&store.portfolios_to_close(DAY, AccountId(0), 9).unwrap()).len();
    let brings = |broker, ticker: &str, closes_of| {
        let derive: Derive =
            Box::new(|_, synced| derived(point(DAY, "1", PointSource::Sync), synced));
        let synced = Synced {
            holdings: vec![holding(broker, ticker, "10.50")],
            ..Synced::default()
        };
        let new = NewPortfolio {
            closes_of,
            ..NewPortfolio::of(Account::at(broker), 10, synced, derive)
        };
        store.replace_portfolio(&Turn::alone(id), new).unwrap();
    };
    let close_all = || {
        let late = Valued {
            writes_point: false,
            ..valued(&store, id, 10, true)
        };
        store.keep_points(Epoch::ALONE, DAY, vec![late]).unwrap();
    };
    close_all();
    let kept = store.points(id, DAY).unwrap();
    assert!(kept.iter().all(|point| point.source == PointSource::Sync), "{kept:?}");
    assert_eq!(left(), 0);
    brings(Broker::A, "INFY", Some(DAY));
    assert_eq!(left(), 0, "its close is there");
    brings(Broker::A, "LATE", None);
    assert_eq!(left(), 0, "while the market trades");
    brings(Broker::B, "LATE", Some(DAY));
    assert_eq!(left(), 1);
    close_all();
    assert_eq!(left(), 0);
}

fn every_write_of_a_portfolio_makes_another_version<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    let other = user(&store, "b@example.com");
    let mut seen = Vec::new();
    let mut see = || {
        seen.push(store.portfolio_version(id).unwrap());
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    };
    see();
    sync(&store, id, Broker::A, 10, &["INFY"]);
    see();
    sync(&store, id, Broker::A, 10, &["INFY"]);
    see();
    let at_close = valued(&store, id, 10, true);
    store
        .keep_points(Epoch::ALONE, DAY, vec![at_close.clone()])
        .unwrap();
    see();
    store.delete_portfolio(&Turn::alone(id)).unwrap();
    see();
    let last = store.portfolio_version(id).unwrap();
    // A close of a deleted portfolio writes nothing, and journal and password are not part of the
    // portfolio.
    store
        .keep_points(Epoch::ALONE, DAY, vec![at_close])
        .unwrap();
    store
        .add_entry(id, fields(DAY, "NSE:INFY"), 9, None)
        .unwrap();
    store.change_password(id, "hash one", "hash two").unwrap();
    assert_eq!(store.portfolio_version(id), Ok(last));
    assert_eq!(store.portfolio_version(other), Ok(0), "each user's own");
    store.erase_user(id).unwrap();
    assert_eq!(store.portfolio_version(id), Err(StoreError::NoSuchUser));
}

fn a_sync_sees_the_closing_prices_and_writes_the_other_broker_s<E: Engine>() {
    let engine = E::fresh();
    let store = engine.open();
    let id = user(&store, "a@example.com");
    sync(&store, id, Broker::B, 1, &["TCS", "INFY"]);
    let kept = [
        ("NSE:INFY", "1.20"),
        ("NSE:WIPRO", "2.20"),
        ("NSE:OTHER", "3.20"),
    ]
    .map(|(name, price)| (symbol(name), close(price, 5)));
    store.keep_closes(Epoch::ALONE, DAY, &kept).unwrap();
    let derive: Derive = Box::new(move |before, synced| {
        let closes: Vec<_> = kept[..2]
            .iter()
            .map(|(name, _)| before.closes.get(name))
            .collect();
        assert_eq!(closes, [Some(&close("1.20", 5)), Some(&close("2.20", 5))]);
        assert_eq!(before.closes.len(), 2, "what the user has and brings");
        let mut holdings = before.portfolio.holdings.clone();
        (holdings[1].last_price, holdings[1].mark) = (Some(dec("1.20")), MARK);
        let repriced = Repriced {
            holdings,
            changed: vec![1],
        };
        Derived {
            repriced,
            ..derived(point(DAY, "9", PointSource::Sync), synced)
        }
    });
    let synced = Synced {
        holdings: vec![holding(Broker::A, "WIPRO", "1")],
        ..Synced::default()
    };
    store
        .replace_portfolio(
            &Turn::alone(id),
            NewPortfolio {
                closes_of: Some(DAY),
                ..NewPortfolio::of(Account::at(Broker::A), 2, synced, derive)
            },
        )
        .unwrap();
    let rows = store.portfolio(id).unwrap().holdings;
    let prices: Vec<_> = rows
        .iter()
        .map(|row| (row.last_price, row.mark.is_some()))
        .collect();
    assert_eq!(prices, [(None, false), (None, false), (Some(dec("1.20")), true)]);
}
