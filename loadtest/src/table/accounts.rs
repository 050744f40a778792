//! Runs of what users ask for: journals, portfolios, logins, and the evening's revaluation.

use super::{
    BHAV, CPU, FAILED, P50, P50_US, P99, P99_US, P999_US, RATE_PER_S, RUN, SEND_LAG_US, SLICES,
};
use crate::figures::{Figure, Slice};
use crate::requests::Form::{Gzip, Identity, NotModified};
use crate::requests::What::{AllHoldings, Holdings, JournalWrites, Snapshot};
use crate::requests::{JOURNAL_CLIENTS, VIEWS_OF_ALL_USERS};
use crate::run::Background::LoginsAndSyncs;
use crate::run::Load::Requests;
use crate::run::Rate::{AsAnswered, PerSecond};
use crate::run::Show::{BaseMedian, Last, Median, Per, Ratio, RatioSpread, Sum, SumWithBase};
use crate::run::Target::Value;
use crate::run::Wanted::{AtLeast, AtMost};
use crate::run::{Base, Case, Column, Label, Lines, Order, Read, Run, ServerSpec, Slices, Work};
use crate::servers::State;
use crate::{background, revaluation};

pub(super) const JOURNAL: Run = Run {
    name: "journal",
    heading: "### Acknowledged journal writes, 64 clients",
    work: Work::Slices(&Slices {
        servers: &[ServerSpec::with_users("default", State::FewUsers, &[])],
        cases: &[Case::new(
            "writes",
            Requests(JournalWrites, JOURNAL_CLIENTS, AsAnswered),
        )],
        reads: &[Read::Health(WRITES), Read::Health(COMMITS)],
        lines: Lines::Table(
            &[Label::Server("setting")],
            &[
                Column("writes/s", Median, RATE_PER_S, 0),
                P50,
                P99,
                Column("writes in a commit", Per(|s| s.value(COMMITS)), |s| s.value(WRITES), 1),
                Column("lost or another status", Sum, FAILED, 0),
            ],
            None,
        ),
        ..SLICES
    }),
    ..RUN
};

const WRITES: &str = "/store/writes";
const COMMITS: &str = "/store/commits";

