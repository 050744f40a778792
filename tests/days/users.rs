//! What users do, and what was acknowledged to them: accounts with a journal and a portfolio, and a
//! reader of prices.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bhav::rt::staged::pause;
use jiff::civil::Date;
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::books::Books;
use super::happenings::Happenings;
use super::world::{Answer, Client, Node, World};

/// Shares that are bought and asked for.
pub const SHARES: [&str; 6] = [
    "NSE:INFY",
    "NSE:TCS",
    "NSE:RELIANCE",
    "NSE:SBIN",
    "NSE:ITC",
    "BSE:RELIANCE",
];
/// How many hold them. The first holds shares at broker B too.
const USERS: usize = 3;
const PASSWORD: &str = "a long enough secret";
/// What each share cost at broker A, in rupees.
const COST: u32 = 1_000;
/// A token lives for an hour.
const TOKEN_MS: i64 = 3_500_000;
/// Syncs until what broker A says is stored, while nothing fails.
const SYNCS_MAX: u32 = 12;
/// A sync that was asked for so long ago is stored, or never will be.
const SYNC_MS: i64 = 60_000;
/// More notes than this are not written in a day.
const NOTES_MAX: usize = 90;

/// Shares by symbol.
type Held = BTreeMap<String, Decimal>;

/// What an account may rely on.
pub struct Judge {
    /// Its place among the users.
    number: usize,
    token: Option<String>,
    /// When it was given.
    entered_ms: i64,
    /// A registration was not acknowledged, and may have happened.
    may_have_account: bool,
    /// Notes of the journal that were acknowledged.
    notes: BTreeSet<String>,
    written: usize,
    /// What may be stored of broker A: the last that was acknowledged, and what came after it and
    /// was not.
    held_a: Vec<Held>,
    /// The same of broker B, how many holdings.
    held_b: Vec<usize>,
    /// Whether it syncs now and then.
    pub may_sync: bool,
    /// When a sync was last asked for, and whether it has ended.
    synced_ms: i64,
    pub is_syncing: bool,
    /// Whether one was acknowledged.
    has_synced: bool,
    /// The next sync says that an empty list is meant.
    sells_all: bool,
    /// The date's point after the evening's run.
    pub closed: Option<String>,
    /// What its trades ledger has to show.
    pub books: Books,
    /// What broker A says is held.
    ordered: Held,
    pub acknowledged: u32,
    pub refused: u32,
}

impl Judge {
    /// Of all users.
    pub fn all() -> Vec<Rc<RefCell<Self>>> {
        (0..USERS)
            .map(|number| Rc::new(RefCell::new(Self::of(number))))
            .collect()
    }

    fn of(number: usize) -> Self {
        Self {
            number,
            token: None,
            entered_ms: 0,
            may_have_account: false,
            notes: BTreeSet::new(),
            written: 0,
            held_a: vec![Held::new()],
            held_b: vec![0],
            may_sync: false,
            synced_ms: 0,
            is_syncing: false,
            has_synced: false,
            sells_all: false,
            closed: None,
            books: Books::default(),
            ordered: Held::new(),
            acknowledged: 0,
            refused: 0,
        }
    }

    /// A process begins, in which it syncs or does not.
    pub fn begin(&mut self, may_sync: bool) {
        (self.may_sync, self.is_syncing) = (may_sync, false);
    }

    fn email(&self) -> String {
        format!("day{}@example.com", self.number)
    }

    /// The user's name at both brokers.
    fn person(&self) -> String {
        format!("PF{:04}", self.number)
    }
}

/// Reads prices for as long as the process runs, some of which nobody has asked for yet.
pub fn read(world: &Rc<World>, node: &Node, seed: u64) {
    let (mut client, own) = (node.client(), Rc::clone(world));
    let mut rng = fastrand::Rng::with_seed(seed);
    world.stage.spawn(move || {
        loop {
            pause(rng.u64(500..20_000));
            let from = rng.usize(..SHARES.len());
            let symbols = SHARES[from..=rng.usize(from..SHARES.len())].join(",");
            let target = format!("/api/portfolio/live-prices?symbols={symbols}");
            let answer = client.ask("GET", &target, "", "");
            own.note(&format!("{target} {}", answer.status));
            assert!(answer.status == 200 || is_outage(answer.status), "{}", answer.text());
        }
    });
}

