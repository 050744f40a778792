//! The panic hook: one log line for each panic, on any thread or coroutine.
//!
//! Install it before the first coroutine starts. may then wraps this hook and filters out the
//! panics by which it cancels coroutines, which are no bugs. The hook runs on the panicking stack,
//! possibly a small one of a coroutine (printing a backtrace takes 20 KB). So it only passes place
//! and text to the log thread.
//!
//! A panic text formatted at run time may quote the value that caused it (slicing a string does, as
//! does `expect` on an error), and that may be a client's credential. So only constant texts are
//! logged. The others are logged if `BHAV_DEBUGGABLE` is set, which opens the memory anyway.

use std::backtrace::{Backtrace, BacktraceStatus};

use super::log::{self, PanicNote};
use super::{Counter, core_dumps};

/// Panics since start. Anything above zero is a bug to report.
pub static PANICS: Counter = Counter::new();

/// Longest panic text that is logged.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Logged in place of a text that may quote a secret.
const WITHHELD: &str = "(its text may quote a request; BHAV_DEBUGGABLE=true shows it)";

/// Replaces the default panic hook, which prints to standard error.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        PANICS.increment();
        let in_coroutine = may::coroutine::is_coroutine();
        let payload = info.payload();
        let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (None, Some(text)) if core_dumps::is_debuggable() => text.as_str(),
            (None, Some(_)) => WITHHELD,
            (None, None) => "(no text)",
        };
        log::panicked(PanicNote {
            message: text.chars().take(MESSAGE_CHARS_MAX).collect(),
            location: info.location().map(ToString::to_string).unwrap_or_default(),
            thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
            in_coroutine,
            backtrace: if in_coroutine { None } else { requested_backtrace() },
        });
    }));
}

/// A backtrace if `RUST_BACKTRACE` asks for one. Only for threads, whose stacks are large enough.
fn requested_backtrace() -> Option<String> {
    let trace = Backtrace::capture();
    (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::ops::child_test;
    use crate::ops::log_settings::LogFormat;

    fn panic_everywhere() {
        super::log::start("info", LogFormat::Logfmt).unwrap();
        super::install();
        let thread = std::thread::Builder::new().name("lane-x".into());
        assert!(thread.spawn(|| panic!("in a {}", "thread")).unwrap().join().is_err());
        assert!(may::go!(|| panic!("in a coroutine")).join().is_err());
        let waiting = may::go!(may::coroutine::park);
        // may cancels a coroutine by a panic, which the hook must not count.
        unsafe_cancel(&waiting);
        assert!(waiting.join().is_err());
        assert_eq!(super::PANICS.value(), 2);
        let quoted = std::hint::black_box("hunter2".to_owned());
        for _ in 0..2 {
            let text = quoted.clone();
            let thread = std::thread::Builder::new().spawn(move || panic!("cannot use {text}"));
            assert!(thread.unwrap().join().is_err());
            super::core_dumps::allow_debugging();
        }
        super::log::flush(Duration::from_secs(30));
    }

    #[expect(unsafe_code, reason = "may leaves it to the caller that the coroutine can unwind")]
    fn unsafe_cancel(coroutine: &may::coroutine::JoinHandle<()>) {
        // SAFETY: it waits in `park` and holds nothing.
        unsafe { coroutine.coroutine().cancel() };
    }

    #[test]
    fn each_panic_is_one_line_with_its_place() {
        // In a child process, because the hook and the log are those of the whole process.
        if child_test::is_child() {
            return panic_everywhere();
        }
        let name = "each_panic_is_one_line_with_its_place";
        let output = child_test::run(module_path!(), name, |child| {
            child.env_remove("RUST_BACKTRACE");
        });
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| line.contains("panic.rs:")), "{text}");
        assert!(lines[0].contains("in a thread") && lines[0].contains("lane-x"), "{text}");
        assert!(lines[1].contains("in a coroutine") && lines[1].contains("in_coroutine=true"));
        assert!(lines[2].contains("BHAV_DEBUGGABLE") && !lines[2].contains("hunter2"), "{text}");
        assert!(lines[3].contains("cannot use hunter2"), "{text}");
    }
}
