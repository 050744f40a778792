//! The log: one line for each event on standard error, in logfmt or JSON, with its time in IST.
//!
//! The caller formats the line and queues it; one thread, `log`, writes. So a slow or closed
//! standard error never blocks the caller: lines are then dropped and counted.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use crossbeam_channel::{Receiver, Sender, bounded};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;

use crate::base::{Clock, clock, settings, words};
use crate::ops::Counter;

/// Most lines that wait for the log thread: a few seconds of a noisy start, at most 32 MiB.
const LINES_MAX: usize = 4096;
/// Longer lines are cut, so that an upstream's error text cannot fill the memory.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// The log of the process; empty until [`start`].
static SINK: OnceLock<Sink> = OnceLock::new();

/// Replaces the filter of the running log; empty until [`start`].
static FILTER: OnceLock<ChangeFilter> = OnceLock::new();

type ChangeFilter = Box<dyn Fn(Targets) -> bool + Send + Sync>;

#[derive(Debug, Default)]
struct Stats {
    dropped: Counter,
    failed: Counter,
}

/// Lines dropped because standard error was read too slowly.
pub(crate) fn lines_dropped() -> u64 {
    SINK.get().map_or(0, |sink| sink.stats.dropped.value())
}

/// Failed writes to standard error, usually because its reader closed it.
pub(crate) fn writes_failed() -> u64 {
    SINK.get().map_or(0, |sink| sink.stats.failed.value())
}

/// The panic hook's data about a panic.
#[derive(Debug)]
pub(crate) struct PanicNote {
    pub message: String,
    pub location: String,
    pub thread: String,
    pub in_coroutine: bool,
    pub backtrace: Option<String>,
}

/// An item that callers queue for the log thread.
enum Note {
    Line(Vec<u8>),
    Panic(PanicNote),
    /// Confirm when everything queued before this is written.
    Flush(Sender<()>),
}

/// The log could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("log filter: {0}")]
    Filter(#[from] BadFilter),
    #[error("log thread: {0}")]
    Thread(#[from] io::Error),
    #[error("a log is already running")]
    Twice,
}

/// Starts the log thread and installs the log for the whole process.
///
/// # Errors
/// A bad filter, a thread that cannot be started, or a log that already runs.
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), StartError> {
    let filter = parsed(filter)?;
    // The journal adds the time to each line itself.
    let clock = Clock::system();
    let time =
        (format == LogFormat::Json || !stderr_is_the_journal()).then(|| InIst(clock.clone()));
    let sink = spawn_writer(io::stderr(), format, time.clone())?;
    SINK.set(sink.clone()).map_err(|_| StartError::Twice)?;
    let (filter, handle) = reload::Layer::new(filter);
    let lines = match format {
        LogFormat::Logfmt => tracing_logfmt::builder()
            .with_timestamp(false)
            .layer()
            .map_event_format(|line| Logfmt { line, time })
            .with_writer(sink)
            .boxed(),
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .with_timer(InIst(clock))
            .flatten_event(true)
            .with_writer(sink)
            .boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| StartError::Twice)?;
    let change: ChangeFilter = Box::new(move |filter| handle.reload(filter).is_ok());
    FILTER.set(change).map_err(|_| StartError::Twice)
}

/// Why a log filter was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadFilter {
    #[error(transparent)]
    Malformed(#[from] ParseError),
    #[error("filters by span are not supported, as this program has no spans")]
    OfSpans,
    /// Alone it would be the name of a part of the program, and everything else would be silent.
    #[error("{0} is no level")]
    NoLevel(String),
}

/// Parses a filter as operators write it: a level, or levels by module, separated by commas. An
/// empty filter logs errors only.
///
/// # Errors
/// [`BadFilter`].
pub(crate) fn parsed(filter: &str) -> Result<Targets, BadFilter> {
    if filter.contains(['[', '{']) {
        return Err(BadFilter::OfSpans);
    }
    let directives = filter
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty());
    let listed: Vec<&str> = directives.collect();
    if listed.is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::ERROR));
    }
    let is_part = |directive: &str| directive.contains(['=', ':']) || directive.starts_with("bhav");
    let is_level = |directive: &str| directive.parse::<LevelFilter>().is_ok();
    if let Some(word) = listed.iter().find(|word| !is_part(word) && !is_level(word)) {
        return Err(BadFilter::NoLevel((*word).to_owned()));
    }
    Ok(listed.join(",").parse()?)
}

/// Replaces the filter of the running log. False if the filter is malformed or no log runs.
pub(crate) fn change_filter(filter: &str) -> bool {
    match (parsed(filter), FILTER.get()) {
        (Ok(filter), Some(change)) => change(filter),
        _ => false,
    }
}