/// The answer blames something else than the request.
pub fn is_outage(status: u16) -> bool {
    matches!(status, 429 | 500..=599)
}

/// The owner of a portfolio, on one connection.
pub struct Account {
    world: Rc<World>,
    pub judge: Rc<RefCell<Judge>>,
    client: Client,
    pub rng: fastrand::Rng,
    date: Date,
}

impl Account {
    pub fn new(
        world: &Rc<World>,
        node: &Node,
        judge: &Rc<RefCell<Judge>>,
        seed: u64,
        date: Date,
    ) -> Self {
        Self {
            world: Rc::clone(world),
            judge: Rc::clone(judge),
            client: node.client(),
            rng: fastrand::Rng::with_seed(seed),
            date,
        }
    }

    /// Acts for as long as the process runs.
    pub fn live(mut self) {
        loop {
            pause(self.rng.u64(300..12_000));
            let Judge {
                number,
                may_sync,
                has_synced,
                ..
            } = *self.judge.borrow();
            match self.rng.u8(..10) {
                _ if !self.is_in() => self.enter(),
                _ if may_sync && !has_synced => self.sync_a(),
                0 | 1 if may_sync => self.sync_a(),
                2 if may_sync && number == 0 => self.sync_b(),
                3 => self.expect_notes(),
                4 => drop(self.expect_holdings()),
                5 => self.expect_positions(),
                6 | 7 => self.keep_books(),
                _ => self.write(),
            }
        }
    }

    pub fn ask(&mut self, method: &str, target: &str, body: &str) -> Answer {
        self.ask_with(method, target, "application/json", body)
    }

    /// With a body of this media type.
    pub fn ask_with(&mut self, method: &str, target: &str, media: &str, body: &str) -> Answer {
        let token = self.judge.borrow().token.clone().unwrap_or_default();
        let answer = self.client.ask_with(method, target, &token, media, body);
        self.world
            .note(&format!("{method} {target} {}", answer.status));
        let mut judge = self.judge.borrow_mut();
        if is_outage(answer.status) {
            judge.refused += 1;
        } else {
            judge.acknowledged += 1;
        }
        answer
    }

    /// Whether it has a token that is good for a while, over restarts too.
    fn is_in(&self) -> bool {
        let judge = self.judge.borrow();
        judge.token.is_some() && self.world.clock.now_ms() - judge.entered_ms < TOKEN_MS
    }

