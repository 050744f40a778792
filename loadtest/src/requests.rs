//! Requests that are rendered before a slice: for a user's token, with header lines, with a body.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::databases::{FEW_USERS, email, log_in};
use crate::harness::{Harness, SYMBOLS_PER_REQUEST, wait_for_quotes};
use crate::http;
use crate::servers::Server;
use crate::snapshot;

/// Views of a user's holdings; each is an answer of its own.
const VIEWS: [&str; 3] = ["", "?broker=a", "?broker=b"];

/// A request for each view of each large user.
pub const VIEWS_OF_ALL_USERS: usize = VIEWS.len() * FEW_USERS;

/// Clients that write to their journals, each another user, each with one write under way.
pub const JOURNAL_CLIENTS: usize = 64;

pub const HOLDINGS: &str = "/api/portfolio/holdings";

/// Of the clients' choices of symbols, which are the same in each run.
const CHOICES_SEED: u64 = 1;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Snapshot(Form),
    /// Quotes of fifty symbols that are all cached.
    LivePrices,
    /// Quotes of fifty symbols for each of so many clients, of its own choice, from a cold cache.
    Choices(usize),
    /// The first user's holdings.
    Holdings(Form),
    /// Every view of every large user's holdings.
    AllHoldings,
    /// A new entry in the journal of each of many users.
    JournalWrites,
}

/// In which form an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Identity,
    Gzip,
    /// 304: the client has it.
    NotModified,
}

/// Whole requests, one for each connection in turn.
pub struct Requests {
    pub texts: Vec<String>,
    /// Status that is expected.
    pub status: u16,
    /// Length of the body of one answer, where it is shown.
    pub body_bytes: usize,
}

/// Requests for every view of the first users' holdings.
fn all_holdings(server: &Server) -> Result<Vec<String>> {
    let bearers = (1..=FEW_USERS).map(|user| bearer(server, user));
    let bearers = bearers.collect::<Result<Vec<_>, _>>()?;
    let mut texts = Vec::new();
    // One view after the other rather than one user after the other: the longest time between two
    // requests for one user's answers.
    for path in VIEWS.map(|view| format!("{HOLDINGS}{view}")) {
        let lines = bearers
            .iter()
            .map(|bearer| [("Authorization", bearer.as_str())]);
        texts.extend(lines.map(|lines| text(server, &path, &lines, None)));
    }
    Ok(texts)
}

/// Renders requests for a server.
pub fn render(harness: &Harness, server: &Server, what: What) -> Result<Requests> {
    let (mut texts, mut status, mut body_bytes) = (Vec::new(), 200, 0);
    match what {
        // The snapshot changes every second; any tag stands for the one that the client just got.
        What::Snapshot(form) => texts.push(text(server, snapshot::PATH, &form.lines("*"), None)),
        What::LivePrices => {
            let symbols = &harness.symbols(server)?[..SYMBOLS_PER_REQUEST];
            wait_for_quotes(server, symbols)?;
            texts.push(text(server, &live_prices_path(symbols), &[], None));
        }
        What::Choices(clients) => {
            let symbols = harness.symbols(server)?;
            let mut random = fastrand::Rng::with_seed(CHOICES_SEED);
            texts.extend((0..clients).map(|_| {
                let chosen = random.choose_multiple(symbols, SYMBOLS_PER_REQUEST);
                text(server, &live_prices_path(chosen), &[], None)
            }));
        }
        What::Holdings(form) => {
            let bearer = bearer(server, 1)?;
            let authorization = ("Authorization", bearer.as_str());
            let coding = if form == Form::Gzip {
                "gzip"
            } else {
                "identity"
            };
            let lines = [authorization, ("Accept-Encoding", coding)];
            let answer = http::get(&server.url(HOLDINGS), &lines)?.expect(200)?;
            let tag = answer.headers.iter().find(|(name, _)| name == "etag");
            let mut lines = form.lines(&tag.context("holdings without ETag")?.1);
            lines.push(authorization);
            texts.push(text(server, HOLDINGS, &lines, None));
            body_bytes = if form == Form::NotModified {
                0
            } else {
                answer.body.len()
            };
        }
        What::AllHoldings => texts = all_holdings(server)?,
        What::JournalWrites => {
            let entry = json!({
                "traded_on": "2026-10-14", "symbol": "NSE:INFY", "side": "buy", "quantity": 10,
                "price": 1412.95,
            });
            for user in 1..=JOURNAL_CLIENTS {
                let lines = [("Authorization", &*bearer(server, user)?)];
                texts.push(text(server, "/api/journal", &lines, Some(&entry)));
            }
            status = 201;
        }
    }
    if let What::Snapshot(Form::NotModified) | What::Holdings(Form::NotModified) = what {
        status = 304;
    }
    Ok(Requests {
        texts,
        status,
        body_bytes,
    })
}

impl Form {
    /// Header lines that ask for this form, of what has this tag.
    fn lines(self, tag: &str) -> Vec<(&'static str, &str)> {
        match self {
            Self::Identity => Vec::new(),
            Self::Gzip => vec![("Accept-Encoding", "gzip")],
            Self::NotModified => vec![("If-None-Match", tag)],
        }
    }
}

/// Path of a request for the quotes of these symbols.
pub fn live_prices_path<S: AsRef<str>>(symbols: impl IntoIterator<Item = S>) -> String {
    let symbols: Vec<String> = symbols
        .into_iter()
        .map(|symbol| symbol.as_ref().to_owned())
        .collect();
    let symbols = symbols.join(",").replace('&', "%26").replace(' ', "%20");
    format!("/api/portfolio/live-prices?symbols={symbols}")
}

pub fn bearer(server: &Server, user: usize) -> Result<String> {
    Ok(format!("Bearer {}", log_in(server, &email(user))?))
}

/// The text of a request; `body` makes it a POST of JSON.
fn text(server: &Server, path: &str, lines: &[(&str, &str)], body: Option<&Value>) -> String {
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: openloop/0.1\r\n\
         Accept: application/json\r\nAccept-Language: en-IN,en;q=0.9\r\n",
        server.address
    );
    for (name, value) in lines {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        let length = body.len();
        text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    text + "\r\n" + &body
}
