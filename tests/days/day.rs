//! A day: drawn from its seed, played, and judged.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use jiff::civil::Date;

use super::dates::{Hours, Kind};
use super::happenings::Happenings;
use super::promises::Promises;
use super::users::{Account, Judge, SHARES, read};
use super::world::{Events, Node, World, at};

/// From then on nothing fails any more, at the latest.
const QUIET_S_MAX: u64 = 30;
/// So long after that the evening's run has finished.
const CLOSED_WITHIN_MS: u64 = 1_200_000;
/// What happens to shares ends so long before continuous trading does.
const HALTS_END_S: u64 = 900;
/// Longest wait for a commit at which a process is killed.
const COMMIT_WITHIN_MS: u64 = 3_000;
/// So long after the close each feed can say it.
const EVENING_AFTER_S: u64 = 1_800;
/// So long does a calendar stay wrong, at most, in a process that was begun with it.
const TOLD_WITHIN_S: u64 = 40;
/// So long after a sync the closes of what it brought are kept.
const CLOSED_AFTER_SYNC_MS: u64 = 65_000;
/// For so long the evening of a holiday is looked at, of which nobody knew.
const HOLIDAY_MS: u64 = 300_000;

/// Which part of a day is played.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Less than a minute of trading, less round the close, and the evening.
    Short,
    /// The opening, three spells of trading, the closing auction, and the evening.
    Long,
}

/// What a day was like.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// Of all events: the same for the same seed.
    pub digest: u64,
    pub events: u64,
    pub looks: u64,
    pub prices: u64,
    pub calls: u64,
    pub acknowledged: u32,
    pub refused: u32,
    /// Points of the close that were found as they have to be.
    pub closes: u32,
}

/// Plays the day of `seed`.
///
/// # Errors
/// The promise that was broken, after which events.
pub fn play(seed: u64, length: Length) -> Result<Report, String> {
    let events = Rc::new(RefCell::new(Events::default()));
    let mut world = None;
    let played = catch_unwind(AssertUnwindSafe(|| {
        let day = Day::new(seed, length, &events);
        world = Some(Rc::clone(&day.world));
        day.play()
    }));
    played.map_err(|panic| {
        // The tasks hold the world that holds them.
        if let Some(world) = world {
            let _ = catch_unwind(AssertUnwindSafe(|| world.stage.kill()));
        }
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let why = text
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("?");
        let short = if length == Length::Short {
            " --short"
        } else {
            ""
        };
        format!(
            "day {seed}: {why}\n{}again: cargo run --release --example bhav-sim-days -- \
             --seed {seed} --days 1{short}",
            events.borrow().shown()
        )
    })
}

/// A fault that is set, as the simulator's control route takes it, and until when.
struct Standing {
    order: String,
    until_ms: i64,
}

struct Day {
    rng: fastrand::Rng,
    length: Length,
    date: Date,
    /// Of the date, in seconds of the day: opening, end of continuous trading, close.
    hours: [u64; 3],
    world: Rc<World>,
    judges: Vec<Rc<RefCell<Judge>>>,
    promises: Promises,
    happenings: Happenings,
    standing: Vec<Standing>,
    /// When the database's file comes back that is elsewhere.
    away_until_ms: Option<i64>,
    /// When the disk has room again that is full.
    full_until_ms: Option<i64>,
    /// When the operator's calendar changes, if it will.
    changes_at_ms: Option<i64>,
    /// The evening's run had not ended before.
    closed_ms: Option<i64>,
    closes: u32,
}