pub(super) const KEPT: Run = Run {
    name: "kept",
    heading: "### Kept holdings of 100 rows next to the snapshot, at saturation, 64 connections",
    work: Work::Slices(&Slices {
        servers: &[ServerSpec::with_users(BHAV, State::FewUsers, &[])],
        cases: &[
            Case::new("snapshot", Requests(Snapshot(Identity), 64, AsAnswered)),
            Case::new("200, identity", Requests(Holdings(Identity), 64, AsAnswered))
                .to(Base::Case("snapshot")),
            Case::new("snapshot, gzip", Requests(Snapshot(Gzip), 64, AsAnswered)),
            Case::new("200, gzip", Requests(Holdings(Gzip), 64, AsAnswered))
                .to(Base::Case("snapshot, gzip")),
            Case::new("snapshot, 304", Requests(Snapshot(NotModified), 64, AsAnswered)),
            Case::new("304", Requests(Holdings(NotModified), 64, AsAnswered))
                .to(Base::Case("snapshot, 304")),
        ],
        lasts_ms: |effort| effort.slice_ms / 2,
        lines: Lines::Table(
            &[Label::Case("form")],
            &[
                Column("body bytes", Last, |slice| slice.value("body bytes"), 0),
                Column("holdings req/s", Median, RATE_PER_S, 0),
                Column("snapshot req/s", BaseMedian, RATE_PER_S, 0),
                Column("ratio", Ratio, RATE_PER_S, 3),
                Column("spread", RatioSpread, RATE_PER_S, 2),
                Column("holdings CPU µs", Median, CPU, 2),
                Column("snapshot CPU µs", BaseMedian, CPU, 2),
                Column("lost or another status", SumWithBase, FAILED, 0),
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[
        Value("kept holdings of 100 rows, 200, identity, to the snapshot", AtLeast(0.5), |f| {
            f.ratio((BHAV, "200, identity"), (BHAV, "snapshot"), RATE_PER_S)
        }),
        Value("kept holdings of 100 rows, 200, gzip, to the snapshot", AtLeast(0.5), |f| {
            f.ratio((BHAV, "200, gzip"), (BHAV, "snapshot, gzip"), RATE_PER_S)
        }),
        Value("kept holdings of 100 rows, 304, to the snapshot", AtLeast(0.5), |f| {
            f.ratio((BHAV, "304"), (BHAV, "snapshot, 304"), RATE_PER_S)
        }),
    ],
    ..RUN
};

/// The smallest cache of answers: a small part of what the measured users' answers need, so that
/// nearly every look-up of the second case misses.
const SMALLEST_CACHE: &[(&str, &str)] = &[("BHAV_ANSWERS_BYTES_MAX", "4194304")];

const FEW: &str = "100";
const MANY: &str = "{users}";
const HITS: &str = "/cache_answers/hits";
const MISSES: &str = "/cache_answers/misses";
const LOOKUPS: Figure = |slice| slice.value(HITS) + slice.value(MISSES);

pub(super) const USERS: Run = Run {
    name: "users",
    heading: "### {users} users next to 100",
    text: "Holdings of 100 rows: kept, 2000 req/s; made anew (the smallest cache, 100 users in \
           turn), 200 req/s.",
    work: Work::Slices(&Slices {
        servers: &[
            ServerSpec::with_users(FEW, State::FewUsers, SMALLEST_CACHE),
            ServerSpec::with_users(MANY, State::ManyUsers, SMALLEST_CACHE),
        ],
        cases: &[
            Case::new("kept", Requests(Holdings(Identity), 64, PerSecond(2_000))),
            Case::new("made anew", Requests(AllHoldings, VIEWS_OF_ALL_USERS, PerSecond(200))),
        ],
        reads: &[Read::Health(HITS), Read::Health(MISSES), Read::Rss],
        lines: Lines::Table(
            &[Label::Server("users"), Label::Case("what")],
            &[
                P50,
                P99,
                Column("CPU µs/request", Median, CPU, 1),
                Column("missed %", Per(LOOKUPS), |slice| slice.value(MISSES) * 100.0, 0),
                Column("RSS MiB", Last, |slice| slice.value("RSS KiB") / 1_024.0, 1),
                Column("lost", Sum, FAILED, 0),
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[
        Value("kept, p50 with {users} users to 100", AtMost(1.05), |f| {
            f.ratio((MANY, "kept"), (FEW, "kept"), P50_US)
        }),
        Value("made anew, p50 with {users} users to 100", AtMost(1.05), |f| {
            f.ratio((MANY, "made anew"), (FEW, "made anew"), P50_US)
        }),
    ],
};

pub(super) const LOGINS: Run = Run {
    name: "logins",
    heading: "### Snapshot at 10000 req/s on 64 connections, under logins and slow syncs",
    text: "200 users log in at once, each again as soon as it is answered (a second later if it \
           was turned away); 50 users sync with a broker that takes 4.5 s to answer: as many as \
           bhav has threads for wait in its call, the others wait for a thread. {users} users in \
           the database.",
    work: Work::Slices(&Slices {
        servers: &[
            ServerSpec::with_users("default", State::ManyUsers, &[]),
            ServerSpec::with_users(
                "BHAV_CRYPTO_THREADS=2",
                State::ManyUsers,
                &[("BHAV_CRYPTO_THREADS", "2")],
            )
            .aside(),
        ],
        order: Order::OneByOne,
        cases: &[
            Case::new("quiet", Requests(Snapshot(Identity), 64, PerSecond(10_000))),
            Case::new("loaded", Requests(Snapshot(Identity), 64, PerSecond(10_000)))
                .beside(LoginsAndSyncs)
                .to(Base::Case("quiet")),
        ],
        // Longer than elsewhere, so that p99.9 stands on dozens of requests.
        lasts_ms: |effort| 2 * effort.slice_ms,
        reads: &[Read::Threads("crypto")],
        lines: Lines::Table(
            &[Label::Server("setting")],
            &[
                Column("p99.9 quiet µs", BaseMedian, P999_US, 0),
                Column("p99.9 loaded µs", Median, P999_US, 0),
                Column("ratio", Ratio, P999_US, 2),
                Column("spread", RatioSpread, P999_US, 2),
                Column("send lag p99.9 quiet µs", BaseMedian, SEND_LAG_US, 0),
                Column("loaded µs", Median, SEND_LAG_US, 0),
                Column("p99 quiet µs", BaseMedian, P99_US, 0),
                Column("p99 loaded µs", Median, P99_US, 0),
                Column("hashing, % of a core", Median, HASHING_PERCENT, 0),
                Column("logins/s", Median, |slice| logins_per_s(slice, "200"), 1),
                Column("turned away/s", Median, |slice| logins_per_s(slice, "503"), 0),
                Column("lost", SumWithBase, FAILED, 0),
            ],
            Some(|f| background::answers(f, "loaded")),
        ),
        ..SLICES
    }),
    targets: &[Value(
        "snapshot p99.9 under 200 logins and 50 slow syncs, to quiet",
        AtMost(2.0),
        |f| f.ratio(("default", "loaded"), ("default", "quiet"), P999_US),
    )],
};

const HASHING_PERCENT: Figure = |slice| slice.value("crypto") / 1e4 / slice.value("seconds");

fn logins_per_s(slice: &Slice, status: &str) -> f64 {
    let answers = slice.values("login ").find(|(of, _)| *of == status);
    answers.map_or(0.0, |(_, count)| count / slice.value("seconds"))
}

pub(super) const REVALUATION: Run = Run {
    name: "revaluation",
    heading: "### Revaluation of {users} portfolios at the close",
    work: Work::Steps(revaluation::measure),
    ..RUN
};
