//! The section of RESULTS.md.

use std::fmt::Write;

use super::Accounts;
use super::crowd::Answers;
use super::holdings::{self, Database, Pair};
use super::journal::{self, Writes};
use super::states::{FEW_USERS, ROWS, ROWS_OTHERS};
use super::tail::{self, Tail};
use crate::generator::Slice;
use crate::results::number;
use crate::stats::{median, median_ratio, spread};

/// Most p99.9 of the snapshot under logins and hanging syncs, as a ratio to its quiet value.
const TAIL_RATIO_MAX: f64 = 2.0;

/// Least rate of kept holdings, as a ratio to the snapshot in the same form.
const HITS_RATIO_MIN: f64 = 0.5;

/// Most latency with many users, as a ratio to few; what two copies of one program may differ by.
const USERS_RATIO_MAX: f64 = 1.05;

impl Accounts {
    /// The section.
    pub fn render(&self) -> String {
        let mut out = String::from("## Accounts\n\n");
        for (name, value) in &self.surroundings {
            let _ = writeln!(out, "- {name}: {value}");
        }
        let states = &self.states;
        let foreign: Vec<f64> = self.slices().map(|slice| slice.foreign_share * 100.0).collect();
        let _ = write!(
            out,
            "- {} rounds ({} of the settings beside the default), slices of {} ms, {:.0} s in all\n\
             - machine used by others: median {} %, most {} % in the slices without logins\n\
             - databases: {FEW_USERS} users and {} users; the same {FEW_USERS} have {ROWS} \
             holdings in both, the others {ROWS_OTHERS}; the large one was written in {:.0} s \
             through the product's store and has {} MiB\n\
             - disk: {}; one synced append of 4 KiB takes {:.0} µs\n\n",
            self.effort.rounds,
            self.effort.rounds_aside,
            self.effort.slice_ms,
            self.elapsed_s,
            number(median(&foreign), 1),
            number(spread(&foreign).map(|(_, most)| most), 1),
            states.many_users,
            states.seeded_s,
            states.many_mib,
            states.file_system,
            states.sync_us,
        );
        self.render_targets(&mut out);
        self.render_tails(&mut out);
        self.render_hits(&mut out);
        self.render_reads(&mut out);
        self.render_journal(&mut out);
        out
    }

    /// Slices in which nobody but the server and the generator had anything to do.
    fn slices(&self) -> impl Iterator<Item = &Slice> {
        let quiet = self.tails.iter().flat_map(|tail| &tail.quiet);
        let hits =
            self.hits.pairs.iter().flat_map(|pair| pair.snapshot.iter().chain(&pair.holdings));
        let reads = [&self.reads.few, &self.reads.many].into_iter();
        let reads = reads.flat_map(|database| database.hits.iter().chain(&database.misses));
        let writes = self.journal.grouped.slices.iter().chain(&self.journal.one_each.slices);
        quiet.chain(hits).chain(reads).chain(writes)
    }

    fn render_targets(&self, out: &mut String) {
        out.push_str("| what | wanted | measured | |\n|---|---|---|---|\n");
        let tail = self.tails.iter().find(|tail| tail.setting.is_default).and_then(Tail::ratio);
        let met = tail.is_some_and(|ratio| ratio <= TAIL_RATIO_MAX);
        let what = format!(
            "snapshot p99.9 under {} logins and {} hanging syncs, to quiet",
            tail::LOGINS,
            tail::SYNCS
        );
        target(out, &what, &format!("≤ {TAIL_RATIO_MAX}"), tail, met);
        for pair in &self.hits.pairs {
            let ratio = pair.ratio();
            let what =
                format!("kept holdings of {ROWS} rows, {}, to the snapshot", pair.form.name());
            let met = ratio.is_some_and(|ratio| ratio >= HITS_RATIO_MIN);
            target(out, &what, &format!("≥ {HITS_RATIO_MIN}"), ratio, met);
        }
        for (name, of) in READ_KINDS {
            let ratio = self.reads_ratio(of);
            let met = ratio.is_some_and(|ratio| ratio <= USERS_RATIO_MAX);
            let what = format!("{name}, p50 with {} users to {FEW_USERS}", self.states.many_users);
            target(out, &what, &format!("≤ {USERS_RATIO_MAX}"), ratio, met);
        }
        out.push('\n');
    }

