//! Runs with readers of the stream.

use super::{BHAV, FAILED, P999_US, RUN, SEND_LAG_US, SLICES};
use crate::figures::Figure;
use crate::lines;
use crate::requests::Form::Identity;
use crate::requests::What::Snapshot;
use crate::run::Background::{Readers, ReadersLoginsAndHangs};
use crate::run::Load::Requests;
use crate::run::Rate::PerSecond;
use crate::run::Show::{BaseMedian, Largest, Median, Ratio, RatioSpread, Sum, SumWithBase};
use crate::run::Target::Value;
use crate::run::Wanted::AtMost;
use crate::run::{Base, Case, Column, Label, Lines, Load, Run, ServerSpec, Slices, Work};
use crate::servers::{Kind, State};
use crate::{background, crowd};

/// Clients that poll the snapshot beside a crowd.
const NEIGHBOURS: Load = Requests(Snapshot(Identity), 64, PerSecond(2_000));

const QUIET: &str = "quiet";
const CROWDED: &str = "crowd";

const FRAMES_PER_S: Figure = |slice| slice.value("readers frames/s");
const ALL_SERVED_MS: Figure = |slice| slice.value("readers all served p99 ms");
const KIB_PER_READER: Figure = |slice| slice.value("readers KiB");

pub(super) const CROWD: Run = Run {
    name: "crowd",
    heading: "### 10000 readers of the stream beside polling neighbours",
    text: "Snapshot at 2000 req/s on 64 connections; quiet, then with 10000 readers from eight \
           addresses. A delay is counted from the last moment at which a client that asks every \
           two milliseconds still found the state before.",
    work: Work::Slices(&Slices {
        servers: &[ServerSpec {
            settings: crowd::SETTINGS,
            ..ServerSpec::new(BHAV, Kind::Bhav)
        }],
        cases: &[
            Case::new(QUIET, NEIGHBOURS),
            Case::new(CROWDED, NEIGHBOURS)
                .beside(Readers(crowd::READERS))
                .to(Base::Case(QUIET)),
        ],
        lines: Lines::Table(
            &[Label::Case("beside")],
            CROWD_COLUMNS,
            Some(|f| {
                let cpu_us = crowd::cpu_us_per_frame(f, (BHAV, CROWDED));
                lines::ratio("CPU µs per reader and frame", cpu_us)
            }),
        ),
        ..SLICES
    }),
    targets: &[
        Value("snapshot p99.9 beside 10,000 readers, to quiet", AtMost(1.5), |f| {
            f.ratio((BHAV, CROWDED), (BHAV, QUIET), P999_US)
        }),
        Value("a frame is at all 10,000 readers, p99, ms", AtMost(400.0), |f| {
            f.median((BHAV, CROWDED), ALL_SERVED_MS)
        }),
        // Later rounds find the memory of the first one.
        Value("KiB per reader", AtMost(9.0), |f| {
            f.values((BHAV, CROWDED), KIB_PER_READER).first().copied()
        }),
    ],
};

const CROWD_COLUMNS: &[Column] = &[
    Column("p99.9 quiet µs", BaseMedian, P999_US, 0),
    Column("p99.9 crowd µs", Median, P999_US, 0),
    Column("ratio", Ratio, P999_US, 2),
    Column("spread", RatioSpread, P999_US, 2),
    Column("send lag p99.9 quiet µs", BaseMedian, SEND_LAG_US, 0),
    Column("crowd µs", Median, SEND_LAG_US, 0),
    Column("failed", SumWithBase, FAILED, 0),
    Column("frames/s", Median, FRAMES_PER_S, 0),
    Column("delay p50 ms", Median, |slice| slice.value("readers delay p50 ms"), 1),
    Column("p99 ms", Median, |slice| slice.value("readers delay p99 ms"), 1),
    Column("max ms", Median, |slice| slice.value("readers delay max ms"), 1),
    Column("at all p50 ms", Median, |slice| slice.value("readers all served p50 ms"), 1),
    Column("p99 ms", Median, ALL_SERVED_MS, 1),
    Column("KiB/reader", Largest, KIB_PER_READER, 2),
    Column("states skipped", Sum, |slice| slice.value("readers skipped"), 0),
    Column("went back", Sum, |slice| slice.value("readers went back"), 0),
    Column("streams lost", Sum, |slice| slice.value("readers lost"), 0),
];

pub(super) const CROWD_UNDER_FIRE: Run = Run {
    name: "crowd-under-fire",
    heading: "### The same while 200 people log in and every upstream hangs",
    text: "Frames come where a price becomes stale, and at rest none.",
    work: Work::Slices(&Slices {
        servers: &[ServerSpec::with_users(
            BHAV,
            State::ManyUsers,
            crowd::SETTINGS,
        )],
        cases: &[
            Case::new(QUIET, NEIGHBOURS),
            Case::new(CROWDED, NEIGHBOURS)
                .beside(ReadersLoginsAndHangs(crowd::READERS))
                .to(Base::Case(QUIET)),
        ],
        lines: Lines::Table(
            &[Label::Case("beside")],
            CROWD_COLUMNS,
            Some(|f| background::answers(f, CROWDED)),
        ),
        ..SLICES
    }),
    targets: &[Value(
        "snapshot p99.9 beside 10,000 readers, 200 logins and hanging upstreams, to quiet",
        AtMost(2.0),
        |f| f.ratio((BHAV, CROWDED), (BHAV, QUIET), P999_US),
    )],
};

pub(super) const SILENT: Run = Run {
    name: "silent",
    heading: "### 1000 readers that never read",
    work: Work::Steps(crowd::silent),
    ..RUN
};

pub(super) const DRAIN: Run = Run {
    name: "drain",
    heading: "### A restart with 10000 readers",
    work: Work::Steps(crowd::drain),
    ..RUN
};
