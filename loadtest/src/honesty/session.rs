//! The session: plays the schedule of faults, samples the service and notes what it must not show.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use openloop::request::live_prices_path;
use serde_json::{Value, json};

use super::check::{Checker, Findings, LEADS, Shown, of_quotes, of_snapshot};
use super::schedule::{Episode, Pace, episodes};
use crate::error::Error;
use crate::harness::Harness;
use crate::http::Client;
use crate::servers::{Server, State};
use crate::{snapshot, wait};

/// Deadline of a request to the service: longer than any answer of it may take.
const REQUEST_DEADLINE: Duration = Duration::from_secs(5);

/// How long the service may take to show sectors.
const SECTORS_DEADLINE: Duration = Duration::from_secs(20);

/// Between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Shares in every sample, beside the indices and sectors.
const SHARES: [&str; 7] =
    ["NSE:INFY", "NSE:SBIN", "NSE:M&M", "NSE:ITC", "NSE:TCS", "BSE:RELIANCE", "NSE:SIM300"];

/// Shares that are asked for one after the other, each less than once a minute.
const RARE: [&str; 10] = [
    "NSE:WIPRO",
    "NSE:ONGC",
    "NSE:NTPC",
    "NSE:TITAN",
    "NSE:CIPLA",
    "NSE:HCLTECH",
    "NSE:MARUTI",
    "NSE:LT",
    "NSE:BEL",
    "NSE:SIM301",
];

/// Between two of these requests.
const RARE_INTERVAL: Duration = Duration::from_millis(7_500);

/// How long nothing must have been broken before a rarely requested quote has to be fresh.
const WELL_AFTER: Duration = Duration::from_secs(8);

/// How long snapshot and quote of the same price may disagree, since they are two requests.
const APART_MAX: Duration = Duration::from_millis(300);

/// How long after a call of the chart route its prices may still be shown.
const CHART_LASTS: Duration = Duration::from_secs(120);

/// How late health may be, which is published once a second.
const HEALTH_LATE_MAX: Duration = Duration::from_millis(2_500);

/// What was seen of one episode.
#[derive(Debug, Default)]
struct Seen {
    name: String,
    samples: u64,
    /// Samples at which the service did not answer.
    unanswered: u64,
    /// Samples with a primary index that was not marked as stale.
    fresh: u64,
    /// From the beginning to the first mark, where there was one.
    marked_after: Option<Duration>,
    violations: u64,
}

/// The session's state.
struct Session<'a> {
    harness: &'a Harness,
    server: Server,
    client: Client,
    checker: Checker,
    path: String,
    samples: u64,
    rare: usize,
    rare_at: Instant,
    /// Since when nothing has been broken and the primary index of broker A is fresh.
    well_since: Option<Instant>,
    stale_since: Option<Instant>,
    /// Calls of the public provider's chart route so far, and when the last one was seen.
    chart_calls: u64,
    chart_seen: Option<Instant>,
}

/// Plays all episodes, or those with `--faults` in their name and the ones between them.
pub fn measure(harness: &Harness) -> Result<String, Error> {
    let began = Instant::now();
    let pace = if harness.is_quick { Pace::SHORT } else { Pace::HOUR };
    let mut session = Session::start(harness, pace)?;
    let faults = harness.faults.as_deref();
    let wanted = |episode: &Episode| {
        let quiet = ["well", "mended", "catches up"].iter().any(|word| episode.name.contains(word));
        faults.is_none_or(|part| quiet || episode.name.contains(part))
    };
    let mut all: Vec<Episode> = episodes(pace).into_iter().filter(wanted).collect();
    // Episodes without a fault that now follow each other are played once.
    all.dedup_by(|next, before| next.name == before.name);
    let mut seen = Vec::new();
    for episode in &all {
        seen.push(session.play(episode)?);
    }
    let restarts = all.iter().filter(|episode| episode.restarts).count();
    let head = format!(
        "- a simulated session of {:.0} min, sampled every {} ms: each feed broken in each way in \
         turn, {restarts} restarts of the service between; the public provider {} s behind\n",
        began.elapsed().as_secs_f64() / 60.0,
        SAMPLE_INTERVAL.as_millis(),
        pace.public_delay.as_secs(),
    );
    Ok(head + &session.checker.findings.render(&seen))
}

