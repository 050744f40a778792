//! What a client saw of a node: one answer, and when.

use serde_json::Value;

use crate::http::Answer;

/// One request and its answer.
#[derive(Debug, Clone)]
pub struct Seen {
    pub node: usize,
    /// The number of the node's start when it was asked.
    pub start: u32,
    /// It was not killed, stopped, ended or started between request and answer.
    pub lived: bool,
    /// Since the beginning of the run.
    pub sent_ms: u64,
    pub got_ms: u64,
    pub what: What,
}

/// What was asked, with the status: 0 stands for no answer.
#[derive(Debug, Clone)]
pub enum What {
    Snapshot {
        status: u16,
        shown: Option<Shown>,
    },
    Prices {
        status: u16,
        as_of: Vec<(String, String)>,
    },
    Health {
        leads: bool,
        epoch: Option<u64>,
    },
    /// A page of the journal.
    Read {
        status: u16,
    },
    /// A new entry of the journal.
    Write {
        status: u16,
    },
}

/// What a snapshot says of its prices.
#[derive(Debug, Clone)]
pub struct Shown {
    pub as_of: String,
    pub stale: bool,
    pub source: String,
}

impl What {
    pub fn snapshot(answer: Option<&Answer>) -> Self {
        let market = answer.and_then(|answer| Some(answer.json().ok()?["market"].clone()));
        let shown = market.and_then(|market| {
            Some(Shown {
                as_of: market["as_of_ist"].as_str()?.to_owned(),
                stale: market["stale"].as_bool()?,
                source: market["source"].as_str()?.to_owned(),
            })
        });
        Self::Snapshot { status: status(answer), shown }
    }

    pub fn prices(answer: Option<&Answer>) -> Self {
        let document = answer.and_then(|answer| answer.json().ok()).unwrap_or_default();
        let quotes = document["quotes"].as_array().into_iter().flatten();
        let as_of = quotes.filter_map(|quote| {
            Some((quote["symbol"].as_str()?.to_owned(), quote["as_of"].as_str()?.to_owned()))
        });
        Self::Prices { status: status(answer), as_of: as_of.collect() }
    }

    pub fn health(answer: Option<&Answer>) -> Option<Self> {
        let health: Value = answer?.json().ok()?;
        Some(Self::Health { leads: health["role"] == "leader", epoch: health["epoch"].as_u64() })
    }
}

pub fn status(answer: Option<&Answer>) -> u16 {
    answer.map_or(0, |answer| answer.status)
}
