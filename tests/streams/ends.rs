//! The end of streams: after their lifetime, and with the server.

use bhav::base::Clock;
use bhav::rt::threads;

use super::stage::Stage;
use crate::support::EventReader;
use crate::support::wait::PATIENCE_MS;

#[test]
fn a_stream_ends_with_its_life_and_a_whole_last_chunk() {
    let stage = Stage::by_hand(|config| config.http.stream_life_ms = 100_000);
    stage.publish(0, 10);
    let mut readers: Vec<_> = (0..5).map(|_| stage.open("")).collect();
    stage.await_open(5);
    // In steps, between which heartbeats are sent. The clock goes on while these are awaited.
    for step in 1..=4 {
        stage.advance_until("a beat", 14_700, || {
            readers.iter_mut().for_each(EventReader::look);
            (stage.streams().stats.heartbeats.value() == 5 * step).then_some(())
        });
    }
    assert_eq!(stage.streams().open(), 5, "none ends before nine tenths");
    stage.advance_until("their end", 36_000, || (stage.streams().open() == 0).then_some(()));
    for mut reader in readers {
        reader.end();
        assert!(reader.is_complete);
        assert_eq!(reader.parser.retry, Some(3_000), "come back as usual");
    }
}

#[test]
fn a_server_that_stops_tells_each_client_when_to_come_back() {
    let stage = Stage::running(|config| config.http.drain_timeout_ms = PATIENCE_MS);
    stage.publish(0, 10);
    let mut readers: Vec<_> = (0..100)
        .map(|number| {
            stage.open(if number % 2 == 0 {
                ""
            } else {
                "Accept-Encoding: gzip\r\n"
            })
        })
        .collect();
    for reader in &mut readers {
        reader.event_named("snapshot");
    }
    stage.await_open(100);
    let Stage {
        service,
        scene: _scene,
    } = stage;
    let clock = Clock::system();
    let stopping = threads::spawn("stopping", move || service.stop()).unwrap();
    let mut retries = Vec::new();
    for reader in &mut readers {
        assert_eq!(reader.event(), None);
        assert!(reader.is_complete);
        retries.push(reader.parser.retry.unwrap());
    }
    assert_eq!(stopping.join().unwrap(), 0, "none was cut off");
    assert!(clock.monotonic_ms() < PATIENCE_MS / 2, "took {} ms", clock.monotonic_ms());
    retries.sort_unstable();
    assert!(retries[0] >= 500 && retries[99] <= 5_000, "{retries:?}");
    // In every half second some clients return, and never a crowd.
    for from in (500..5_000).step_by(500) {
        let count = retries
            .iter()
            .filter(|retry| (from..from + 500).contains(*retry))
            .count();
        assert!((5..=20).contains(&count), "{from}: {count} of {retries:?}");
    }
}