impl Findings {
    fn render(&self, episodes: &[Seen]) -> String {
        let sum = |of: fn(&Seen) -> u64| episodes.iter().map(of).sum::<u64>();
        let mut out = format!(
            "- **{} samples** ({} of them while the service was stopped or had nothing to show), \
             **{} prices** in them, {} marked as stale\n- **violations: {}**\n\n\
             A violation is a price whose time is not the one at which the exchange had it; one \
             that is older than its source's interval and delay allow and not marked; a delay that \
             is not the source's; a time that goes back, over restarts too; a snapshot and a quote \
             that disagree about the same price; health that is ok while prices are old; a quote \
             that nobody kept fresh and that comes old while a feed is well.\n\n",
            sum(|seen| seen.samples),
            sum(|seen| seen.unanswered),
            self.prices,
            self.stale,
            self.total(),
        );
        for (kind, (count, examples)) in &self.violations {
            let _ = writeln!(out, "- {kind}: {count}");
            for example in examples {
                let _ = writeln!(out, "  - {example}");
            }
        }
        out.push_str("| what was wrong | samples | fresh | marked after |\n|---|---|---|---|\n");
        for Seen { name, samples, fresh, marked_after, .. } in episodes {
            let after = marked_after.map(|after| format!("{:.1} s", after.as_secs_f64()));
            let after = after.unwrap_or_else(|| "-".to_owned());
            let _ = writeln!(out, "| {name} | {samples} | {fresh} | {after} |");
        }
        out
    }
}

impl<'a> Session<'a> {
    /// Starts both programs in the middle of an ordinary trading day, with nothing kept.
    fn start(harness: &'a Harness, pace: Pace) -> Result<Self, Error> {
        let delay_s = pace.public_delay.as_secs();
        let settings = [("BHAV_SIM_PUBLIC_DELAY_S", &*delay_s.to_string())];
        let server = harness.start_bhav("honesty", State::Empty, &settings)?;
        let mut session = Self {
            harness,
            server,
            client: Client::new(REQUEST_DEADLINE),
            checker: Checker::new(Vec::new(), delay_s),
            path: String::new(),
            samples: 0,
            rare: 0,
            rare_at: Instant::now(),
            well_since: None,
            stale_since: None,
            chart_calls: 0,
            chart_seen: None,
        };
        let shown = wait::until(SECTORS_DEADLINE, || Ok(session.answer(snapshot::PATH)))?;
        let snapshot = shown.ok_or(Error::invalid("bhav shows no snapshot"))?;
        let sectors = snapshot["sectors"].as_array().into_iter().flatten();
        let sectors = sectors.filter_map(|sector| sector["symbol"].as_str());
        let leads = LEADS.map(|(_, symbol)| symbol);
        let sampled: Vec<&str> = leads.into_iter().chain(sectors).chain(SHARES).collect();
        session.path = live_prices_path(sampled.iter().copied());
        let symbols = sampled.into_iter().chain(RARE).map(str::to_owned).collect();
        session.checker = Checker::new(symbols, delay_s);
        Ok(session)
    }

