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
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use rlimit::Resource;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::ops::log::PanicNote;
use crate::ops::{Counter, log};

/// Panics since start. Anything above zero is a bug to report.
pub(crate) static PANICS: Counter = Counter::new();

/// Longest panic text that is logged.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Logged in place of a text that may quote a secret.
const WITHHELD: &str = "(its text may quote a request; BHAV_DEBUGGABLE=true shows it)";

/// Replaces the default panic hook, which prints to standard error.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        PANICS.increment();
        let in_coroutine = may::coroutine::is_coroutine();
        let payload = info.payload();
        let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (None, Some(text)) if is_debuggable() => text.as_str(),
            (None, Some(_)) => WITHHELD,
            (None, None) => "(no text)",
        };
        log::panicked(PanicNote {
            message: text.chars().take(MESSAGE_CHARS_MAX).collect(),
            location: info.location().map(ToString::to_string).unwrap_or_default(),
            thread: thread::current().name().unwrap_or("unnamed").to_owned(),
            in_coroutine,
            backtrace: if in_coroutine {
                None
            } else {
                requested_backtrace()
            },
        });
    }));
}

/// A backtrace if `RUST_BACKTRACE` asks for one. Only for threads, whose stacks are large enough.
fn requested_backtrace() -> Option<String> {
    let trace = Backtrace::capture();
    (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string())
}

// ---- Core dumps
//
// Disables core dumps and ptrace, so that neither a core file nor a debugger of the same user can
// read the credentials in this process's memory.
//
// Called once on the main thread before anything starts. A privileged user can still read the
// memory; no process can prevent that.

/// Whether debuggers are allowed and panic texts that may quote request data are logged.
static DEBUGGABLE: AtomicBool = AtomicBool::new(false);

/// Disables core files and ptrace for this process and the programs that it starts.
///
/// # Errors
/// The error of the system call.
pub(crate) fn close_memory() -> io::Result<()> {
    // The limit first: unlike the dumpable flag, it survives `execve`.
    rlimit::setrlimit(Resource::CORE, 0, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Leaves core files and ptrace enabled, and allows the panic log to quote request data.
pub(crate) fn allow_debugging() {
    DEBUGGABLE.store(true, Ordering::Relaxed);
}

/// Whether [`allow_debugging`] was called.
pub(crate) fn is_debuggable() -> bool {
    DEBUGGABLE.load(Ordering::Relaxed)
}

// ---- Address space
//
// Checks that the limit on address space (RLIMIT_AS) is high enough for the service's threads.
//
// Called on the main thread before anything starts. Under a lower limit some later thread or
// allocation would fail, with an error that does not name the cause. A thread reserves address
// space for its stack and 64 MiB for its heap and uses little of it, so this limit does not limit
// memory in any useful way.

const MIB: u64 = 1024 * 1024;
/// Address space for the program, its stacks and everything else outside heaps. Measured: 140 MiB.
const BASE_MIB: u64 = 256;
/// Address space that glibc reserves for one heap (malloc arena).
const HEAP_MIB: u64 = 64;
/// Most heaps that glibc makes, by core.
const HEAPS_PER_CORE: u64 = 8;
/// There are never more heaps than threads that allocate, and the service has about forty.
const HEAPS_MAX: u64 = 40;

/// The limit on address space is too low.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit on address space (RLIMIT_AS; ulimit -v, LimitAS=) is {limit_mib} MiB, and \
     {needed_mib} MiB are reserved, most of it never used: raise or remove it; MemoryMax= limits \
     memory"
)]
pub(crate) struct TooLittle {
    limit_mib: u64,
    needed_mib: u64,
}

/// Checks the limit in force.
///
/// # Errors
/// [`TooLittle`].
pub(crate) fn expect_enough() -> Result<(), TooLittle> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    // If the limit cannot be read, assume that there is none.
    let limit = Resource::AS.get_soft().unwrap_or(u64::MAX);
    check(limit, cores)
}

fn check(limit_bytes: u64, cores: u64) -> Result<(), TooLittle> {
    let heaps = (cores * HEAPS_PER_CORE).min(HEAPS_MAX);
    let limit_mib = limit_bytes / MIB;
    let needed_mib = BASE_MIB + heaps * HEAP_MIB;
    if limit_mib < needed_mib {
        Err(TooLittle {
            limit_mib,
            needed_mib,
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::ops::child_test;
    use crate::ops::log::LogFormat;

    fn panic_everywhere() {
        super::log::start("info", LogFormat::Logfmt).unwrap();
        super::install();
        let thread = std::thread::Builder::new().name("lane-x".into());
        assert!(
            thread
                .spawn(|| panic!("in a {}", "thread"))
                .unwrap()
                .join()
                .is_err()
        );
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
            super::allow_debugging();
        }
        super::log::flush(Duration::from_secs(30));
    }

    #[expect(
        unsafe_code,
        reason = "may leaves it to the caller that the coroutine can unwind"
    )]
    fn unsafe_cancel(coroutine: &may::coroutine::JoinHandle<()>) {
        // SAFETY: it waits in `park` and holds nothing.
        unsafe { coroutine.coroutine().cancel() };
    }

    #[test]
    fn each_panic_is_one_line_with_its_place() {
        // Runs in a child process, because the hook and the log belong to the whole process.
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

#[cfg(test)]
mod core_dumps_tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use crate::ops::child_test;

    #[test]
    fn a_process_with_closed_memory_cannot_be_dumped() {
        // Runs in a child process, because closed memory cannot be opened again.
        if child_test::is_child() {
            super::close_memory().unwrap();
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
            assert_eq!(rlimit::getrlimit(rlimit::Resource::CORE).unwrap(), (0, 0));
            return;
        }
        child_test::run(module_path!(), "a_process_with_closed_memory_cannot_be_dumped", |_| {});
    }
}

#[cfg(test)]
mod address_space_tests {
    use super::*;

    #[test]
    fn the_needed_address_space_grows_with_the_cores_up_to_a_maximum() {
        assert_eq!(check(u64::MAX, 64), Ok(()));
        assert_eq!(check(1_280 * MIB, 2), Ok(()));
        let too_little = check(1_280 * MIB - 1, 2).unwrap_err();
        assert_eq!(
            too_little,
            TooLittle {
                limit_mib: 1_279,
                needed_mib: 1_280
            }
        );
        assert_eq!(
            check(64 * MIB, 64).unwrap_err().needed_mib,
            check(0, 8).unwrap_err().needed_mib
        );
        let text = too_little.to_string();
        assert!(text.contains("is 1279 MiB, and 1280 MiB are reserved"), "{text}");
    }
}
