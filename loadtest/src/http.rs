//! The driver's own HTTP requests: one client, one kind of answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;

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
    ) -> Result<Answer> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = match body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                self.0.run(request.body(body.to_string())?)
            }
            None => self.0.run(request.body(())?),
        };
        let url = url.to_owned();
        let mut response = sent.with_context(|| url.clone())?;
        let body = response
            .body_mut()
            .read_to_vec()
            .with_context(|| url.clone())?;
        let headers = response.headers().iter().map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(Answer {
            url,
            status: response.status().as_u16(),
            headers: headers.collect(),
            body,
        })
    }
}

/// GET with a client of its own.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Answer> {
    Client::new(DEADLINE).send("GET", url, headers, None)
}

impl Answer {
    /// Refuses any other status.
    pub fn expect(self, status: u16) -> Result<Self> {
        ensure!(self.status == status, "{} answered {}", self.url, self.status);
        Ok(self)
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} did not answer with JSON", self.url))
    }
}
