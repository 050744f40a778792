//! Reloads on SIGHUP: reads settings, market files and keys again. All are read and checked before
//! any is put in force, so that a bad one changes nothing.
//!
//! Main thread. A change that takes a restart is logged.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::assemble::admin_secrets;
use super::securities;
use super::start::{App, unprotected};
use crate::api::State;
use crate::auth::PreparedAuth;
use crate::base::Broker;
use crate::brokers::AppKeys;
use crate::brokers::BrokerASettings;
use crate::brokers::broker_a::ticker::TickerSettings;
use crate::brokers::call::transport::BadUrl;
use crate::config::Config;
use crate::config::composed::{Loaded, Reread};
use crate::config::fault::Fault;
use crate::config::secrets::SECRETS;
use crate::config::settings::SETTINGS;
use crate::market::indices::MarketSettings;
use crate::market::{FairValues, IndexList, MarketCalendar, Sectors, Universe};
use crate::ops::log;
use crate::portfolio::Securities;
use crate::warmers::{MarketFiles, Warmers};

/// Reads all settings again, for as long as the service runs.
pub struct Reloader<'a> {
    app: &'a App,
    reread: &'a Reread<'a>,
    /// The settings in force. One that takes a restart keeps its old value, so that each reload
    /// reports it.
    current: Config,
    indices: IndexList,
}

/// The operator's market files that a running service can take, read and checked together, not in
/// force yet.
pub struct ReadFiles {
    calendar: MarketCalendar,
    universe: Universe,
    sectors: Sectors,
    fair_values: FairValues,
}

impl ReadFiles {
    /// Reads them. Notes the faults of all of them.
    pub fn read(market: &MarketSettings, faults: &mut Vec<String>) -> Option<Self> {
        let calendar = kept(MarketCalendar::load(market.calendar_file.as_deref()), faults);
        let universe = kept(Universe::load(market.universe_file.as_deref()), faults);
        let sectors = kept(Sectors::load(market.sectors_file.as_deref()), faults);
        let fair_values = kept(FairValues::load(market.fmv_file.as_deref()), faults);
        Some(Self {
            calendar: calendar?,
            universe: universe?,
            sectors: sectors?,
            fair_values: fair_values?,
        })
    }

    /// Puts them in force: at the edge at once, in the warmers with their next event.
    pub fn put_in_force(self, state: &State, warmers: &Warmers) {
        let Self {
            calendar,
            universe,
            sectors,
            fair_values,
        } = self;
        let calendar = Arc::new(calendar);
        state.calendar.store(Arc::clone(&calendar));
        state.universe.store(Arc::new(universe.clone()));
        state.sectors.store(Arc::new(sectors));
        state.trades.fair_values.store(Arc::new(fair_values));
        warmers.take_files(MarketFiles { calendar, universe });
    }
}

/// The new settings and files, read and checked, not in force yet.
struct Prepared {
    loaded: Loaded,
    files: ReadFiles,
    indices: IndexList,
    securities: Securities,
    auth: PreparedAuth,
    ticker: TickerSettings,
}

/// Why nothing was changed, for the log: all faults.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
struct Refused(Vec<String>);

impl<'a> Reloader<'a> {
    /// `config` holds the settings that the service was started with.
    pub fn new(app: &'a App, config: &Config, reread: &'a Reread<'a>) -> Self {
        let indices = IndexList::load(config.market.indices_file.as_deref());
        let indices = indices.unwrap_or_else(|_| IndexList::embedded());
        Self {
            app,
            reread,
            current: config.clone(),
            indices,
        }
    }

    /// Reads everything and puts it in force, or logs why not.
    pub fn reload(&mut self) {
        tracing::info!("reloading");
        match self.prepare() {
            Ok(prepared) => {
                self.adopt(prepared);
                self.app.reloads.taken();
            }
            Err(refused) => {
                self.app.reloads.refused(self.app.clock().now());
                tracing::error!(%refused, "reload refused; the settings in force stay");
            }
        }
    }

    fn prepare(&self) -> Result<Prepared, Refused> {
        let loaded =
            (self.reread)().map_err(|faults| Refused(faults.iter().map(one_line).collect()))?;
        let market = &loaded.config.market;
        let mut faults = Vec::new();
        let files = ReadFiles::read(market, &mut faults);
        let indices = kept(IndexList::load(market.indices_file.as_deref()), &mut faults);
        let in_force = self.app.state().portfolio.securities.load();
        let securities = kept(securities::at_reload(&loaded.config, &in_force), &mut faults);
        let auth = &self.app.state().auth;
        let auth = kept(auth.prepare(&loaded.config.auth), &mut faults);
        let ticker = kept(self.ticker(&loaded.config), &mut faults);
        match (files, indices, securities, auth, ticker) {
            (Some(files), Some(indices), Some(securities), Some(auth), Some(ticker))
                if faults.is_empty() =>
            {
                Ok(Prepared {
                    loaded,
                    files,
                    indices,
                    securities,
                    auth,
                    ticker,
                })
            }
            _ => Err(Refused(faults)),
        }
    }

