//! Each documented reply of a broker through the whole service. The client's results are the table
//! in `docs/broker-replies.md`.

use std::fmt::Write as _;
use std::sync::Arc;

use bhav::base::{Clock, ManualClock};
use bhav::brokers::BrokerErrorKind;
use bhav::sim::SimSettings;
use parking_lot::Mutex;
use sonic_rs::JsonValueTrait;

use self::documented::DocumentedReply;
use self::documented::broker_a::REPLIES as REPLIES_OF_A;
use self::documented::broker_b::REPLIES as REPLIES_OF_B;
use crate::support::source::expect_made;
use crate::support::upstream::{Said, Upstream};
use crate::support::{Answer, Scene, Service, TRADING, bearer};

#[path = "replies/documented.rs"]
mod documented;

const TABLE: &str = "docs/broker-replies.md";
/// A pause for a broker in its cooldown.
const RESTED_MS: i64 = 3 * 3_600_000;

const INTRODUCTION: &str = "\
# What a broker replies, and what we answer

Made by a test, which sends each row through a running service; do not edit. After a change:
`BHAV_BLESS=1 cargo test --test main replies`.

A failed sync changes nothing that is stored. A reply that stands in no row is 502
`broker_answer_invalid`, never an empty portfolio; no reply, or one that comes too late, is 502
`broker_unavailable` or 504 `broker_timeout`.
";

/// The status and code for a client.
fn expected(answer: Option<BrokerErrorKind>) -> (u16, &'static str) {
    match answer {
        None => (200, ""),
        Some(BrokerErrorKind::CodeRefused) => (401, "broker_session_invalid"),
        Some(BrokerErrorKind::KeyRefused) => (401, "broker_credentials_invalid"),
        Some(BrokerErrorKind::NotPermitted) => (403, "broker_not_permitted"),
        Some(BrokerErrorKind::AccountProblem) => (403, "broker_account_problem"),
        Some(BrokerErrorKind::SecondFactorProblem) => (403, "broker_two_factor_problem"),
        Some(BrokerErrorKind::AddressRefused) => (502, "broker_address_refused"),
        Some(BrokerErrorKind::RateLimited | BrokerErrorKind::KeySpent) => {
            (429, "broker_rate_limited")
        }
        Some(BrokerErrorKind::Failed { .. }) => (502, "broker_unavailable"),
        Some(BrokerErrorKind::Malformed) => (502, "broker_answer_invalid"),
        Some(BrokerErrorKind::Redirected) => (502, "broker_redirected"),
        Some(other) => panic!("no reply of a broker is {other:?}"),
    }
}

/// The broker's replies for an empty account.
fn usual(target: &str) -> Said {
    Said::json(match target {
        "/session/token" => r#"{"status":"success","data":{"access_token":"t"}}"#,
        "/portfolio/holdings" => r#"{"status":"success","data":[]}"#,
        "/portfolio/positions" => r#"{"status":"success","data":{"net":[],"day":[]}}"#,
        "/customerdetails" => r#"{"Success":{"session_token":"dA=="},"Status":200}"#,
        _ => r#"{"Success":null,"Status":200,"Error":"No Data Found"}"#,
    })
}

/// The service, a user, and the row that the broker replies with.
struct Stage {
    service: Service,
    clock: ManualClock,
    user: String,
    row: Arc<Mutex<Option<DocumentedReply>>>,
    _scene: Scene,
    _upstream: Upstream,
}

impl Stage {
    fn set() -> Self {
        let row = Arc::new(Mutex::new(None::<DocumentedReply>));
        let said = Arc::clone(&row);
        let upstream = Upstream::start(move |asked| match *said.lock() {
            Some(row) if row.call.ends_with(asked.target.trim_start_matches('/')) => Said {
                status: row.http_status,
                content_type: row.content_type.into(),
                body: row.body.into(),
                location: (300..400)
                    .contains(&row.http_status)
                    .then(|| "/elsewhere".into()),
            },
            _ => usual(&asked.target),
        });
        let clock = Clock::manual(TRADING.parse().unwrap());
        let scene = Scene::by_hand(clock.share(), SimSettings::default());
        let mut config = scene.config();
        config.broker_a.url = upstream.url();
        config.broker_a.access_token = None;
        config.broker_b.url = upstream.url();
        config.upstream.breaker_failures = 1_000;
        let service = scene.start_with(&config);
        let user = bearer(&service.register("replies@example.com", "a long enough secret"));
        Self {
            service,
            clock,
            user,
            row,
            _scene: scene,
            _upstream: upstream,
        }
    }

    fn sync(&self, target: &str, code: &str, number: usize, row: DocumentedReply) -> Answer {
        *self.row.lock() = Some(row);
        // Each call has a key of its own, so that no key's limit is reached.
        let body = format!(r#"{{"api_key":"k-{number}","api_secret":"s","{code}":"c"}}"#);
        self.service.post(target, &self.user, &body)
    }
}

fn table(stage: &Stage, target: &str, code: &str, replies: &[DocumentedReply]) -> String {
    let mut table = format!(
        "\n## `POST {target}`\n\n\
         | broker's call | reply | HTTP | our answer | `Retry-After` |\n|---|---|---|---|---|\n"
    );
    for (number, row) in replies.iter().enumerate() {
        let answer = stage.sync(target, code, number, *row);
        // After a minute no limit of the user's own is reached, so each reply is the broker's.
        stage.clock.advance_ms(match row.answer {
            Some(BrokerErrorKind::RateLimited | BrokerErrorKind::KeySpent) => RESTED_MS,
            _ => 60_000,
        });
        let json = answer.json();
        let (status, word) = expected(row.answer);
        let about = format!("{}, {}: {json}", row.call, row.meaning);
        assert_eq!(answer.status, status, "{about}");
        let ours = if status == 200 {
            assert_eq!(json["holdings_count"].as_u64(), Some(0), "{about}");
            "200, no rows".to_owned()
        } else {
            answer.expect_problem(status, word);
            format!("{status} `{word}`")
        };
        let retry = if answer.header("retry-after").is_some() {
            "yes"
        } else {
            ""
        };
        let DocumentedReply {
            call,
            meaning,
            http_status,
            ..
        } = row;
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {call} | {meaning} | {http_status} | {ours} | {retry} |");
    }
    table
}

#[test]
fn each_documented_reply_has_the_answer_that_the_table_says() {
    let stage = Stage::set();
    let made = [
        INTRODUCTION.to_owned(),
        table(&stage, "/api/portfolio/sync", "request_token", REPLIES_OF_A),
        table(&stage, "/api/portfolio/brokerb-sync", "api_session", REPLIES_OF_B),
    ]
    .concat();
    stage.service.stop();
    expect_made(TABLE, &made);
}
