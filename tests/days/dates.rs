//! The dates of a day that is played, as the exchange has them and as the service is told of them:
//! usual ones, a regime of hours that begins overnight, hours that the exchange changes and an
//! operator puts into a file, and a holiday that no calendar knows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bhav::base::clock;
use bhav::market::MarketCalendar;
use jiff::Timestamp;
use jiff::civil::{Date, date};

use super::world::at;

/// Usual dates, before the closing auction moved and after it.
const USUAL: [Date; 9] = [
    date(2026, 11, 16),
    date(2026, 11, 17),
    date(2026, 11, 18),
    date(2026, 11, 19),
    date(2026, 11, 20),
    date(2026, 12, 4),
    date(2026, 12, 7),
    date(2026, 12, 8),
    date(2026, 12, 11),
];
/// The last date of one regime of hours, and the first of the next.
const REGIME_BEGINS: [Date; 2] = [date(2026, 12, 4), date(2026, 12, 7)];
/// Dates of which the second turns out to be a holiday.
const HOLIDAYS: [[Date; 2]; 3] = [
    [date(2026, 11, 16), date(2026, 11, 17)],
    [date(2026, 11, 20), date(2026, 11, 23)],
    [date(2026, 12, 8), date(2026, 12, 9)],
];
/// Closing auctions that the exchange may announce, with the earliest end of each.
const AUCTIONS: [(&str, &str); 4] = [
    ("15:30-15:50", "15:48"),
    ("15:25-15:45", "15:43"),
    ("15:15-15:50", "15:48"),
    ("15:10-15:30", "15:28"),
];

/// Since when, and the phase from each time on.
type Phases = (Date, &'static [(&'static str, &'static str)]);

/// The phases of a trading date as the circulars say them, the newest first. The calendar that is
/// tested makes the exchange's prices too, so nothing else would show that it is wrong.
const PHASES: [Phases; 2] = [
    (
        REGIME_BEGINS[1],
        &[
            ("00:00", "closed"),
            ("09:00", "pre_open"),
            ("09:15", "open"),
            ("15:30", "closing"),
            ("15:40", "closed"),
            ("15:50", "post_close"),
            ("16:00", "closed"),
        ],
    ),
    (
        date(2026, 8, 3),
        &[
            ("00:00", "closed"),
            ("09:00", "pre_open"),
            ("09:15", "open"),
            ("15:15", "closing"),
            ("15:35", "closed"),
            ("15:50", "post_close"),
            ("16:00", "closed"),
        ],
    ),
];

/// What is special about the dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Usual,
    /// Other hours begin on the second date, which the calendar knows.
    RegimeBegins,
    /// The exchange has other hours, which a process is told of while it runs.
    HoursChange,
    /// The second date is a holiday that the calendar does not know.
    UnknownHoliday,
}

/// The edges of a trading date.
#[derive(Clone, Copy, Debug)]
pub struct Hours {
    /// Of continuous trading, and when it ends for shares with a closing auction.
    pub opening: Timestamp,
    pub freeze: Timestamp,
    /// When every share's last price was made.
    pub closed: Timestamp,
}

impl Hours {
    fn of(calendar: &MarketCalendar, date: Date) -> Self {
        let mut now = at(date, 0);
        let mut opening = None;
        loop {
            let status = calendar.status(now);
            match opening {
                None if status.is_open => opening = Some(now),
                Some(opening) if status.phase.as_str() != "open" => {
                    let closed = calendar.official_close(date).unwrap();
                    return Self {
                        opening,
                        freeze: now,
                        closed,
                    };
                }
                _ => {}
            }
            now = status.next_transition_at.unwrap();
        }
    }

    /// In seconds of the day.
    pub fn of_day(self, date: Date) -> [u64; 3] {
        let midnight_s = at(date, 0).as_second();
        [self.opening, self.freeze, self.closed].map(|at| (at.as_second() - midnight_s) as u64)
    }
}