    /// The ticker for the new settings. The broker's own URL takes a restart.
    fn ticker(&self, new: &Config) -> Result<TickerSettings, BadUrl> {
        let url = self.current.broker_a.url.clone();
        TickerSettings::of(&BrokerASettings {
            url,
            ..new.broker_a.clone()
        })
    }

    /// Puts everything in force. Cannot fail halfway: everything was read.
    fn adopt(&mut self, prepared: Prepared) {
        let Prepared {
            loaded,
            files,
            indices,
            securities,
            auth,
            ticker,
        } = prepared;
        let Loaded {
            config: new,
            warnings,
            ..
        } = loaded;
        let (changed, restart) = self.differences(&new, &indices);
        let state = self.app.state();
        let shared = self.app.server().shared();
        shared.change_settings(&new.http);
        state.cors.change(&new.http.allowed_origins);
        state.auth.adopt(auth);
        state
            .administration
            .secrets
            .store(Arc::new(admin_secrets(&new)));
        if let Some(secret) = &new.auth.jwt_secret {
            self.app
                .node_secret
                .set(secret, new.auth.jwt_previous_secrets.as_ref());
        }
        state
            .portfolio
            .responses
            .set_bytes_max(new.cache.answers_bytes_max);
        state
            .portfolio
            .attempts
            .set_rate(new.upstream.sync_attempts_per_minute);
        state.writes.set_rate(new.store.writes_per_user_per_minute);
        state.trades.set_limits(&new.store);
        state.portfolio.securities.store(Arc::new(securities));
        self.adopt_broker_keys(&new);
        state.broker_a.set_ticker(ticker);
        files.put_in_force(state, &self.app.warmers);
        if new.log.filter != self.current.log.filter && !log::change_filter(&new.log.filter) {
            tracing::warn!("the log's filter cannot be changed");
        }
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        for (name, value) in restart {
            tracing::warn!(name, value, "changed, but takes a restart; not in force");
        }
        let room = shared.slots.room();
        if new.http.connections_max > room {
            let wanted = new.http.connections_max;
            tracing::warn!(wanted, room, "more connections than at the start take a restart");
        }
        tracing::info!(changed = changed.join(","), "reloaded");
        self.keep(&new);
        self.app.reloads.set_exposed(unprotected(&self.current));
    }

    fn adopt_broker_keys(&self, new: &Config) {
        let state = self.app.state();
        let a = &new.broker_a;
        for (broker, access) in state.brokers.iter() {
            let own = new.own_app(broker);
            access
                .client
                .set_app(AppKeys::of(own.api_key, own.api_secret));
        }
        state.portfolio.set_own_key(a.api_key.as_ref());
        let old = &self.current.broker_a;
        // If the settings have not changed, a token that was activated meanwhile is newer.
        let same = equal(&old.access_token, &a.access_token) && equal(&old.api_key, &a.api_key);
        if let (false, Some(token), Some(key)) = (same, &a.access_token, &a.api_key) {
            let shared = state.brokers[Broker::A].client.token();
            shared.set(token.clone(), key.clone(), state.clock.now());
            tracing::info!("broker A token taken from the settings");
        }
        self.app.handover.lock().note_settings(new);
    }

    /// Names of the changed settings, and those of them that take a restart, with their new values.
    fn differences(
        &self,
        new: &Config,
        indices: &IndexList,
    ) -> (Vec<&'static str>, Vec<(&'static str, String)>) {
        let mut changed = Vec::new();
        let mut restart = Vec::new();
        for setting in SETTINGS {
            let value = (setting.show)(new);
            if value == (setting.show)(&self.current) {
                continue;
            }
            if setting.is_live {
                changed.push(setting.name);
            } else {
                restart.push((setting.name, value));
            }
        }
        let mut old = self.current.clone();
        let mut fresh = new.clone();
        let differs = SECRETS
            .iter()
            .filter(|secret| !equal((secret.slot)(&mut old), (secret.slot)(&mut fresh)));
        changed.extend(differs.map(|secret| secret.name));
        let listed = restart.iter().any(|(name, _)| *name == "BHAV_INDICES_FILE");
        if *indices != self.indices && !listed {
            restart.push(("BHAV_INDICES_FILE", "what the file says".to_owned()));
        }
        (changed, restart)
    }

    /// Records the live settings of `new` as in force.
    fn keep(&mut self, new: &Config) {
        for setting in SETTINGS.iter().filter(|setting| setting.is_live) {
            (setting.copy)(new, &mut self.current);
        }
        let mut new = new.clone();
        for secret in SECRETS {
            *(secret.slot)(&mut self.current) = (secret.slot)(&mut new).take();
        }
    }
}

fn kept<T, E: std::fmt::Display>(read: Result<T, E>, faults: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| faults.push(error.to_string())).ok()
}

fn one_line(fault: &Fault) -> String {
    fault
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn equal(one: &Option<SecretString>, other: &Option<SecretString>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.expose_secret() == other.expose_secret(),
        (None, None) => true,
        _ => false,
    }
}
