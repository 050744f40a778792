//! Detects silence and stalled prices on one connection: whether its ticks are reliable, when to
//! subscribe again, when to close it. Pure, on times of the monotonic clock.
//!
//! Silence and stalled prices are two alarms. A connection can stay open and send its heartbeat
//! while prices have stopped.

use std::collections::HashMap;

use crate::base::{CallWindow, Symbol};
use crate::brokers::broker_a::ticker::reading::Reason;

/// A connection without any message for this long is closed. The broker sends a heartbeat every
/// second or two.
const SILENT_MS: u64 = 5_000;
/// Time between two pings, and the longest time until a pong.
const PING_MS: u64 = 2_500;
const PONG_MS: u64 = 5_000;
/// While prices move, a leading index without a tick for longer counts as stalled.
const STANDS_MS: u64 = 3_000;
/// Every leading index must tick for the first time within this.
const FIRST_MS: u64 = 10_000;
/// If a leading index stalls for this long, everything is subscribed again; later the connection is
/// closed.
const RENEW_MS: u64 = 15_000;
const GIVE_UP_MS: u64 = 30_000;
/// A connection with this many badly framed messages within ten seconds is closed.
const BAD_MAX: usize = 10;
const BAD_SPAN_MS: u64 = 10_000;

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    /// Send a ping.
    Ping,
    /// Subscribe everything again.
    Renew,
    GiveUp(Reason),
}

/// The checks of one connection.
pub(super) struct Watch {
    opened_mono_ms: u64,
    heard_mono_ms: u64,
    /// The leading indices that are subscribed, and when each last ticked.
    leads: HashMap<Symbol, Option<u64>>,
    pinged_mono_ms: u64,
    /// The oldest ping without an answer.
    unanswered_mono_ms: Option<u64>,
    /// Time since which prices move, by the calendar.
    moves_since_mono_ms: Option<u64>,
    renewed: bool,
    bad: CallWindow,
}

impl Watch {
    /// The watch of a connection that has just been opened.
    pub(super) fn new(leads: &[Symbol], now_mono_ms: u64) -> Self {
        Self {
            opened_mono_ms: now_mono_ms,
            heard_mono_ms: now_mono_ms,
            leads: leads.iter().map(|lead| (lead.clone(), None)).collect(),
            pinged_mono_ms: now_mono_ms,
            unanswered_mono_ms: None,
            moves_since_mono_ms: None,
            renewed: false,
            bad: CallWindow::new(BAD_MAX, BAD_SPAN_MS),
        }
    }

    /// A message arrived.
    pub(super) fn heard(&mut self, now_mono_ms: u64) {
        self.heard_mono_ms = now_mono_ms;
    }

    pub(super) fn ponged(&mut self) {
        self.unanswered_mono_ms = None;
    }

    /// A tick arrived. A repeated one changes nothing.
    pub(super) fn ticked(&mut self, symbol: &Symbol, at_mono_ms: u64) {
        if let Some(last) = self.leads.get_mut(symbol)
            && *last < Some(at_mono_ms)
        {
            *last = Some(at_mono_ms);
            self.renewed = false;
        }
    }

    /// A badly framed message arrived.
    pub(super) fn bad(&mut self, now_mono_ms: u64) {
        self.bad.count(1, now_mono_ms);
    }

    /// Whether every leading index has ticked recently, so that quote calls may be rare.
    pub(super) fn is_live(&self, now_mono_ms: u64) -> bool {
        let lately = |at: &Option<u64>| at.is_some_and(|at| now_mono_ms - at <= STANDS_MS);
        !self.leads.is_empty() && self.leads.values().all(lately)
    }

    /// Whether every leading index has ticked on this connection.
    pub(super) fn has_ticked(&self) -> bool {
        self.leads.values().all(Option::is_some)
    }

    /// The next step. `moves`: by the calendar, the prices of indices move now.
    pub(super) fn judge(&mut self, moves: bool, now_mono_ms: u64) -> Verdict {
        self.moves_since_mono_ms = moves.then(|| self.moves_since_mono_ms.unwrap_or(now_mono_ms));
        if now_mono_ms.saturating_sub(self.heard_mono_ms) > SILENT_MS {
            return Verdict::GiveUp(Reason::Silent);
        }
        if self
            .unanswered_mono_ms
            .is_some_and(|at| now_mono_ms.saturating_sub(at) > PONG_MS)
        {
            return Verdict::GiveUp(Reason::NoPong);
        }
        if self.bad.calls(now_mono_ms) >= BAD_MAX {
            return Verdict::GiveUp(Reason::BadMessages);
        }
        if let Some(verdict) = self.of_leads(now_mono_ms) {
            return verdict;
        }
        if now_mono_ms.saturating_sub(self.pinged_mono_ms) >= PING_MS {
            self.pinged_mono_ms = now_mono_ms;
            self.unanswered_mono_ms.get_or_insert(now_mono_ms);
            return Verdict::Ping;
        }
        Verdict::Fine
    }

