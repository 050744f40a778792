//! `--list`: the table of runs as a reader sees it.

use std::fmt::Write;

use crate::run::{Background, Load, Rate, Read, Run, Slices, Work};
use crate::table::SECTIONS;

/// One line for each run.
pub fn table() -> String {
    let mut out = String::from(
        "| section | run | servers | load | beside it | read | heading in RESULTS.md |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for section in SECTIONS.iter() {
        for run in section.runs {
            let [servers, load, beside, read] = match run.work {
                Work::Slices(slices) => of_slices(slices),
                Work::Steps(_) => ["bhav", "steps of its own", "", ""].map(str::to_owned),
            };
            let heading = if run.heading.is_empty() { section.heading } else { run.heading };
            let heading = heading.trim_start_matches(['#', ' ']);
            let Run { name, .. } = run;
            let _ = writeln!(
                out,
                "| {} | {name} | {servers} | {load} | {beside} | {read} | {heading} |",
                section.name
            );
        }
    }
    out
}

fn of_slices(slices: &Slices) -> [String; 4] {
    let servers: Vec<&str> = slices.servers.iter().map(|server| server.name).collect();
    let mut loads: Vec<String> = slices.cases.iter().map(|case| of_load(case.load)).collect();
    loads.dedup();
    let mut beside: Vec<&str> =
        slices.cases.iter().map(|case| of_background(case.background)).collect();
    beside.dedup();
    let mut read: Vec<&str> = slices.reads.iter().map(of_read).collect();
    let is_plain = |load| matches!(load, Load::None | Load::Idle(_));
    if !slices.cases.iter().any(|case| is_plain(case.load)) {
        read.splice(0..0, ["latency", "CPU"]);
    }
    [servers.join(", "), loads.join("; "), beside.join("; "), read.join(", ")]
}

fn of_load(load: Load) -> String {
    match load {
        Load::None => "none".to_owned(),
        Load::Idle(connections) => format!("{connections} idle connections"),
        Load::Clients(clients) => format!("{clients} clients polling quotes"),
        Load::Requests(what, connections, rate) => {
            let rate = match rate {
                Rate::AsAnswered => "closed loop".to_owned(),
                Rate::HalfOfSaturation => "half of saturation".to_owned(),
                Rate::PerSecond(per_s) | Rate::InTicks(per_s) => format!("{per_s} req/s"),
            };
            format!("{what:?}, {connections} connections, {rate}")
        }
    }
}

fn of_background(background: Background) -> &'static str {
    match background {
        Background::None => "nothing",
        Background::HangingUpstreams => "hanging upstreams",
        Background::LoginsAndSyncs => "logins and hanging syncs",
    }
}

fn of_read(read: &Read) -> &'static str {
    match read {
        Read::Health(path) => path,
        Read::Threads(_) => "CPU of threads",
        Read::Rss => "RSS",
        Read::UpstreamCalls => "upstream calls",
    }
}
