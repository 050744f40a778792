//! The driver's own HTTP requests: one client, one kind of answer.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;

use crate::error::Error;

/// Deadline of an ordinary request: longer than the service's own longest.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A client with its own keep-alive connections.
pub struct Client(Agent);

/// An answer with any status.
#[derive(Debug)]
pub struct Answer {
    url: String,
    /// Status.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it came, without decoding.
    pub body: Vec<u8>,
}

impl Client {
    /// A client whose requests fail after `deadline`.
    pub fn new(deadline: Duration) -> Self {
        let config = Agent::config_builder().timeout_global(Some(deadline));
        Self(config.http_status_as_error(false).build().into())
    }

    /// Sends one request, with a JSON body if there is one, and reads the answer to its end.
    pub fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer, Error> {
        let failed = |source| Error::Http { url: url.to_owned(), source: Box::new(source) };
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                request.body(body.to_string()).map(|request| self.0.run(request))
            }
            None => request.body(()).map(|request| self.0.run(request)),
        };
        let mut response = sent.map_err(ureq::Error::from).and_then(|sent| sent).map_err(failed)?;
        let body = response.body_mut().read_to_vec().map_err(failed)?;
        let headers = response.headers().iter().map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let status = response.status().as_u16();
        Ok(Answer { url: url.to_owned(), status, headers: headers.collect(), body })
    }
}

/// GET with a client of its own.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Answer, Error> {
    Client::new(DEADLINE).send("GET", url, headers, None)
}

impl Answer {
    /// Refuses any other status.
    pub fn expect(self, status: u16) -> Result<Self, Error> {
        match self.status == status {
            true => Ok(self),
            false => Err(Error::Invalid(format!("{} answered {}", self.url, self.status))),
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value, Error> {
        let text = || Error::Invalid(format!("{} did not answer with JSON", self.url));
        serde_json::from_slice(&self.body).map_err(|_| text())
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}
