//! One log line for each panic, wherever it happens.
//!
//! Install before the first coroutine: may then wraps this hook and keeps its own cancel panics,
//! which are no faults, away from it. The hook runs on the stack that panicked, which may be a
//! coroutine's with little left (printing a backtrace takes 20 KB), so it only hands over where and
//! what.

use std::backtrace::{Backtrace, BacktraceStatus};

use super::Counter;
use super::log::{self, PanicNote};

/// Panics since start. Anything above zero is a bug to report.
pub static PANICS: Counter = Counter::new();

/// Longest panic text that is logged.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Replaces the hook that prints to standard error.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        PANICS.increment();
        let in_coroutine = may::coroutine::is_coroutine();
        let payload = info.payload();
        let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (None, Some(text)) => text.as_str(),
            (None, None) => "(no text)",
        };
        log::panicked(PanicNote {
            message: text.chars().take(MESSAGE_CHARS_MAX).collect(),
            location: info.location().map(ToString::to_string).unwrap_or_default(),
            thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
            in_coroutine,
            backtrace: if in_coroutine { None } else { asked_backtrace() },
        });
    }));
}

/// On a thread's own large stack, and only where `RUST_BACKTRACE` asks.
fn asked_backtrace() -> Option<String> {
    let trace = Backtrace::capture();
    (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string())
}
