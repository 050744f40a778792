//! A user with a ledger, and the files that are sent.

use std::sync::atomic::{AtomicU32, Ordering};

use bhav::config::Config;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::support::source::root;
use crate::support::{Answer, Scene, Service, TRADING, bearer, until};

pub const IMPORTS: &str = "/api/trades/imports";
pub const TRADES: &str = "/api/trades";
pub const TRADEBOOK: &str = "zerodha-tradebook-eq.csv";

/// Numbers of keys at broker A that were used.
static KEYS: AtomicU32 = AtomicU32::new(1);

/// A started service and one user of it.
pub struct Owner {
    pub service: Service,
    pub scene: Scene,
    /// The header line with the token.
    pub auth: String,
}

/// A file of `tests/ledger/files`.
pub fn file(name: &str) -> Vec<u8> {
    std::fs::read(root().join("tests/ledger/files").join(name)).unwrap()
}

impl Owner {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(set: impl FnOnce(&mut Config)) -> Self {
        Self::on(Scene::at(TRADING), set)
    }

    pub fn on(scene: Scene, set: impl FnOnce(&mut Config)) -> Self {
        let mut config = scene.config();
        config.broker_b.url = scene.sim.broker_b_url();
        set(&mut config);
        let service = scene.start_with(&config);
        let auth = bearer(&service.register("ledger@example.com", "a long enough secret"));
        Self {
            service,
            scene,
            auth,
        }
    }

    pub fn get(&self, target: &str) -> Answer {
        self.service.client().request("GET", target, &self.auth)
    }

    pub fn send(&self, method: &str, target: &str, body: &str) -> Answer {
        self.service
            .client()
            .send_json(method, target, &self.auth, body)
    }

    /// A request without a body.
    pub fn bare(&self, method: &str, target: &str) -> Answer {
        self.service.client().request(method, target, &self.auth)
    }

    /// Sends a file for an account.
    pub fn upload(&self, account: &str, file: &[u8]) -> Answer {
        self.service
            .client()
            .send_file(&format!("{IMPORTS}?account={account}"), &self.auth, file)
    }

    /// The preview of a file. A busy machine may take longer than the service waits for it.
    #[track_caller]
    pub fn preview(&self, account: &str, file: &[u8]) -> Value {
        let answer = until("a preview", || {
            Some(self.upload(account, file)).filter(|answer| answer.status != 503)
        });
        answer.with_status(201).json()
    }

    /// Sends a file and confirms it. Returns the import's id.
    #[track_caller]
    pub fn import(&self, account: &str, file: &[u8]) -> i64 {
        confirmed(&self.service, &self.auth, account, file)
    }

    pub fn confirm(&self, id: i64) -> Answer {
        self.bare("POST", &format!("{IMPORTS}/{id}/confirm"))
    }

    pub fn undo(&self, id: i64) -> Answer {
        self.bare("DELETE", &format!("{IMPORTS}/{id}"))
    }

    /// Syncs the account that the simulator's person of this id has at broker A or B, at A with a
    /// key that no other sync has, since a key has few calls a second.
    pub fn sync(&self, broker: &str, person: &str) -> Answer {
        let minted = |route: &str, name: &str| {
            let body = format!(r#"{{"user_id":"{person}"}}"#);
            let answer = self.scene.control("POST", route, &body).json();
            answer[name].as_str().unwrap().to_owned()
        };
        let (route, body) = if broker == "a" {
            let token = minted("broker_a/request_token", "request_token");
            let number = KEYS.fetch_add(1, Ordering::Relaxed);
            let keys = format!(r#""api_key":"simkeya-{number}","api_secret":"simsecreta""#);
            ("/api/portfolio/sync", format!(r#"{{{keys},"request_token":"{token}"}}"#))
        } else {
            let session = minted("broker_b/api_session", "api_session");
            let keys = r#""api_key":"sim+key=b&1","api_secret":"simsecretb""#;
            (
                "/api/portfolio/brokerb-sync",
                format!(r#"{{{keys},"api_session":"{session}"}}"#),
            )
        };
        self.service.post(route, &self.auth, &body)
    }

    /// All trades, page by page.
    #[track_caller]
    pub fn trades(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let mut target = format!("{TRADES}?limit=500");
        loop {
            let page = self.get(&target).with_status(200).json();
            all.extend(page["trades"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(cursor) => target = format!("{TRADES}?limit=500&cursor={cursor}"),
                None => return all,
            }
        }
    }
}

/// Sends a user's file for an account and confirms it. Returns the import's id.
#[track_caller]
pub fn confirmed(service: &Service, auth: &str, account: &str, file: &[u8]) -> i64 {
    let target = format!("{IMPORTS}?account={account}");
    let preview = service
        .client()
        .send_file(&target, auth, file)
        .with_status(201)
        .json();
    let id = preview["id"].as_i64().unwrap();
    let confirm = format!("{IMPORTS}/{id}/confirm");
    service
        .client()
        .request("POST", &confirm, auth)
        .with_status(200);
    id
}

/// The numbers of a preview that add up to its rows: new, known, conflicts, refused, proposals.
pub fn counts(preview: &Value) -> [u64; 5] {
    let names = [
        "new",
        "known",
        "conflict_count",
        "refused_count",
        "proposal_count",
    ];
    let counts = names.map(|name| preview[name].as_u64().unwrap());
    assert_eq!(preview["rows"].as_u64(), Some(counts.iter().sum()), "{preview:?}");
    counts
}

/// A dividend, as a broker's report has it.
pub const DIVIDENDS: &str = "Symbol,ISIN,Ex-Date,Quantity,Dividend Per Share,Net Dividend Amount\n\
    INFY,INE009A01021,2024-05-31,10,20,200\n";

/// Puts something into each table of the ledger.
pub fn fill_ledger(service: &Service, auth: &str) {
    let send = |method: &str, target: &str, body: &str| {
        let answer = service.client().send_json(method, target, auth, body);
        assert!(answer.status < 300, "{target}: {}", answer.text());
    };
    let other = String::from_utf8(file(TRADEBOOK))
        .unwrap()
        .replace("2877.150000", "2900.000000");
    for sent in [
        file(TRADEBOOK),
        other.into_bytes(),
        file("zerodha-taxpnl-2024_2025.zip"),
        DIVIDENDS.as_bytes().to_vec(),
    ] {
        confirmed(service, auth, "a", &sent);
    }
    let note = r#"{"kind":"unproved","isin":"INE040A01034","date":"2020-05-14","what":"other",
        "note":"a note"}"#;
    send("PUT", "/api/trades/corrections/one", note);
    let trades = service
        .client()
        .request("GET", "/api/trades?limit=500", auth)
        .json();
    let mut trades = trades["trades"].as_array().unwrap().iter();
    let conflict = trades.find(|trade| trade["mark"] == "conflict").unwrap();
    let target = format!("/api/trades/conflicts/{}", conflict["id"].as_str().unwrap());
    send("PUT", &target, r#"{"keep":"first"}"#);
}
