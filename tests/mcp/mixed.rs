//! Two users' assistants at once, on the same connections: no answer is the other's.

use serde_json::{Value, json};

use super::assistant::{Assistant, VERSIONS};
use crate::accounts::keys::{ALL, PASSWORD, made};
use crate::portfolio::close::scene_by_hand;
use crate::support::{Service, TRADING, bearer, say};

const MARKS: [&str; 2] = ["MARKONE7", "MARKTWO9"];
const CONNECTIONS: usize = 10;
const ROUNDS: usize = 50;

/// The keys of two users, each with a word of their own in the journal.
fn keys(service: &Service) -> [String; 2] {
    MARKS.map(|mark| {
        let login = bearer(&service.register(&format!("{mark}@example.com"), PASSWORD));
        for number in 0..3 {
            let entry = json!({
                "traded_on": "2026-11-20", "symbol": format!("NSE:{mark}"), "side": "buy",
                "quantity": 1, "price": 2, "notes": format!("{mark} {number}"), "tags": [mark],
            });
            service
                .post("/api/journal", &login, &entry.to_string())
                .with_status(201);
        }
        bearer(&made(service, &login, ALL, "").1)
    })
}

/// Both users' requests go out on one connection before their answers are read.
fn converse(service: &Service, keys: &[String; 2], connection: usize) -> usize {
    let mut client = service.client();
    let mut mixed = 0;
    for round in 0..ROUNDS {
        let version = VERSIONS[(round + connection) % 4];
        let params = json!({"name": "journal", "arguments": {"limit": round % 3 + 1}});
        for (who, key) in keys.iter().enumerate() {
            let id = format!("\"{who}-{connection}-{round}\"");
            let (headers, body) =
                Assistant::new(service, key, version).message(&id, "tools/call", &params);
            let length = body.len();
            client.write(format!(
                "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n{headers}\r\n{body}"
            ));
        }
        for who in 0..2 {
            let answer = client.answer().with_status(200);
            let json: Value = serde_json::from_slice(&answer.body).unwrap();
            let is_own = json["id"] == format!("{who}-{connection}-{round}")
                && answer.text().contains(MARKS[who])
                && !answer.text().contains(MARKS[1 - who]);
            mixed += usize::from(!is_own);
        }
    }
    mixed
}

#[test]
fn a_thousand_interleaved_requests_of_two_users_are_not_mixed() {
    let scene = scene_by_hand(TRADING);
    let mut config = scene.config();
    config.auth.key_requests_per_minute = 0;
    let service = scene.start_with(&config);
    let keys = keys(&service);
    let mixed: usize = std::thread::scope(|scope| {
        let (service, keys) = (&service, &keys);
        let connections: Vec<_> = (0..CONNECTIONS)
            .map(|connection| scope.spawn(move || converse(service, keys, connection)))
            .collect();
        connections
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let all = 2 * CONNECTIONS * ROUNDS;
    say(&format!(
        "MCP: {all} requests of 2 users on {CONNECTIONS} connections, {mixed} mixed\n"
    ));
    assert_eq!((mixed, all), (0, 1_000));
}
