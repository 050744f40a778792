//! Whether prices say their age: a simulated session in which each feed breaks in each way in turn,
//! looked at five times a second by somebody who knows what the exchange had.

mod check;
mod report;
mod schedule;
mod world;

use std::thread;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use serde_json::Value;

use crate::error::Error;
use crate::servers::Programs;
use check::{Checker, LEADS, Shown, of_quotes, of_snapshot};
use schedule::Episode;
pub use schedule::Pace;
use world::{World, encoded};

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Shares that are looked at each time, beside the indices and sectors.
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

/// Between two of these.
const RARE_INTERVAL: Duration = Duration::from_millis(7_500);

/// How long all has to be well before a rare quote may not be old any more.
const WELL_AFTER: Duration = Duration::from_secs(8);

/// How long a stale snapshot and a quote of the same price may disagree, since one cannot ask for
/// both at once.
const APART_MAX: Duration = Duration::from_millis(300);

/// For so long after a call of the chart route its prices may be what is shown.
const CHART_LASTS: Duration = Duration::from_secs(120);

/// Health is made once a second.
const HEALTH_LATE_MAX: Duration = Duration::from_millis(2_500);

/// What was seen of one episode.
#[derive(Debug)]
pub struct Seen {
    /// What was wrong.
    pub name: String,
    /// Looks, and those at which the service did not answer.
    pub looks: u64,
    pub unanswered: u64,
    /// Of the looks: how many showed a primary index that was not marked.
    pub fresh: u64,
    /// From the beginning to the first mark, where there was one.
    pub marked_after: Option<Duration>,
    /// Violations within it.
    pub violations: u64,
}

/// A whole run.
pub struct Honesty {
    pub surroundings: Vec<(&'static str, String)>,
    pub pace: Pace,
    pub episodes: Vec<Seen>,
    pub findings: check::Findings,
    pub restarts: u64,
    pub elapsed: Duration,
}

/// The run's state.
struct Run {
    world: World,
    checker: Checker,
    path: String,
    looks: u64,
    rare: usize,
    rare_at: Instant,
    /// Since when nothing has been broken and the primary index of broker A is fresh.
    well_since: Option<Instant>,
    stale_since: Option<Instant>,
    /// Calls of the public provider's chart route so far, and when the last one was seen.
    chart_calls: u64,
    chart_seen: Option<Instant>,
}

/// Runs through all episodes, or those with `faults` in their name and what lies around them.
///
/// # Errors
/// A program does not start, or the simulator does not answer.
pub fn measure(
    programs: &Programs,
    pace: Pace,
    faults: Option<&str>,
    surroundings: Vec<(&'static str, String)>,
) -> Result<Honesty, Error> {
    let began = Instant::now();
    let world = World::start(programs, pace)?;
    let mut symbols: Vec<String> = LEADS.iter().map(|(_, symbol)| (*symbol).to_owned()).collect();
    symbols.extend(sectors(&world)?);
    symbols.extend(SHARES.map(str::to_owned));
    let asked: Vec<String> = symbols.iter().map(|symbol| encoded(symbol)).collect();
    symbols.extend(RARE.map(str::to_owned));
    let mut run = Run {
        world,
        checker: Checker::new(symbols, pace.public_delay.as_secs()),
        path: format!("/api/portfolio/live-prices?symbols={}", asked.join(",")),
        looks: 0,
        rare: 0,
        rare_at: began,
        well_since: None,
        stale_since: None,
        chart_calls: 0,
        chart_seen: None,
    };
    let mut episodes = Vec::new();
    let mut restarts = 0;
    let wanted = |episode: &Episode| {
        let quiet = ["well", "mended", "catches up"].iter().any(|word| episode.name.contains(word));
        faults.is_none_or(|part| quiet || episode.name.contains(part))
    };
    let mut all: Vec<Episode> = schedule::episodes(pace).into_iter().filter(wanted).collect();
    // What is left between two that were taken out stands once.
    all.dedup_by(|next, before| next.name == before.name);
    for episode in all {
        let seen = run.through(&episode)?;
        eprintln!(
            "honesty: {:<55} {:>5} looks, {:>5} fresh, marked after {:>6}, {} violations",
            seen.name,
            seen.looks,
            seen.fresh,
            seen.marked_after.map_or("never".to_owned(), |after| format!("{after:.1?}")),
            seen.violations,
        );
        if episode.ends_token {
            run.world.set_faults(&[])?;
            run.world.log_in()?;
        }
        restarts += u64::from(episode.restarts);
        episodes.push(seen);
    }
    let findings = run.checker.findings;
    Ok(Honesty { surroundings, pace, episodes, findings, restarts, elapsed: began.elapsed() })
}

/// The sectors that the service shows.
fn sectors(world: &World) -> Result<Vec<String>, Error> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if let Some((200, snapshot)) = world.get("/api/index/snapshot") {
            let sectors = snapshot["sectors"].as_array().into_iter().flatten();
            return Ok(sectors
                .filter_map(|sector| Some(sector["symbol"].as_str()?.to_owned()))
                .collect());
        }
        thread::sleep(LOOK_INTERVAL);
    }
    Err(Error::NotServing("bhav".to_owned()))
}