/// Waits until everything logged so far is written, at most `within`.
pub(crate) fn flush(within: Duration) {
    if let Some(sink) = SINK.get() {
        // Twice: the log thread formats a panic's line and queues it behind the first flush.
        let _ = sink.flush(within) && sink.flush(within);
    }
}

/// Logs a panic. The log thread does the formatting, so the panicking stack may be nearly full.
pub(super) fn panicked(note: PanicNote) {
    match SINK.get() {
        Some(sink) => sink.queue(Note::Panic(note)),
        // Before the log runs, write to standard error directly. If that fails, nothing else can
        // report it.
        None => {
            let _ = writeln!(io::stderr(), "panic at {}: {}", note.location, note.message);
        }
    }
}

/// Formats the time of a line in IST. Always the machine's clock, even if the service runs on
/// another one (`BHAV_NOW`).
#[derive(Clone)]
struct InIst(Clock);

impl FormatTime for InIst {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        let now = clock::zoned(self.0.now());
        write!(to, "{}", now.strftime("%Y-%m-%dT%H:%M:%S%.3f+05:30"))
    }
}

/// Formats a line of logfmt, with the time first unless the journal adds it.
struct Logfmt<F> {
    line: F,
    time: Option<InIst>,
}

impl<S, N, F> FormatEvent<S, N> for Logfmt<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if let Some(time) = &self.time {
            to.write_str("ts=")?;
            time.format_time(&mut to)?;
            to.write_char(' ')?;
        }
        self.line.format_event(context, to, event)
    }
}

/// Whether standard error goes to the systemd journal: `$JOURNAL_STREAM` names the journal's device
/// and inode (systemd.exec(5)).
fn stderr_is_the_journal() -> bool {
    let Ok(journal) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    std::fs::metadata("/proc/self/fd/2")
        .is_ok_and(|stderr| journal == format!("{}:{}", stderr.dev(), stderr.ino()))
}

fn spawn_writer(
    out: impl Write + Send + 'static,
    format: LogFormat,
    time: Option<InIst>,
) -> io::Result<Sink> {
    let (sender, notes) = bounded(LINES_MAX);
    let sink = Sink {
        sender,
        stats: Arc::default(),
    };
    let stats = Arc::clone(&sink.stats);
    // Not started through `rt`: the log outlives every thread of `rt`, and is in a lower layer.
    std::thread::Builder::new()
        .name("log".into())
        .spawn(move || {
            write_all(&notes, out, &stats, |lines| dropped_line(lines, format, time.as_ref()));
        })?;
    Ok(sink)
}

fn write_all(
    notes: &Receiver<Note>,
    mut out: impl Write,
    stats: &Stats,
    dropped_line: impl Fn(u64) -> String,
) {
    let mut dropped_reported = 0;
    for note in notes {
        let written = match note {
            Note::Line(line) => out.write_all(&line),
            Note::Panic(panic) => {
                log_panic(&panic);
                Ok(())
            }
            Note::Flush(done) => {
                let flushed = out.flush();
                // Fails if the caller no longer waits.
                let _ = done.try_send(());
                flushed
            }
        };
        if written.is_err() {
            stats.failed.increment();
        }
        let dropped = stats.dropped.value();
        if dropped > dropped_reported {
            if out
                .write_all(dropped_line(dropped - dropped_reported).as_bytes())
                .is_err()
            {
                stats.failed.increment();
            }
            dropped_reported = dropped;
        }
    }
}

fn log_panic(panic: &PanicNote) {
    tracing::error!(
        location = panic.location,
        thread = panic.thread,
        in_coroutine = panic.in_coroutine,
        backtrace = panic.backtrace,
        "panic: {}",
        panic.message
    );
}

/// The line that reports dropped lines. Not an event of tracing, whose line could be dropped too.
fn dropped_line(lines: u64, format: LogFormat, time: Option<&InIst>) -> String {
    let now = time.map(|time| {
        let mut now = String::new();
        // Writing to a string cannot fail.
        let _ = time.format_time(&mut Writer::new(&mut now));
        now
    });
    let now = now.as_deref().unwrap_or_default();
    match format {
        LogFormat::Logfmt => {
            let stamp = if now.is_empty() {
                String::new()
            } else {
                format!("ts={now} ")
            };
            format!("{stamp}level=warn message=\"log lines dropped\" lines={lines}\n")
        }
        LogFormat::Json => format!(
            "{{\"timestamp\":\"{now}\",\"level\":\"WARN\",\
             \"message\":\"log lines dropped\",\"lines\":{lines}}}\n"
        ),
    }
}

/// The callers' end of the queue. Gives each event a buffer that is queued as one line.
#[derive(Clone)]
struct Sink {
    sender: Sender<Note>,
    stats: Arc<Stats>,
}

