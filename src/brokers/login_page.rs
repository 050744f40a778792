//! Where a person logs in at a broker to get a one-time code.

use super::settings::{BrokerASettings, BrokerBSettings};
use crate::base::Broker;

/// The address of the login page of the broker whose API is at `api_url`. The API key,
/// percent-encoded, belongs to its end.
///
/// A broker elsewhere than by default, such as the simulator, has its page below its own address:
/// who tries the simulator is not sent to log in at the real broker.
pub fn login_page(broker: Broker, api_url: &str) -> String {
    let (usual_api, usual_page, path) = match broker {
        Broker::A => (
            BrokerASettings::default().url,
            "https://kite.zerodha.com/connect/login",
            "/connect/login",
        ),
        Broker::B => (
            BrokerBSettings::default().url,
            "https://api.icicidirect.com/apiuser/login",
            "/apiuser/login",
        ),
    };
    let page =
        if api_url == usual_api { usual_page.to_owned() } else { format!("{api_url}{path}") };
    match broker {
        Broker::A => format!("{page}?v=3&api_key="),
        Broker::B => format!("{page}?api_key="),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_elsewhere_has_its_login_there_too() {
        let (a, b) = (BrokerASettings::default().url, BrokerBSettings::default().url);
        for (broker, url, expected) in [
            (Broker::A, a.as_str(), "https://kite.zerodha.com/connect/login?v=3&api_key="),
            (Broker::B, &b, "https://api.icicidirect.com/apiuser/login?api_key="),
            (Broker::A, "http://127.0.0.1:1/a", "http://127.0.0.1:1/a/connect/login?v=3&api_key="),
            (Broker::B, "http://127.0.0.1:1/b", "http://127.0.0.1:1/b/apiuser/login?api_key="),
        ] {
            assert_eq!(login_page(broker, url), expected);
        }
    }
}