    fn reads_ratio(&self, of: fn(&Database) -> &[Slice]) -> Option<f64> {
        let p50 = |database| values(of(database), |slice| slice.load.latency.p50_us);
        median_ratio(&p50(&self.reads.many), &p50(&self.reads.few))
    }

    fn render_tails(&self, out: &mut String) {
        let _ = write!(
            out,
            "### Snapshot at {} req/s on {} connections, under logins and hanging syncs\n\n\
             {} users log in at once, each again as soon as it is answered (a second later if it \
             was turned away); {} users sync with a broker that does not answer: as many as bhav \
             has threads for hang in its call, the others wait for a thread. {} users in the \
             database.\n\n\
             | setting | p99.9 quiet µs | p99.9 loaded µs | ratio | spread | send lag p99.9 \
             quiet µs | loaded µs | p99 quiet µs | p99 loaded µs | hashing, % of a core | \
             logins/s | turned away/s | lost |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            tail::RATE_PER_S,
            tail::CONNECTIONS,
            tail::LOGINS,
            tail::SYNCS,
            self.states.many_users,
        );
        for tail in &self.tails {
            let loaded: Vec<Slice> = tail.loaded.iter().map(|loaded| loaded.slice).collect();
            let p999 = |slices: &[Slice]| values(slices, |slice| slice.load.latency.p999_us);
            let lag = |slices: &[Slice]| values(slices, |slice| slice.load.send_lag.p999_us);
            let p99 = |slices: &[Slice]| values(slices, |slice| slice.load.latency.p99_us);
            let ratios: Vec<f64> = p999(&loaded)
                .iter()
                .zip(p999(&tail.quiet))
                .map(|(loaded, quiet)| loaded / quiet)
                .collect();
            let hashing: Vec<f64> =
                tail.loaded.iter().map(|loaded| loaded.crypto_share * 100.0).collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                tail.setting.name,
                number(median(&p999(&tail.quiet)), 0),
                number(median(&p999(&loaded)), 0),
                number(tail.ratio(), 2),
                spread(&ratios)
                    .map_or_else(String::new, |(low, high)| format!("{low:.2}–{high:.2}")),
                number(median(&lag(&tail.quiet)), 0),
                number(median(&lag(&loaded)), 0),
                number(median(&p99(&tail.quiet)), 0),
                number(median(&p99(&loaded)), 0),
                number(median(&hashing), 0),
                number(tail.logins_per_s(|status| status == 200), 1),
                number(tail.logins_per_s(|status| status == 503), 0),
                failed(loaded.iter().chain(&tail.quiet)),
            );
        }
        out.push_str(
            "\nAnswers by status (0: none), to logins in the loaded slices and to syncs until the \
             last one ended:\n\n",
        );
        for tail in &self.tails {
            let logins = summed(tail.loaded.iter().map(|loaded| &loaded.logins));
            let syncs = summed(tail.loaded.iter().map(|loaded| &loaded.syncs));
            let _ = writeln!(out, "- {}: logins {logins}; syncs {syncs}", tail.setting.name);
        }
        out.push('\n');
    }

    fn render_hits(&self, out: &mut String) {
        let _ = write!(
            out,
            "### Kept holdings of {ROWS} rows next to the snapshot, at saturation, {} \
             connections\n\n\
             | form | body bytes | holdings req/s | snapshot req/s | ratio | spread | holdings CPU \
             µs | snapshot CPU µs | lost or another status |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            holdings::CONNECTIONS,
        );
        for pair in &self.hits.pairs {
            let rate = |slices: &[Slice]| values(slices, |slice| slice.load.rate_per_s);
            let cpu = |slices: &[Slice]| values(slices, |slice| slice.cpu_us_per_request);
            let ratios: Vec<f64> = rate(&pair.holdings)
                .iter()
                .zip(rate(&pair.snapshot))
                .map(|(holdings, snapshot)| holdings / snapshot)
                .collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                pair.form.name(),
                pair.body_bytes,
                number(median(&rate(&pair.holdings)), 0),
                number(median(&rate(&pair.snapshot)), 0),
                number(pair.ratio(), 3),
                spread(&ratios)
                    .map_or_else(String::new, |(low, high)| format!("{low:.2}–{high:.2}")),
                number(median(&cpu(&pair.holdings)), 2),
                number(median(&cpu(&pair.snapshot)), 2),
                failed(pair.holdings.iter().chain(&pair.snapshot)),
            );
        }
        out.push('\n');
    }

    fn render_reads(&self, out: &mut String) {
        let _ = write!(
            out,
            "### {} users next to {FEW_USERS}\n\n\
             Holdings of {ROWS} rows: kept, {} req/s; made anew (the smallest cache, {FEW_USERS} \
             users in turn), {} req/s.\n\n\
             | users | what | p50 µs | p99 µs | CPU µs/request | missed % | RSS MiB | lost |\n\
             |---|---|---|---|---|---|---|---|\n",
            self.states.many_users,
            holdings::HITS_PER_S,
            holdings::MISSES_PER_S,
        );
        let databases = [(FEW_USERS, &self.reads.few), (self.states.many_users, &self.reads.many)];
        for (name, of) in READ_KINDS {
            for (users, database) in databases {
                let slices = of(database);
                let missed = (name == READ_KINDS[1].0).then_some(database.missed_share * 100.0);
                let _ = writeln!(
                    out,
                    "| {users} | {name} | {} | {} | {} | {} | {:.1} | {} |",
                    number(median(&values(slices, |slice| slice.load.latency.p50_us)), 0),
                    number(median(&values(slices, |slice| slice.load.latency.p99_us)), 0),
                    number(median(&values(slices, |slice| slice.cpu_us_per_request)), 1),
                    number(missed, 0),
                    database.rss_kib as f64 / 1_024.0,
                    failed(slices.iter()),
                );
            }
        }
        let evening = &self.revaluation;
        let _ = write!(
            out,
            "\nRevaluation at the close: {} points and {} rows in {} pages with {} closing prices, \
             {:.1} s from start to last point, of these {:.1} s for the pages; {:.1} s of CPU, of \
             these {:.1} s of the threads that value and store; RSS {:.1} MiB at the beginning, \
             {:.1} MiB at its height.\n\n",
            evening.points,
            evening.rows,
            evening.pages,
            evening.priced,
            evening.whole_s,
            evening.pages_s,
            evening.cpu_s,
            evening.threads_s,
            evening.rss_kib.0 as f64 / 1_024.0,
            evening.rss_kib.1 as f64 / 1_024.0,
        );
    }

    fn render_journal(&self, out: &mut String) {
        let _ = write!(
            out,
            "### Acknowledged journal writes, {} clients\n\n\
             | setting | writes/s | p50 µs | p99 µs | writes in a commit | lost or another \
             status |\n|---|---|---|---|---|---|\n",
            journal::CLIENTS,
        );
        let one_each = format!("{}={}", journal::ONE_EACH.0, journal::ONE_EACH.1);
        for (name, writes) in
            [("default", &self.journal.grouped), (&*one_each, &self.journal.one_each)]
        {
            let Writes { slices, .. } = writes;
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} | {:.1} | {} |",
                number(writes.per_s(), 0),
                number(median(&values(slices, |slice| slice.load.latency.p50_us)), 0),
                number(median(&values(slices, |slice| slice.load.latency.p99_us)), 0),
                writes.per_commit(),
                failed(slices.iter()),
            );
        }
        let _ = writeln!(out, "\nGain of grouping: {}", number(self.journal.gain(), 2));
    }
}