pub struct Dates {
    pub kind: Kind,
    /// Those that are played, in order.
    pub played: Vec<Date>,
    /// As the exchange has it, but for a holiday that nobody knew of.
    pub calendar: Arc<MarketCalendar>,
    /// As the service has it at first.
    before: MarketCalendar,
    /// What the operator puts into the file of the service's settings.
    text: String,
}

impl Dates {
    /// Draws them. `folder` is for a file.
    pub fn draw(rng: &mut fastrand::Rng, folder: &Path) -> Self {
        let (kind, played) = match rng.u8(..12) {
            0 => (Kind::RegimeBegins, REGIME_BEGINS.to_vec()),
            1 => (Kind::HoursChange, vec![USUAL[rng.usize(..USUAL.len())]]),
            2 | 3 => (Kind::UnknownHoliday, HOLIDAYS[rng.usize(..HOLIDAYS.len())].to_vec()),
            _ => (Kind::Usual, vec![USUAL[rng.usize(..USUAL.len())]]),
        };
        let text = match kind {
            Kind::HoursChange => {
                let (closing, earliest) = AUCTIONS[rng.usize(..AUCTIONS.len())];
                format!(
                    "[[regime]]\nfrom = \"{}\"\npre_open = \"09:00-09:15\"\n\
                     continuous = \"09:15-15:30\"\nclosing = \"{closing}\"\n\
                     closing_earliest_end = \"{earliest}\"\n",
                    played[0]
                )
            }
            _ => String::new(),
        };
        let file = folder.join("exchange.toml");
        fs::write(&file, &text).unwrap();
        let calendar = Arc::new(MarketCalendar::load(Some(&file)).unwrap());
        fs::remove_file(file).unwrap();
        Self {
            kind,
            played,
            calendar,
            before: MarketCalendar::embedded(),
            text,
        }
    }

    /// The edges of a date as the exchange has them. Of a holiday: those that the service expects.
    pub fn hours(&self, date: Date) -> Hours {
        Hours::of(&self.calendar, date)
    }

    /// The edges of a date as the service expects them until it reads the operator's file again.
    pub fn hours_before(&self, date: Date) -> Hours {
        Hours::of(&self.before, date)
    }

    /// The phase that a service has to show at `now`: by the circulars, or by the hours that the
    /// exchange announced.
    pub fn phase(&self, now: Timestamp) -> &'static str {
        let local = clock::zoned(now);
        if self.kind == Kind::HoursChange || !self.calendar.is_trading_date(local.date()) {
            return self.calendar.status(now).phase.as_str();
        }
        let (_, phases) = PHASES
            .iter()
            .find(|(from, _)| *from <= local.date())
            .unwrap();
        let time = local.strftime("%H:%M").to_string();
        phases
            .iter()
            .rfind(|(from, _)| *from <= time.as_str())
            .unwrap()
            .1
    }

    /// Whether nothing trades on `date`, which the calendar does not know.
    pub fn is_unknown_holiday(&self, date: Date) -> bool {
        self.kind == Kind::UnknownHoliday && self.played[0] != date
    }

    /// Whether the exchange trades on a date.
    pub fn trades_on(&self) -> impl Fn(Date) -> bool + Send + Sync + use<> {
        let calendar = Arc::clone(&self.calendar);
        let holiday = self
            .played
            .last()
            .copied()
            .filter(|date| self.is_unknown_holiday(*date));
        move |date| calendar.is_trading_date(date) && holiday != Some(date)
    }

    /// The operator puts the changed hours into the file.
    pub fn write(&self, file: &Path) {
        fs::write(file, &self.text).unwrap();
    }
}

/// The operator's file, in which nothing stands yet.
pub fn empty_file(folder: &Path) -> PathBuf {
    let file = folder.join("calendar.toml");
    fs::write(&file, "").unwrap();
    file
}
