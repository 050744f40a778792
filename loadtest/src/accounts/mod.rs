//! What accounts cost: logins and hanging syncs beside the snapshot, kept portfolio answers, a
//! hundred thousand users, writes on disk. bhav alone; ratios are to bhav's own snapshot or to its
//! own quiet self, within a round.

pub mod close;
pub mod crowd;
pub mod holdings;
pub mod journal;
pub mod people;
pub mod report;
pub mod states;
pub mod tail;

use std::time::Instant;

use crate::error::Error;
use crate::generator::Generator;
use crate::servers::Programs;

use close::Revaluation;
use holdings::{Hits, Reads};
use journal::Journal;
use states::States;
use tail::Tail;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds of the figures that have a target.
    pub rounds: usize,
    /// Rounds of the settings that are shown beside them.
    pub rounds_aside: usize,
    /// Length of a slice, in milliseconds.
    pub slice_ms: u64,
    /// Users of the large database.
    pub users: usize,
}

impl Effort {
    /// About five minutes.
    pub const FULL: Self = Self { rounds: 5, rounds_aside: 2, slice_ms: 2_000, users: 100_000 };

    /// To see that everything works.
    pub const QUICK: Self = Self { rounds: 1, rounds_aside: 1, slice_ms: 1_000, users: 2_000 };
}

/// All figures of this part.
pub struct Accounts {
    /// Circumstances, by name.
    pub surroundings: Vec<(&'static str, String)>,
    /// How much was measured.
    pub effort: Effort,
    /// The databases.
    pub states: States,
    /// The snapshot's tail under logins and hanging syncs, by setting.
    pub tails: Vec<Tail>,
    /// Kept answers next to the snapshot.
    pub hits: Hits,
    /// Few users next to many.
    pub reads: Reads,
    /// The evening's revaluation of the large database.
    pub revaluation: Revaluation,
    /// Writes with and without grouping.
    pub journal: Journal,
    /// Length of the whole part, in seconds.
    pub elapsed_s: f64,
}

/// Measures everything.
///
/// # Errors
/// bhav does not start, the generator failed, or an answer was not as it should be.
pub fn measure(
    programs: &Programs,
    generator: &Generator,
    effort: Effort,
    surroundings: Vec<(&'static str, String)>,
) -> Result<Accounts, Error> {
    let began = Instant::now();
    eprintln!("accounts: databases of {} and {} users", states::FEW_USERS, effort.users);
    let states = States::prepare(programs, effort.users)?;
    eprintln!("accounts: journal writes");
    let journal = journal::measure(programs, generator, &states, effort)?;
    eprintln!("accounts: kept answers next to the snapshot");
    let hits = holdings::compare_with_snapshot(programs, generator, &states, effort)?;
    eprintln!("accounts: {} users next to {}", effort.users, states::FEW_USERS);
    let reads = holdings::compare_users(programs, generator, &states, effort)?;
    let mut tails = Vec::new();
    for setting in tail::SETTINGS {
        eprintln!("accounts: snapshot under logins and hanging syncs, {}", setting.name);
        tails.push(tail::measure(programs, generator, &states, setting, effort)?);
    }
    eprintln!("accounts: revaluation at the close");
    let revaluation = close::measure(programs, &states)?;
    Ok(Accounts {
        surroundings,
        effort,
        states,
        tails,
        hits,
        reads,
        revaluation,
        journal,
        elapsed_s: began.elapsed().as_secs_f64(),
    })
}
