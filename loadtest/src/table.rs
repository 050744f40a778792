//! The table of runs: everything that is measured.
//!
//! A run is a row: which servers, which load, what goes on beside it, what is read, which lines of
//! RESULTS.md come of it and what they have to reach. `execute` measures a row, `render` writes it.

mod accounts;
mod streams;
mod ticker;

use crate::figures::{Figure, Figures};
use crate::harness::Effort;
use crate::requests::Form::Identity;
use crate::requests::What::{Choices, LivePrices, Snapshot};
use crate::run::Background::HangingUpstreams;
use crate::run::Load::{Idle, Requests};
use crate::run::Rate::{AsAnswered, HalfOfSaturation, PerSecond};
use crate::run::Show::{Lowest, Median, Ratio, Spread, Sum};
use crate::run::Target::{ToServers, Value};
use crate::run::Wanted::{AtLeast, AtMost};
use crate::run::{
    Base, Case, Column, Label, Lines, Load, Order, Read, Run, Section, ServerSpec, Slices, Work,
};
use crate::servers::Kind;
use crate::{engines, followers, lines};

/// Every section, in the order of the document.
pub static SECTIONS: [Section; 6] = [
    // bhav beside the peers, and what only bhav is asked.
    Section {
        name: "peers",
        heading: "",
        is_on_request: false,
        beside: Some(ALL),
        effort: [
            Effort {
                rounds: 8,
                rounds_aside: 8,
                slice_ms: 2_000,
                clients_ms: 20_000,
            },
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 1_000,
                clients_ms: 5_000,
            },
        ],
        runs: &[
            RATE, UNLOADED, SATURATION, HALF, IDLE, STORM, QUOTES, CLIENTS, HANG,
        ],
    },
    // What accounts cost bhav. Ratios are to its own snapshot or to its own quiet self.
    Section {
        name: "accounts",
        heading: "## Accounts",
        is_on_request: false,
        beside: None,
        effort: [
            Effort {
                rounds: 5,
                rounds_aside: 2,
                slice_ms: 2_000,
                clients_ms: 0,
            },
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 1_000,
                clients_ms: 0,
            },
        ],
        runs: &[
            accounts::JOURNAL,
            accounts::KEPT,
            accounts::USERS,
            accounts::LOGINS,
            accounts::REVALUATION,
        ],
    },
    // What readers of the stream cost bhav and its other clients.
    Section {
        name: "streams",
        heading: "## Streams",
        is_on_request: false,
        beside: None,
        effort: [
            Effort {
                rounds: 3,
                rounds_aside: 1,
                slice_ms: 15_000,
                clients_ms: 0,
            },
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 5_000,
                clients_ms: 0,
            },
        ],
        runs: &[
            streams::CROWD,
            streams::CROWD_UNDER_FIRE,
            streams::SILENT,
            streams::DRAIN,
        ],
    },
    // What prices that broker A pushes cost, and what clients see while they break.
    Section {
        name: "ticker",
        heading: "## Prices that are pushed",
        is_on_request: true,
        beside: None,
        effort: [
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 600_000,
                clients_ms: 0,
            },
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 20_000,
                clients_ms: 0,
            },
        ],
        runs: &[ticker::TICKER],
    },
    Section {
        name: "followers",
        heading: "## A follower beside a node that is alone",
        is_on_request: true,
        beside: None,
        effort: [
            Effort {
                rounds: 9,
                rounds_aside: 1,
                slice_ms: 3_000,
                clients_ms: 0,
            },
            Effort {
                rounds: 1,
                rounds_aside: 1,
                slice_ms: 3_000,
                clients_ms: 0,
            },
        ],
        runs: &[FOLLOWER],
    },
    // What the store costs on a server of its own.
    Section {
        name: "engines",
        heading: "## Many users on SQLite and on PostgreSQL",
        is_on_request: true,
        beside: None,
        effort: [Effort {
            rounds: 1,
            rounds_aside: 1,
            slice_ms: 0,
            clients_ms: 0,
        }; 2],
        runs: &[Run {
            name: "engines",
            work: Work::Steps(engines::measure),
            ..RUN
        }],
    },
];

