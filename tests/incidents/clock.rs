//! The machine's clock jumps while the service runs, and the world's does not.
//!
//! A process cannot be given a wall clock of its own, so the service runs inside the test, on its
//! one source of time. `bhav status` is the real program.

use bhav::base::Clock;
use jiff::SignedDuration;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::morning::Morning;
use crate::support::{
    Client, PRICES, SNAPSHOT, Scene, Service, bearer, bhav, run, state_flag, until,
};

const OPEN: &str = "2026-11-20T11:00:00+05:30";
const PASSWORD: &str = "nine green parrots";
const MINUTE_MS: i64 = 60_000;

struct Jump {
    service: Service,
    morning: Morning,
    /// The machine's clock. The world has another.
    machine: Clock,
}

impl Jump {
    fn by(minutes: i64) -> Self {
        let morning = Morning::at(OPEN);
        let machine = Clock::starting_at(morning.scene.clock.now());
        let service = Scene::started(&morning.scene.config(), &machine);
        let mut client = service.client();
        until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
        morning.serves(&mut client, "broker_a", false);
        machine.jump_ms(minutes * MINUTE_MS);
        Self {
            morning,
            machine,
            service,
        }
    }

    fn address(&self) -> &str {
        self.service.0.address()
    }

    /// Waits until the trouble is reported, and until the service is well after the clock is
    /// corrected.
    fn told_and_mended(self, minutes: i64, said: &str) {
        let status = self.morning.told(self.address(), "exchange_time_apart");
        assert_eq!(status.code, Some(1), "{}", status.screen);
        assert!(status.screen.contains(said), "{}", status.screen);
        self.machine.jump_ms(-minutes * MINUTE_MS);
        let mut client = self.service.client();
        self.morning.serves(&mut client, "broker_a", false);
        until("no word of the clock", || {
            let status = self.morning.status(self.address());
            if status.names("exchange_time_apart") {
                Err(status.screen)
            } else {
                Ok(())
            }
        });
    }
}

/// The clock is years ahead once, before or after a price has told the time.
#[test]
fn a_token_that_was_logged_out_stays_dead_after_a_clock_that_was_years_ahead() {
    for has_prices in [false, true] {
        let scene = Scene::at(OPEN);
        let service = scene.start();
        let token = bearer(&service.register("asha@example.com", PASSWORD));
        service
            .client()
            .request("POST", "/api/auth/logout", &token)
            .with_status(200);
        service.stop();
        if !has_prices {
            scene.refuse_all();
        }
        let ahead = scene.clock.now() + SignedDuration::from_hours(20 * 365 * 24);
        let service = scene.start_by(&Clock::starting_at(ahead));
        if has_prices {
            let mut client = service.client();
            until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
        }
        // A command waits for a check of the store, and the next one for another.
        for action in ["disable", "enable", "disable", "enable"] {
            let state = state_flag(scene.state.path());
            run(&mut bhav(&["user", action, "asha@example.com", &state])).with_code(0);
        }
        service.stop();
        scene.control("DELETE", "faults", "");
        let file = scene.state.path().join(bhav::store::FILE_NAME);
        let file = rusqlite::Connection::open(file).unwrap();
        let kept = "SELECT count(*) FROM revoked_tokens";
        let kept: i64 = file.query_row(kept, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 1, "prices: {has_prices}");
        drop(file);
        let service = scene.start();
        let answer = service.client().request("GET", "/api/journal", &token);
        answer.expect_problem(401, "token_invalid");
    }
}

/// Once the jump is known, no price from before or after it counts as fresh.
fn until_marked(client: &mut Client) {
    until("the mark", || {
        let json = client.get(SNAPSHOT).json();
        if json["market"]["stale"] == true {
            Ok(())
        } else {
            Err(format!("{json:?}"))
        }
    });
}

#[test]
fn forwards_makes_prices_look_old_which_is_said() {
    let jump = Jump::by(60);
    let mut client = jump.service.client();
    until_marked(&mut client);
    jump.told_and_mended(60, "ahead");
}

#[test]
fn backwards_makes_prices_look_like_the_futures_which_is_said() {
    let jump = Jump::by(-60);
    let mut client = jump.service.client();
    until_marked(&mut client);
    jump.told_and_mended(-60, "behind");
}

/// Every token has expired by the wrong clock, and none by the exchange's.
#[test]
fn started_a_week_ahead_no_revocation_is_forgotten() {
    let morning = Morning::at(OPEN);
    let ahead = |days: i64| {
        let now = morning.scene.clock.now() + SignedDuration::from_hours(24 * days);
        let service = morning.scene.start_by(&Clock::starting_at(now));
        let mut client = service.client();
        until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
        service
    };
    let asked = |service: &Service, token: &str| {
        service
            .client()
            .request("GET", "/api/journal", &bearer(token))
            .status
    };
    let service = ahead(0);
    let revoked = service.register("asha@example.com", "nine green parrots");
    let good = service.register("ravi@example.com", "nine green parrots");
    assert_eq!(
        service
            .post("/api/auth/logout", &bearer(&revoked), "")
            .status,
        200
    );
    assert_eq!((asked(&service, &revoked), asked(&service, &good)), (401, 200));
    service.stop();
    let service = ahead(8);
    assert_eq!((asked(&service, &revoked), asked(&service, &good)), (401, 401), "both expired");
    // The store's maintenance has run, by this clock.
    until("a probe", || {
        let lanes = service.health()["lanes"].clone();
        let probes = lanes
            .as_array()
            .unwrap()
            .iter()
            .find(|lane| lane["name"] == "store-probe");
        (probes.unwrap()["completed"].as_u64().unwrap() > 0).then_some(())
    });
    service.stop();
    let service = ahead(0);
    assert_eq!((asked(&service, &revoked), asked(&service, &good)), (401, 200));
}

/// No price was restored, and new ones are from the future.
#[test]
fn started_behind_there_is_no_price_until_the_clock_is_right() {
    let morning = Morning::at(OPEN);
    let machine = Clock::starting_at(morning.scene.clock.now() - SignedDuration::from_hours(1));
    let service = Scene::started(&morning.scene.config(), &machine);
    let status = morning.told(service.0.address(), "exchange_time_apart");
    assert_eq!(status.code, Some(2), "{}", status.screen);
    assert!(status.screen.contains("behind"), "{}", status.screen);
    let mut client = service.client();
    client
        .get(SNAPSHOT)
        .expect_problem(503, "snapshot_not_ready");
    client
        .get(&format!("{PRICES}NSE:INFY"))
        .expect_problem(503, "quotes_unavailable");
    machine.jump_ms(60 * MINUTE_MS);
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    morning.serves(&mut client, "broker_a", false);
}
