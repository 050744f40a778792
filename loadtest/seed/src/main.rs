//! Fills a state folder of bhav with users and holdings, through the product's own store.
//!
//! The folder must have one registered user already: the others get a copy of that user's password
//! hash, so that every one of them can log in, with one hash made instead of a hundred thousand.
//! User `n` is `user-n@load.example`. Runs while no bhav uses the folder.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use bhav::base::{Account, Broker, Clock, Cost, Holding, MarketDay, Synced, clock};
use bhav::store::settings::StoreSettings;
use bhav::store::{FILE_NAME, NewPortfolio, NewUser, Store, Turn, deriving};
use clap::Parser;
use jiff::Timestamp;
use rust_decimal::Decimal;

/// Writers at once: what the store groups into commits. Fewer than its queue holds.
const WRITERS: usize = 256;

/// How many commits' worth of writes one commit may carry.
const WRITES_PER_COMMIT_MAX: usize = 1_000;

/// Writes users and their holdings into a state folder.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The state folder
    #[arg(long)]
    state: PathBuf,
    /// E-mail of the user who is registered there
    #[arg(long)]
    registered: String,
    /// Users to add
    #[arg(long)]
    users: usize,
    /// Of these, the first so many have many holdings
    #[arg(long)]
    large: usize,
    /// Holdings of each of those
    #[arg(long)]
    rows_large: usize,
    /// Holdings of each of the others
    #[arg(long)]
    rows: usize,
    /// File with symbols to hold, EXCHANGE:TICKER, one a line
    #[arg(long)]
    symbols: PathBuf,
    /// Time of the syncs, as ISO 8601
    #[arg(long)]
    synced: Timestamp,
}

fn main() -> Result<()> {
    let args = &Args::parse();
    let text = std::fs::read_to_string(&args.symbols).context("read the symbols")?;
    let symbols: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .collect();
    ensure!(!symbols.is_empty(), "there are no symbols");
    let mut settings = StoreSettings::default();
    settings.writes_per_commit_max = WRITES_PER_COMMIT_MAX;
    let clock = Clock::system();
    let store = Store::in_file(&args.state.join(FILE_NAME), &settings, None, &clock)?;
    let registered = store.user_by_email(&args.registered)?;
    let hash = registered
        .context("the registered user is not there")?
        .password_hash;
    let next = AtomicUsize::new(1);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| write_users(&store, args, &symbols, &hash, &next)))
            .collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().expect("a writer never panics"))
    })
}

/// The day of a sync, before its close.
fn day_of(synced: Timestamp) -> MarketDay {
    let date = clock::zoned(synced).date();
    MarketDay {
        today: date,
        session: date,
        day: Some(date),
        last_close: None,
        close_before_open: None,
        session_before: None,
        stood_at: None,
    }
}

/// Takes the next numbers until all users are there. A user's id need not be the number.
fn write_users(
    store: &Store,
    args: &Args,
    symbols: &[(&str, &str)],
    hash: &str,
    next: &AtomicUsize,
) -> Result<()> {
    let synced_ms = args.synced.as_millisecond();
    let day = day_of(args.synced);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > args.users {
            return Ok(());
        }
        let made = store.create_user(NewUser {
            email: format!("user-{number}@load.example"),
            name: None,
            password_hash: hash.to_owned(),
            created_ms: synced_ms,
        })?;
        let rows = if number <= args.large {
            args.rows_large
        } else {
            args.rows
        };
        // Half at each broker, the same shares, so that there is something to merge.
        for (broker, rows) in [(Broker::A, rows.div_ceil(2)), (Broker::B, rows / 2)] {
            let account = Account::at(broker);
            let holdings = (0..rows).map(|at| {
                let symbol = number.wrapping_mul(31).wrapping_add(at) % symbols.len();
                holding(account, symbol, symbols[symbol], synced_ms)
            });
            let synced = Synced {
                holdings: holdings.collect(),
                ..Synced::default()
            };
            let new = NewPortfolio {
                account,
                replaces_with_none: false,
                synced_ms,
                synced,
                closes_of: None,
                closes_before_of: None,
                derive: deriving(account, day),
                replaces_broker_user: false,
            };
            store.replace_portfolio(&Turn::alone(made.user.id), new)?;
        }
    }
}

fn holding(
    account: Account,
    number: usize,
    (exchange, ticker): (&str, &str),
    as_of_ms: i64,
) -> Holding {
    let paise = |offset: usize| Decimal::new((100_000 + number * 37 + offset) as i64, 2);
    Holding {
        account,
        exchange: exchange.to_owned(),
        tradingsymbol: ticker.to_owned(),
        isin: Some(format!("INE{number:06}010")),
        settled_quantity: Decimal::from(10 + number % 90),
        t1_quantity: Decimal::from(number % 3),
        pledged_quantity: Decimal::ZERO,
        mtf_quantity: Decimal::ZERO,
        used_quantity: Decimal::ZERO,
        disputed_quantity: Decimal::ZERO,
        cost: Some(Cost::PerShare(paise(0))),
        last_price: Some(paise(1_234)),
        close_price: Some(paise(987)),
        change_pct: None,
        as_of_ms,
        broker_pnl: None,
        discrepancy: false,
        unresolved: false,
        mark: None,
    }
}