const BHAV: &str = "bhav";
const MAY: &str = "may_minihttp";
const NGINX: &str = "nginx";
const ACTIX: &str = "actix-web";
const AXUM: &str = "axum";

/// All servers, in the order of the tables.
const ALL: &[ServerSpec] = &[
    ServerSpec::new(BHAV, Kind::Bhav),
    ServerSpec::new(MAY, Kind::MayMinihttp),
    ServerSpec::new(NGINX, Kind::Nginx),
    ServerSpec::new(ACTIX, Kind::Actix),
    ServerSpec::new(AXUM, Kind::Axum),
    ServerSpec::new("may_minihttp-pinned", Kind::MayPinned),
];

/// Without the pinned one: its memory is that of the other.
const ALL_UNPINNED: &[ServerSpec] = ALL.split_at(5).0;

const BHAV_ALONE: &[ServerSpec] = ALL.split_at(1).0;

/// What a row does not say.
const RUN: Run = Run {
    name: "",
    heading: "",
    text: "",
    work: Work::Slices(&SLICES),
    targets: &[],
};
const SLICES: Slices = Slices {
    servers: BHAV_ALONE,
    order: Order::Interleaved,
    cases: &[],
    lasts_ms: |effort| effort.slice_ms,
    reads: &[],
    beside: None,
    measure: None,
    lines: Lines::Text(|_, _| String::new()),
};

const CPU: Figure = |slice| slice.cpu_us_per_request;
const RATE_PER_S: Figure = |slice| slice.load.rate_per_s;
const P50_US: Figure = |slice| slice.load.latency.p50_us;
const P99_US: Figure = |slice| slice.load.latency.p99_us;
const P999_US: Figure = |slice| slice.load.latency.p999_us;
const SEND_LAG_US: Figure = |slice| slice.load.send_lag.p999_us;
const FAILED: Figure = |slice| (slice.load.errors + slice.load.other_status) as f64;

const CPU_US: Column = Column("CPU µs/request", Median, CPU, 2);
const P50: Column = Column("p50 µs", Median, P50_US, 0);
const P99: Column = Column("p99 µs", Median, P99_US, 0);
const P999: Column = Column("p99.9 µs", Median, P999_US, 0);
const MAX: Column = Column("max µs", Median, |slice| slice.load.latency.max_us, 0);
const SEND_LAG: Column = Column("send lag p99.9 µs", Median, SEND_LAG_US, 0);
const PER_SECOND: Column = Column("req/s", Median, RATE_PER_S, 0);
const NOT_ANSWERED: Column = Column("failed", Sum, FAILED, 0);

