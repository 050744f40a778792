//! Decides which of two tokens holds: the one in force here, or the one that another node sent.
//! Pure.
//!
//! The later of two tokens holds, if the times of both are known. A token that the settings had at
//! a start may be stale, so it does not replace a valid one. If there is no valid one it is tried,
//! and a refusal by the broker decides. So nodes with different settings change each other's tokens
//! only if that is known to be an improvement.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use crate::base::Broker;
use crate::nodes::cluster::TokenEvent;
use crate::nodes::tokens::sealed::{RefusedToken, TokenPrint};

/// Largest difference of the nodes' clocks. A token from further ahead would keep out later ones.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Refused tokens that are remembered: a few days' of both brokers.
const REFUSED_MAX: usize = 16;

/// The parts of a token that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) print: TokenPrint,
    pub(super) set_at: Timestamp,
    /// Whether it was given at `set_at`, or may be older.
    pub(super) dated: bool,
    pub(super) expires_at: Timestamp,
}

impl Candidate {
    /// Times are sent in whole milliseconds.
    fn at_ms(&self) -> i64 {
        self.set_at.as_millisecond()
    }
}

/// The judgement of a token that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Take,
    /// It is in force here already.
    Same,
    Not(TokenEvent),
}

/// Judges `told`. `ours` is the one that is in force here, if it is valid.
pub(super) fn judge(
    told: &Candidate,
    ours: Option<&Candidate>,
    is_refused: bool,
    now: Timestamp,
) -> Verdict {
    if now >= told.expires_at {
        return Verdict::Not(TokenEvent::Late);
    }
    if told.set_at.duration_since(now) > AHEAD_MAX {
        return Verdict::Not(TokenEvent::Ahead);
    }
    if is_refused {
        return Verdict::Not(TokenEvent::Refused);
    }
    let Some(ours) = ours else {
        return Verdict::Take;
    };
    if told.print == ours.print {
        return Verdict::Same;
    }
    // Brokers state whole seconds. Of two logins in one second all nodes choose the same.
    let is_later = (told.at_ms(), told.print) > (ours.at_ms(), ours.print);
    if told.dated && is_later {
        Verdict::Take
    } else {
        Verdict::Not(TokenEvent::Old)
    }
}

/// Tokens that a broker refused.
#[derive(Debug, Default)]
pub(super) struct RefusedTokens(VecDeque<RefusedToken>);

impl RefusedTokens {
    pub(super) fn add(&mut self, token: RefusedToken) {
        self.0
            .retain(|known| (known.broker, known.print) != (token.broker, token.print));
        if self.0.len() == REFUSED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(token);
    }

    /// The refusal of this token. A token that was given later is another one, even if its text is
    /// the same.
    pub(super) fn of(&self, broker: Broker, token: &Candidate) -> Option<&RefusedToken> {
        self.0
            .iter()
            .find(|refused| refused.broker == broker && concerns(refused, token))
    }
}

/// Whether a refusal is of this token.
pub(super) fn concerns(refused: &RefusedToken, token: &Candidate) -> bool {
    let before = token.at_ms() <= refused.set_at.as_millisecond();
    refused.print == token.print && (before || !token.dated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::session::token::expiry;

    const NOW: &str = "2026-11-20T09:00:00+05:30";

    fn at(time: &str) -> Timestamp {
        format!("2026-11-20T{time}+05:30").parse().unwrap()
    }

    fn candidate(letter: u8, time: &str) -> Candidate {
        let set_at = at(time);
        Candidate {
            print: [letter; 32],
            set_at,
            dated: true,
            expires_at: expiry(set_at),
        }
    }

    fn verdict(told: &Candidate, ours: Option<&Candidate>) -> Verdict {
        judge(told, ours, false, NOW.parse().unwrap())
    }

    #[test]
    fn the_later_of_two_holds_and_a_recording_of_the_earlier_changes_nothing() {
        let early = candidate(1, "08:00:00");
        let late = candidate(2, "08:30:00");
        assert_eq!(verdict(&late, Some(&early)), Verdict::Take);
        assert_eq!(verdict(&early, Some(&late)), Verdict::Not(TokenEvent::Old));
        assert_eq!(verdict(&late, Some(&late)), Verdict::Same);
        assert_eq!(verdict(&early, None), Verdict::Take);
        let same_second = candidate(3, "08:30:00");
        assert_eq!(verdict(&same_second, Some(&late)), Verdict::Take);
        assert_eq!(verdict(&late, Some(&same_second)), Verdict::Not(TokenEvent::Old));
    }

    #[test]
    fn a_token_that_settings_had_at_a_start_takes_no_valid_ones_place() {
        let login = candidate(1, "08:00:00");
        let started = candidate(2, "08:50:00");
        let started = Candidate {
            dated: false,
            ..started
        };
        assert_eq!(verdict(&started, Some(&login)), Verdict::Not(TokenEvent::Old));
        assert_eq!(verdict(&started, None), Verdict::Take);
        assert_eq!(verdict(&login, Some(&started)), Verdict::Not(TokenEvent::Old));
        assert_eq!(verdict(&candidate(3, "08:55:00"), Some(&started)), Verdict::Take);
    }

    #[test]
    fn what_has_expired_or_comes_from_the_future_is_refused() {
        let yesterday = candidate(1, "05:59:59");
        assert_eq!(verdict(&yesterday, None), Verdict::Not(TokenEvent::Late));
        assert_eq!(verdict(&candidate(1, "09:10:00"), None), Verdict::Take);
        assert_eq!(verdict(&candidate(1, "09:10:01"), None), Verdict::Not(TokenEvent::Ahead));
    }

    #[test]
    fn a_refused_token_stays_refused_until_a_later_login_gives_it_again() {
        let token = candidate(1, "08:00:00");
        let mut refused = RefusedTokens::default();
        let broker = Broker::A;
        refused.add(RefusedToken {
            broker,
            print: token.print,
            set_at: token.set_at,
        });
        let is_refused = |token: &Candidate| refused.of(broker, token).is_some();
        assert!(is_refused(&token) && refused.of(Broker::B, &token).is_none());
        assert!(!is_refused(&candidate(1, "08:00:01")) && !is_refused(&candidate(2, "08:00:00")));
        assert!(is_refused(&Candidate {
            dated: false,
            ..candidate(1, "08:50:00")
        }));
        let now = NOW.parse().unwrap();
        assert_eq!(judge(&token, None, true, now), Verdict::Not(TokenEvent::Refused));
    }

    #[test]
    fn only_the_last_refusals_are_remembered() {
        let mut refused = RefusedTokens::default();
        for letter in 0..=REFUSED_MAX as u8 {
            let set_at = at("08:00:00");
            refused.add(RefusedToken {
                broker: Broker::A,
                print: [letter; 32],
                set_at,
            });
        }
        assert!(refused.of(Broker::A, &candidate(0, "08:00:00")).is_none());
        assert!(refused.of(Broker::A, &candidate(1, "08:00:00")).is_some());
    }
}
