//! The commands `demo` and `sim`: the simulated exchange, alone or with the service against it on
//! one clock.
//!
//! Main thread. With `--public` a demo is for strangers: ready-made accounts that nobody can
//! change, the simulator on loopback, and everything anew after each period. While one day is
//! served the next is made ready beside it, so that a reset takes as long as closing and opening
//! the listener. A public demo never asks a real feed and never keeps a visitor's data over a
//! reset.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday, time};

use crate::admin::listener::AdminListen;
use crate::app::commands::{guard_memory, of_browser, run, say};
use crate::app::demo_people::{Maker, guests};
use crate::app::start::App;
use crate::base::{Broker, Clock, clock};
use crate::config::composed::{Reread, clock_of};
use crate::config::{Config, LISTEN_APART, LISTEN_BESIDE, SimSettings};
use crate::market::{MarketCalendar, Phase};
use crate::ops::Exit;
use crate::ops::exit::Failed;
use crate::rt::unix_signals::{Hangup, Signals};
use crate::sim;
use crate::sim::SimApp;

/// Runs the simulator and the service against it, on one clock and on loopback.
///
/// # Errors
/// Why it did not start.
pub fn demo(config: &Config, _: &Reread<'_>) -> Result<(), Failed> {
    guard_memory(config);
    let (sim, config, clock) = Stage::of(config)?.set(config, 0)?;
    let greet = |app: &App, url: &str| {
        let url = of_browser(url);
        sim.return_logins_to(&url);
        (demo_notes(&sim, &clock, &url), Maker::of(app, &sim).beside())
    };
    // A demo belongs to its terminal, so a hang-up ends it.
    let ended = run(&config, || App::start_demo(&config, &clock, &sim, &guests()), greet, None);
    sim.stop();
    ended
}

/// Runs the simulator alone, for another process.
///
/// # Errors
/// Why it did not start.
pub fn sim(config: &Config, _: &Reread<'_>) -> Result<(), Failed> {
    let stage = Stage::of(config)?;
    let signals = Signals::arm(Hangup::Ends);
    let mut signals = signals.map_err(|error| (error.to_string(), Exit::Internal))?;
    let settings = stage.sim_settings(&config.sim, 0);
    let app = settings.broker_a.clone();
    let sim = start_simulator(settings, &clock_of(config))?;
    // Both need one clock, or prices would come from another day.
    let now = config
        .now
        .map(|now| format!("BHAV_NOW={now} "))
        .unwrap_or_default();
    let urls = Broker::ALL.map(|broker| {
        let letter = broker.as_str().to_ascii_uppercase();
        format!("BHAV_BROKER{letter}_URL={}", sim.app(broker).url)
    });
    let urls = urls.join(" ");
    say(&format!(
        "simulator on http://{}\nTo serve its prices, in another shell:\n\
         {now}BROKERA_API_KEY={} BROKERA_API_SECRET={} BROKERA_ACCESS_TOKEN={} \\\n\
         BHAV_BROKERA_TICKER_URL={} \\\n\
         {urls} \\\n\
         BHAV_PUBLIC_URL={} \\\n\
         bhav serve\n",
        sim.addr(),
        app.api_key,
        app.api_secret,
        app.access_token,
        sim.broker_a_ticker_url(),
        sim.public_url()
    ));
    signals.wait_for_end();
    sim.stop();
    Ok(())
}

/// The calendar by which the simulated exchange trades.
pub(super) struct Stage {
    calendar: Arc<MarketCalendar>,
}

impl Stage {
    pub(super) fn of(config: &Config) -> Result<Self, Failed> {
        let calendar = MarketCalendar::load(config.market.calendar_file.as_deref());
        let calendar = calendar.map_err(|error| (error.to_string(), Exit::Usage))?;
        Ok(Self {
            calendar: Arc::new(calendar),
        })
    }

    /// Starts the simulator of a day, the `number`th of this process. Returns it with the settings
    /// of a service against it and their clock.
    pub(super) fn set(
        &self,
        config: &Config,
        number: u64,
    ) -> Result<(sim::Sim, Config, Clock), Failed> {
        let mut config = config.clone();
        let now = config
            .now
            .unwrap_or_else(|| self.lively_instant(Clock::system().now()));
        let clock = Clock::starting_at(now);
        let settings = self.sim_settings(&config.sim, number);
        let access_token = settings.broker_a.access_token.clone();
        let sim = start_simulator(settings, &clock)?;
        for broker in Broker::ALL {
            let SimApp {
                url,
                api_key,
                api_secret,
            } = sim.app(broker);
            config.set_own_app(broker, url, api_key.into(), api_secret.into());
        }
        config.broker_a.ticker_url = sim.broker_a_ticker_url();
        config.broker_a.access_token = Some(access_token.into());
        config.public.url = sim.public_url();
        if config.admin.listen == AdminListen::Default {
            // A free port, so that a demo can run next to a service.
            config.admin.listen = "127.0.0.1:0".into();
        }
        // Simulated prices must never be restored by a real run.
        config.state_dir = config.state_dir.join("demo");
        Ok((sim, config, clock))
    }