    /// Registers, or logs in where it is registered.
    fn enter(&mut self) {
        let email = self.judge.borrow().email();
        let body = format!(r#"{{"email":"{email}","password":"{PASSWORD}"}}"#);
        let login = ("/api/auth/login", 200);
        let (target, done) = match self.judge.borrow().token {
            Some(_) => login,
            None => ("/api/auth/register", 201),
        };
        let before = std::mem::replace(&mut self.judge.borrow_mut().may_have_account, true);
        let mut answer = self.ask("POST", target, &body);
        if before && answer.text().contains("email_taken") {
            answer = self.ask("POST", login.0, &body);
        }
        if [done, login.1].contains(&answer.status) {
            let token = answer.json()["access_token"].as_str().unwrap().to_owned();
            let mut judge = self.judge.borrow_mut();
            (judge.token, judge.entered_ms) = (Some(token), self.world.clock.now_ms());
        } else {
            assert!(is_outage(answer.status), "{} {}", answer.status, answer.text());
        }
    }

    fn write(&mut self) {
        let note = {
            let mut judge = self.judge.borrow_mut();
            if judge.written >= NOTES_MAX {
                return;
            }
            judge.written += 1;
            format!("note {}", judge.written)
        };
        let body = format!(
            r#"{{"traded_on":"{}","symbol":"NSE:INFY","side":"buy","quantity":1,"price":1500.25,
            "notes":"{note}"}}"#,
            self.date
        );
        let answer = self.ask("POST", "/api/journal", &body);
        match answer.status {
            201 => drop(self.judge.borrow_mut().notes.insert(note)),
            status => assert!(is_outage(status), "{status} {}", answer.text()),
        }
    }

    /// Nothing of the journal that was acknowledged is lost.
    pub fn expect_notes(&mut self) {
        let answer = self.ask("GET", "/api/journal?limit=100", "");
        if is_outage(answer.status) {
            return;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let entries = json["entries"].as_array().unwrap().iter();
        let found: BTreeSet<String> = entries
            .map(|entry| entry["notes"].as_str().unwrap().to_owned())
            .collect();
        let judge = self.judge.borrow();
        let lost: Vec<&String> = judge.notes.difference(&found).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }

    /// Now and then something is bought or sold before.
    fn sync_a(&mut self) {
        if self.rng.bool() || self.judge.borrow().ordered.is_empty() {
            self.trade();
        }
        self.sync_ordered();
    }

    fn sync_ordered(&mut self) {
        let code = self.code("broker_a/request_token", "request_token");
        let replaces = std::mem::take(&mut self.judge.borrow_mut().sells_all);
        let body = format!(
            r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{code}",
            "replace_with_none":{replaces}}}"#
        );
        let ordered = self.judge.borrow().ordered.clone();
        self.judge.borrow_mut().held_a.push(ordered.clone());
        let answer = self.ask("POST", "/api/portfolio/sync", &body);
        self.judge.borrow_mut().is_syncing = false;
        match answer.status {
            200 => {
                let mut judge = self.judge.borrow_mut();
                (judge.held_a, judge.has_synced) = (vec![ordered], true);
            }
            // Some brokers mean an error by an empty list. What was sold is said once more.
            409 if answer.text().contains("no_holdings_sent") => {
                let mut judge = self.judge.borrow_mut();
                judge.sells_all = judge.ordered.is_empty();
            }
            // Late at the broker, or refused for what it answers.
            status => assert!(status != 400 && status != 404, "{status} {}", answer.text()),
        }
        self.expect_holdings();
    }

    /// A profit that is made of a price which is not known is not known either, and is in no sum.
    fn expect_positions(&mut self) {
        let answer = self.ask("GET", "/api/portfolio/positions?type=net", "");
        if is_outage(answer.status) {
            return;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let mut sum = Decimal::ZERO;
        let mut unknown = 0;
        for row in json["positions"].as_array().unwrap() {
            if row["last_price"].is_null() {
                let made_of_it = [&row["pnl"], &row["unrealised"]];
                assert!(made_of_it.into_iter().all(JsonValueTrait::is_null), "{row:?}");
                unknown += 1;
            } else {
                sum += number(&row["pnl"]);
            }
        }
        let net = &json["summary"]["net"];
        assert_eq!(net["without_pnl"].as_u64(), Some(unknown), "{}", answer.text());
        if net["pnl"].is_number() {
            assert_eq!(number(&net["pnl"]), sum.round_dp(2), "{}", answer.text());
        }
    }

    fn sync_b(&mut self) {
        let code = self.code("broker_b/api_session", "api_session");
        let body = format!(
            r#"{{"api_key":"sim+key=b&1","api_secret":"simsecretb","api_session":"{code}"}}"#
        );
        self.judge.borrow_mut().held_b.push(12);
        let answer = self.ask("POST", "/api/portfolio/brokerb-sync", &body);
        self.judge.borrow_mut().is_syncing = false;
        match answer.status {
            200 => {
                let count = answer.json()["holdings_count"].as_u64().unwrap() as usize;
                self.judge.borrow_mut().held_b = vec![count];
            }
            status => assert!(status != 400 && status != 404, "{status} {}", answer.text()),
        }
        self.expect_holdings();
    }

    fn trade(&mut self) {
        let mut held = Held::new();
        for symbol in SHARES {
            if self.rng.bool() {
                held.insert(symbol.to_owned(), self.rng.u32(1..500).into());
            }
        }
        self.hold(held);
        let person = self.judge.borrow().person();
        if self.rng.u8(..4) == 0 {
            let positions = Happenings::positions(&mut self.rng, &person);
            self.world.control("POST", "broker_a/positions", &positions);
        }
    }

    /// Broker A says that this is held.
    fn hold(&mut self, held: Held) {
        let row = |(symbol, quantity): (&String, &Decimal)| {
            let paise = 100 * COST;
            format!(r#"{{"symbol":"{symbol}","quantity":{quantity},"average_paise":{paise}}}"#)
        };
        let rows: Vec<String> = held.iter().map(row).collect();
        let person = self.judge.borrow().person();
        let order = format!(r#"{{"user_id":"{person}","rows":[{}]}}"#, rows.join(","));
        self.world.control("POST", "broker_a/holdings", &order);
        let mut judge = self.judge.borrow_mut();
        (judge.ordered, judge.sells_all) = (held, false);
    }

    /// Broker A says again what is stored of it. False if nothing is, or if it is not known.
    pub fn holds_again(&mut self) -> bool {
        let held = match self.judge.borrow().held_a.as_slice() {
            [held] if !held.is_empty() => held.clone(),
            _ => return false,
        };
        self.hold(held);
        true
    }

    /// Syncs what broker A says, until that is stored.
    pub fn sync_again(&mut self) {
        while !self.is_in() {
            self.enter();
            pause(1_000);
        }
        for _ in 0..SYNCS_MAX {
            self.judge.borrow_mut().has_synced = false;
            self.sync_ordered();
            if self.judge.borrow().has_synced {
                return;
            }
            pause(5_000);
        }
        panic!("{SYNCS_MAX} syncs in a row are refused while nothing fails");
    }

    /// The rows of this share at broker A are marked as of a corporate action, and no other rows
    /// but those of a share that was listed.
    pub fn expect_marked(&mut self, marked: &str, listed: Option<&str>) {
        let holdings = self.expect_holdings().expect("the next session is quiet");
        for row in holdings["holdings"].as_array().unwrap() {
            let is_marked = row["corporate_action"].as_bool().unwrap();
            if row["broker"] == "a" && listed != Some(&symbol(row)) {
                assert_eq!(is_marked, symbol(row) == marked, "{row:?}");
            }
        }
    }

    /// A one-time code for a sync.
    fn code(&self, route: &str, name: &str) -> String {
        {
            let mut judge = self.judge.borrow_mut();
            (judge.synced_ms, judge.is_syncing) = (self.world.clock.now_ms(), true);
        }
        let body = format!(r#"{{"user_id":"{}"}}"#, self.judge.borrow().person());
        self.world.control("POST", route, &body)[name]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// What is held is what the last acknowledged syncs brought, or a later one that may have been
    /// stored. The document, where it could be had.
    pub fn expect_holdings(&mut self) -> Option<Value> {
        let answer = self.ask("GET", "/api/portfolio/holdings", "");
        if is_outage(answer.status) {
            return None;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let (mut a, mut b) = (Held::new(), 0);
        for row in json["holdings"].as_array().unwrap() {
            if row["broker"] == "b" {
                b += 1;
            } else {
                a.insert(symbol(row), number(&row["quantity"]));
            }
        }
        let judge = self.judge.borrow();
        assert!(judge.held_a.contains(&a), "broker A: {a:?}, and not of {:?}", judge.held_a);
        assert!(judge.held_b.contains(&b), "broker B: {b}, and not of {:?}", judge.held_b);
        Some(json.clone())
    }

    /// After the evening's run, which had not ended before `closed_ms`, the date's point is at the
    /// exchange's closing prices, and from then on it stays. Whether there is one that no sync can
    /// have written.
    pub fn expect_close(&mut self, closed_ms: i64, listed: Option<&str>) -> bool {
        if self.judge.borrow().token.is_none() {
            return false;
        }
        if !self.is_in() {
            self.enter();
        }
        self.expect_notes();
        self.expect_books();
        let holdings = self.expect_holdings().expect("the evening is quiet");
        let rows = holdings["holdings"].as_array().unwrap();
        let answer = self.ask("GET", "/api/portfolio/pnl?days=5", "");
        let json = answer.json();
        let date = self.date.to_string();
        let points = json["trend"].as_array().unwrap();
        let point = points
            .iter()
            .find(|point| point["date"].as_str() == Some(&date));
        let mut judge = self.judge.borrow_mut();
        let Some(point) = point else {
            let is_known = judge.closed.is_some();
            assert!(rows.is_empty() && !is_known, "no point of {date}: {}", answer.text());
            return false;
        };
        let shown = sonic_rs::to_string(point).unwrap();
        let before = judge.closed.replace(shown.clone());
        // Whoever syncs after the run is valued by it within a minute.
        let [by_sync, by_close] = ["sync", "close"].map(|of| format!("\"source\":\"{of}\""));
        let stayed =
            |before: &String| *before == shown || before.replace(&by_sync, &by_close) == shown;
        assert!(before.as_ref().is_none_or(stayed), "{before:?}, now {shown}");
        let mut value = Decimal::ZERO;
        for row in rows {
            let price = row["last_price"]
                .is_number()
                .then(|| number(&row["last_price"]));
            value += price.unwrap_or_default() * number(&row["quantity"]);
            // A code that no list has cannot be asked for.
            if row["unresolved"].as_bool() != Some(true) {
                let close = self.world.peer.price(&symbol(row), self.world.clock.now());
                assert_eq!(price, close, "{row:?} is not at the close");
            }
        }
        assert_eq!(number(&point["total_current_value"]), value.round_dp(2), "{shown}");
        assert_eq!(point["holdings"].as_u64(), Some(rows.len() as u64), "{shown}");
        if judge.number > 0 {
            let shares: Decimal = rows.iter().map(|row| number(&row["quantity"])).sum();
            assert_eq!(number(&point["total_invested"]), shares * Decimal::from(COST), "{shown}");
        }
        let is_plain =
            |row: &Value| row["unresolved"].as_bool() != Some(true) && listed != Some(&symbol(row));
        if rows.iter().all(is_plain) {
            self.expect_day(&json["summary"], rows);
        }
        // A sync after the run may bring shares for which no closing price was kept, and nothing is
        // revalued of a user who holds nothing.
        let is_of_sync = judge.synced_ms >= closed_ms - SYNC_MS || rows.is_empty();
        assert!(is_of_sync || point["source"].as_str() == Some("close"), "{shown}");
        !is_of_sync
    }
}

impl Account {
    /// What the day brought is the exchange's own change, or it is not known.
    fn expect_day(&self, summary: &Value, rows: &[Value]) {
        let is_whole = summary["without_day_price"].as_u64() == Some(0)
            && summary["without_close"].as_u64() == Some(0);
        if summary["day_pnl"].is_null() || !is_whole {
            return;
        }
        let closed = self.world.dates.hours(self.date).closed;
        let mut brought = Decimal::ZERO;
        for row in rows {
            let price = self.world.peer.price(&symbol(row), closed).unwrap();
            let before = self
                .world
                .peer
                .previous_close(&symbol(row), closed)
                .unwrap();
            brought += (price - before) * number(&row["quantity"]);
        }
        assert_eq!(number(&summary["day_pnl"]), brought.round_dp(2), "{summary:?}");
    }

    /// Nothing moved on a date without trading, whatever a sync brings, and nothing of it is
    /// official.
    pub fn expect_no_close(&mut self) {
        if self.judge.borrow().token.is_none() {
            return;
        }
        self.sync_again();
        if self.judge.borrow().held_b.iter().any(|count| *count > 0) {
            self.sync_b();
        }
        self.expect_no_day();
        let holdings = self.expect_holdings().expect("the evening is quiet");
        for row in holdings["holdings"].as_array().unwrap() {
            if row["unresolved"].as_bool() != Some(true) {
                let close = self.world.peer.price(&symbol(row), self.world.clock.now());
                assert_eq!(Some(number(&row["last_price"])), close, "{row:?}");
            }
        }
    }

    /// The date has no point of a close, and brought nothing.
    fn expect_no_day(&mut self) {
        let answer = self.ask("GET", "/api/portfolio/pnl?days=5", "");
        if is_outage(answer.status) {
            return;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let day_pnl = &json["summary"]["day_pnl"];
        let date = self.date.to_string();
        let is_of_date = json["summary"]["day"].as_str() == Some(&date);
        assert!(
            !is_of_date || day_pnl.is_null() || number(day_pnl).is_zero(),
            "{date} brought something: {}",
            answer.text()
        );
        let points = json["trend"].as_array().unwrap();
        let is_close = |point: &&Value| {
            point["date"].as_str() == Some(&date) && point["source"].as_str() == Some("close")
        };
        assert!(points.iter().find(is_close).is_none(), "a close of {date}: {}", answer.text());
    }
}

fn symbol(row: &Value) -> String {
    format!(
        "{}:{}",
        row["exchange"].as_str().unwrap(),
        row["tradingsymbol"].as_str().unwrap()
    )
}

pub fn number(value: &Value) -> Decimal {
    // Large numbers have an exponent.
    let text = sonic_rs::to_string(value).unwrap();
    text.parse()
        .or_else(|_| Decimal::from_scientific(&text))
        .unwrap()
}
