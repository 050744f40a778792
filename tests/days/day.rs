//! A day: drawn from its seed, played, and judged.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::{Date, date};

use super::promises::Promises;
use super::users::{Account, Judge, SHARES, read};
use super::world::{Events, Node, World, at};

/// The days of a week of which one is drawn.
const MONDAY: Date = date(2026, 11, 16);

/// From then on nothing fails any more, at the latest.
const QUIET_S_MAX: u64 = 30;
/// So long after that the evening's run has finished.
const CLOSED_WITHIN_MS: u64 = 1_200_000;

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
        let why = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
        let short = if length == Length::Short { " --short" } else { "" };
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
    world: Rc<World>,
    judge: Rc<RefCell<Judge>>,
    promises: Promises,
    standing: Vec<Standing>,
    /// When the database's file comes back that is elsewhere.
    away_until_ms: Option<i64>,
}

impl Day {
    fn new(seed: u64, length: Length, events: &Rc<RefCell<Events>>) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let date = MONDAY.saturating_add(SignedDuration::from_hours(24 * rng.i64(0..5)));
        let world = Rc::new(World::new(seed, at(date, 8 * 3_600), events));
        let promises = Promises::new(&world, date, &SHARES);
        Self {
            rng,
            length,
            date,
            world,
            judge: Rc::default(),
            promises,
            standing: Vec::new(),
            away_until_ms: None,
        }
    }

    fn play(mut self) -> Report {
        for (from_s, to_s) in self.spells() {
            self.spell(from_s, to_s);
        }
        self.evening();
        let (events, judge) = (self.world.events.borrow(), self.judge.borrow());
        Report {
            digest: events.digest,
            events: events.count,
            looks: self.promises.looks,
            prices: self.promises.prices,
            calls: self.promises.calls,
            acknowledged: judge.acknowledged,
            refused: judge.refused,
        }
    }

    /// When a process runs, in seconds of the day.
    fn spells(&mut self) -> Vec<(u64, u64)> {
        let rng = &mut self.rng;
        let (open, close, minute) = (9 * 3_600 + 900, 15 * 3_600 + 900, 60);
        let mut spell = |from: std::ops::Range<u64>, length: std::ops::Range<u64>| {
            let from = rng.u64(from);
            (from, from + rng.u64(length))
        };
        match self.length {
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
        }
    }

    /// The life of one process.
    fn spell(&mut self, from_s: u64, to_s: u64) {
        let node = self.begin(from_s);
        let until_ms = at(self.date, to_s).as_millisecond();
        while self.world.clock.now_ms() < until_ms {
            self.step(&node);
        }
        self.bring_back();
        self.end(node);
    }

    fn begin(&mut self, from_s: u64) -> Node {
        self.world.sleep_until(at(self.date, from_s));
        self.mend();
        let node = self.world.start();
        read(&self.world, &node, self.rng.u64(..));
        let seed = self.rng.u64(..);
        let account = Account::new(&self.world, &node, &self.judge, seed, self.date);
        self.world.stage.spawn(move || account.live());
        node
    }

    fn end(&mut self, node: Node) {
        let killed = self.rng.bool();
        let kept = if killed {
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
        world.stage.run_until(until_mono_ms, || promises.look(&world, node));
    }

    /// About a second, behind which something fails now and then.
    fn step(&mut self, node: &Node) {
        let ms = self.rng.u64(50..1_500);
        self.run(node, ms);
        self.mend();
        let now_ms = self.world.clock.now_ms();
        if self.rng.u8(..20) == 0 {
            let order = self.fault();
            self.world.note(&order);
            self.world.control("POST", "faults", &order);
            let until_ms = now_ms + self.rng.i64(500..25_000);
            self.standing.push(Standing { order, until_ms });
        }
        if self.away_until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            self.bring_back();
        } else if self.away_until_ms.is_none() && self.rng.u8(..40) == 0 {
            self.take_away();
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
        let rng = &mut self.rng;
        let route = ROUTES[rng.usize(..ROUTES.len())];
        let fault = match rng.u8(..15) {
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
            11 => {
                self.promises.has_stood = true;
                r#""kind":"mute_price""#.to_owned()
            }
            12 => r#""kind":"zero_price""#.to_owned(),
            13 => r#""kind":"nulls""#.to_owned(),
            _ => {
                (self.promises.has_lagged, self.promises.has_stood) = (true, true);
                format!(r#""kind":"lag","by_s":{}"#, rng.u32(5..900))
            }
        };
        let count =
            if rng.bool() { format!(r#","count":{}"#, rng.u8(1..4)) } else { String::new() };
        format!(r#"{{"route":"{route}","fault":{{{fault}{count}}}}}"#)
    }

    /// The last process: what fails ends within half a minute, and the close is made up for.
    fn evening(&mut self) {
        let (hour, quiet_s) = (3_600, self.rng.u64(..QUIET_S_MAX));
        let from_s = self.rng.u64(16 * hour + 300..20 * hour);
        let node = self.begin(from_s);
        // The close is revalued in the first seconds.
        if self.rng.u8(..4) == 0 {
            let ms = self.rng.u64(..2_000);
            self.run(&node, ms);
            self.take_away();
        }
        for _ in 0..quiet_s {
            self.step(&node);
        }
        self.bring_back();
        self.standing.clear();
        self.world.control("DELETE", "faults", "");
        self.world.note("nothing fails any more");
        let store = Arc::clone(&node.api.state().store);
        let until_mono_ms = self.world.clock.monotonic_ms() + CLOSED_WITHIN_MS;
        while !store.is_closed(self.date).unwrap_or(false) {
            let is_late = self.world.clock.monotonic_ms() >= until_mono_ms;
            assert!(!is_late, "the close was not made up for");
            self.run(&node, 1_000);
        }
        self.world.note("closed");
        Account::new(&self.world, &node, &self.judge, 0, self.date).expect_close();
        drop(store);
        self.world.stop(node);
    }
}