const RATE: Run = Run {
    name: "rate",
    heading: "## Snapshot at 10000 req/s, open loop",
    work: Work::Slices(&Slices {
        servers: ALL,
        cases: &[
            Case::new("64", Requests(Snapshot(Identity), 64, PerSecond(10_000)))
                .to(Base::Server(MAY)),
            Case::new("512", Requests(Snapshot(Identity), 512, PerSecond(10_000)))
                .to(Base::Server(MAY)),
        ],
        beside: Some(Column("CPU µs per request, less is better", Median, CPU, 2)),
        lines: Lines::Table(
            &[Label::Server("server"), Label::Case("connections")],
            &[
                CPU_US,
                Column("ratio", Ratio, CPU, 3),
                Column("spread", Spread, CPU, 2),
                P50,
                P99,
                P999,
                MAX,
                SEND_LAG,
                NOT_ANSWERED,
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[ToServers(
        "CPU per request",
        CPU,
        &[
            (MAY, AtMost(0.95)),
            (NGINX, AtMost(1.0)),
            (ACTIX, AtMost(1.0)),
            (AXUM, AtMost(1.0)),
        ],
    )],
    ..RUN
};

const UNLOADED: Run = Run {
    name: "unloaded",
    text: "CPU without any load, in % of one core:",
    work: Work::Slices(&Slices {
        servers: ALL,
        cases: &[Case::new("unloaded", Load::None)],
        // Long enough for warmers that work once a second.
        lasts_ms: |_| 2_000,
        lines: Lines::Text(|harness, figures| lines::unloaded(harness, figures, ALL)),
        ..SLICES
    }),
    ..RUN
};

const SATURATION: Run = Run {
    name: "saturation",
    heading: "## Snapshot at saturation, closed loop",
    work: Work::Slices(&Slices {
        servers: ALL,
        cases: &[
            Case::new("64", Requests(Snapshot(Identity), 64, AsAnswered)).to(Base::Server(MAY)),
            Case::new("512", Requests(Snapshot(Identity), 512, AsAnswered)).to(Base::Server(MAY)),
        ],
        beside: Some(Column("saturated req/s, more is better", Median, RATE_PER_S, 0)),
        lines: Lines::Table(
            &[Label::Server("server"), Label::Case("connections")],
            &[
                PER_SECOND,
                Column("ratio", Ratio, RATE_PER_S, 3),
                P99,
                NOT_ANSWERED,
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[ToServers(
        "saturated rate",
        RATE_PER_S,
        &[(MAY, AtLeast(1.0))],
    )],
    ..RUN
};

const HALF: Run = Run {
    name: "half",
    heading: "## Snapshot at half of bhav's saturation, open loop, 256 connections",
    work: Work::Slices(&Slices {
        servers: ALL,
        cases: &[Case::new(
            "half",
            Requests(Snapshot(Identity), 256, HalfOfSaturation),
        )],
        lines: Lines::Table(
            &[Label::Server("server")],
            &[
                PER_SECOND,
                P50,
                P99,
                P999,
                Column("lowest p99.9 µs", Lowest, P999_US, 0),
                MAX,
                SEND_LAG,
                NOT_ANSWERED,
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[Value(
        "p99.9 at half of saturation, µs",
        AtMost(2_000.0),
        |f| f.median((BHAV, "half"), P999_US),
    )],
    ..RUN
};

const IDLE: Run = Run {
    name: "idle",
    heading: "## 10000 idle keep-alive connections",
    work: Work::Slices(&Slices {
        servers: ALL_UNPINNED,
        order: Order::Once,
        cases: &[Case::new("idle", Idle(10_000)).to(Base::Server(MAY))],
        lines: Lines::Table(
            &[Label::Server("server")],
            &[
                Column("KiB/connection", Median, KIB_PER_CONNECTION, 2),
                Column("ratio", Ratio, KIB_PER_CONNECTION, 3),
                Column("RSS before, MiB", Median, |slice| slice.value("fresh KiB") / 1_024.0, 1),
                Column("answered", Median, |slice| slice.value("answered"), 0),
                Column("still open", Median, |slice| slice.value("still open"), 0),
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[Value("KiB per idle connection", AtMost(10.0), |f| {
        f.median((BHAV, "idle"), KIB_PER_CONNECTION)
    })],
    ..RUN
};

const KIB_PER_CONNECTION: Figure = |slice| {
    let grown_kib = (slice.value("held KiB") - slice.value("fresh KiB")).max(0.0);
    grown_kib / slice.value("answered").max(1.0)
};

/// Three times as many connections as bhav's cap.
const STORM: Run = Run {
    name: "storm",
    heading: "## bhav: 30000 connections",
    work: Work::Slices(&Slices {
        order: Order::Once,
        cases: &[Case::new("storm", Idle(30_000))],
        lines: Lines::Text(|_, figures| lines::storm(figures, (BHAV, "storm"))),
        ..SLICES
    }),
    targets: &[Value(
        "answer on a new connection after 30,000, s",
        AtMost(1.0),
        |f| f.median((BHAV, "storm"), |slice| slice.value("recovered ms") / 1_000.0),
    )],
    ..RUN
};

const QUOTES: Run = Run {
    name: "quotes",
    heading: "## bhav: live-prices with 50 cached symbols, 5000 req/s",
    work: Work::Slices(&Slices {
        cases: &[
            Case::new("snapshot", Requests(Snapshot(Identity), 64, PerSecond(5_000))),
            Case::new("live-prices", Requests(LivePrices, 64, PerSecond(5_000))),
        ],
        lines: Lines::Table(
            &[Label::Case("route")],
            &[CPU_US, P50, P999, NOT_ANSWERED],
            Some(|f| lines::ratio("CPU ratio to the snapshot", quotes_to_snapshot(f))),
        ),
        ..SLICES
    }),
    targets: &[Value(
        "CPU of live-prices with 50 cached symbols to the snapshot",
        AtMost(2.0),
        quotes_to_snapshot,
    )],
    ..RUN
};

fn quotes_to_snapshot(figures: &Figures) -> Option<f64> {
    figures.ratio((BHAV, "live-prices"), (BHAV, "snapshot"), CPU)
}

/// From a cold cache.
const CLIENTS: Run = Run {
    name: "clients",
    heading: "## bhav: 1000 clients, 50 of 400 symbols each",
    work: Work::Slices(&Slices {
        order: Order::Once,
        cases: &[Case::new(
            "clients",
            Requests(Choices(1_000), 1_000, PerSecond(1_000)),
        )],
        lasts_ms: |effort| effort.clients_ms,
        reads: &[Read::UpstreamCalls],
        lines: Lines::Text(|_, figures| lines::clients(figures, (BHAV, "clients"))),
        ..SLICES
    }),
    targets: &[Value(
        "broker A quote calls a second under 1,000 clients",
        AtMost(1.0),
        |f| f.median((BHAV, "clients"), lines::quote_calls_per_s),
    )],
    ..RUN
};

const HANG: Run = Run {
    name: "hang",
    heading: "## bhav: half of saturation while every upstream hangs",
    work: Work::Slices(&Slices {
        cases: &[
            Case::new("healthy", Requests(Snapshot(Identity), 256, HalfOfSaturation)),
            Case::new("hanging", Requests(Snapshot(Identity), 256, HalfOfSaturation))
                .beside(HangingUpstreams),
        ],
        lines: Lines::Table(
            &[Label::Case("upstreams")],
            &[PER_SECOND, P50, P99, P999],
            Some(|f| lines::ratio("p99.9 ratio", hanging_to_healthy(f))),
        ),
        ..SLICES
    }),
    targets: &[Value(
        "p99.9 while every upstream hangs, to healthy upstreams",
        AtMost(2.0),
        hanging_to_healthy,
    )],
    ..RUN
};

fn hanging_to_healthy(figures: &Figures) -> Option<f64> {
    figures.ratio((BHAV, "hanging"), (BHAV, "healthy"), P999_US)
}

const FOLLOWER: Run = Run {
    name: "follower",
    text: "Snapshot at 5000 req/s on 64 connections, open loop; medians of rounds in which each is \
           measured in turn, ratios within the round.",
    work: Work::Slices(&Slices {
        servers: &[
            ServerSpec::new(ALONE, Kind::Bhav),
            ServerSpec::new(followers::WHO[1], Kind::Bhav),
            ServerSpec::new(followers::WHO[2], Kind::Bhav),
            ServerSpec::new(followers::WHO[3], Kind::Bhav),
        ],
        cases: &[Case::new("", Load::None).to(Base::Server(ALONE))],
        measure: Some(followers::measure),
        lines: Lines::Table(
            &[Label::Server("node")],
            &[
                Column("CPU µs/request", Median, CPU, 1),
                Column("ratio", Ratio, CPU, 3),
                P50,
                P999,
                Column("ratio", Ratio, P999_US, 3),
                SEND_LAG,
                Column("others use of the machine, %", Median, |s| s.foreign_share * 100.0, 0),
                NOT_ANSWERED,
            ],
            None,
        ),
        ..SLICES
    }),
    ..RUN
};

const ALONE: &str = followers::WHO[0];
