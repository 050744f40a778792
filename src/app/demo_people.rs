//! The people of a demo: accounts that are made as a visitor would make them, over HTTP with the
//! simulated logins, given their files of three years of trades, and a year's past (`demo_past`).
//!
//! The thread `demo-people` makes them beside the running service of `bhav demo`, so that its start
//! waits for nothing; a public demo makes them before it opens. Everything in them is made up and
//! says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use sonic_rs::{JsonValueTrait, Value};
use ureq::Agent;

use crate::api::State;
use crate::app::demo_past::{self, Histories};
use crate::app::start::App;
use crate::base::{Broker, ByBroker, Candle, Clock, Holding, Symbol, clock};
use crate::brokers::login_at;
use crate::cache::Responses;
use crate::market::MarketCalendar;
use crate::rt::threads::{Stop, Stoppable};
use crate::sim;
use crate::sim::ExchangeHistory;
use crate::store::{AccountId, Store, StoreError, Turn};
use crate::web::Guest;

/// Routes of the syncs with each broker.
const SYNCS: ByBroker<&str> = ByBroker(["/api/portfolio/sync", "/api/portfolio/brokerb-sync"]);
/// The file with a person's trades at each broker. One year of one share is in another file, which
/// is left to the visitor.
const BOOKS: ByBroker<&str> = ByBroker(["tradebook.csv", "all-transactions.csv"]);

/// A ready-made account.
struct Person {
    guest: Guest,
    /// User id at the brokers.
    ids: ByBroker<&'static str>,
    /// The number at the end of the apps' keys. Each person has their own apps, because calls are
    /// limited by key: else a visitor's first sync waits for these people's.
    app_number: u32,
    /// The brokers that they have synced with.
    brokers: &'static [Broker],
    /// Shares at broker A, each with quantity and average in paise; none leaves the usual ones.
    shares: &'static [(&'static str, u32, u32)],
    /// Pairs of a buy and a sale in the journal.
    pairs: usize,
    /// Watch lists.
    lists: &'static [(&'static str, &'static [&'static str])],
}

const PEOPLE: [Person; 2] = [
    Person {
        guest: Guest {
            name: "Asha",
            email: "asha@example.com",
            password: PASSWORD,
            about: "two brokers, 21 shares",
        },
        ids: ByBroker(["SA0001", "SB000001"]),
        app_number: 901,
        brokers: &Broker::ALL,
        shares: &[],
        pairs: 20,
        lists: &[
            (
                "Large companies",
                &[
                    "NSE:NIFTY 50",
                    "NSE:RELIANCE",
                    "NSE:TCS",
                    "NSE:INFY",
                    "NSE:HDFCBANK",
                    "NSE:ITC",
                ],
            ),
            (
                "Banks",
                &[
                    "NSE:NIFTY BANK",
                    "NSE:HDFCBANK",
                    "NSE:ICICIBANK",
                    "NSE:SBIN",
                    "NSE:AXISBANK",
                ],
            ),
            ("To look at", &["NSE:M&M", "NSE:TITAN", "NSE:SUNPHARMA", "NSE:LT"]),
        ],
    },
    Person {
        guest: Guest {
            name: "Ravi",
            email: "ravi@example.com",
            password: PASSWORD,
            about: "a beginner, 4 shares",
        },
        ids: ByBroker(["SA0002", "SB000002"]),
        app_number: 902,
        brokers: &[Broker::A],
        shares: &[
            ("NSE:INFY", 12, 155_040),
            ("NSE:HDFCBANK", 20, 88_115),
            ("NSE:ITC", 60, 39_690),
            ("NSE:TCS", 4, 342_500),
        ],
        pairs: 3,
        lists: &[("My shares", &["NSE:INFY", "NSE:HDFCBANK", "NSE:ITC", "NSE:TCS"])],
    },
];

const JSON: &str = "application/json";
const CSV: &str = "text/csv";

/// Of accounts that everybody may enter.
pub(super) const PASSWORD: &str = "nine green parrots";

/// Shares of the journals.
const TRADED: [&str; 8] = [
    "NSE:INFY",
    "NSE:TCS",
    "NSE:M&M",
    "NSE:RELIANCE",
    "NSE:ITC",
    "NSE:SBIN",
    "NSE:HDFCBANK",
    "NSE:LT",
];

/// Longest wait for the simulated day's instruments, which a sync needs.
const READY_WAIT_MS: u64 = 30_000;
/// Time between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Longest call of the service itself.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait for the thread's end, which may be within a call.
const END_WAIT: Duration = Duration::from_secs(2);

/// Why people were not made.
pub(super) enum NotMade<Ended> {
    /// The wait was ended.
    Ended(Ended),
    Failed(String),
}

/// The accounts that a visitor may enter.
pub(super) fn guests() -> [Guest; PEOPLE.len()] {
    PEOPLE.map(|person| person.guest)
}