    /// Plays one episode and samples while it lasts.
    fn play(&mut self, episode: &Episode) -> Result<Seen, Error> {
        self.server.simulator()?.set_faults(&episode.faults)?;
        self.well_since = None;
        let began = Instant::now();
        let before = self.checker.findings.total();
        let mut seen = Seen { name: episode.name.clone(), ..Seen::default() };
        let mut restarted = !episode.restarts;
        let mut due = began;
        while began.elapsed() < episode.lasts {
            if !restarted && began.elapsed() > episode.lasts / 2 {
                self.server.restart(&self.harness.programs.work_folder)?;
                restarted = true;
            }
            match self.sample(episode.faults.is_empty())? {
                None => seen.unanswered += 1,
                Some(stale) => {
                    seen.fresh += u64::from(!stale);
                    if stale && !episode.faults.is_empty() {
                        seen.marked_after.get_or_insert(began.elapsed());
                    }
                }
            }
            seen.samples += 1;
            due += SAMPLE_INTERVAL;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        seen.violations = self.checker.findings.total() - before;
        eprintln!(
            "  {:<55} {:>5} samples, {:>5} fresh, marked after {:>6}, {} violations",
            seen.name,
            seen.samples,
            seen.fresh,
            seen.marked_after.map_or("never".to_owned(), |after| format!("{after:.1?}")),
            seen.violations,
        );
        if episode.ends_token {
            self.log_in()?;
        }
        Ok(seen)
    }

    /// Logs broker A in again, as its operator does once a token is dead.
    fn log_in(&self) -> Result<(), Error> {
        let simulator = self.server.simulator()?;
        simulator.set_faults(&[])?;
        let code = simulator.control("POST", "broker_a/request_token", None)?;
        let body = json!({"request_token": code["request_token"]});
        let url = self.server.url("/brokera/activate");
        self.client.send("POST", &url, &[], Some(&body)).map(drop)
    }

    /// An answer of the service with its status; `None` while it does not answer at all.
    fn get(&self, path: &str) -> Option<(u16, Value)> {
        let answer = self.client.send("GET", &self.server.url(path), &[], None).ok()?;
        Some((answer.status, answer.json().ok()?))
    }

    /// An answer with status 200.
    fn answer(&self, path: &str) -> Option<Value> {
        self.get(path).filter(|(status, _)| *status == 200).map(|(_, answer)| answer)
    }

    /// Takes one sample; whether the primary index is marked, `None` where there is no answer.
    fn sample(&mut self, nothing_broken: bool) -> Result<Option<bool>, Error> {
        self.samples += 1;
        self.update_chart_use()?;
        let Some(snapshot) = self.answer(snapshot::PATH) else { return Ok(None) };
        let now = self.server.simulator()?.now()?;
        let Some(quotes) = self.answer(&self.path) else { return Ok(None) };
        let (Some(first), Some(second)) = (of_snapshot(&snapshot), of_quotes(&quotes)) else {
            self.checker.violated("unreadable", snapshot.to_string());
            return Ok(None);
        };
        if !snapshot.as_object().is_some_and(|all| all.contains_key("signals_as_of")) {
            self.checker.violated("no date of signals", snapshot.to_string());
        }
        for shown in first.iter().chain(&second) {
            // The quotes came a moment after the clock was read.
            self.checker.check(self.server.simulator()?, shown, now)?;
        }
        self.check_market_mark(&snapshot, &first);
        self.check_agreement(&first, &second);
        let stale = first[0].stale;
        let well = nothing_broken && !stale && first[0].source == "broker_a";
        self.well_since = well.then(|| self.well_since.unwrap_or_else(Instant::now));
        self.check_health(snapshot["market"]["stale"] == true);
        self.check_rare_symbol(now)?;
        Ok(Some(stale))
    }

    /// Whether the chart route, with one symbol a call, has served lately: each index is then
    /// asked for less often.
    fn update_chart_use(&mut self) -> Result<(), Error> {
        let stats = self.server.simulator()?.stats()?;
        let calls = stats["requests"]["public.chart"].as_u64().unwrap_or(0);
        if calls > self.chart_calls {
            (self.chart_calls, self.chart_seen) = (calls, Some(Instant::now()));
        }
        self.checker.chart = self.chart_seen.is_some_and(|seen| seen.elapsed() < CHART_LASTS);
        Ok(())
    }

    /// The snapshot as a whole is marked as stale if one of the three indices is.
    fn check_market_mark(&mut self, answer: &Value, shown: &[Shown]) {
        let any = shown[..LEADS.len()].iter().any(|lead| lead.stale);
        if answer["market"]["stale"] != any {
            self.checker.violated("the whole is marked otherwise", answer.to_string());
        }
    }

    /// Snapshot and quotes give the same mark and delay for the same price.
    fn check_agreement(&mut self, indices: &[Shown], quotes: &[Shown]) {
        let same = |one: &Shown, other: &Shown| {
            one.symbol == other.symbol && one.as_of == other.as_of && one.source == other.source
        };
        for lead in &indices[..LEADS.len()] {
            let Some(quote) = quotes.iter().find(|quote| same(lead, quote)) else { continue };
            if (quote.stale, quote.delay_s) == (lead.stale, lead.delay_s) {
                continue;
            }
            // It may have become stale between the two.
            thread::sleep(APART_MAX);
            let Some(again) = self.answer(snapshot::PATH) else { continue };
            let again = of_snapshot(&again).unwrap_or_default();
            let still = again.iter().find(|again| same(again, lead));
            if still.is_some_and(|still| still.stale != quote.stale) {
                let what = format!("{lead:?} and {quote:?}");
                self.checker.violated("snapshot and quote disagree", what);
            }
        }
    }

    /// Health is not ok while prices are old.
    fn check_health(&mut self, stale: bool) {
        self.stale_since = stale.then(|| self.stale_since.unwrap_or_else(Instant::now));
        let late = self.stale_since.is_some_and(|since| since.elapsed() > HEALTH_LATE_MAX);
        if late
            && self.samples.is_multiple_of(5)
            && let Some((_, health)) = self.get("/api/health")
            && health["status"] == "ok"
            && health["market"]["stale"] == true
        {
            self.checker.violated("health is ok while prices are old", health.to_string());
        }
    }

    /// A quote that is rarely requested is fetched on demand, so it is fresh while a feed is
    /// healthy.
    fn check_rare_symbol(&mut self, now: Timestamp) -> Result<(), Error> {
        if self.rare_at.elapsed() < RARE_INTERVAL {
            return Ok(());
        }
        self.rare_at = Instant::now();
        let symbol = RARE[self.rare % RARE.len()];
        self.rare += 1;
        let well = self.well_since.is_some_and(|since| since.elapsed() > WELL_AFTER);
        let asked = Instant::now();
        let path = live_prices_path([symbol]);
        let Some(quotes) = self.answer(&path) else { return Ok(()) };
        let waited = SignedDuration::try_from(asked.elapsed()).unwrap_or_default();
        for shown in of_quotes(&quotes).unwrap_or_default() {
            self.checker.check(self.server.simulator()?, &shown, now + waited)?;
            if well && shown.stale {
                self.checker.violated("rarely asked for and old", format!("{shown:?}"));
            }
        }
        Ok(())
    }
}
