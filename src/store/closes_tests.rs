//! The close of a day: pages of holders, kept prices, points that are still true.

use super::*;

#[test]
fn a_close_run_pages_through_holders_and_skips_what_changed_meanwhile() {
    let (_dir, _, store) = fresh();
    let ids: Vec<_> = (0..5).map(|n| user(&store, &format!("{n}@example.com"))).collect();
    for (id, tickers) in
        [(0, &["TCS", "INFY"][..]), (2, &["INFY"][..]), (3, &["ABB"][..]), (4, &["ZEEL"][..])]
    {
        sync(&store, ids[id], Broker::A, 10, tickers);
    }
    let symbols = |after: Option<&Symbol>, limit| {
        let found = store.held_symbols(after, limit).unwrap();
        found.iter().map(|symbol| symbol.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(symbols(None, 10), ["NSE:ABB", "NSE:INFY", "NSE:TCS", "NSE:ZEEL"]);
    assert_eq!(symbols(None, 2), ["NSE:ABB", "NSE:INFY"]);
    assert_eq!(symbols(Symbol::parse("NSE:INFY").as_ref(), 10), ["NSE:TCS", "NSE:ZEEL"]);

    assert_eq!(store.close_run(DAY).unwrap(), CloseRun::NotBegun);
    let symbol = Symbol::parse("NSE:INFY").unwrap();
    store.keep_closes(DAY, &[(symbol.clone(), dec("1.10"))]).unwrap();
    store.keep_closes(DAY, &[(symbol.clone(), dec("1.20"))]).unwrap();
    assert_eq!(store.closes(DAY).unwrap(), [(symbol.clone(), dec("1.20"))]);

    let page = store.portfolios_after(AccountId(0), 2).unwrap();
    assert_eq!(page.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    assert_eq!(page[0].1, store.portfolio(ids[0]).unwrap());
    let valued =
        |id: AccountId| Valued { id, synced_ms: 10, point: point(DAY, "7", PointSource::Close) };
    let points = ids.iter().map(|id| valued(*id)).collect();
    sync(&store, ids[2], Broker::B, 11, &["INFY"]);
    store.delete_portfolio(ids[3]).unwrap();
    store.erase_user(ids[4]).unwrap();
    store.keep_points(DAY, points, ids[2], None).unwrap();
    assert_eq!(store.close_run(DAY).unwrap(), CloseRun::Begun(ids[2]));
    let source = |at: usize| store.points(ids[at], DAY).unwrap().first().map(|p| p.source);
    assert_eq!(source(0), Some(PointSource::Close));
    assert_eq!(source(2), Some(PointSource::Sync), "synced meanwhile");
    assert_eq!((source(1), source(3), source(4)), (None, None, None));
    let next = DAY.tomorrow().unwrap();
    store.keep_points(DAY, Vec::new(), ids[4], Some(1)).unwrap();
    assert_eq!(store.close_run(DAY).unwrap(), CloseRun::Finished);
    assert_eq!(store.closes(DAY).unwrap().len(), 1);
    store.keep_points(next, Vec::new(), ids[4], Some(2)).unwrap();
    assert_eq!(store.closes(DAY).unwrap(), [], "the day after, nobody needs them");
}
