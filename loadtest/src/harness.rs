//! What all runs share: the programs, and what is prepared once, when the first run needs it.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::databases::Databases;
use crate::requests::live_prices_path;
use crate::run::ServerSpec;
use crate::servers::{self, Kind, More, Server, State, copy_state, empty_folder};
use crate::snapshot::Snapshot;
use crate::{http, ticker, wait};

/// Symbols that one live-prices request may carry.
pub const SYMBOLS_PER_REQUEST: usize = 50;

/// Symbols in play where many clients ask for quotes.
const SYMBOLS: usize = 400;

/// How long quotes may take to be all cached.
const QUOTES_DEADLINE: Duration = Duration::from_secs(60);

/// Programs under load and beside it.
pub struct Programs {
    /// Where the generator, the peers and the seeding program are.
    pub folder: PathBuf,
    pub bhav: PathBuf,
    /// nginx, if it is installed.
    pub nginx: Option<PathBuf>,
    /// Where state folders, logs and configurations go.
    pub work_folder: PathBuf,
}

/// How long and how often a section is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Interleaved rounds.
    pub rounds: usize,
    /// Rounds of settings that stand beside the default for comparison.
    pub rounds_aside: usize,
    /// Length of a slice, in milliseconds. Many short slices rather than few long ones: the
    /// shorter a round, the less the machine drifts within a ratio.
    pub slice_ms: u64,
    /// Length of the run with many clients, in milliseconds.
    pub clients_ms: u64,
}

/// What all runs share.
pub struct Harness {
    /// The programs.
    pub programs: Programs,
    /// To see that everything works, not to quote.
    pub is_quick: bool,
    /// Users of the large database.
    pub users: usize,
    signals: OnceCell<PathBuf>,
    more_shares: OnceCell<PathBuf>,
    snapshot: OnceCell<Snapshot>,
    symbols: OnceCell<Vec<String>>,
    databases: OnceCell<Databases>,
}

impl Harness {
    /// One with nothing prepared.
    pub fn new(programs: Programs, is_quick: bool) -> Self {
        let users = if is_quick { 2_000 } else { 100_000 };
        let (signals, more_shares, snapshot) = Default::default();
        let (symbols, databases) = Default::default();
        Self {
            programs,
            is_quick,
            users,
            signals,
            more_shares,
            snapshot,
            symbols,
            databases,
        }
    }

    /// Whether this kind can be started.
    pub fn has(&self, kind: Kind) -> bool {
        kind != Kind::Nginx || self.programs.nginx.is_some()
    }

    /// Starts a server of the table.
    pub fn start(&self, spec: &ServerSpec) -> Result<Server> {
        let name = self.filled(spec.name);
        match spec.kind {
            Kind::Bhav => self.start_bhav(&name, spec.state, spec.settings, More::default()),
            kind => servers::start_peer(self, kind, &name),
        }
    }

    /// Starts bhav on a copy of a state; if there are signals in it, waits until they are shown.
    pub fn start_bhav(
        &self,
        name: &str,
        state: State,
        settings: &[(&str, &str)],
        more: More,
    ) -> Result<Server> {
        let folder = self.programs.work_folder.join(format!("state-{name}"));
        match state {
            State::Empty => empty_folder(&folder)?,
            State::Signals => copy_state(self.signals()?, &folder)?,
            State::MoreShares => {
                let made = || self.with_signals("more-shares", &ticker::SETTINGS);
                copy_state(once(&self.more_shares, made)?, &folder)?;
            }
            State::FewUsers => copy_state(&self.databases()?.few, &folder)?,
            State::ManyUsers => copy_state(&self.databases()?.many, &folder)?,
        }
        let server = servers::start_bhav(self, name, folder, settings, more)?;
        if state != State::Empty {
            server.wait_for_signals()?;
        }
        Ok(server)
    }

    /// A state folder with the signals of the simulator's candles. They are found once: the memory
    /// that finding them leaves behind would make connections look cheaper in a measured process.
    pub fn signals(&self) -> Result<&PathBuf> {
        once(&self.signals, || self.with_signals("signals", &[]))
    }

    fn with_signals(&self, name: &str, settings: &[(&str, &str)]) -> Result<PathBuf> {
        eprintln!("prepare: signals of the simulator's candles");
        let folder = self.programs.work_folder.join(name);
        empty_folder(&folder)?;
        servers::start_bhav(self, name, folder.clone(), settings, More::default())?
            .wait_for_signals()?;
        Ok(folder)
    }

    /// The snapshot that the peers serve.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let of_bhav = || self.start_bhav("snapshot", State::Signals, &[], More::default());
        once(&self.snapshot, || Snapshot::of(of_bhav()?.address)).cloned()
    }

    /// Symbols of the instrument list.
    pub fn symbols(&self, server: &Server) -> Result<&[String]> {
        let found = once(&self.symbols, || {
            let symbols = server.simulator()?.listed_symbols(SYMBOLS)?;
            ensure!(symbols.len() >= SYMBOLS_PER_REQUEST, "only {} symbols", symbols.len());
            Ok(symbols)
        });
        found.map(Vec::as_slice)
    }

    /// The databases of users.
    pub fn databases(&self) -> Result<&Databases> {
        once(&self.databases, || Databases::prepare(self))
    }

    /// What is to be said of the databases of users, if a run needed them.
    pub fn described_databases(&self) -> &str {
        self.databases
            .get()
            .map_or("", |databases| &databases.described)
    }

    /// A text of the table with the number of users in it.
    pub fn filled(&self, text: &str) -> String {
        text.replace("{users}", &self.users.to_string())
    }
}

fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(made) => Ok(made),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

/// How many of `symbols` live-prices has a quote for, asked in as many requests as it takes.
pub fn quotes_served(server: &Server, symbols: &[String]) -> Result<usize> {
    let mut served = 0;
    for chunk in symbols.chunks(SYMBOLS_PER_REQUEST) {
        let answer = http::get(&server.url(&live_prices_path(chunk)), &[])?;
        if answer.status == 200 {
            served += answer.json()?["quotes"].as_array().map_or(0, Vec::len);
        }
    }
    Ok(served)
}

/// Asks for `symbols` until every one has a quote.
pub fn wait_for_quotes(server: &Server, symbols: &[String]) -> Result<()> {
    let all = || Ok((quotes_served(server, symbols)? == symbols.len()).then_some(()));
    wait::until(QUOTES_DEADLINE, all)?.context("symbols without a quote")
}
