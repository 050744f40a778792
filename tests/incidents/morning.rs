//! The program and a simulator on one clock, and the view of clients and of the operator.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::commands::expect_screen;
use crate::support::{
    Client, PRICES, Program, Ran, SNAPSHOT, Scene, bhav, few_candles, run, say, state_flag, until,
};
use bhav::sim::SimSettings;
use jiff::Timestamp;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

/// Largest age of a price shown as broker A's and fresh: its limit, its whole seconds, and the
/// delay of a busy machine.
const FRESH_MS_MAX: i64 = 5_000;
/// The public provider's delay, and its steps of a minute.
const FRESH_PUBLIC_MS_MAX: i64 = 20 * 60_000;

/// A simulated outside world, in which the program is started once or more.
pub struct Morning {
    pub scene: Scene,
    /// The program's state directory.
    pub state: PathBuf,
}

impl Morning {
    /// A morning whose clock reads `now` at this moment.
    pub fn at(now: &str) -> Self {
        Self::with_public_delay(now, SimSettings::default().public_delay_s)
    }

    /// Same as [`at`](Self::at), with this delay of the public provider.
    pub fn with_public_delay(now: &str, public_delay_s: i64) -> Self {
        let settings = SimSettings {
            rate_limits: false,
            public_delay_s,
            ..SimSettings::default()
        };
        let scene = Scene::with(now, settings);
        let state = scene.state.path().to_owned();
        Self { scene, state }
    }

    /// The command that serves this world, on the address `listen`.
    pub fn serve(&self, listen: &str) -> Command {
        self.arranged(bhav(&self.flags(listen).each_ref().map(String::as_str)))
    }

    pub fn flags(&self, listen: &str) -> [String; 12] {
        let [state, broker_a, public, now] = self.scene.flags(&self.state);
        [
            "serve".to_owned(),
            format!("--listen={listen}"),
            state,
            broker_a,
            public,
            now,
            few_candles(),
            "--brokera-quote-interval-ms=1000".to_owned(),
            "--public-batch-interval-ms=1000".to_owned(),
            "--admin-listen=127.0.0.1:0".to_owned(),
            // All users register from one address.
            "--login-attempts-per-minute=0".to_owned(),
            "--registration-attempts-per-minute=0".to_owned(),
        ]
    }

    /// Adds the simulator's app and token to the environment.
    pub fn arranged(&self, mut command: Command) -> Command {
        command
            .env("BROKERA_API_KEY", "simkeya")
            .env("BROKERA_API_SECRET", "simsecreta")
            .env("BROKERA_ACCESS_TOKEN", "simtokena")
            .stderr(Stdio::null());
        command
    }

    pub fn start(&self) -> Program {
        Program::of(&mut self.serve("127.0.0.1:0"))
    }

    /// The `bhav status` of a service at `address`.
    pub fn status(&self, address: &str) -> Status {
        status(address, &self.state, self.scene.clock.now())
    }

    /// The first status that names `trouble`. It must fit on one screen, with the content of the
    /// JSON.
    #[track_caller]
    pub fn told(&self, address: &str, trouble: &str) -> Status {
        let what = format!("bhav status names {trouble}");
        let status = until(&what, || {
            let status = self.status(address);
            if status.names(trouble) {
                Ok(status)
            } else {
                Err(status.screen)
            }
        });
        status.expect_on_screen(trouble);
        // Printed for the page on operating, with --nocapture.
        say(&format!("--- {trouble}\n{}\n", status.screen));
        status
    }

    /// The first status without trouble. Daily candles are left out: after a failure they are
    /// fetched again only half a minute later.
    #[track_caller]
    pub fn well(&self, address: &str) -> Status {
        until("bhav status is well again", || {
            let status = self.status(address);
            let troubles = status.json["troubles"].as_array().unwrap();
            let mut left = troubles.iter().filter(|trouble| {
                trouble["severity"] != "note" && trouble["name"] != "signals_fail"
            });
            if left.next().is_none() {
                Ok(status)
            } else {
                Err(status.screen)
            }
        })
    }

