//! Several nodes as real processes, and what goes wrong around them.
//!
//! ```text
//! chaos ──── judge     ten minutes of random faults, and what must never have happened
//! engines              the large database on each engine
//! follower             its snapshots beside those of a node that is alone
//! failures ─ timeline  each row of the failure table, second by second
//!   └─ world           the nodes (node), the servers that they share (postgres, valkey), and the
//!   │                  ways between them, which can be cut (link), with a count of calls (calls)
//!   └─ watch           what clients of each node see (seen)
//! ```

mod calls;
mod chaos;
mod engines;
mod failures;
mod follower;
mod judge;
mod link;
mod node;
mod postgres;
mod seen;
mod timeline;
mod valkey;
mod watch;
mod world;

pub use chaos::measure as chaos;
pub use engines::measure as engines;
pub use failures::measure as failures;
pub use follower::measure as follower;