    /// Now if the market is open, otherwise eleven o'clock of the last trading date, when prices
    /// move.
    fn lively_instant(&self, now: Timestamp) -> Timestamp {
        let status = self.calendar.status(now);
        match status.trading_date {
            Some(date) if status.phase != Phase::Open => {
                clock::instant(date.to_datetime(time(11, 0, 0, 0)))
            }
            _ => now,
        }
    }

    fn sim_settings(&self, settings: &SimSettings, number: u64) -> sim::SimSettings {
        let calendar = Arc::clone(&self.calendar);
        let hours = Arc::clone(&self.calendar);
        sim::SimSettings {
            listen: settings.listen.clone(),
            seed: settings.seed.wrapping_add(number),
            public_delay_s: settings.public_delay_s as i64,
            more_shares: settings.more_shares,
            prices_per_s: settings.prices_per_s as i64,
            sessions: sim::Sessions::new(move |date| trades(&calendar, date)).at_hours_of(hours),
            ..sim::SimSettings::default()
        }
    }
}

/// Whether the simulated market trades on `date`: by the calendar, or on weekdays in years that it
/// does not cover.
fn trades(calendar: &MarketCalendar, date: Date) -> bool {
    if calendar.covers(date) {
        return calendar.is_trading_date(date);
    }
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// Starts the simulator. If the default address is missing, as on systems with one loopback
/// address, it uses the service's.
fn start_simulator(settings: sim::SimSettings, clock: &Clock) -> Result<sim::Sim, Failed> {
    let wanted = settings.listen.clone();
    let started = match sim::start(settings.clone(), clock.clone()) {
        Err(error) if wanted == LISTEN_APART => {
            tracing::warn!(
                %error,
                wanted,
                "the simulator listens at the service's own address: browsers send it the login's \
                 cookie too"
            );
            sim::start(
                sim::SimSettings {
                    listen: LISTEN_BESIDE.into(),
                    ..settings
                },
                clock.clone(),
            )
        }
        started => started,
    };
    started.map_err(|error| {
        (format!("BHAV_SIM_LISTEN: no simulator on {wanted}: {error}"), Exit::Unavailable)
    })
}

/// Suggestions for trying the demo, first in the browser.
fn demo_notes(sim: &sim::Sim, clock: &Clock, url: &str) -> String {
    const TRY: &str = r#"
Ask it:
  curl -i '{url}/api/index/snapshot'
  curl -i --compressed '{url}/api/index/snapshot'
  curl -s '{url}/api/portfolio/live-prices?symbols=NSE:INFY,NSE:M%26M,NSE:NOSUCH'
  curl -s '{url}/api/health'
  curl -s '{url}/brokera/status'
For an account and its portfolio by commands follow docs/api.md, with sim={sim}
Break broker A, watch its last prices stay, marked stale, until the public provider, a quarter
of an hour behind, has passed them (--sim-public-delay-s 60 is quicker); then mend it:
  curl -s -d '{"route":"broker_a","fault":{"kind":"refuse"}}' {control}/faults
  curl -s -d '{"route":"broker_a.ticker","fault":{"kind":"hangup"}}' {control}/faults
  curl -s -X DELETE {control}/faults

Informational only, not investment advice.

Open {url}/ in a browser: Log in, Look around as Asha. Or bring both brokers in: Create an account,
Sync broker A, Sync broker B. Their login pages are the simulator's, and so are the apps:
simkeya-1 with the secret simsecreta, sim+key=b&1-1 with the secret simsecretb.

"#;
    let now = clock::iso(clock.now());
    let notes = TRY
        .replace("{control}", &sim.control_url())
        .replace("{sim}", &format!("http://{}", sim.addr()))
        .replace("{url}", url);
    format!(
        "bhav demo: a simulated exchange day. Every price is made up and says so.\n\
         the clock reads {now}\nsimulator on http://{}\n{notes}",
        sim.addr(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::public_demo::{LOGINS_PER_MINUTE, STREAMS_PER_ADDRESS_MAX, limited, notice};
    use crate::auth::keys::Registration;
    use std::time::Duration;

    #[test]
    fn strangers_have_limits_of_their_own_and_lower_ones_stay() {
        let mut config = Config::default();
        config.http.connections_max = 100;
        config.http.connections_per_address_max = 0;
        config.auth.registration = Registration::Open;
        let limited = limited(&config);
        let http = &limited.http;
        assert_eq!((http.connections_max, http.connections_per_address_max), (100, 48));
        assert_eq!(http.streams_per_address_max, STREAMS_PER_ADDRESS_MAX);
        assert_eq!(limited.auth.registration, Registration::Closed);
        assert_eq!(limited.auth.login_attempts_per_minute, LOGINS_PER_MINUTE);
    }

    #[test]
    fn the_notice_is_one_line_with_the_period() {
        let text = notice(Duration::from_secs(3_600));
        assert!(text.contains("every 60 min") && text.len() < 90, "{text}");
        assert!(notice(Duration::from_secs(5)).contains("every 1 min"));
    }
}
