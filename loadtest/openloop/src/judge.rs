//! What readers received, held against what was published.

use std::collections::HashMap;
use std::ops::Range;

use hdrhistogram::Histogram;

use crate::published::Publication;
use crate::report::{Percentiles, ReadersReport};
use crate::schedule::NS_PER_S;

/// A publication so close to the end of the window may not have reached everyone.
const EDGE_NS: u64 = NS_PER_S;

/// Longest delay told apart, in nanoseconds.
const DELAY_NS_MAX: u64 = 600_000_000_000;

/// One snapshot that a reader got.
#[derive(Debug, Clone, Copy)]
pub struct Reception {
    /// The reader's number.
    pub reader: u32,
    /// The number of the snapshot's id, in the order of first reception.
    pub id: u32,
    /// When.
    pub at_ns: u64,
    /// Since when its connection was open.
    pub opened_ns: u64,
}

/// All receptions in a window, in the order of their times.
#[derive(Debug, Default)]
pub struct Received(Vec<Reception>);

/// What a reader had last.
#[derive(Clone, Copy)]
struct Last {
    place: usize,
    opened_ns: u64,
}

impl Received {
    /// Adds one.
    pub fn push(&mut self, reception: Reception) {
        self.0.push(reception);
    }

    /// Fills in what needs every publication to be known. `ids` numbers the ids.
    pub fn judge(
        &self,
        publications: &[Publication],
        ids: &HashMap<Vec<u8>, u32>,
        window: Range<u64>,
        report: &mut ReadersReport,
    ) {
        let mut places = vec![Vec::new(); ids.len()];
        for (place, publication) in publications.iter().enumerate() {
            if let Some(id) = ids.get(&publication.id) {
                places[*id as usize].push(place);
            }
        }
        let is_judged = |after_ns: u64| after_ns >= window.start && after_ns + EDGE_NS < window.end;
        let judged = publications
            .iter()
            .filter(|p| p.after_ns.is_some_and(is_judged));
        report.publications = judged.count();
        let empty = || Histogram::new_with_bounds(1, DELAY_NS_MAX, 3).expect("constant bounds");
        let (mut delay, mut all_served) = (empty(), empty());
        let mut latest: HashMap<usize, u64> = HashMap::new();
        let mut lasts: HashMap<u32, Last> = HashMap::new();
        for reception in &self.0 {
            // The same bytes again, after others, have the same id.
            let had = |place: &&usize| publications[**place].after_ns <= Some(reception.at_ns);
            let of_id = &places[reception.id as usize];
            let Some(&place) = of_id.iter().rfind(had).or(of_id.first()) else {
                report.unknown += 1;
                continue;
            };
            follow(&mut lasts, reception, place, report);
            let Some(after_ns) = publications[place].after_ns.filter(|ns| is_judged(*ns)) else {
                continue;
            };
            // Who came later got it as the current one.
            if reception.opened_ns < after_ns {
                let delay_ns = reception.at_ns.saturating_sub(after_ns).max(1);
                delay.saturating_record(delay_ns);
                let latest = latest.entry(place).or_default();
                *latest = delay_ns.max(*latest);
            }
        }
        latest
            .values()
            .for_each(|delay_ns| all_served.saturating_record(*delay_ns));
        report.delay = Percentiles::of(&delay);
        report.all_served = Percentiles::of(&all_served);
    }
}

/// Compares a reception with the reader's one before.
fn follow(
    lasts: &mut HashMap<u32, Last>,
    reception: &Reception,
    place: usize,
    report: &mut ReadersReport,
) {
    let last = Last {
        place,
        opened_ns: reception.opened_ns,
    };
    let Some(before) = lasts.insert(reception.reader, last) else {
        return;
    };
    if place > before.place {
        report.skipped += (place - before.place - 1) as u64;
    } else if place < before.place {
        report.went_back += 1;
    } else if before.opened_ns == reception.opened_ns {
        report.repeated += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Received, Reception};
    use crate::published::Publication;
    use crate::report::ReadersReport;
    use crate::schedule::NS_PER_S;

    const MS: u64 = 1_000_000;

    /// One publication a second, "0" at second 0.
    fn publications(count: u64) -> Vec<Publication> {
        let id = |number: u64| number.to_string().into_bytes();
        let at = |number| Publication {
            id: id(number),
            after_ns: Some(number * NS_PER_S),
        };
        (0..count).map(at).collect()
    }

    fn judged(receptions: &[(u32, u32, u64, u64)], window_s: u64) -> ReadersReport {
        let mut received = Received::default();
        for &(reader, id, at_ms, opened_ms) in receptions {
            let (at_ns, opened_ns) = (at_ms * MS, opened_ms * MS);
            received.push(Reception {
                reader,
                id,
                at_ns,
                opened_ns,
            });
        }
        // Numbered as their texts say; 9 was never published.
        let ids: HashMap<Vec<u8>, u32> = (0..10_u32)
            .map(|id| (id.to_string().into_bytes(), id))
            .collect();
        let mut report = ReadersReport::default();
        received.judge(&publications(5), &ids, 0..window_s * NS_PER_S, &mut report);
        report
    }

    #[test]
    fn delays_count_from_the_publication_for_who_was_there() {
        let of_ten = [
            (1, 1, 1_010, 0),
            (2, 1, 1_030, 0),
            (1, 2, 2_050, 0),
            (3, 2, 2_900, 2_500),
        ];
        let report = judged(&of_ten, 10);
        assert_eq!(report.publications, 5);
        assert_eq!((report.delay.max_us / 1e3).round(), 50.0);
        assert_eq!((report.all_served.p50_us / 1e3).round(), 30.0);
        assert_eq!(
            (report.skipped, report.repeated, report.went_back, report.unknown),
            (0, 0, 0, 0)
        );
        let report = judged(&of_ten, 2);
        assert_eq!(report.publications, 1, "that of second 1 may not have reached everyone");
    }

    #[test]
    fn gaps_repetitions_and_snapshots_that_go_back_are_counted() {
        let receptions = [
            (1, 0, 1, 0),
            (1, 3, 3_001, 0),
            (1, 3, 3_002, 0),
            (1, 2, 3_003, 0),
        ];
        let report = judged(&receptions, 10);
        assert_eq!((report.skipped, report.repeated, report.went_back), (2, 1, 1));
        // Who has connected anew gets the current one, which it may have already.
        let report = judged(&[(1, 3, 3_001, 0), (1, 3, 3_500, 3_400), (2, 9, 1, 0)], 10);
        assert_eq!((report.skipped, report.repeated, report.went_back), (0, 0, 0));
        assert_eq!(report.unknown, 1);
    }
}
