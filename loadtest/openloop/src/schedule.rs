//! When each request is due and which connection carries it.
//!
//! Requests are dealt to the connections in turn, so each connection is a client with a fixed
//! period of its own: one that is stalled does not pass its requests on to the others.

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A fixed schedule over a number of connections.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    rate_per_s: u64,
    connections: u64,
    total: u64,
}

impl Schedule {
    /// Requests at `rate_per_s` for `duration_ms`, dealt over `connections`.
    pub fn new(rate_per_s: u64, duration_ms: u64, connections: usize) -> Self {
        Self {
            rate_per_s: rate_per_s.max(1),
            connections: connections.max(1) as u64,
            total: rate_per_s.max(1) * duration_ms / 1_000,
        }
    }

    /// Number of requests in the whole run.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// When request `index` is due, in nanoseconds after the start. Computed from the index, not
    /// added up, so that the rate does not drift.
    pub fn due_ns(&self, index: u64) -> u64 {
        let ns = u128::from(index) * u128::from(NS_PER_S) / u128::from(self.rate_per_s);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Connection that carries request `index`.
    pub fn connection(&self, index: u64) -> usize {
        usize::try_from(index % self.connections).expect("less than the number of connections")
    }

    /// When the `nth` request (from 0) of `connection` is due.
    pub fn due_on_ns(&self, connection: usize, nth: u64) -> u64 {
        self.due_ns(connection as u64 + nth * self.connections)
    }
}

#[cfg(test)]
mod tests {
    use super::{NS_PER_S, Schedule};

    #[test]
    fn total_is_rate_times_duration() {
        assert_eq!(Schedule::new(10_000, 4_000, 64).total(), 40_000);
        assert_eq!(Schedule::new(3, 500, 1).total(), 1);
    }

    #[test]
    fn due_times_do_not_drift() {
        let schedule = Schedule::new(3, 10_000, 2);
        for second in 0..10 {
            assert_eq!(schedule.due_ns(second * 3), second * NS_PER_S);
        }
        let long = Schedule::new(7_919, 1, 1);
        assert_eq!(long.due_ns(7_919 * 86_400), 86_400 * NS_PER_S);
    }

    #[test]
    fn due_times_never_go_back() {
        let schedule = Schedule::new(33_333, 1_000, 64);
        for index in 1..schedule.total() {
            assert!(schedule.due_ns(index - 1) < schedule.due_ns(index));
        }
    }

    #[test]
    fn requests_are_dealt_in_turn() {
        let schedule = Schedule::new(1_000, 1_000, 3);
        let dealt: Vec<usize> = (0..7).map(|i| schedule.connection(i)).collect();
        assert_eq!(dealt, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn both_ways_of_counting_agree() {
        let schedule = Schedule::new(10_007, 1_000, 64);
        let mut nth = [0_u64; 64];
        for index in 0..schedule.total() {
            let connection = schedule.connection(index);
            assert_eq!(schedule.due_on_ns(connection, nth[connection]), schedule.due_ns(index));
            nth[connection] += 1;
        }
    }
}
