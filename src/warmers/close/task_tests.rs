//! Tests the revaluation's steps on a real store, without feeds. The feeds are covered by the tests
//! of the service.

use std::collections::{BTreeSet, HashSet};

use rust_decimal::Decimal;

use super::*;
use crate::base::previous_close::{PreviousClose, Reason};
use crate::base::{
    Account, Broker, Clock, ClosingPrice, Cost, Holding, Quote, Source, Symbol, Synced, testing,
};
use crate::brokers::{Batch, BrokerError, BrokerErrorKind};
use crate::cache::{Responses, View};
use crate::market::{Derivatives, MarketCalendar};
use crate::portfolio::{DayPoint, Derived, PointSource, Repriced, SyncOutcome};
use crate::store::Epoch;
use crate::store::{AccountId, FILE_NAME, NewPortfolio, NewUser, Store, StoreError, Turn};
use crate::warmers::close::jobs::{Closes, page, read_progress};
use crate::warmers::close::prices::{Call, RETRY_MS as CALL_RETRY_MS, STARVED_MS};
use crate::warmers::close::work::{LOOK_EACH_MS, PATIENCE_MS, UNHEARD_MS, WALK_REST_MS};

const EVENING: &str = "2026-11-20T18:00:00+05:30";

fn due() -> Due {
    Due::at(&MarketCalendar::embedded(), EVENING.parse().unwrap()).unwrap()
}