    fn of_leads(&mut self, now_mono_ms: u64) -> Option<Verdict> {
        let moves_since_mono_ms = self.moves_since_mono_ms?;
        let since = moves_since_mono_ms.max(self.opened_mono_ms);
        let last = self
            .leads
            .values()
            .map(|at| at.unwrap_or(0).max(since))
            .min()?;
        let stands_ms = now_mono_ms.saturating_sub(last);
        let limit_ms = if self.has_ticked() {
            GIVE_UP_MS
        } else {
            FIRST_MS
        };
        if stands_ms > limit_ms {
            return Some(Verdict::GiveUp(Reason::NoTicks));
        }
        if stands_ms > RENEW_MS && !self.renewed {
            self.renewed = true;
            return Some(Verdict::Renew);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads() -> Vec<Symbol> {
        ["NSE:NIFTY 50", "BSE:SENSEX"]
            .map(|name| Symbol::parse(name).unwrap())
            .into()
    }

    /// Simulates a connection that gets heartbeats and pongs until `to_ms`, checked every quarter
    /// of a second. Returns each verdict that is neither fine nor a ping.
    fn alarms(watch: &mut Watch, moves: bool, from_ms: u64, to_ms: u64) -> Vec<(u64, Verdict)> {
        let mut alarms = Vec::new();
        for now_ms in (from_ms..=to_ms).step_by(250) {
            watch.heard(now_ms);
            match watch.judge(moves, now_ms) {
                Verdict::Fine => {}
                Verdict::Ping => watch.ponged(),
                verdict => alarms.push((now_ms, verdict)),
            }
        }
        alarms
    }

    #[test]
    fn it_is_live_while_every_leading_index_ticks() {
        let leads = leads();
        let mut watch = Watch::new(&leads, 0);
        watch.ticked(&leads[0], 100);
        assert!(!watch.is_live(100), "one of two");
        watch.ticked(&leads[1], 200);
        assert!(watch.is_live(3_100) && !watch.is_live(3_101));
        watch.ticked(&Symbol::parse("NSE:INFY").unwrap(), 3_200);
        assert!(!watch.is_live(3_200), "a share is no index");
    }

    #[test]
    fn a_connection_without_a_first_tick_is_given_up_after_ten_seconds_of_trading() {
        let mut watch = Watch::new(&leads(), 0);
        assert_eq!(alarms(&mut watch, false, 0, 60_000), []);
        let found = alarms(&mut watch, true, 60_250, 70_500);
        assert_eq!(found, [(70_500, Verdict::GiveUp(Reason::NoTicks))]);
    }

    #[test]
    fn leading_indices_that_stand_are_subscribed_anew_and_then_given_up() {
        let leads = leads();
        let mut watch = Watch::new(&leads, 0);
        leads.iter().for_each(|lead| watch.ticked(lead, 0));
        let renewed = (15_250, Verdict::Renew);
        let given_up = (30_250, Verdict::GiveUp(Reason::NoTicks));
        assert_eq!(alarms(&mut watch, true, 0, 30_250), [renewed, given_up]);
        let mut watch = Watch::new(&leads, 0);
        leads.iter().for_each(|lead| watch.ticked(lead, 0));
        assert_eq!(alarms(&mut watch, true, 0, 15_250), [renewed]);
        leads.iter().for_each(|lead| watch.ticked(lead, 0));
        assert_eq!(alarms(&mut watch, true, 15_500, 20_000), [], "the ticks of before");
        let mut watch = Watch::new(&leads, 0);
        leads.iter().for_each(|lead| watch.ticked(lead, 0));
        assert_eq!(alarms(&mut watch, false, 0, 60_000), [], "nothing moves by the calendar");
    }

    #[test]
    fn silence_and_pings_without_an_answer_end_it() {
        let mut watch = Watch::new(&[], 0);
        assert_eq!(watch.judge(false, 2_500), Verdict::Ping);
        assert_eq!(watch.judge(false, 5_000), Verdict::Ping);
        assert_eq!(watch.judge(false, 5_001), Verdict::GiveUp(Reason::Silent));
        watch.heard(7_000);
        assert_eq!(watch.judge(false, 7_500), Verdict::Ping);
        assert_eq!(watch.judge(false, 7_501), Verdict::GiveUp(Reason::NoPong));
        watch.ponged();
        assert_eq!(watch.judge(false, 7_502), Verdict::Fine);
    }

    #[test]
    fn ten_bad_messages_within_ten_seconds_end_it() {
        let mut watch = Watch::new(&[], 0);
        for second in 0..30 {
            watch.heard(second * 1_200);
            watch.bad(second * 1_200);
            watch.ponged();
            assert!(!matches!(watch.judge(false, second * 1_200), Verdict::GiveUp(_)), "{second}");
        }
        (0..9).for_each(|_| watch.bad(36_000));
        watch.heard(36_000);
        assert_eq!(watch.judge(false, 36_000), Verdict::GiveUp(Reason::BadMessages));
    }
}
