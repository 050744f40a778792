//! Runs with several nodes.

use super::RUN;
use crate::nodes;
use crate::run::{Run, Work};

pub(super) const CHAOS: Run =
    Run { name: "chaos", heading: "### Random faults", work: Work::Steps(nodes::chaos), ..RUN };

pub(super) const FAILURES: Run = Run {
    name: "failures",
    heading: "### What each failure looks like",
    work: Work::Steps(nodes::failures),
    ..RUN
};

pub(super) const ENGINES: Run = Run { name: "engines", work: Work::Steps(nodes::engines), ..RUN };

pub(super) const FOLLOWER: Run =
    Run { name: "follower", work: Work::Steps(nodes::follower), ..RUN };
