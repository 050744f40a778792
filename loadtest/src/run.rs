//! What a row of the table can say: servers, load, background, what is read, lines, targets.

use anyhow::Result;

use crate::figures::{Figure, Figures, Key};
use crate::harness::{Effort, Harness};
use crate::requests::What;
use crate::servers::{Kind, State};

/// A section of RESULTS.md: runs of one day, under one head.
pub struct Section {
    /// For `--only`, and in the marks around the section.
    pub name: &'static str,
    pub heading: &'static str,
    /// Measured only where it is asked for by name.
    pub is_on_request: bool,
    /// Servers of the table of ratios above the runs: the first to each other one. The head then
    /// also says what the machine and these servers are.
    pub beside: Option<&'static [ServerSpec]>,
    /// Of an ordinary run and of a quick one.
    pub effort: [Effort; 2],
    /// In the order of measurement and of the document.
    pub runs: &'static [Run],
}

/// A run: one row of the table.
pub struct Run {
    /// For `--only`.
    pub name: &'static str,
    /// Empty where the lines belong to the run before. `{users}` stands for the number of users in
    /// the large database.
    pub heading: &'static str,
    /// Stands under the heading.
    pub text: &'static str,
    pub work: Work,
    pub targets: &'static [Target],
}

/// What a run does.
pub enum Work {
    /// Servers under loads, in rounds.
    Slices(&'static Slices),
    /// Steps of its own, which return what stands under the heading.
    Steps(fn(&Harness) -> Result<String>),
}

/// Servers under loads, in rounds.
pub struct Slices {
    pub servers: &'static [ServerSpec],
    pub order: Order,
    /// Measured one after the other in each round.
    pub cases: &'static [Case],
    /// Length of a slice, in milliseconds.
    pub lasts_ms: fn(&Effort) -> u64,
    /// What is read before and after each slice, beside CPU time.
    pub reads: &'static [Read],
    /// What this run adds to the section's table of ratios.
    pub beside: Option<Column>,
    /// Steps of its own in place of rounds. Servers and cases then only name the lines.
    pub measure: Option<fn(&Harness, &Effort) -> Result<Figures>>,
    pub lines: Lines,
}

/// In which order servers are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All run at once and are measured in turn, in every round.
    Interleaved,
    /// Each is started, measured in all rounds and stopped before the next.
    OneByOne,
    /// The same with a single round.
    Once,
}

/// How a server is started.
pub struct ServerSpec {
    /// In the lines.
    pub name: &'static str,
    pub kind: Kind,
    /// What bhav finds in its state folder.
    pub state: State,
    /// bhav's, as environment variables.
    pub settings: &'static [(&'static str, &'static str)],
    /// Stands beside another for comparison, and has fewer rounds.
    pub is_aside: bool,
}

/// One load.
pub struct Case {
    /// In the lines.
    pub name: &'static str,
    pub load: Load,
    pub background: Background,
    pub base: Base,
}

/// What the generator does.
#[derive(Debug, Clone, Copy)]
pub enum Load {
    None,
    /// Requests, over so many connections.
    Requests(What, usize, Rate),
    /// So many connections that ask once and stay open.
    Idle(usize),
}

/// How often something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// As soon as the answer before is there: closed loop.
    AsAnswered,
    /// Requests a second, evenly spaced.
    PerSecond(u64),
    /// Half of what the first server answers at saturation over the same connections.
    HalfOfSaturation,
}

/// What goes on beside the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    None,
    /// Every upstream call hangs.
    HangingUpstreams,
    /// Users log in again and again; others sync with a broker that hangs.
    LoginsAndSyncs,
    /// So many readers of the stream.
    Readers(usize),
    /// The same, while users log in again and again and every upstream call hangs.
    ReadersLoginsAndHangs(usize),
    /// Every instrument stays wanted, and a reader of the stream notes how old prices come.
    AllInstruments,
}

impl Background {
    /// It uses no CPU time that would be held against the machine.
    pub fn is_quiet(self) -> bool {
        matches!(self, Self::None | Self::HangingUpstreams | Self::AllInstruments)
    }
}

/// What the ratios of a case refer to.
#[derive(Debug, Clone, Copy)]
pub enum Base {
    None,
    /// The same case of another server.
    Server(&'static str),
    /// Another case of the same server, which has no line of its own.
    Case(&'static str),
}

/// What is read before and after a slice; the slice keeps the growth of counters.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// A counter of bhav's health, by its path in the document.
    Health(&'static str),
    /// CPU time of the threads whose names begin so, in microseconds.
    Threads(&'static str),
    /// Resident memory after the slice, in KiB.
    Rss,
    /// The simulator's counts of upstream calls.
    UpstreamCalls,
    /// bhav's histogram of times from a tick to when its price can be read, and its count of
    /// ticks.
    Ticks,
}

/// What a run writes.
pub enum Lines {
    /// A line for each case and server, and what stands below.
    Table(&'static [Label], &'static [Column], Option<fn(&Figures) -> String>),
    Text(fn(&Harness, &Figures) -> String),
}

/// A column that names the line, with its head.
pub enum Label {
    Server(&'static str),
    Case(&'static str),
}

/// A column with a figure: head, what is shown of the values of all rounds, figure, decimals.
pub struct Column(pub &'static str, pub Show, pub Figure, pub usize);

/// What a column shows of the values of all rounds.
#[derive(Clone, Copy)]
pub enum Show {
    Median,
    BaseMedian,
    Lowest,
    Largest,
    /// Smallest and largest.
    Spread,
    Sum,
    SumWithBase,
    Last,
    /// The median of the ratios to the base.
    Ratio,
    /// Smallest and largest ratio to the base.
    RatioSpread,
    /// The sum divided by the sum of another figure.
    Per(Figure),
}

/// What figures have to reach.
pub enum Target {
    /// A value.
    Value(&'static str, Wanted, fn(&Figures) -> Option<f64>),
    /// Every case of the first server as a ratio to other servers.
    ToServers(&'static str, Figure, &'static [(&'static str, Wanted)]),
}

/// A bound.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

impl Case {
    /// A load with nothing beside it and no ratio.
    pub const fn new(name: &'static str, load: Load) -> Self {
        Self {
            name,
            load,
            background: Background::None,
            base: Base::None,
        }
    }

    pub const fn to(self, base: Base) -> Self {
        Self { base, ..self }
    }

    pub const fn beside(self, background: Background) -> Self {
        Self { background, ..self }
    }

    /// What the ratios of this case refer to, for a server.
    pub fn base_of(&self, server: &'static str) -> Option<Key> {
        match self.base {
            Base::None => None,
            Base::Server(other) => Some((other, self.name)),
            Base::Case(other) => Some((server, other)),
        }
    }
}

impl ServerSpec {
    /// A server without settings, on signals.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            state: State::Signals,
            settings: &[],
            is_aside: false,
        }
    }

    /// bhav with a database of users.
    pub const fn with_users(
        name: &'static str,
        state: State,
        settings: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            state,
            settings,
            ..Self::new(name, Kind::Bhav)
        }
    }

    pub const fn aside(self) -> Self {
        Self {
            is_aside: true,
            ..self
        }
    }
}
