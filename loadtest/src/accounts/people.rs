//! The driver as a person: registers, logs in, renders requests with a token.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use ureq::Agent;
use ureq::http::StatusCode;

use super::states::credentials;
use crate::error::Error;

/// Everybody's.
pub const PASSWORD: &str = "paper boats in the monsoon 7";

/// Longest wait for any answer: the service's own longest deadline and some.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Session {
    access_token: String,
}

/// A client with its own connections; answers with any status are no errors.
pub fn agent() -> Agent {
    Agent::config_builder()
        .timeout_global(Some(ANSWER_DEADLINE))
        .http_status_as_error(false)
        .build()
        .into()
}

/// Registers somebody.
///
/// # Errors
/// The answer is not 201.
pub fn register(address: SocketAddr, email: &str) -> Result<(), Error> {
    let url = format!("http://{address}/api/auth/register");
    let response = agent().post(&url).send_json(credentials(email)).map_err(lost(&url))?;
    expect(&url, StatusCode::CREATED, response.status())
}

/// A token for somebody.
///
/// # Errors
/// The answer is not 200.
pub fn log_in(address: SocketAddr, email: &str) -> Result<String, Error> {
    let url = format!("http://{address}/api/auth/login");
    let mut response = agent().post(&url).send_json(credentials(email)).map_err(lost(&url))?;
    expect(&url, StatusCode::OK, response.status())?;
    let session: Session = response.body_mut().read_json().map_err(lost(&url))?;
    Ok(session.access_token)
}

/// A counter of bhav's health, by its path in the document.
///
/// # Errors
/// Health does not answer or has no such number.
pub fn health_count(address: SocketAddr, pointer: &str) -> Result<u64, Error> {
    let url = format!("http://{address}/api/health");
    let mut response = agent().get(&url).call().map_err(lost(&url))?;
    let document: Value = response.body_mut().read_json().map_err(lost(&url))?;
    let count = document.pointer(pointer).and_then(Value::as_u64);
    count.ok_or(Error::Unexpected("bhav's health lacks a counter"))
}

/// The document at `path`, for somebody.
///
/// # Errors
/// The answer is not 200 or no JSON.
pub fn read_json(address: SocketAddr, path: &str, token: &str) -> Result<Value, Error> {
    let url = format!("http://{address}{path}");
    let bearer = format!("Bearer {token}");
    let mut response =
        agent().get(&url).header("Authorization", bearer).call().map_err(lost(&url))?;
    expect(&url, StatusCode::OK, response.status())?;
    response.body_mut().read_json().map_err(lost(&url))
}

/// ETag and length of the body at `path`, for a client with these header lines.
///
/// # Errors
/// The answer is not 200 or has no ETag.
pub fn look_at(
    address: SocketAddr,
    path: &str,
    token: &str,
    accept_encoding: &str,
) -> Result<(String, usize), Error> {
    let url = format!("http://{address}{path}");
    let mut response = agent()
        .get(&url)
        .header("Authorization", format!("Bearer {token}"))
        .header("Accept-Encoding", accept_encoding)
        .call()
        .map_err(lost(&url))?;
    expect(&url, StatusCode::OK, response.status())?;
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let etag = header("etag").ok_or(Error::Unexpected("an answer without ETag"))?.to_owned();
    let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    response.body_mut().read_to_vec().map_err(lost(&url))?;
    Ok((etag, length))
}

/// The text of a request with a token and more header lines; `body` makes it a POST of JSON.
pub fn rendered(
    address: SocketAddr,
    path: &str,
    token: Option<&str>,
    lines: &[(&str, &str)],
    body: Option<&str>,
) -> String {
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: openloop/0.1\r\n\
         Accept: application/json\r\nAccept-Language: en-IN,en;q=0.9\r\n"
    );
    if let Some(token) = token {
        text.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    for (name, value) in lines {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        let length = body.len();
        text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body.unwrap_or_default());
    text
}

/// Writes requests where the generator reads them.
///
/// # Errors
/// The file cannot be written.
pub fn write_requests(folder: &Path, name: &str, texts: &[String]) -> Result<PathBuf, Error> {
    let file = folder.join(format!("requests-{name}.json"));
    let json = serde_json::to_vec(texts).map_err(|_| Error::Unexpected("texts that are none"))?;
    fs::write(&file, json).map_err(Error::io("write requests"))?;
    Ok(file)
}

fn expect(url: &str, wanted: StatusCode, status: StatusCode) -> Result<(), Error> {
    match status == wanted {
        true => Ok(()),
        false => Err(Error::Invalid(format!("{url} answered {status}"))),
    }
}

fn lost(url: &str) -> impl Fn(ureq::Error) -> Error {
    move |source| Error::Http { url: url.to_owned(), source: Box::new(source) }
}
