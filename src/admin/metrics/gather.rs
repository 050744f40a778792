//! One scrape: all metric families in their order. Runs on the lane `admin`.

use crate::admin::exposition::{Exposition, Kind};
use crate::admin::listener::Watched;
use crate::admin::metrics::edge;
use crate::admin::metrics::upstream;
use crate::admin::metrics::work;
use crate::admin::process;
use crate::ops::{log, panic, version};
use crate::rt::LaneStats;

/// The text of one scrape. `own` are the counters of the lane `admin`.
pub(in crate::admin) fn gather(watched: &Watched, own: LaneStats) -> String {
    let mut text = Exposition::default();
    edge::write(&mut text, watched);
    work::write(&mut text, watched, own);
    upstream::write(&mut text, watched);
    own_process(&mut text, watched);
    text.finish()
}

fn own_process(text: &mut Exposition, watched: &Watched) {
    let labels = [
        ("version", version::VERSION),
        ("profile", version::PROFILE),
        ("arch", std::env::consts::ARCH),
    ];
    text.family(Kind::Gauge, "bhav_build_info", "Version and build; always 1.").sample(&labels, 1);
    text.counter(
        "bhav_log_lines_dropped_total",
        "Log lines dropped because standard error was read too slowly.",
        log::lines_dropped(),
    );
    text.counter(
        "bhav_log_writes_failed_total",
        "Failed writes to the log, usually because its reader closed it.",
        log::writes_failed(),
    );
    text.counter("bhav_panics_total", "Panics in any thread or coroutine.", panic::PANICS.value());
    if let Some(bytes) = process::available_bytes(&watched.sources.state_dir) {
        text.gauge(
            "bhav_state_dir_available_bytes",
            "Free space on the file system of the state directory.",
            bytes,
        );
    }
    text.gauge(
        "process_start_time_seconds",
        "Start time of the process, in seconds since the Unix epoch.",
        watched.started_s,
    );
    text.family(Kind::Counter, "process_cpu_seconds_total", "User and system CPU time.")
        .sample(&[], process::cpu_seconds());
    if let Some(status) = process::Status::read() {
        if let Some(bytes) = status.resident_bytes() {
            text.gauge("process_resident_memory_bytes", "Resident memory.", bytes);
        }
        if let Some(threads) = status.threads() {
            text.gauge("process_threads", "OS threads of the process.", threads);
        }
    }
    if let Some((open, max)) = process::descriptors() {
        text.gauge("process_open_fds", "Open file descriptors.", open);
        text.gauge("process_max_fds", "Limit on open file descriptors.", max);
    }
}