impl Run {
    fn through(&mut self, episode: &Episode) -> Result<Seen, Error> {
        self.world.set_faults(&episode.faults)?;
        self.well_since = None;
        let began = Instant::now();
        let before = self.violations();
        let mut seen = Seen {
            name: episode.name.clone(),
            looks: 0,
            unanswered: 0,
            fresh: 0,
            marked_after: None,
            violations: 0,
        };
        let mut restarted = !episode.restarts;
        let mut due = began;
        while began.elapsed() < episode.lasts {
            if !restarted && began.elapsed() > episode.lasts / 2 {
                self.world.restart_service()?;
                restarted = true;
            }
            match self.look(episode.faults.is_empty())? {
                None => seen.unanswered += 1,
                Some(stale) => {
                    seen.fresh += u64::from(!stale);
                    if stale && !episode.faults.is_empty() {
                        seen.marked_after.get_or_insert(began.elapsed());
                    }
                }
            }
            seen.looks += 1;
            due += LOOK_INTERVAL;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        seen.violations = self.violations() - before;
        Ok(seen)
    }

    fn violations(&self) -> u64 {
        self.checker.findings.violations.values().map(|(count, _)| count).sum()
    }

    /// Looks once; whether the primary index is marked, `None` where there is no answer.
    fn look(&mut self, nothing_broken: bool) -> Result<Option<bool>, Error> {
        self.looks += 1;
        self.follow_chart()?;
        let Some((200, snapshot)) = self.world.get("/api/index/snapshot") else { return Ok(None) };
        let now = self.world.now()?;
        let Some((200, quotes)) = self.world.get(&self.path) else { return Ok(None) };
        let (Some(first), Some(second)) = (of_snapshot(&snapshot), of_quotes(&quotes)) else {
            self.checker.violated("unreadable", snapshot.to_string());
            return Ok(None);
        };
        if !snapshot.as_object().is_some_and(|all| all.contains_key("signals_as_of")) {
            self.checker.violated("no date of signals", snapshot.to_string());
        }
        for shown in first.iter().chain(&second) {
            // The quotes came a moment after the clock was read.
            self.checker.judge(&self.world, shown, now)?;
        }
        self.whole_is_marked(&snapshot, &first);
        self.agree(&first, &second)?;
        let stale = first[0].stale;
        let well = nothing_broken && !stale && first[0].source == "broker_a";
        self.well_since = well.then(|| self.well_since.unwrap_or_else(Instant::now));
        self.health(snapshot["market"]["stale"] == true);
        self.rare(now)?;
        Ok(Some(stale))
    }

    /// Whether the chart route has served lately, with one symbol a call: whoever is asked so
    /// answers of each index less often.
    fn follow_chart(&mut self) -> Result<(), Error> {
        let calls = self.world.chart_calls()?;
        if calls > self.chart_calls {
            (self.chart_calls, self.chart_seen) = (calls, Some(Instant::now()));
        }
        self.checker.chart = self.chart_seen.is_some_and(|seen| seen.elapsed() < CHART_LASTS);
        Ok(())
    }

    /// The whole is marked where one of the three is.
    fn whole_is_marked(&mut self, snapshot: &Value, shown: &[Shown]) {
        let any = shown[..LEADS.len()].iter().any(|lead| lead.stale);
        if snapshot["market"]["stale"] != any {
            self.checker.violated("the whole is marked otherwise", snapshot.to_string());
        }
    }

    /// Snapshot and quotes say the same of the same price.
    fn agree(&mut self, snapshot: &[Shown], quotes: &[Shown]) -> Result<(), Error> {
        let same = |one: &Shown, other: &Shown| {
            one.symbol == other.symbol && one.as_of == other.as_of && one.source == other.source
        };
        for lead in &snapshot[..LEADS.len()] {
            let Some(quote) = quotes.iter().find(|quote| same(lead, quote)) else { continue };
            if (quote.stale, quote.delay_s) == (lead.stale, lead.delay_s) {
                continue;
            }
            // It may have become stale between the two.
            thread::sleep(APART_MAX);
            let Some((200, again)) = self.world.get("/api/index/snapshot") else { continue };
            let again = of_snapshot(&again).unwrap_or_default();
            let still = again.iter().find(|again| same(again, lead));
            if still.is_some_and(|still| still.stale != quote.stale) {
                let what = format!("{lead:?} and {quote:?}");
                self.checker.violated("snapshot and quote disagree", what);
            }
        }
        Ok(())
    }

    /// Health does not say that all is well while prices are old.
    fn health(&mut self, stale: bool) {
        self.stale_since = stale.then(|| self.stale_since.unwrap_or_else(Instant::now));
        let late = self.stale_since.is_some_and(|since| since.elapsed() > HEALTH_LATE_MAX);
        if late
            && self.looks.is_multiple_of(5)
            && let Some((_, health)) = self.world.get("/api/health")
            && health["status"] == "ok"
            && health["market"]["stale"] == true
        {
            self.checker.violated("health is ok while prices are old", health.to_string());
        }
    }

    /// A quote that nobody kept fresh is waited for and comes fresh, where a feed is well.
    fn rare(&mut self, now: jiff::Timestamp) -> Result<(), Error> {
        if self.rare_at.elapsed() < RARE_INTERVAL {
            return Ok(());
        }
        self.rare_at = Instant::now();
        let symbol = RARE[self.rare % RARE.len()];
        self.rare += 1;
        let well = self.well_since.is_some_and(|since| since.elapsed() > WELL_AFTER);
        let asked = Instant::now();
        let path = format!("/api/portfolio/live-prices?symbols={}", encoded(symbol));
        let Some((200, quotes)) = self.world.get(&path) else { return Ok(()) };
        let waited = SignedDuration::try_from(asked.elapsed()).unwrap_or_default();
        for shown in of_quotes(&quotes).unwrap_or_default() {
            self.checker.judge(&self.world, &shown, now + waited)?;
            if well && shown.stale {
                self.checker.violated("rarely asked for and old", format!("{shown:?}"));
            }
        }
        Ok(())
    }
}