impl Sink {
    /// Queues a note; drops and counts it if the queue is full.
    fn queue(&self, note: Note) {
        if self.sender.try_send(note).is_err() {
            self.stats.dropped.increment();
        }
    }

    fn flush(&self, within: Duration) -> bool {
        let (done, written) = bounded(1);
        self.sender.send_timeout(Note::Flush(done), within).is_ok()
            && written.recv_timeout(within).is_ok()
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            sink: self,
            bytes: Vec::new(),
        }
    }
}

/// Collects the bytes of one line; queues them when dropped.
struct Line<'a> {
    sink: &'a Sink,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return;
        }
        if bytes.len() > LINE_BYTES_MAX {
            bytes.truncate(LINE_BYTES_MAX);
            bytes.extend_from_slice(b" (cut)\n");
        }
        self.sink.queue(Note::Line(bytes));
    }
}

// ---- Log settings
//
// Settings of the log.

words! {
    /// The format of log lines.
    pub enum LogFormat {
        Logfmt = "logfmt",
        Json = "json",
    }
}

settings! {
    /// Settings of the log.
    pub struct LogSettings {
        /// Filter: a level, or levels by module, separated by commas.
        pub filter: String = "info".into(),
        pub format: LogFormat = LogFormat::Logfmt,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tracing::Level;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn write_line(sink: &Sink, text: &str) {
        sink.make_writer().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_filter_is_a_level_or_levels_by_module_and_never_by_span() {
        let shown = |filter: &str, target: &str| {
            let filter = parsed(filter).unwrap();
            let levels = [
                Level::TRACE,
                Level::DEBUG,
                Level::INFO,
                Level::WARN,
                Level::ERROR,
            ];
            levels
                .into_iter()
                .find(|level| filter.would_enable(target, level))
        };
        for (filter, http, store) in [
            ("info", Some(Level::INFO), Some(Level::INFO)),
            ("WARN", Some(Level::WARN), Some(Level::WARN)),
            ("3", Some(Level::INFO), Some(Level::INFO)),
            ("off", None, None),
            ("", Some(Level::ERROR), Some(Level::ERROR)),
            (" info , bhav::http=debug,", Some(Level::DEBUG), Some(Level::INFO)),
            ("bhav::http=debug", Some(Level::DEBUG), None),
            ("bhav::http", Some(Level::TRACE), None),
        ] {
            let seen = (shown(filter, "bhav::http::server"), shown(filter, "bhav::store"));
            assert_eq!(seen, (http, store), "{filter:?}");
        }
        for bad in [
            "bhav=loud",
            "bhav=info=debug",
            "[request]=info",
            "bhav[{user}]=debug",
            "warning",
            "info,verbose",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_arrive_whole_and_long_ones_are_cut() {
        let (mut reader, writer) = io::pipe().unwrap();
        let sink = spawn_writer(writer, LogFormat::Logfmt, None).unwrap();
        write_line(&sink, "a=1\n");
        write_line(&sink, &"x".repeat(3 * LINE_BYTES_MAX));
        assert!(sink.flush(LONG));
        drop(sink);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("a=1\nxxx") && text.ends_with("xxx (cut)\n"), "{}", text.len());
        assert_eq!(text.len(), 4 + LINE_BYTES_MAX + 7);
    }

    #[test]
    fn a_closed_standard_error_loses_lines_and_does_not_end_the_log_thread() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let sink = spawn_writer(writer, LogFormat::Logfmt, None).unwrap();
        for _ in 0..10 {
            write_line(&sink, "a=1\n");
        }
        assert!(sink.flush(LONG), "the writing thread has ended");
        assert_eq!(sink.stats.failed.value(), 10);
    }

    #[test]
    fn a_standard_error_that_nobody_reads_blocks_no_caller() {
        let (reader, writer) = io::pipe().unwrap();
        let sink = spawn_writer(writer, LogFormat::Json, Some(InIst(Clock::system()))).unwrap();
        // Far more than pipe and queue hold: this loop ends only because a full queue drops lines.
        let line = "x".repeat(1024);
        for _ in 0..2 * LINES_MAX {
            write_line(&sink, &line);
        }
        assert!(!sink.flush(Duration::from_millis(1)), "the pipe took everything");
        let mut reader = reader;
        let written = std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                let mut text = String::new();
                reader.read_to_string(&mut text).map(|_| text)
            });
            assert!(sink.flush(LONG));
            drop(sink);
            reading.join().unwrap().unwrap()
        });
        // The lines of this test have no newline, so the report follows the last `x`.
        let report = written.trim_start_matches('x').split("\n").next().unwrap();
        assert!(report.starts_with("{\"timestamp\":\"20"), "{report:.99}");
        assert!(report.contains("+05:30\""), "{report:.99}");
        assert!(report.contains("log lines dropped"), "{report:.99}");
    }
}