/// Makes people in a running service.
pub(super) struct Maker {
    agent: Agent,
    service: String,
    control: String,
    files: String,
    /// The apps whose keys the people's own follow.
    apps: ByBroker<sim::SimApp>,
    history: ExchangeHistory,
    clock: Clock,
    calendar: Arc<MarketCalendar>,
    store: Arc<Store>,
    responses: Arc<Responses>,
}

impl Maker {
    pub(super) fn of(app: &App, sim: &sim::Sim) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(CALL_TIMEOUT))
            .build()
            .new_agent();
        let state: &State = app.state();
        Self {
            agent,
            service: format!("http://{}", app.address()),
            control: sim.control_url(),
            files: sim.files_url(),
            apps: ByBroker::of(|broker| sim.app(broker)),
            history: sim.history(),
            clock: state.clock.clone(),
            calendar: state.calendar.load_full(),
            store: Arc::clone(&state.store),
            responses: Arc::clone(&state.portfolio.responses),
        }
    }

    /// Makes the people beside the running service, unless they are there. What fails is logged:
    /// the demo is whole without them.
    pub(super) fn beside(self) -> Option<Stoppable> {
        let made = move |stop: Stop| {
            let is_over = |longest| stop.wait(longest).then_some(());
            if let Err(NotMade::Failed(why)) = self.make(is_over) {
                tracing::warn!(why, "the demo's people were not made");
            }
        };
        Stoppable::spawn("demo-people", END_WAIT, made).ok()
    }

    /// Makes the people. `is_over` waits for a while and tells whether it was ended meanwhile.
    pub(super) fn make<Ended>(
        &self,
        mut is_over: impl FnMut(Duration) -> Option<Ended>,
    ) -> Result<(), NotMade<Ended>> {
        self.await_instruments(&mut is_over)?;
        for person in &PEOPLE {
            if let Some(ended) = is_over(Duration::ZERO) {
                return Err(NotMade::Ended(ended));
            }
            self.make_person(person).map_err(NotMade::Failed)?;
        }
        Ok(())
    }

    /// Without them broker B's codes have no tickers.
    fn await_instruments<Ended>(
        &self,
        is_over: &mut impl FnMut(Duration) -> Option<Ended>,
    ) -> Result<(), NotMade<Ended>> {
        let late_mono_ms = self.clock.monotonic_ms() + READY_WAIT_MS;
        loop {
            let health = self
                .agent
                .get(format!("{}/api/health", self.service))
                .call();
            let health = health
                .ok()
                .and_then(|mut answer| answer.body_mut().read_to_vec().ok());
            let health: Option<Value> = health.and_then(|body| sonic_rs::from_slice(&body).ok());
            if health.is_some_and(|health| health["warmers"]["instruments"] == "ok") {
                return Ok(());
            }
            if self.clock.monotonic_ms() > late_mono_ms {
                let why = "the simulated exchange gives no instruments".to_owned();
                return Err(NotMade::Failed(why));
            }
            if let Some(ended) = is_over(LOOK) {
                return Err(NotMade::Ended(ended));
            }
        }
    }

    fn make_person(&self, person: &Person) -> Result<(), String> {
        let Guest {
            email,
            password,
            name,
            ..
        } = person.guest;
        if self
            .store
            .user_by_email(email)
            .map_err(|error| error.to_string())?
            .is_some()
        {
            return Ok(());
        }
        let body = sonic_rs::json!({ "email": email, "password": password, "name": name });
        let session = self.post("/api/auth/register", "", &body)?;
        let token = session["access_token"].as_str().unwrap_or_default();
        let id = AccountId(session["user"]["id"].as_i64().unwrap_or_default());
        self.set_shares(person)?;
        for &broker in person.brokers {
            let app = &self.apps[broker];
            let key = format!("{}-{}", app.api_key, person.app_number);
            let mut body = sonic_rs::json!({ "api_key": &*key, "api_secret": &*app.api_secret });
            let [_, name] = login_at(broker).code_names;
            let route_of_code = format!("broker_{}/{name}", broker.as_str());
            let code = self.code(&route_of_code, name, person.ids[broker])?;
            body[name] = Value::from(&*code);
            self.post(SYNCS[broker], token, &body)?;
        }
        self.give_past(id).map_err(|error| error.to_string())?;
        self.give_lists(person, token)?;
        self.give_journal(person, token)?;
        self.give_trades(person, token)
    }

    /// Sets what the person has at broker A.
    fn set_shares(&self, person: &Person) -> Result<(), String> {
        if person.shares.is_empty() {
            return Ok(());
        }
        let rows = person.shares.iter().map(|(symbol, quantity, average)| {
            sonic_rs::json!({
                "symbol": *symbol, "quantity": *quantity, "average_paise": *average,
            })
        });
        let rows: Vec<Value> = rows.collect();
        let body = sonic_rs::json!({ "user_id": person.ids[Broker::A], "rows": rows });
        let body = sonic_rs::to_vec(&body).map_err(|error| error.to_string())?;
        self.sent(&format!("{}/broker_a/holdings", self.control), "", JSON, &body)
            .map(drop)
    }

    /// Adds the points of the year before.
    fn give_past(&self, id: AccountId) -> Result<(), StoreError> {
        let portfolio = self.store.portfolio(id)?;
        let today = clock::zoned(self.clock.now()).date();
        let dates = demo_past::dates_before(&self.calendar, today);
        let held = portfolio.holdings.iter().filter_map(Holding::symbol);
        let histories: Histories = held
            .filter_map(|symbol| Some((symbol.clone(), self.candles(&symbol, &dates)?)))
            .collect();
        let points = demo_past::points(&portfolio, &histories, &dates, &self.calendar);
        self.store.add_points(&Turn::alone(id), points)?;
        self.responses.invalidate(id.0);
        Ok(())
    }

    fn candles(&self, symbol: &Symbol, dates: &[Date]) -> Option<Vec<Candle>> {
        let first = *dates.first()?;
        Some(self.history.candles(symbol, first, *dates.last()?)?.candles)
    }

    fn give_lists(&self, person: &Person, token: &str) -> Result<(), String> {
        let lists = person.lists.iter().map(|(name, symbols)| {
            let symbols: Vec<Value> = symbols.iter().map(|symbol| Value::from(*symbol)).collect();
            sonic_rs::json!({ "name": *name, "symbols": symbols })
        });
        let lists: Vec<Value> = lists.collect();
        let body = sonic_rs::json!({ "watchlists": lists });
        let body = sonic_rs::to_vec(&body).map_err(|error| error.to_string())?;
        let request = self.agent.put(format!("{}/api/watchlists", self.service));
        let request = request.header("Authorization", format!("Bearer {token}"));
        read("the watch lists", request.content_type("application/json").send(body)).map(drop)
    }

    fn give_journal(&self, person: &Person, token: &str) -> Result<(), String> {
        let today = clock::zoned(self.clock.now()).date();
        let dates = demo_past::dates_before(&self.calendar, today);
        let traded = TRADED.iter().filter_map(|name| Symbol::parse(name));
        let histories = traded.filter_map(|symbol| {
            let candles = self.candles(&symbol, &dates)?;
            Some((symbol, candles))
        });
        let histories: Vec<_> = histories.collect();
        for entry in demo_past::entries(person.pairs, &dates, &histories) {
            self.post("/api/journal", token, &entry)?;
        }
        Ok(())
    }

    /// Imports the files with the person's trades, as a visitor would.
    fn give_trades(&self, person: &Person, token: &str) -> Result<(), String> {
        for &broker in person.brokers {
            let file = self
                .agent
                .get(format!("{}/{broker}/{}/{}", self.files, person.ids[broker], BOOKS[broker]));
            let file = file
                .call()
                .map_err(|error| format!("a file of trades: {error}"))?;
            let file = file
                .into_body()
                .read_to_vec()
                .map_err(|error| error.to_string())?;
            let imports = format!("{}/api/trades/imports", self.service);
            let preview = self.sent(&format!("{imports}?account={broker}"), token, CSV, &file)?;
            let id = preview["id"].as_i64().unwrap_or_default();
            self.sent(&format!("{imports}/{id}/confirm"), token, JSON, b"")?;
        }
        Ok(())
    }

    /// A one-time code of a simulated login page.
    fn code(&self, route: &str, member: &str, user: &str) -> Result<String, String> {
        let body = format!("{{\"user_id\":\"{user}\"}}");
        let answer = self.sent(&format!("{}/{route}", self.control), "", JSON, body.as_bytes())?;
        let code = answer[member].as_str();
        code.map(str::to_owned)
            .ok_or_else(|| format!("{route} gives no {member}"))
    }

    fn post(&self, path: &str, token: &str, body: &Value) -> Result<Value, String> {
        let body = sonic_rs::to_vec(body).map_err(|error| error.to_string())?;
        self.sent(&format!("{}{path}", self.service), token, JSON, &body)
    }

    fn sent(&self, url: &str, token: &str, media_type: &str, body: &[u8]) -> Result<Value, String> {
        let mut request = self.agent.post(url).content_type(media_type);
        if !token.is_empty() {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        read(url, request.send(body))
    }
}

/// The document of a success.
fn read(
    what: &str,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<Value, String> {
    let mut answer = answer.map_err(|error| format!("{what}: {error}"))?;
    let status = answer.status().as_u16();
    let body = answer
        .body_mut()
        .read_to_vec()
        .map_err(|error| format!("{what}: {error}"))?;
    match status {
        200 | 201 => sonic_rs::from_slice(&body).map_err(|error| format!("{what}: {error}")),
        _ => Err(format!("{what}: {status}: {}", String::from_utf8_lossy(&body))),
    }
}