    /// One snapshot and one quote: both exist, and no old price is unmarked.
    #[track_caller]
    pub fn honest(&self, client: &mut Client) -> Seen {
        let snapshot = client.get(SNAPSHOT).with_status(200);
        let market = snapshot.json()["market"].clone();
        let seen = self.check(&market, "as_of_ist");
        let quotes = client.get(&format!("{PRICES}NSE:INFY"));
        match quotes.status {
            200 => {
                let json = quotes.json();
                for quote in json["quotes"].as_array().unwrap().iter() {
                    self.check(quote, "as_of");
                }
            }
            _ => drop(quotes.expect_problem(503, "quotes_unavailable")),
        }
        seen
    }

    /// Checks a client's view until its source is `source` and its staleness `stale`. Each view
    /// must mark old prices.
    #[track_caller]
    pub fn serves(&self, client: &mut Client, source: &str, stale: bool) {
        until(&format!("a snapshot of {source}, stale: {stale}"), || {
            let seen = self.honest(client);
            let wanted = seen.source == source && seen.stale == stale;
            if wanted {
                Ok(())
            } else {
                Err(format!("{seen:?}"))
            }
        });
    }

    /// Outside continuous trading prices stand still, so age is no fault.
    #[track_caller]
    pub fn check(&self, shown: &Value, time: &str) -> Seen {
        let now = self.scene.clock.now();
        let source = shown["source"].as_str().unwrap().to_owned();
        let stale = shown["stale"].as_bool().unwrap();
        let as_of: Timestamp = shown[time].as_str().unwrap().parse().unwrap();
        let age_ms = now.as_millisecond() - as_of.as_millisecond();
        let max_ms = if source == "broker_a" {
            FRESH_MS_MAX
        } else {
            FRESH_PUBLIC_MS_MAX
        };
        let in_trading = (10 * 60..15 * 60).contains(&minute_of_day_ist(now));
        assert!(stale || !in_trading || age_ms <= max_ms, "{age_ms} ms old, unmarked: {shown:?}");
        assert_eq!(shown["simulated"].as_bool(), Some(true), "{shown:?}");
        Seen { source, stale }
    }
}

fn minute_of_day_ist(now: Timestamp) -> i64 {
    (now.as_second() + 19_800).rem_euclid(86_400) / 60
}

/// Source and mark in a client's view.
#[derive(Debug)]
pub struct Seen {
    pub source: String,
    pub stale: bool,
}

/// The output of `bhav status`, as JSON and as a screen.
pub struct Status {
    pub code: Option<i32>,
    pub json: Value,
    pub screen: String,
}

impl Status {
    pub fn names(&self, trouble: &str) -> bool {
        self.find(trouble).is_some()
    }

    fn find(&self, trouble: &str) -> Option<Value> {
        let troubles = self.json["troubles"].as_array()?;
        troubles
            .iter()
            .find(|known| known["name"] == trouble)
            .cloned()
    }

    /// Expects cause and cure literally on the screen.
    #[track_caller]
    pub fn expect_on_screen(&self, trouble: &str) {
        expect_screen(&self.screen);
        let found = self.find(trouble).unwrap();
        let shown = self.screen.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["cause", "cure"] {
            let text = found[part].as_str().unwrap();
            // A long cause is cut after three lines.
            let start: String = text.chars().take(150).collect();
            assert!(shown.contains(&start), "{start}\nis not in\n{}", self.screen);
        }
    }
}

/// Runs the command twice. A change in between fails no test, because callers repeat it.
pub fn status(address: &str, state: &Path, now: Timestamp) -> Status {
    let ask = |more: &[&str]| -> Ran {
        let url = format!("--url=http://{address}");
        let args = ["status", &url, &state_flag(state), &format!("--now={now}")];
        run(bhav(&args).args(more).env("BROKERA_API_KEY", "simkeya"))
    };
    loop {
        let (before, screen, after) = (ask(&["--json"]), ask(&[]), ask(&["--json"]));
        let json: Value = sonic_rs::from_str(&before.out).unwrap();
        let later: Value = sonic_rs::from_str(&after.out).unwrap();
        if json["troubles"] == later["troubles"] {
            return Status {
                code: screen.code,
                json,
                screen: screen.out,
            };
        }
    }
}
