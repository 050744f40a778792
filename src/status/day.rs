//! The states of the last day, in pieces of five minutes: each the worst that was seen.
//!
//! In memory alone: a restart begins with none. Pure.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::views::health::{Health, HealthDay};
use crate::views::states::{FeedState, ServiceState, StoreState, WarmerState};
use crate::views::values::Instant;

const PIECE_S: i64 = 300;
const PIECES: usize = 288;
const PARTS: usize = 5;

/// How a part was, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    /// Nothing is known, or it is not in use.
    #[default]
    Nothing,
    Good,
    Restricted,
    Down,
}

impl Seen {
    const fn letter(self) -> char {
        match self {
            Self::Nothing => '-',
            Self::Good => 'o',
            Self::Restricted => 'd',
            Self::Down => 'x',
        }
    }
}

/// The last day.
#[derive(Default)]
pub(super) struct Day {
    /// The oldest first.
    pieces: VecDeque<[Seen; PARTS]>,
    /// Number of the last piece, from the epoch.
    last: i64,
}

impl Day {
    /// Adds what the document says of this moment.
    pub(super) fn add(&mut self, health: &Health, now: Timestamp) {
        self.go_to(now.as_second().div_euclid(PIECE_S));
        let Some(piece) = self.pieces.back_mut() else {
            return;
        };
        for (worst, seen) in piece.iter_mut().zip(parts(health)) {
            *worst = (*worst).max(seen);
        }
    }

    /// Begins the pieces up to `piece`. A clock that goes back adds to the last one.
    fn go_to(&mut self, piece: i64) {
        let passed = if self.pieces.is_empty() {
            1
        } else {
            piece - self.last
        };
        if passed <= 0 {
            return;
        }
        self.last = piece;
        for _ in 0..passed.min(PIECES as i64) {
            self.pieces.push_back(<[Seen; PARTS]>::default());
        }
        while self.pieces.len() > PIECES {
            self.pieces.pop_front();
        }
    }

    /// The day as a document; `None` before anything was added.
    pub(super) fn view(&self) -> Option<HealthDay> {
        let ends = Timestamp::from_second((self.last + 1).checked_mul(PIECE_S)?).ok()?;
        let of = |part: usize| {
            self.pieces
                .iter()
                .map(|piece| piece[part].letter())
                .collect()
        };
        (!self.pieces.is_empty()).then(|| HealthDay {
            piece_s: PIECE_S.unsigned_abs(),
            ends_ist: Instant(ends),
            service: of(0),
            prices: of(1),
            broker_a: of(2),
            public: of(3),
            database: of(4),
        })
    }
}

/// The parts, in the order of the document.
fn parts(health: &Health) -> [Seen; PARTS] {
    let prices = match health.warmers.index {
        WarmerState::Ok => Seen::Good,
        WarmerState::Starting | WarmerState::Paused => Seen::Nothing,
        WarmerState::Stale => Seen::Restricted,
        WarmerState::Failing => Seen::Down,
    };
    let database = match health.database {
        StoreState::Ok => Seen::Good,
        StoreState::Full | StoreState::ReadOnly | StoreState::Busy | StoreState::Stuck => {
            Seen::Restricted
        }
        StoreState::Corrupt | StoreState::Unavailable => Seen::Down,
    };
    let broker_a = feed(health.feeds.broker_a.state);
    let public = feed(health.feeds.public.state);
    // Before its first prices a service is down; at a start that is so without any failure.
    let is_starting = matches!(health.warmers.index, WarmerState::Starting)
        && [broker_a, public, database]
            .iter()
            .all(|part| *part < Seen::Down);
    let service = match health.status {
        ServiceState::Ok => Seen::Good,
        ServiceState::Degraded => Seen::Restricted,
        ServiceState::Down if is_starting => Seen::Nothing,
        ServiceState::Down => Seen::Down,
    };
    [service, prices, broker_a, public, database]
}

fn feed(state: FeedState) -> Seen {
    use FeedState::{
        Failing, Hanging, Mute, NoPermission, NoToken, Off, Ok, Open, RateLimited, Relayed, Stale,
        Standby, Starting, TokenDead,
    };
    match state {
        Ok | Relayed => Seen::Good,
        Off | Standby | Starting => Seen::Nothing,
        Mute | RateLimited | Stale => Seen::Restricted,
        Failing | Hanging | NoPermission | NoToken | Open | TokenDead => Seen::Down,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn health(status: ServiceState) -> Health {
        Health {
            status,
            database: StoreState::Ok,
            ..Health::default()
        }
    }

    #[test]
    fn a_piece_has_the_worst_state_and_what_was_not_seen_has_none() {
        let mut day = Day::default();
        assert!(day.view().is_none());
        day.add(&health(ServiceState::Ok), at("2026-11-20T11:00:00+05:30"));
        day.add(&health(ServiceState::Degraded), at("2026-11-20T11:02:00+05:30"));
        day.add(&health(ServiceState::Ok), at("2026-11-20T11:04:59+05:30"));
        day.add(&health(ServiceState::Ok), at("2026-11-20T11:05:00+05:30"));
        // The process was held for ten minutes; then its clock went back a little.
        day.add(&health(ServiceState::Down), at("2026-11-20T11:15:00+05:30"));
        day.add(&health(ServiceState::Ok), at("2026-11-20T11:14:00+05:30"));
        let view = day.view().unwrap();
        assert_eq!((&*view.service, &*view.database), ("do-x", "oo-o"));
        assert_eq!(view.ends_ist.0, at("2026-11-20T11:20:00+05:30"));
        assert_eq!(view.piece_s, 300);
    }

    #[test]
    fn the_seconds_before_the_first_prices_of_a_start_are_no_failure() {
        let mut day = Day::default();
        let mut starting = health(ServiceState::Down);
        starting.warmers.index = WarmerState::Starting;
        starting.feeds.broker_a.state = FeedState::Starting;
        starting.feeds.public.state = FeedState::Standby;
        day.add(&starting, at("2026-11-20T11:00:00+05:30"));
        assert_eq!(day.view().unwrap().service, "-");
        day.add(&health(ServiceState::Ok), at("2026-11-20T11:00:01+05:30"));
        assert_eq!(day.view().unwrap().service, "o");
        starting.feeds.public.state = FeedState::Failing;
        day.add(&starting, at("2026-11-20T11:05:00+05:30"));
        assert_eq!(day.view().unwrap().service, "ox");
    }

    #[test]
    fn it_keeps_a_day() {
        let mut day = Day::default();
        let begin = at("2026-11-20T00:00:00+05:30");
        for second in (0..2 * 86_400).step_by(60) {
            let now = begin + jiff::SignedDuration::from_secs(second);
            let status = if second < 86_400 {
                ServiceState::Down
            } else {
                ServiceState::Ok
            };
            day.add(&health(status), now);
        }
        assert_eq!(day.view().unwrap().service, "o".repeat(PIECES));
        // Held for a week.
        day.add(&health(ServiceState::Ok), begin + jiff::SignedDuration::from_hours(24 * 9));
        let service = day.view().unwrap().service;
        assert_eq!(service, format!("{}o", "-".repeat(PIECES - 1)));
    }
}