fn symbol(name: &str) -> Symbol {
    Symbol::parse(name).unwrap()
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn holding(ticker: &str) -> Holding {
    Holding {
        account: Account::at(Broker::A),
        exchange: "NSE".into(),
        tradingsymbol: ticker.into(),
        isin: None,
        settled_quantity: Decimal::TEN,
        t1_quantity: Decimal::ZERO,
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        used_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: Some(Cost::PerShare(Decimal::ONE)),
        last_price: Some(Decimal::TWO),
        close_price: None,
        change_pct: None,
        as_of_ms: 1,
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}

/// A store with a user for each list of tickers.
fn store_with(users: &[&[&str]]) -> (tempfile::TempDir, Store, Vec<AccountId>) {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let store = Store::open_file(&directory.path().join(FILE_NAME), 1, &clock).unwrap();
    let register = |(number, tickers): (usize, &&[&str])| {
        let email = format!("user{number}@example.com");
        let new = NewUser {
            email,
            name: None,
            password_hash: "none".into(),
            created_ms: 1,
        };
        let id = store.create_user(new).unwrap().user.id;
        let holdings: Vec<Holding> = tickers.iter().map(|ticker| holding(ticker)).collect();
        let point = DayPoint {
            date: "2026-11-19".parse().unwrap(),
            total_invested: Decimal::ZERO,
            total_current_value: Decimal::ZERO,
            total_pnl: Decimal::ZERO,
            value_without_cost: None,
            source: PointSource::Sync,
            left_out: 0,
            carried: 0,
            suspect: false,
            made_of: None,
        };
        let repriced = Repriced::default();
        let outcome = SyncOutcome::default();
        let derived = Derived {
            point,
            holdings: Vec::clone(&holdings),
            repriced,
            outcome,
        };
        let synced = Synced {
            holdings,
            ..Synced::default()
        };
        let derive = Box::new(move |_: &_, _: &_| derived.clone());
        store
            .replace_portfolio(
                &Turn::alone(id),
                NewPortfolio::of(Account::at(Broker::A), 1, synced, derive),
            )
            .unwrap();
        id
    };
    let ids = users.iter().enumerate().map(register).collect();
    (directory, store, ids)
}

fn close(price: &str) -> ClosingPrice {
    let as_of_ms = due().close.as_millisecond();
    ClosingPrice {
        price: decimal(price),
        previous_close: None,
        as_of_ms,
        official: true,
        base_ratio: None,
    }
}

#[test]
fn a_look_finds_what_is_missing_and_stops_at_the_cap() {
    let (_directory, store, _) = store_with(&[&["A", "B"], &["B", "C"]]);
    let date = due().date;
    store
        .keep_closes(Epoch::ALONE, date, &[(symbol("NSE:B"), close("5.5"))])
        .unwrap();
    let names = |looked: &Looked| -> BTreeSet<String> {
        looked
            .missing
            .iter()
            .map(|symbol| symbol.as_str().to_owned())
            .collect()
    };
    let whole = read_progress(&store, date, None, 3).unwrap();
    assert_eq!((whole.finished, whole.cut_off), (false, false));
    assert_eq!(names(&whole), ["NSE:A", "NSE:C"].map(str::to_owned).into());
    assert_eq!(whole.closes.into_iter().collect::<Vec<_>>(), [(symbol("NSE:B"), close("5.5"))]);
    let some = read_progress(&store, date, None, 2).unwrap();
    assert!(some.cut_off);
    assert_eq!(names(&some), ["NSE:A"].map(str::to_owned).into());
    store
        .finish_close(Epoch::ALONE, date.yesterday().unwrap(), 1, vec![symbol("NSE:C")])
        .unwrap();
    assert_eq!(read_progress(&store, date, None, 3).unwrap().silent, [symbol("NSE:C")].into());
    store.finish_close(Epoch::ALONE, date, 2, vec![]).unwrap();
    let late = read_progress(&store, date, None, 3).unwrap();
    assert!(late.is_late && !late.finished, "nobody is valued yet");
    let answers = Arc::new(Responses::new(1 << 20));
    let all = PageOrder {
        cut_off: true,
        ..order(Reach::Last, AccountId(0), &[], &answers)
    };
    assert_eq!(page(&store, &all).unwrap().users, 2);
    assert!(read_progress(&store, date, None, 3).unwrap().finished);
}

fn order(
    reach: Reach,
    after: AccountId,
    awaited: &[&str],
    responses: &Arc<Responses>,
) -> PageOrder {
    let given_up: HashSet<Symbol> = ["NSE:B"]
        .into_iter()
        .filter(|name| !awaited.contains(name))
        .map(symbol)
        .collect();
    PageOrder {
        epoch: Epoch::ALONE,
        due: due(),
        after,
        users_max: 2,
        reach,
        closes: Arc::new([(symbol("NSE:A"), close("3"))].into()),
        given_up: Arc::new(given_up),
        cut_off: false,
        is_late: false,
        responses: Arc::clone(responses),
    }
}

#[test]
fn a_page_writes_points_and_makes_old_answers_worthless() {
    let (_directory, store, users) = store_with(&[&["A"], &["A", "B"], &["B"]]);
    let answers = Arc::new(Responses::new(1 << 20));
    let view = View::Holdings {
        broker: None,
        day: None,
    };
    let answer = Responses::make(b"{}");
    for user in &users {
        assert!(answers.keep(&answers.fill_token(user.0), view, &answer, 0));
    }
    let order = |after| order(Reach::Last, after, &[], &answers);
    let first = page(&store, &order(AccountId(0))).unwrap();
    assert_eq!((first.done_to, first.users, first.carried), (users[1], 2, 1));
    assert!(!first.is_last);
    let kept: Vec<bool> = users
        .iter()
        .map(|user| answers.find(user.0, view, 0).is_some())
        .collect();
    assert_eq!(kept, [false, false, true]);
    let point = store.points(users[1], due().date).unwrap().remove(0);
    assert_eq!(point.total_current_value, decimal("50"));
    assert_eq!((point.source, point.carried), (PointSource::Close, 1));
    let row = store.portfolio(users[1]).unwrap().holdings.remove(0);
    assert_eq!((row.last_price, row.as_of_ms), (Some(decimal("3")), close("3").as_of_ms));
    assert!(page(&store, &order(users[1])).unwrap().is_last);
    assert_eq!(page(&store, &order(AccountId(0))).unwrap().users, 0, "each once");
}

#[test]
fn who_lacks_a_price_that_may_come_is_left_for_later_or_valued_twice() {
    let (_directory, store, users) = store_with(&[&["A"], &["A", "B"], &["B"]]);
    let answers = Arc::new(Responses::new(1 << 20));
    let walk = |reach, awaited: &[&str]| {
        let first = page(&store, &order(reach, AccountId(0), awaited, &answers)).unwrap();
        if first.is_last {
            return first.users;
        }
        first.users
            + page(&store, &order(reach, first.done_to, awaited, &answers))
                .unwrap()
                .users
    };
    let carried = |at: usize| {
        let points = store.points(users[at], due().date).unwrap();
        points.first().map(|point| point.carried)
    };
    assert_eq!(walk(Reach::Complete, &["NSE:B"]), 1);
    assert_eq!([0, 1, 2].map(carried), [Some(0), None, None]);
    assert_eq!(walk(Reach::Everybody, &["NSE:B"]), 0, "nobody is complete by that");
    assert_eq!([0, 1, 2].map(carried), [Some(0), Some(1), Some(1)]);
    // The last walk gives it up.
    assert_eq!(walk(Reach::Last, &[]), 2);
    assert_eq!([0, 1, 2].map(carried), [Some(0), Some(1), Some(1)]);
    assert_eq!(walk(Reach::Last, &[]), 0);
}

/// What a sync brings while the last walk is under way was never asked for: it is found by the next
/// look, and not taken for complete.
#[test]
fn a_symbol_that_the_run_does_not_know_leaves_its_user_for_a_late_run() {
    let (_directory, store, users) = store_with(&[&["A"], &["A", "NEW"]]);
    let date = due().date;
    store
        .keep_closes(Epoch::ALONE, date, &[(symbol("NSE:A"), close("3"))])
        .unwrap();
    let answers = Arc::new(Responses::new(1 << 20));
    let last = order(Reach::Last, AccountId(0), &[], &answers);
    assert_eq!(page(&store, &last).unwrap().users, 1);
    store.finish_close(Epoch::ALONE, date, 1, vec![]).unwrap();
    let looked = read_progress(&store, date, None, 9).unwrap();
    assert!(!looked.finished && looked.is_late);
    assert_eq!(looked.missing, [symbol("NSE:NEW")]);
    let found = Arc::new(Closes::from([
        (symbol("NSE:A"), close("3")),
        (symbol("NSE:NEW"), close("7")),
    ]));
    let late = PageOrder {
        closes: found,
        is_late: true,
        ..order(Reach::Last, AccountId(0), &[], &answers)
    };
    assert_eq!(page(&store, &late).unwrap().users, 1);
    let row = store.portfolio(users[1]).unwrap().holdings.remove(1);
    assert_eq!(row.last_price, Some(decimal("7")));
    assert!(read_progress(&store, date, None, 9).unwrap().finished);
    // Too many symbols: those that the run leaves out are not waited for.
    let (_directory, store, _) = store_with(&[&["A", "NEW"]]);
    let cut_off = PageOrder {
        cut_off: true,
        ..order(Reach::Last, AccountId(0), &[], &answers)
    };
    assert_eq!(page(&store, &cut_off).unwrap().users, 1);
}

/// A run may wait hours for a price that nobody has. What is synced meanwhile is asked for at once.
#[test]
fn a_look_while_prices_are_waited_for_adds_what_came() {
    let mut task = pricing(&["NSE:NOSUCH"]);
    let mut work = task.work.take().unwrap();
    assert!(!work.is_look_due(LOOK_EACH_MS - 1) && work.is_look_due(LOOK_EACH_MS));
    work.missing
        .answered(Source::BrokerA, &symbol("NSE:NOSUCH"), 5);
    work.closes = Arc::new([(symbol("NSE:KNOWN"), close("3"))].into());
    work.unkept = vec![(symbol("NSE:FOUND"), close("4"))];
    task.work = Some(work);
    let missing = ["NSE:NOSUCH", "NSE:KNOWN", "NSE:FOUND", "NSE:NEW"]
        .map(symbol)
        .into();
    let looked = Looked {
        missing,
        ..Looked::default()
    };
    task.ended(Some(Box::new(Ok(Done::Looked(looked)))), &KnownCloses::default(), LOOK_EACH_MS);
    let work = task.work.as_ref().unwrap();
    assert_eq!(work.missing.batch(Source::BrokerA, true, 9, 6), [symbol("NSE:NEW")]);
    assert_eq!((work.missing.len(), work.unkept.len(), work.closes.len()), (2, 1, 1));
    assert!(!work.is_look_due(LOOK_EACH_MS + 1));
}

#[test]
fn a_settled_date_is_looked_at_again_and_health_says_paused() {
    let mut task = pricing(&[]);
    task.settle(1_000);
    let settled = task.settled.unwrap();
    assert_eq!((settled.date, settled.at_mono_ms), (due().date, 1_000));
    task.work = Some(Work {
        again: true,
        ..Work::of(due(), 20_000)
    });
    assert_eq!(task.state(20_000).as_str(), "paused");
    task.ended(
        Some(Box::new(Ok(Done::Looked(Looked::default())))),
        &KnownCloses::default(),
        20_001,
    );
    assert_eq!(task.state(20_001).as_str(), "ok");
}

#[test]
fn the_next_walk_goes_as_far_as_the_prices_do() {
    let mut task = pricing(&["NSE:A", "NSE:B"]);
    let work = task.work.as_mut().unwrap();
    let rested = WALK_REST_MS;
    assert_eq!(work.next_reach(false, PATIENCE_MS), None, "no price of the date at all");
    work.closes = Arc::new([(symbol("NSE:C"), close("3"))].into());
    assert_eq!(work.next_reach(false, rested - 1), None, "the rest may come with the next call");
    assert_eq!(work.next_reach(false, rested), Some(Reach::Complete));
    assert_eq!(work.next_reach(true, 0), Some(Reach::Last), "the next session is near");
    assert_eq!(work.next_reach(false, PATIENCE_MS), Some(Reach::Last));
    work.came_mono_ms = PATIENCE_MS - 1;
    let reach = work.next_reach(false, PATIENCE_MS);
    assert_eq!(reach, Some(Reach::Complete), "what a sync brought is asked for first");
    let asked_ms = work.came_mono_ms + rested;
    assert_eq!(work.next_reach(false, asked_ms), Some(Reach::Last), "and not for ever");
    work.missing.answered(Source::Public, &symbol("NSE:A"), 0);
    work.missing.answered(Source::Public, &symbol("NSE:B"), 0);
    assert_eq!(work.next_reach(false, 0), Some(Reach::Everybody));
    work.walked = Some(Walked {
        reach: Reach::Complete,
        prices: 1,
        at_mono_ms: 5,
    });
    assert_eq!(work.next_reach(false, 6), Some(Reach::Everybody), "further than before");
    work.walked = Some(Walked {
        reach: Reach::Everybody,
        prices: 1,
        at_mono_ms: 5,
    });
    assert_eq!(work.next_reach(false, 5 + rested), None, "nothing new");
    work.walked = Some(Walked {
        reach: Reach::Everybody,
        prices: 0,
        at_mono_ms: 5,
    });
    assert_eq!(work.next_reach(false, 4 + rested), None);
    assert_eq!(work.next_reach(false, 5 + rested), Some(Reach::Everybody));
    assert!(work.missing.found(&symbol("NSE:A")) && work.missing.found(&symbol("NSE:B")));
    assert_eq!(work.next_reach(false, 6), Some(Reach::Last), "nothing is missing");
}

#[test]
fn other_work_of_the_evening_waits_until_the_feeds_were_asked_for_everything() {
    let mut task = pricing(&["NSE:A"]);
    assert!(task.is_pricing());
    let batch = Batch {
        unknown: vec![symbol("NSE:A")],
        ..Batch::default()
    };
    answer(&mut task, Some(Ok(batch)), 0);
    assert!(!task.is_pricing(), "a price that nobody has keeps nobody waiting");
    assert_eq!(task.state(UNHEARD_MS + 1).as_str(), "ok");
}

/// A task that lacks these prices.
fn pricing(names: &[&str]) -> CloseTask {
    let mut work = Work::of(due(), 0);
    work.step = Step::Price(None);
    work.missing
        .add(names.iter().map(|name| symbol(name)), &HashSet::new());
    let closes = BySource([Outcomes::ignored(), Outcomes::ignored()]);
    CloseTask {
        work: Some(work),
        ..CloseTask::new(closes, Outcomes::ignored())
    }
}

fn quote(name: &str) -> Quote {
    let quote = testing::quote(name, "10", "2026-11-20T15:35:00+05:30".parse().unwrap());
    Quote {
        asked: EVENING.parse().unwrap(),
        ..quote
    }
}

fn answer(task: &mut CloseTask, outcome: Option<Result<Batch, BrokerError>>, now_mono_ms: u64) {
    let judges = Judges {
        index_stands: &|_| None,
        judge: &|quote, _| PreviousClose {
            price: quote.previous_close,
            reason: Reason::Own,
        },
        derivatives_of: &|_| Derivatives::Some,
    };
    task.take_prices(Source::BrokerA, outcome.map(Box::new), None, &judges, now_mono_ms);
}

#[test]
fn a_refused_batch_is_halved_down_to_the_symbol_to_blame() {
    let refusal = || Some(Err(BrokerError::new("test", BrokerErrorKind::Refused, "")));
    let mut task = pricing(&["NSE:A", "NSE:B"]);
    let both = vec![symbol("NSE:A"), symbol("NSE:B")];
    for halvings in [1, 2] {
        task.calls.calls[Source::BrokerA].asked.clone_from(&both);
        answer(&mut task, refusal(), 0);
        assert_eq!(task.calls.calls[Source::BrokerA].halvings, halvings);
    }
    assert!(task.calls.calls[Source::BrokerA].failed, "the other feed may try");
    task.calls.calls[Source::BrokerA].asked = vec![symbol("NSE:A")];
    answer(&mut task, refusal(), 0);
    let missing = &task.work.as_ref().unwrap().missing;
    assert_eq!(missing.batch(Source::BrokerA, true, 9, 0), both[1..], "not again for a while");
    answer(&mut task, Some(Ok(Batch::default())), 0);
    assert_eq!(
        (
            task.calls.calls[Source::BrokerA].halvings,
            task.calls.calls[Source::BrokerA].failed
        ),
        (1, false)
    );
}

#[test]
fn requests_go_first_but_not_for_ever() {
    let call = Call {
        asked_mono_ms: Some(10),
        rests_until_mono_ms: 20,
        ..Call::default()
    };
    for (began_mono_ms, waits, now_mono_ms, expected) in [
        (5, false, 19, false),
        (5, false, 20, true),
        (5, true, 20, false),
        (5, true, 9 + STARVED_MS, false),
        (5, true, 10 + STARVED_MS, true),
        // A run that has just begun has not starved.
        (90, true, 10 + STARVED_MS, false),
    ] {
        let got = call.is_in_turn(began_mono_ms, waits, now_mono_ms);
        assert_eq!(got, expected, "{began_mono_ms} {waits} {now_mono_ms}");
    }
    assert!(
        !Call {
            in_flight: true,
            ..call
        }
        .is_in_turn(5, false, 10 + STARVED_MS)
    );
}

#[test]
fn a_lost_call_and_a_failed_one_rest() {
    let lost = None;
    let failed = Some(Err(BrokerError::new("test", BrokerErrorKind::TimedOut, "1 ms")));
    for outcome in [lost, failed] {
        let mut task = pricing(&["NSE:A"]);
        task.calls.calls[Source::BrokerA].in_flight = true;
        answer(&mut task, outcome, 7);
        assert!(
            !task.calls.calls[Source::BrokerA].in_flight
                && task.calls.calls[Source::BrokerA].failed
        );
        assert_eq!(task.calls.calls[Source::BrokerA].rests_until_mono_ms, 7 + CALL_RETRY_MS);
    }
}

#[test]
fn prices_that_could_not_be_stored_are_kept_for_the_next_try() {
    let mut task = pricing(&["NSE:A", "NSE:B"]);
    assert_eq!(task.state(UNHEARD_MS).as_str(), "ok");
    assert_eq!(task.state(UNHEARD_MS + 1).as_str(), "stale");
    let batch = Batch {
        quotes: vec![quote("NSE:A"), quote("NSE:OTHER")],
        ..Batch::default()
    };
    answer(&mut task, Some(Ok(batch)), 10);
    assert_eq!(task.state(UNHEARD_MS + 1).as_str(), "ok");
    let work = task.work.as_mut().unwrap();
    assert_eq!(work.unkept, [(symbol("NSE:A"), close("10"))]);
    work.keeping = std::mem::take(&mut work.unkept);
    for outcome in [Some(Err(StoreError::Busy)), None] {
        task.ended(outcome.map(Box::new), &KnownCloses::default(), 20);
        assert_eq!(task.state(20).as_str(), "failing");
        assert_eq!(task.store_retry_mono_ms, 20 + RETRY_MS);
        let work = task.work.as_mut().unwrap();
        work.keeping = std::mem::take(&mut work.unkept);
        assert_eq!(work.keeping.len(), 1);
    }
    task.ended(Some(Box::new(Ok(Done::Kept))), &KnownCloses::default(), 30);
    assert_eq!(task.state(30).as_str(), "ok");
    assert_eq!(task.work.as_ref().unwrap().closes[&symbol("NSE:A")], close("10"));
}
