//! The simulator's ticker, tested with a client that shares nothing with the service's.

use std::net::TcpStream;
use std::time::Duration;

use tungstenite::{Error, Message, WebSocket};

use crate::sim::server::message::MARK_HEADER;
use crate::sim::simulator::{Sim, start};
use crate::sim::testing::{FRIDAY, set_fault, sim_at};
use crate::sim::world::SimSettings;

const GOOD: &str = "simkeya&access_token=simtokena";
const INFY: u32 = 408_065;
const NIFTY: u32 = 256_265;

type Client = WebSocket<TcpStream>;

fn open(sim: &Sim, login: &str) -> Result<Client, u16> {
    let stream = TcpStream::connect(sim.addr()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let url = format!("{}?api_key={login}", sim.broker_a_ticker_url());
    match tungstenite::client(url, stream) {
        Ok((client, response)) => {
            assert!(response.headers().contains_key(MARK_HEADER));
            Ok(client)
        }
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(other) => panic!("{other}"),
    }
}

fn subscribed(sim: &Sim, mode: &str) -> Client {
    let mut client = open(sim, GOOD).unwrap();
    let tokens = format!("[{INFY},{NIFTY},1]");
    client
        .send(Message::text(format!(r#"{{"a":"subscribe","v":{tokens}}}"#)))
        .unwrap();
    client
        .send(Message::text(format!(r#"{{"a":"mode","v":["{mode}",{tokens}]}}"#)))
        .unwrap();
    client
}

/// The next message that is no heartbeat.
fn prices(client: &mut Client) -> Vec<u8> {
    loop {
        match client.read().unwrap() {
            Message::Binary(bytes) if bytes.len() > 1 => return bytes.to_vec(),
            Message::Binary(bytes) => assert_eq!(bytes.len(), 1),
            other => panic!("{other:?}"),
        }
    }
}

/// The next prices whose packets have these lengths: the first may be sent before the mode is set.
fn prices_of(client: &mut Client, lengths: [usize; 2]) -> Vec<u8> {
    loop {
        let message = prices(client);
        if read(&message).iter().map(|packet| packet.2).eq(lengths) {
            return message;
        }
    }
}

/// Token and last price of each packet, and the length of its body.
fn read(message: &[u8]) -> Vec<(u32, u32, usize)> {
    let word = |at: usize| u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
    let mut at = 2;
    let mut packets = Vec::new();
    for _ in 0..u16::from_be_bytes([message[0], message[1]]) {
        let length = usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        packets.push((word(at + 2), word(at + 6), length));
        at += 2 + length;
    }
    assert_eq!(at, message.len());
    packets
}

#[test]
fn a_wrong_login_a_plan_without_data_and_a_fourth_connection_are_refused() {
    let (sim, _clock) = sim_at(FRIDAY, SimSettings::default());
    for login in [
        "simkeya&access_token=other",
        "other&access_token=simtokena",
        "simkeya",
    ] {
        assert_eq!(open(&sim, login).err(), Some(403), "{login}");
    }
    let three: Vec<Client> = (0..3).map(|_| open(&sim, GOOD).unwrap()).collect();
    assert_eq!(open(&sim, GOOD).err(), Some(403));
    drop(three);
    set_fault(&sim, "broker_a.ticker", r#"{"kind":"rate_limit","count":1}"#);
    assert_eq!(open(&sim, GOOD).err(), Some(429));
    let mut settings = SimSettings::default();
    settings.broker_a.market_data = false;
    let (sim, _clock) = sim_at(FRIDAY, settings);
    assert_eq!(open(&sim, GOOD).err(), Some(403));
}

#[test]
fn a_subscription_gets_its_mode_and_what_changes_and_the_price_that_calls_have() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    for (mode, lengths) in [("ltp", [8, 8]), ("quote", [28, 44]), ("full", [32, 184])] {
        let mut client = subscribed(&sim, mode);
        let first = read(&prices_of(&mut client, lengths));
        let at = clock.now();
        let target = format!("/sim/control/exchange?at={}&i=NSE:INFY", at.strftime("%FT%TZ"));
        let said = crate::sim::testing::get(&sim, &target, "")
            .text()
            .to_owned();
        let paise = first.iter().find(|packet| packet.0 == INFY).unwrap().1;
        let price =
            format!("\"last_price\":{}", rust_decimal::Decimal::new(paise.into(), 2).normalize());
        assert!(said.contains(&price), "{price} in {said}");
        // No prices come while the clock stands still; some do once it has moved.
        assert!(matches!(client.read().unwrap(), Message::Binary(beat) if beat.len() == 1));
        clock.advance_ms(1_000);
        assert!(!read(&prices(&mut client)).is_empty());
    }
}

#[test]
fn a_call_off_ends_what_is_sent_and_only_so_many_instruments_are_taken() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    let mut client = subscribed(&sim, "full");
    prices_of(&mut client, [32, 184]);
    client
        .send(Message::text(format!(r#"{{"a":"unsubscribe","v":[{INFY}]}}"#)))
        .unwrap();
    // A message with both prices may be on its way.
    let alone = (0..20).any(|_| {
        clock.advance_ms(1_000);
        read(&prices(&mut client))
            .iter()
            .all(|packet| packet.0 == NIFTY)
    });
    assert!(alone);
    let stats = crate::sim::testing::get(&sim, "/sim/control/stats", "")
        .text()
        .to_owned();
    assert!(stats.contains("\"ticker_subscribed\":1"), "{stats}");
}

#[test]
fn faults_damage_what_is_sent() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    let mut client = subscribed(&sim, "full");
    let whole = prices_of(&mut client, [32, 184]);
    let mut damaged = |kind: &str| {
        set_fault(&sim, "broker_a.ticker", &format!(r#"{{"kind":"{kind}"}}"#));
        clock.advance_ms(1_000);
        let got = prices(&mut client);
        let cleared =
            crate::sim::testing::send(sim.addr(), "DELETE", "/sim/control/faults", "", "").unwrap();
        assert_eq!(cleared.status, 200);
        got
    };
    assert_eq!(damaged("short").len(), whole.len() - 1);
    assert_eq!(damaged("long").len(), whole.len() + 1);
    assert_eq!(damaged("unknown_length").len(), whole.len() + 2);
    assert_eq!(damaged("wrong_endian")[4..8], NIFTY.to_le_bytes());
    assert_eq!(damaged("zero_price")[8..12], [0; 4]);
    assert_eq!(damaged("fragmented").len(), whole.len());
    assert_eq!(damaged("flood").len(), 2 + 2_500 * (2 + 32 + 2 + 184));
    set_fault(&sim, "broker_a.ticker", r#"{"kind":"order_text"}"#);
    let text = loop {
        if let Message::Text(text) = client.read().unwrap() {
            break text;
        }
    };
    assert!(text.contains("SIMORDERCANARY"));
    set_fault(&sim, "broker_a.ticker", r#"{"kind":"hangup"}"#);
    while client.read().is_ok() {}
}

#[test]
fn prices_that_move_twice_a_second_are_sent_twice_a_second() {
    let settings = SimSettings {
        prices_per_s: 2,
        more_shares: 20,
        ..SimSettings::default()
    };
    let (sim, clock) = sim_at("2026-11-20T11:42:17+05:30", settings);
    let mut client = open(&sim, GOOD).unwrap();
    let listed = crate::sim::exchange::universe::Universe::new(1, 20);
    let tokens: Vec<i64> = listed
        .all()
        .iter()
        .rev()
        .take(25)
        .map(|i| i.token)
        .collect();
    client
        .send(Message::text(format!(r#"{{"a":"subscribe","v":{tokens:?}}}"#)))
        .unwrap();
    for _ in 0..4 {
        let mut heard = std::collections::BTreeSet::new();
        let mut messages = 0;
        while heard.len() < tokens.len() {
            let message = prices(&mut client);
            messages += 1;
            for (token, ..) in read(&message) {
                assert!(heard.insert(token), "{token} twice while the price stands");
            }
        }
        assert!(messages > 1, "all in one message");
        clock.advance_ms(500);
    }
}

#[test]
fn what_is_sent_of_watched_instruments_is_remembered_with_its_time() {
    let (sim, clock) = sim_at(FRIDAY, SimSettings::default());
    let control = |method, path: &str, body: &str| {
        crate::sim::testing::send(sim.addr(), method, path, "", body).unwrap()
    };
    let watched = control("POST", "/sim/control/ticker/watch", r#"{"symbols":["NSE:INFY"]}"#);
    assert_eq!((watched.status, watched.text()), (200, r#"{"watched":1}"#));
    let unknown = control("POST", "/sim/control/ticker/watch", r#"{"symbols":["NSE:NONE"]}"#);
    assert_eq!(unknown.status, 400);
    let mut client = subscribed(&sim, "full");
    let message = prices_of(&mut client, [32, 184]);
    let paise = read(&message)
        .iter()
        .find(|packet| packet.0 == INFY)
        .unwrap()
        .1;
    let text = control("GET", "/sim/control/ticker/sent", "")
        .text()
        .to_owned();
    let price = rust_decimal::Decimal::new(paise.into(), 2).normalize();
    let told = format!(
        r#""symbol":"NSE:INFY","last_price":{price},"as_of":"2026-11-20T11:42:17+05:30","sent_ms":"#
    );
    assert!(text.contains(&told) && !text.contains("NIFTY"), "{told} in {text}");
    clock.advance_ms(1_000);
    prices_of(&mut client, [32, 184]);
    let text = control("GET", "/sim/control/ticker/sent", "")
        .text()
        .to_owned();
    assert!(text.contains("11:42:18"), "{text}");
    assert_eq!(control("POST", "/sim/control/ticker/watch", r#"{"symbols":[]}"#).status, 200);
    let text = control("GET", "/sim/control/ticker/sent", "")
        .text()
        .to_owned();
    assert_eq!(text, r#"{"sent":[]}"#);
}

#[test]
fn stopping_ends_open_tickers() {
    let sim = start(SimSettings::default(), crate::base::Clock::system()).unwrap();
    let mut client = subscribed(&sim, "full");
    sim.stop();
    while client.read().is_ok() {}
}
