//! The login of a person at a broker: its page, and the one-time code that comes back. Pure.

use crate::base::Broker;

/// What a broker's login looks like.
pub(crate) struct Login {
    /// The default URL of the API.
    pub(crate) usual_api: &'static str,
    /// The login page that belongs to that URL.
    pub(crate) usual_page: &'static str,
    /// The page below any other URL of the API.
    pub(crate) path: &'static str,
    /// What the page's address ends with, before the percent-encoded API key.
    pub(crate) query: &'static str,
    /// The name of the one-time code where the broker sends the browser with it, and the name in
    /// our own requests, which is understood there too.
    pub(crate) code_names: [&'static str; 2],
    /// The one-time code in words.
    pub(crate) code_in_words: &'static str,
    /// Whether the login may have the browser send the code in a form.
    pub(crate) sends_a_form: bool,
}

/// Kite Connect's login.
const LOGIN_A: Login = Login {
    usual_api: "https://api.kite.trade",
    usual_page: "https://kite.zerodha.com/connect/login",
    path: "/connect/login",
    query: "?v=3&api_key=",
    code_names: ["request_token", "request_token"],
    code_in_words: "request_token",
    sends_a_form: false,
};

/// Breeze's login.
const LOGIN_B: Login = Login {
    usual_api: "https://api.icicidirect.com/breezeapi/api/v1",
    usual_page: "https://api.icicidirect.com/apiuser/login",
    path: "/apiuser/login",
    query: "?api_key=",
    code_names: ["apisession", "api_session"],
    code_in_words: "API session",
    sends_a_form: true,
};

/// The login of a broker.
pub(crate) const fn login_at(broker: Broker) -> &'static Login {
    match broker {
        Broker::A => &LOGIN_A,
        Broker::B => &LOGIN_B,
    }
}

impl Login {
    /// The address of the login page of the broker whose API is at `api_url`. The caller appends
    /// the percent-encoded API key.
    ///
    /// If the broker's URL is not the default, as with the simulator, the page is below that URL,
    /// so that users of the simulator are not sent to the real broker.
    pub(crate) fn page(&self, api_url: &str) -> String {
        let query = self.query;
        if api_url == self.usual_api {
            format!("{}{query}", self.usual_page)
        } else {
            format!("{api_url}{}{query}", self.path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_elsewhere_has_its_login_there_too() {
        for (broker, url, expected) in [
            (
                Broker::A,
                "https://api.kite.trade",
                "https://kite.zerodha.com/connect/login?v=3&api_key=",
            ),
            (
                Broker::B,
                "https://api.icicidirect.com/breezeapi/api/v1",
                "https://api.icicidirect.com/apiuser/login?api_key=",
            ),
            (
                Broker::A,
                "http://127.0.0.1:1/a",
                "http://127.0.0.1:1/a/connect/login?v=3&api_key=",
            ),
            (Broker::B, "http://127.0.0.1:1/b", "http://127.0.0.1:1/b/apiuser/login?api_key="),
        ] {
            assert_eq!(login_at(broker).page(url), expected);
        }
    }
}
