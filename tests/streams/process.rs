//! Streams of the real program: its log about readers, and readers of a program that was stopped
//! for a while.

use std::fs::File;

use sonic_rs::JsonValueTrait;

use crate::support::program::serve;
use crate::support::{
    Client, Event, EventReader, Program, STREAM, Scene, Signal, TRADING, bhav, few_candles, until,
};

fn read(program: &Program, target: &str, headers: &str) -> EventReader {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    EventReader::ask(Client::connect(&program.address), &request)
}

#[test]
fn tokens_cookies_and_ids_of_readers_are_not_logged() {
    let scene = Scene::at(TRADING);
    let path = scene.state.path().join("log");
    let mut command = bhav(&["serve", "--listen=127.0.0.1:0", "--admin-listen=off"]);
    command
        .args(scene.flags(scene.state.path()))
        .arg(few_candles())
        .env("BHAV_LOG", "trace")
        .stderr(File::create(&path).unwrap());
    let mut program = Program::of(&mut command);
    let secret = "Authorization: Bearer CANARYq7x\r\nCookie: access_token_cookie=CANARYq7x\r\n\
                  Last-Event-ID: CANARYq7x\r\n";
    let wide = format!("{STREAM}?symbols=NSE:INFY");
    for target in [STREAM, &wide] {
        drop(read(&program, target, secret).event().unwrap());
        let head = Client::connect(&program.address).request("HEAD", target, secret);
        assert_eq!(head.status, 200);
    }
    // Refused requests, each for another reason.
    for (target, method) in [
        (format!("{STREAM}?symbols=bad"), "GET"),
        (STREAM.into(), "POST"),
    ] {
        let answer = Client::connect(&program.address).request(method, &target, secret);
        assert!((400..500).contains(&answer.status), "{}", answer.status);
        assert!(!answer.text().contains("CANARY"));
    }
    // What is said in debugging alone comes once a price has told the time.
    until("a line of debugging", || {
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("level=debug")
            .then_some(())
    });
    program.ends();
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("level=debug"), "{log}");
    assert!(!log.contains("CANARY"), "{log}");
}

fn as_of(event: &Event) -> jiff::Timestamp {
    let json: sonic_rs::Value = sonic_rs::from_str(&event.data).unwrap();
    json["market"]["as_of_ist"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn after_the_program_stood_still_readers_get_the_newest_and_nothing_of_the_time_between() {
    const READERS: usize = 200;
    const STANDS_MS: u64 = 4_000;
    let scene = Scene::at(TRADING);
    let mut command = serve(&scene, scene.state.path());
    command
        .env("BROKERA_API_KEY", "simkeya")
        .env("BROKERA_ACCESS_TOKEN", "simtokena");
    let program = Program::of(&mut command);
    let mut readers: Vec<_> = (0..READERS).map(|_| read(&program, STREAM, "")).collect();
    readers
        .iter_mut()
        .for_each(|reader| drop(reader.event_named("snapshot")));
    program.signal(Signal::STOP);
    let stopped_ms = scene.clock.monotonic_ms();
    until("some seconds", || scene.clock.monotonic_ms() > stopped_ms + STANDS_MS);
    // Events received until then.
    let old = readers.iter_mut().map(|reader| {
        reader.look();
        std::iter::from_fn(|| reader.ready())
            .last()
            .map(|event| event.id)
    });
    let old: Vec<_> = old.collect();
    let went_on = scene.clock.now();
    program.signal(Signal::CONT);
    for (reader, old) in readers.iter_mut().zip(old) {
        let mut seen: Vec<Event> = Vec::new();
        while seen.last().is_none_or(|event| as_of(event) < went_on) {
            seen.extend(reader.event().filter(|event| event.name == "snapshot"));
        }
        let mut ids: Vec<_> = seen
            .iter()
            .map(|event| event.id.clone())
            .chain(old)
            .collect();
        let times: Vec<_> = seen.iter().map(as_of).collect();
        assert!(times.is_sorted(), "{times:?}");
        // The event that prices are stale, and perhaps the answer in progress.
        assert!(seen.len() <= 3, "{} of {STANDS_MS} ms: {times:?}", seen.len());
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|one, next| one < next), "one of them twice: {ids:?}");
    }
}