impl Pair {
    /// Rate of holdings as a ratio to the snapshot's, median over the rounds.
    fn ratio(&self) -> Option<f64> {
        let rate = |slices: &[Slice]| values(slices, |slice| slice.load.rate_per_s);
        median_ratio(&rate(&self.holdings), &rate(&self.snapshot))
    }
}

type ReadKind = (&'static str, fn(&Database) -> &[Slice]);

const READ_KINDS: [ReadKind; 2] =
    [("kept", |database| &database.hits), ("made anew", |database| &database.misses)];

fn values(slices: &[Slice], of: impl Fn(&Slice) -> f64) -> Vec<f64> {
    slices.iter().map(of).collect()
}

fn failed<'a>(slices: impl Iterator<Item = &'a Slice>) -> u64 {
    slices.map(|slice| slice.load.errors + slice.load.other_status).sum()
}

fn summed<'a>(answers: impl Iterator<Item = &'a Answers>) -> String {
    let mut all = Answers::new();
    for (&status, &count) in answers.flatten() {
        *all.entry(status).or_default() += count;
    }
    let texts: Vec<String> =
        all.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

fn target(out: &mut String, what: &str, wanted: &str, measured: Option<f64>, met: bool) {
    let verdict = if met { "met" } else { "**missed**" };
    let _ = writeln!(out, "| {what} | {wanted} | {} | {verdict} |", number(measured, 3));
}
