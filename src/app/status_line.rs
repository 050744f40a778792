//! The line that `systemctl status` shows: the address, the prices, the brokers' tokens, the store.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};

use crate::base::{ByBroker, clock};
use crate::brokers::session::token::TokenStatus;
use crate::market::Age;
use crate::views::states::StoreState;
use crate::warmers::Serving;

/// Older prices are shown with their time, younger ones with their age.
const AGE_SHOWN_MAX: SignedDuration = SignedDuration::from_mins(10);

/// The content of the line.
#[derive(Clone, Debug)]
pub(crate) struct StatusLine {
    pub now: Timestamp,
    pub address: String,
    pub serving: Option<Serving>,
    pub tokens: ByBroker<TokenStatus>,
    pub store: StoreState,
}

impl StatusLine {
    /// One line for an operator.
    pub(super) fn text(&self) -> String {
        let age = match self
            .serving
            .map(|serving| self.now.duration_since(serving.age.as_of))
        {
            None => String::new(),
            Some(age) if age > AGE_SHOWN_MAX => String::new(),
            Some(age) => format!(", {} s old", age.as_secs().max(0)),
        };
        self.with_age(&age)
    }

    /// The line without its age, which changes every second.
    pub(super) fn lasting(&self) -> String {
        self.with_age("")
    }

    fn with_age(&self, age: &str) -> String {
        let tokens = self.tokens.iter();
        let tokens: String = tokens
            .map(|(broker, status)| format!("; {} {}", broker.name(), token(status, self.now)))
            .collect();
        format!("{}; {}{age}{tokens}; store {}", self.address, self.prices(), self.store)
    }

    fn prices(&self) -> String {
        let Some(serving) = self.serving else {
            return "no prices yet".to_owned();
        };
        let Serving {
            age:
                Age {
                    as_of,
                    delay_s,
                    stale,
                    source,
                },
            phase,
        } = serving;
        let stale = if stale { "STALE " } else { "" };
        let mut text = format!("market {}, {stale}prices of {}", phase.as_str(), source.as_str());
        if let Some(delay_s) = delay_s {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {} min behind by nature", (delay_s + 30) / 60);
        }
        if self.now.duration_since(as_of) > AGE_SHOWN_MAX {
            let _ = write!(text, ", as of {}", moment(as_of));
        }
        text
    }
}

fn token(status: &TokenStatus, now: Timestamp) -> String {
    let expiry = status.expires_at.map(moment).unwrap_or_default();
    match status.expires_at {
        None => "has no token".to_owned(),
        Some(at) if at <= now => format!("token EXPIRED at {expiry}"),
        Some(_) if !status.valid => "token REFUSED".to_owned(),
        Some(_) if status.no_permission => format!("token until {expiry}, WITHOUT market data"),
        Some(_) => format!("token until {expiry}"),
    }
}

fn moment(at: Timestamp) -> String {
    clock::zoned(at).strftime("%d %b %H:%M IST").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Broker, Source};
    use crate::market::Phase;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn line() -> StatusLine {
        let none = TokenStatus {
            initialized: false,
            valid: false,
            token_type: Some("access_token"),
            set_at: None,
            expires_at: None,
            no_permission: false,
        };
        let set = TokenStatus {
            initialized: true,
            valid: true,
            expires_at: Some(at("2026-11-21T00:30:00Z")),
            ..none
        };
        StatusLine {
            now: at("2026-11-20T05:30:07Z"),
            address: "127.0.0.1:8080".into(),
            serving: Some(Serving {
                age: Age {
                    as_of: at("2026-11-20T05:30:05Z"),
                    delay_s: None,
                    stale: false,
                    source: Source::BrokerA,
                },
                phase: Phase::Open,
            }),
            tokens: ByBroker([set, none]),
            store: StoreState::Ok,
        }
    }

    #[test]
    fn the_line_says_the_age_of_the_data_and_the_state_of_the_tokens() {
        let mut line = line();
        assert_eq!(
            line.text(),
            "127.0.0.1:8080; market open, prices of broker_a, 2 s old; broker A token until \
             21 Nov 06:00 IST; broker B has no token; store ok"
        );
        let before = line.lasting();
        line.now = at("2026-11-20T05:30:09Z");
        assert!(line.text().contains("4 s old"));
        assert_eq!(line.lasting(), before, "the age alone is no change");
        if let Some(serving) = &mut line.serving {
            serving.age.stale = true;
        }
        assert_ne!(line.lasting(), before);
        line.now = at("2026-11-20T12:00:00Z");
        assert!(
            line.text()
                .contains("STALE prices of broker_a, as of 20 Nov 11:00 IST;")
        );
        if let Some(serving) = &mut line.serving {
            serving.age = Age {
                delay_s: Some(902),
                stale: false,
                ..serving.age
            };
        }
        assert!(
            line.text()
                .contains("prices of broker_a, 15 min behind by nature, as of 20 Nov 11:00 IST;")
        );
        line.serving = None;
        assert!(
            line.text()
                .starts_with("127.0.0.1:8080; no prices yet; broker A token")
        );
    }

    #[test]
    fn a_token_is_described_by_what_is_wrong_with_it() {
        let line = line();
        let good = line.tokens[Broker::A];
        let expiry = good.expires_at.unwrap();
        assert_eq!(token(&good, expiry), "token EXPIRED at 21 Nov 06:00 IST");
        let refused = TokenStatus {
            valid: false,
            ..good
        };
        assert_eq!(token(&refused, line.now), "token REFUSED");
        let poor = TokenStatus {
            no_permission: true,
            ..good
        };
        assert_eq!(token(&poor, line.now), "token until 21 Nov 06:00 IST, WITHOUT market data");
        assert_eq!(token(&line.tokens[Broker::B], line.now), "has no token");
    }
}
