//! Where a person logs in at a broker to get a one-time code.

use crate::base::Broker;

/// The address of the broker's login page. The API key, percent-encoded, belongs to its end.
pub const fn login_page(broker: Broker) -> &'static str {
    match broker {
        Broker::A => "https://kite.zerodha.com/connect/login?v=3&api_key=",
        Broker::B => "https://api.icicidirect.com/apiuser/login?api_key=",
    }
}
