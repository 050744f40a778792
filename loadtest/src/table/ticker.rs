//! Runs with prices that are pushed.

use super::{FAILED, P50_US, P99_US, P999_US, SEND_LAG_US, SLICES};
use crate::figures::Figure;
use crate::lines;
use crate::requests::Form::Identity;
use crate::requests::What::Snapshot;
use crate::run::Background::AllInstruments;
use crate::run::Load::Requests;
use crate::run::Rate::PerSecond;
use crate::run::Show::{Last, Median, Ratio, Sum};
use crate::run::Target::Value;
use crate::run::Wanted::AtMost;
use crate::run::{Base, Case, Column, Label, Lines, Order, Read, Run, ServerSpec, Slices, Work};
use crate::servers::State;
use crate::ticker;

/// Prices by calls alone, and by ticks that calls confirm.
const CALLS: &str = "calls";
const TICKS: &str = "ticker";

const POLLED: &str = "polled";

const CPU_PERCENT: Figure = |slice| slice.cpu_us_per_request * slice.load.rate_per_s / 1e4;
const TICKER_PERCENT: Figure = |slice| slice.value("ticker") / 1e4 / slice.value("seconds");
const SCHEDULER_PERCENT: Figure = |slice| slice.value("warm") / 1e4 / slice.value("seconds");
const DELAY_P99_MS: Figure = |slice| slice.value("quotes delay p99 ms");

pub(super) const TICKER: Run = Run {
    name: "ticker",
    heading: "### 3000 instruments at two ticks a second",
    text: "Snapshot at 2000 req/s on 64 connections while all 3000 instruments are wanted; a \
           service that calls for prices, then one to which they are pushed as well. A reader of \
           the stream has quotes of 20 shares, once a second: the delay of a price is from just \
           before the simulator sends the tick to the frame in the reader's hands. Publication is \
           from the first tick of a batch to when requests can read it. What the simulator uses \
           counts as used by others.",
    work: Work::Slices(&Slices {
        servers: &[
            ServerSpec::with_users(CALLS, State::MoreShares, &ticker::SETTINGS),
            ServerSpec::with_users(
                TICKS,
                State::MoreShares,
                &[
                    ("BHAV_BROKERA_TICKER", "true"),
                    ticker::SETTINGS[0],
                    ticker::SETTINGS[1],
                ],
            ),
        ],
        order: Order::OneByOne,
        cases: &[
            Case::new(POLLED, Requests(Snapshot(Identity), 64, PerSecond(2_000)))
                .beside(AllInstruments)
                .to(Base::Server(CALLS)),
        ],
        reads: &[
            Read::Threads("ticker"),
            Read::Threads("warm"),
            Read::Rss,
            Read::UpstreamCalls,
            Read::Ticks,
        ],
        lines: Lines::Table(
            &[Label::Server("prices by")],
            &[
                Column("p50 µs", Median, P50_US, 0),
                Column("p99 µs", Median, P99_US, 0),
                Column("p99.9 µs", Median, P999_US, 0),
                Column("ratio", Ratio, P999_US, 2),
                Column("send lag p99.9 µs", Median, SEND_LAG_US, 0),
                Column("failed", Sum, FAILED, 0),
                Column("CPU, % of a core", Median, CPU_PERCENT, 1),
                Column("of thread ticker", Median, TICKER_PERCENT, 2),
                Column("of the scheduler", Median, SCHEDULER_PERCENT, 2),
                Column("RSS MiB", Last, |slice| slice.value("RSS KiB") / 1_024.0, 1),
                Column("grown by", Last, |slice| slice.value("RSS growth KiB") / 1_024.0, 1),
                Column("ticks/s", Median, ticker::ticks_per_s, 0),
                Column("published p50 ms", Median, |slice| ticker::published_ms(slice, 0.5), 0),
                Column("p99 ms", Median, |slice| ticker::published_ms(slice, 0.99), 0),
                Column("delay p50 ms", Median, |slice| slice.value("quotes delay p50 ms"), 0),
                Column("p99 ms", Median, DELAY_P99_MS, 0),
                Column("max ms", Median, |slice| slice.value("quotes delay max ms"), 0),
                Column("prices", Sum, |slice| slice.value("quotes of ticks"), 0),
                Column("quote calls/s", Median, lines::quote_calls_per_s, 2),
                Column(
                    "most in a second",
                    Last,
                    |slice| slice.value("quote calls in one second"),
                    0,
                ),
            ],
            None,
        ),
        ..SLICES
    }),
    targets: &[
        Value("snapshot p99.9 beside 6,000 ticks a second, to calls alone", AtMost(1.5), |f| {
            f.ratio((TICKS, POLLED), (CALLS, POLLED), P999_US)
        }),
        Value("scheduler beside 6,000 ticks a second, % of a core", AtMost(2.0), |f| {
            f.median((TICKS, POLLED), SCHEDULER_PERCENT)
        }),
        Value("broker A quote calls within any second", AtMost(1.0), |f| {
            f.median((TICKS, POLLED), |slice| slice.value("quote calls in one second"))
        }),
    ],
};
