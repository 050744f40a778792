//! The next market phase that a person would wait for. Pure.

use jiff::Timestamp;

use crate::market::{MarketCalendar, Phase};

/// Most phase changes examined. Between two sessions there are a few for each day.
const CHANGES_MAX: usize = 64;

/// The next phase that differs from the current one, with its time. Closed and holiday count as the
/// same. `None` if the calendar ends before it.
pub fn next_phase(calendar: &MarketCalendar, now: Timestamp) -> Option<(Timestamp, Phase)> {
    let rests = |phase: Phase| matches!(phase, Phase::Closed | Phase::Holiday);
    let status = calendar.status(now);
    let mut next = status.next_transition_at;
    for _ in 0..CHANGES_MAX {
        let at = next?;
        let then = calendar.status(at);
        let same = then.phase == status.phase || (rests(then.phase) && rests(status.phase));
        if !same {
            return Some((at, then.phase));
        }
        next = then.next_transition_at;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ist;

    #[test]
    fn the_next_phase_differs_and_skips_days_without_a_session() {
        let calendar = MarketCalendar::embedded();
        for (now, at, phase) in [
            ("2026-11-20T11:00:00+05:30", "2026-11-20T15:15:00+05:30", "closing"),
            ("2026-11-20T15:29:00+05:30", "2026-11-20T15:35:00+05:30", "closed"),
            ("2026-11-20T20:00:00+05:30", "2026-11-23T09:00:00+05:30", "pre_open"),
            ("2026-11-21T10:00:00+05:30", "2026-11-23T09:00:00+05:30", "pre_open"),
            ("2026-11-24T10:00:00+05:30", "2026-11-25T09:00:00+05:30", "pre_open"),
        ] {
            let (next, then) = next_phase(&calendar, now.parse().unwrap()).unwrap();
            assert_eq!((ist::iso(next).as_str(), then.as_str()), (at, phase), "{now}");
        }
        assert!(next_phase(&calendar, "2099-01-01T00:00:00Z".parse().unwrap()).is_none());
    }
}