impl Day {
    fn new(seed: u64, length: Length, events: &Rc<RefCell<Events>>) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = Rc::new(World::new(seed, &mut rng, events));
        let date = world.dates.played[0];
        let hours = world.dates.hours(date).of_day(date);
        let promises = Promises::new(&world, date, &SHARES);
        let happenings = Happenings::new(&world, rng.u64(..));
        Self {
            rng,
            length,
            date,
            hours,
            world,
            judges: Judge::all(),
            promises,
            happenings,
            standing: Vec::new(),
            away_until_ms: None,
            full_until_ms: None,
            changes_at_ms: None,
            closed_ms: None,
            closes: 0,
        }
    }

    fn play(mut self) -> Report {
        self.world
            .note(&format!("{:?} {:?}", self.world.dates.kind, self.world.dates.played));
        self.happenings.morning();
        self.promises.listed(self.happenings.listed);
        for date in self.world.dates.played.clone() {
            if date != self.date {
                self.go_to(date);
            }
            for (from_s, to_s) in self.spells() {
                self.spell(from_s, to_s);
            }
            if self.world.dates.is_unknown_holiday(date) {
                self.evening_of_holiday();
            } else {
                self.evening();
            }
        }
        self.later();
        let events = self.world.events.borrow();
        let sum = |count: fn(&Judge) -> u32| {
            self.judges
                .iter()
                .map(|judge| count(&judge.borrow()))
                .sum::<u32>()
        };
        Report {
            digest: events.digest,
            events: events.count,
            looks: self.promises.looks,
            prices: self.promises.prices,
            calls: self.promises.calls,
            acknowledged: sum(|judge| judge.acknowledged),
            refused: sum(|judge| judge.refused),
            closes: self.closes,
        }
    }

    /// The night before another date, on whose morning the server is logged in at broker A.
    fn go_to(&mut self, date: Date) {
        self.world.sleep_until(at(date, 8 * 3_600));
        self.world
            .control("POST", "broker_a/token", r#"{"access_token":"simtokena"}"#);
        self.promises.go_to(&self.world, date);
        self.date = date;
        self.hours = self.world.dates.hours(date).of_day(date);
        self.closed_ms = None;
        self.judges
            .iter()
            .for_each(|judge| judge.borrow_mut().closed = None);
    }

    /// When a process runs, in seconds of the day.
    fn spells(&mut self) -> Vec<(u64, u64)> {
        let changing = self.spell_of_change();
        let rng = &mut self.rng;
        let ([open, close, _], minute) = (self.hours, 60);
        let mut spell = |from: std::ops::Range<u64>, length: std::ops::Range<u64>| {
            let from = rng.u64(from);
            (from, from + rng.u64(length))
        };
        let spells = match self.length {
            Length::Short => vec![
                spell(open - 20..close, minute / 2..minute),
                spell(close - 20..close + 40 * minute, minute / 4..minute / 2),
            ],
            Length::Long => vec![
                spell(open - 10 * minute..open - minute, 10 * minute..12 * minute),
                spell(open + 12 * minute..open + 60 * minute, minute..8 * minute),
                spell(open + 70 * minute..open + 150 * minute, minute..8 * minute),
                spell(open + 160 * minute..open + 300 * minute, minute..8 * minute),
                spell(close - 6 * minute..close, 10 * minute..30 * minute),
            ],
        };
        let halves = |(from, to): (u64, u64)| {
            // A supervisor starts it again at once, while the same things fail.
            let (half, pause) = (rng.u64(from..to), rng.u64(2..8));
            if rng.bool() {
                vec![(from, half), (half + pause, to + pause)]
            } else {
                vec![(from, to)]
            }
        };
        let spells = spells
            .into_iter()
            .filter(|(from, _)| changing.is_none_or(|(to, _)| *from < to));
        let mut spells: Vec<_> = spells.flat_map(halves).collect();
        if let Some((from, to)) = changing {
            spells
                .iter_mut()
                .for_each(|(_, end)| *end = (*end).min(from));
            spells.retain(|(from, end)| from < end);
            spells.push((from, to));
        }
        spells
    }

    /// The process that is told of changed hours: it runs from before the earlier close to about
    /// the later one.
    fn spell_of_change(&mut self) -> Option<(u64, u64)> {
        if self.world.dates.kind != Kind::HoursChange {
            return None;
        }
        let [_, _, before] = self.world.dates.hours_before(self.date).of_day(self.date);
        let [_, _, close] = self.hours;
        let from = before.min(close) - self.rng.u64(60..180);
        let changes = from + self.rng.u64(5..TOLD_WITHIN_S);
        self.changes_at_ms = Some(at(self.date, changes).as_millisecond());
        Some((from, before.max(close) + self.rng.u64(..180)))
    }

    /// The life of one process.
    fn spell(&mut self, from_s: u64, to_s: u64) {
        let syncs = from_s < self.evening_s() || self.rng.bool();
        let node = self.begin(from_s, syncs);
        let until_ms = at(self.date, to_s).as_millisecond();
        while self.world.clock.now_ms() < until_ms {
            self.step(&node);
        }
        self.happenings.resume();
        self.bring_back();
        self.make_room(&node);
        let store = &node.api.state().store;
        let is_closed = store.is_closed(self.date).unwrap();
        self.expect_open(&node);
        if is_closed {
            self.closed_ms
                .get_or_insert(at(self.date, from_s).as_millisecond());
        }
        self.end(node);
    }

    fn evening_s(&self) -> u64 {
        self.hours[2] + EVENING_AFTER_S
    }

    /// No close is revalued before it is final, and none of a date without trading.
    fn expect_open(&self, node: &Node) {
        let store = &node.api.state().store;
        let Hours { closed, .. } = self.world.dates.hours(self.date);
        let is_holiday = self.world.dates.is_unknown_holiday(self.date);
        if is_holiday || self.world.clock.now() < closed {
            // A file that is elsewhere says nothing.
            assert!(!store.is_closed(self.date).unwrap_or(false), "closed while it trades");
        }
        if self.date == self.world.dates.played[0] {
            let before = self
                .world
                .dates
                .calendar
                .previous_trading_date(self.date)
                .unwrap();
            assert!(!store.is_closed(before).unwrap_or(false), "{before} is closed");
        }
    }

    /// A process, in which users sync or do not.
    fn begin(&mut self, from_s: u64, syncs: bool) -> Node {
        self.world.sleep_until(at(self.date, from_s));
        self.mend();
        for Standing { order, .. } in &self.standing {
            self.promises.set(order);
        }
        // What refused pages was the process before.
        self.full_until_ms = None;
        let page_users = [1, 2, 200][self.rng.usize(..3)];
        let node = self.world.start(page_users);
        read(&self.world, &node, self.rng.u64(..));
        for judge in &self.judges {
            judge.borrow_mut().begin(syncs);
            let account = Account::new(&self.world, &node, judge, self.rng.u64(..), self.date);
            self.world.stage.spawn(move || account.live());
        }
        node
    }

    fn end(&mut self, node: Node) {
        let killed = self.rng.bool();
        let kept = if killed {
            if self.rng.bool() {
                self.run_to_commit(&node);
            }
            self.world.kill(node, &mut self.rng)
        } else {
            self.world.stop(node);
            true
        };
        self.promises.begin(killed, kept);
    }

    /// Lets the process run, and looks after every step.
    fn run(&mut self, node: &Node, ms: u64) {
        let (world, promises) = (Rc::clone(&self.world), &mut self.promises);
        let until_mono_ms = world.clock.monotonic_ms() + ms;
        world.stage.run_until(until_mono_ms, || {
            promises.look(&world, node);
            true
        });
    }

    /// Lets it run to a commit, if one comes soon, where what belongs together may be torn.
    fn run_to_commit(&mut self, node: &Node) {
        let (world, promises) = (Rc::clone(&self.world), &mut self.promises);
        let commits = || node.api.state().store.health().writer.commits;
        let (before, now_mono_ms) = (commits(), world.clock.monotonic_ms());
        world.stage.run_until(now_mono_ms + COMMIT_WITHIN_MS, || {
            promises.look(&world, node);
            commits() == before
        });
    }

    /// About a second, behind which something fails now and then.
    fn step(&mut self, node: &Node) {
        let ms = self.rng.u64(50..1_500);
        self.run(node, ms);
        self.mend();
        self.expect_open(node);
        if self.world.clock.now() < at(self.date, self.hours[1] - HALTS_END_S) {
            self.promises.halted(self.happenings.step());
        } else {
            self.happenings.resume();
        }
        let now_ms = self.world.clock.now_ms();
        if self
            .changes_at_ms
            .take_if(|at_ms| *at_ms <= now_ms)
            .is_some()
        {
            self.world.change_hours(Some(node));
        }
        if self.rng.u8(..20) == 0 {
            let order = self.fault();
            self.world.note(&order);
            self.world.control("POST", "faults", &order);
            self.promises.set(&order);
            let until_ms = now_ms + self.rng.i64(500..25_000);
            self.standing.push(Standing { order, until_ms });
        }
        if self
            .away_until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
        {
            self.bring_back();
        } else if self.away_until_ms.is_none() && self.rng.u8(..40) == 0 {
            self.take_away();
        }
        if self
            .full_until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
        {
            self.make_room(node);
        } else if self.full_until_ms.is_none() && self.rng.u8(..40) == 0 {
            self.fill(node);
        }
    }

    /// Ends what has failed long enough.
    fn mend(&mut self) {
        let (now_ms, before) = (self.world.clock.now_ms(), self.standing.len());
        self.standing.retain(|fault| fault.until_ms > now_ms);
        if self.standing.len() < before {
            self.world.note("a fault ends");
            self.world.control("DELETE", "faults", "");
            for fault in &self.standing {
                self.world.control("POST", "faults", &fault.order);
                self.promises.set_again(&fault.order);
            }
        }
    }

    /// The database's file is moved while it is in use: no write ends well until it is back.
    fn take_away(&mut self) {
        self.away_until_ms = Some(self.world.clock.now_ms() + self.rng.i64(500..8_000));
        self.world.note("the database's file is elsewhere");
        let path = self.world.database();
        std::fs::rename(&path, path.with_extension("elsewhere")).unwrap();
    }

    fn bring_back(&mut self) {
        if self.away_until_ms.take().is_some() {
            self.world.note("the database's file is back");
            let path = self.world.database();
            std::fs::rename(path.with_extension("elsewhere"), &path).unwrap();
        }
    }

    /// The disk is full: a write that needs another page is refused.
    fn fill(&mut self, node: &Node) {
        if node.api.state().store.set_full(true).is_ok() {
            self.full_until_ms = Some(self.world.clock.now_ms() + self.rng.i64(500..8_000));
            self.world.note("the disk is full");
        }
    }

    /// Tried again where the file is elsewhere.
    fn make_room(&mut self, node: &Node) {
        if self.full_until_ms.is_some() && node.api.state().store.set_full(false).is_ok() {
            self.full_until_ms = None;
            self.world.note("the disk has room");
        }
    }

    /// What fails next, as the simulator takes it.
    fn fault(&mut self) -> String {
        const ROUTES: [&str; 10] = [
            "*",
            "broker_a",
            "broker_a.quote",
            "broker_a.quote",
            "broker_a.ohlc",
            "public",
            "public.spark",
            "broker_a.holdings",
            "broker_a.session",
            "broker_b",
        ];
        // What has a time of today has traded today.
        let is_holiday = self.world.dates.is_unknown_holiday(self.date);
        let rng = &mut self.rng;
        let mut route = ROUTES[rng.usize(..ROUTES.len())];
        let fault = match rng.u8(..16) {
            0 => r#""kind":"refuse""#.to_owned(),
            1 | 2 => format!(r#""kind":"delay","delay_ms":{}"#, rng.u32(100..9_000)),
            3 => format!(r#""kind":"drip","bytes_per_s":{}"#, rng.u32(200..20_000)),
            4 => r#""kind":"truncate""#.to_owned(),
            5 => r#""kind":"rate_limit""#.to_owned(),
            6 => r#""kind":"error_in_200""#.to_owned(),
            7 => r#""kind":"html_5xx""#.to_owned(),
            8 => r#""kind":"redirect","location":"http://elsewhere.invalid/""#.to_owned(),
            9 => r#""kind":"wrong_types""#.to_owned(),
            10 => r#""kind":"missing_fields""#.to_owned(),
            11 => r#""kind":"mute_price""#.to_owned(),
            12 => r#""kind":"zero_price""#.to_owned(),
            13 => r#""kind":"nulls""#.to_owned(),
            14 if !is_holiday => {
                // The public provider is far behind, so its times may be some minutes off.
                route = "broker_a.quote";
                format!(r#""kind":"future_time","by_s":{}"#, rng.u32(10..86_400))
            }
            _ => format!(r#""kind":"lag","by_s":{}"#, rng.u32(5..900)),
        };
        let count = if rng.bool() {
            format!(r#","count":{}"#, rng.u8(1..4))
        } else {
            String::new()
        };
        format!(r#"{{"route":"{route}","fault":{{{fault}{count}}}}}"#)
    }

    /// The close is revalued, by processes that may end in the midst of it. In the last one what
    /// fails ends within half a minute.
    fn evening(&mut self) {
        let mut from_s = self.rng.u64(self.evening_s()..20 * 3_600);
        for _ in 0..self.rng.u8(..3) {
            let to_s = from_s + self.rng.u64(1..12);
            self.spell(from_s, to_s);
            from_s = to_s + self.rng.u64(2..600);
        }
        let (quiet_s, syncs) = (self.rng.u64(..QUIET_S_MAX), self.rng.bool());
        let node = self.begin(from_s, syncs);
        // The close is revalued in the first seconds.
        if self.rng.u8(..4) == 0 {
            let ms = self.rng.u64(..2_000);
            self.run(&node, ms);
            self.take_away();
        }
        for _ in 0..quiet_s {
            self.step(&node);
        }
        self.quiet(&node);
        let store = Arc::clone(&node.api.state().store);
        let until_mono_ms = self.world.clock.monotonic_ms() + CLOSED_WITHIN_MS;
        while !store.is_closed(self.date).unwrap_or(false) {
            let is_late = self.world.clock.monotonic_ms() >= until_mono_ms;
            assert!(!is_late, "the close was not made up for");
            self.run(&node, 1_000);
            self.make_room(&node);
        }
        drop(store);
        self.world.note("closed");
        let closed_ms = *self.closed_ms.get_or_insert(self.world.clock.now_ms());
        while self.judges.iter().any(|judge| judge.borrow().is_syncing) {
            self.run(&node, 100);
        }
        self.closes += self.expect_closes(&node, closed_ms);
        // What a sync brought last has its close within a minute.
        self.run(&node, CLOSED_AFTER_SYNC_MS);
        self.end(node);
    }

    /// Nothing becomes official of a date without trading, in its evening.
    fn evening_of_holiday(&mut self) {
        let from_s = self.rng.u64(self.evening_s()..20 * 3_600);
        let syncs = self.rng.bool();
        let node = self.begin(from_s, syncs);
        for _ in 0..self.rng.u64(..QUIET_S_MAX) {
            self.step(&node);
        }
        self.quiet(&node);
        self.run(&node, HOLIDAY_MS);
        self.expect_open(&node);
        while self.judges.iter().any(|judge| judge.borrow().is_syncing) {
            self.run(&node, 100);
        }
        for judge in &self.judges.clone() {
            let seed = self.rng.u64(..);
            self.run_account(&node, judge, seed, Account::expect_no_close);
        }
        self.end(node);
    }

    /// From now on nothing fails, and nobody syncs.
    fn quiet(&mut self, node: &Node) {
        self.bring_back();
        self.make_room(node);
        self.standing.clear();
        self.world.control("DELETE", "faults", "");
        self.judges
            .iter()
            .for_each(|judge| judge.borrow_mut().may_sync = false);
        self.world.note("nothing fails any more");
    }

    /// That evening or the next morning, no point of the close is lost. Or the next session begins.
    fn later(&mut self) {
        // Of a holiday there is no point.
        let Some(closed_ms) = self.closed_ms else {
            return;
        };
        let now_s = self.world.clock.now().as_second() - at(self.date, 0).as_second();
        let evening = now_s as u64 + self.rng.u64(2..3_600);
        let morning = self.rng.u64(..3_600);
        match self.rng.u8(..3) {
            0 => self.look_again(evening, closed_ms),
            1 => self.look_again((24 + 8) * 3_600 + morning, closed_ms),
            _ => self.next_session(),
        }
    }

    fn look_again(&mut self, from_s: u64, closed_ms: i64) {
        let node = self.begin(from_s, false);
        let ms = self.rng.u64(..3_000);
        self.run(&node, ms);
        self.expect_closes(&node, closed_ms);
        self.world.stop(node);
    }

    /// Overnight the exchange has adjusted the base price of a share. Who holds what was held
    /// before finds that share marked, and no other.
    fn next_session(&mut self) {
        let next = self
            .world
            .dates
            .calendar
            .next_trading_date(self.date)
            .unwrap();
        self.go_to(next);
        let (symbol, listed) = self.happenings.night();
        let from_s = self.hours[0] + 60 + self.rng.u64(..3_600);
        let node = self.begin(from_s, false);
        self.run(&node, 3_000);
        for judge in &self.judges.clone() {
            let seed = self.rng.u64(..);
            self.run_account(&node, judge, seed, move |account| {
                if account.holds_again() {
                    account.sync_again();
                    account.expect_marked(symbol, listed);
                }
            });
        }
        self.world.stop(node);
    }

    /// Has a user do something, while time passes.
    fn run_account(
        &mut self,
        node: &Node,
        judge: &Rc<RefCell<Judge>>,
        seed: u64,
        act: impl FnOnce(&mut Account) + 'static,
    ) {
        let mut account = Account::new(&self.world, node, judge, seed, self.date);
        let ended = Rc::new(Cell::new(false));
        let ends = Rc::clone(&ended);
        self.world.stage.spawn(move || {
            act(&mut account);
            ends.set(true);
        });
        while !ended.get() {
            self.run(node, 100);
        }
    }

    fn expect_closes(&self, node: &Node, closed_ms: i64) -> u32 {
        let is_closed = |judge: &Rc<RefCell<Judge>>| {
            Account::new(&self.world, node, judge, 0, self.date)
                .expect_close(closed_ms, self.happenings.listed)
        };
        self.judges
            .iter()
            .map(|judge| u32::from(is_closed(judge)))
            .sum()
    }
}
