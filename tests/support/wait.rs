//! Waiting on conditions, never for a time.

use std::io::Write;

use bhav::base::Clock;
use bhav::rt::moving::Parker;

/// Far more than anything takes on a busy machine. Only a failure takes this long.
pub const PATIENCE_MS: u64 = 120_000;
/// Time between the first two checks of a condition. It doubles each time, up to the maximum.
const LOOK_AFTER_MS: u64 = 2;
const LOOK_AFTER_MS_MAX: u64 = 20;

/// The result of one check of a condition.
pub trait Look {
    type Seen;

    /// The awaited value, or the value found instead, if the check reports it.
    fn seen(self) -> Result<Self::Seen, String>;
}

impl Look for bool {
    type Seen = ();

    fn seen(self) -> Result<(), String> {
        self.then_some(()).seen()
    }
}

impl<T> Look for Option<T> {
    type Seen = T;

    fn seen(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T> Look for Result<T, String> {
    type Seen = T;

    fn seen(self) -> Self {
        self
    }
}

/// Checks repeatedly until the awaited value exists. If it never does, panics with `what`, and with
/// the value found instead.
#[track_caller]
pub fn until<L: Look>(what: &str, mut look: impl FnMut() -> L) -> L::Seen {
    let (clock, parker) = (Clock::system(), Parker::current());
    let mut last = Last {
        what,
        seen: String::new(),
    };
    let mut after_ms = LOOK_AFTER_MS;
    loop {
        match look().seen() {
            Ok(seen) => return seen,
            Err(other) if other.is_empty() => {}
            Err(other) => last.seen = other,
        }
        assert!(clock.monotonic_ms() < PATIENCE_MS, "never came: {what}");
        parker.park(after_ms);
        after_ms = (2 * after_ms).min(LOOK_AFTER_MS_MAX);
    }
}

/// Runs `test` with each case at the same time, where all of them wait and none needs a core.
pub fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let test = &test;
            scope.spawn(move || test(case));
        }
    });
}

/// Prints the value found last if the wait for another fails, also by a panic in the check.
struct Last<'a> {
    what: &'a str,
    seen: String,
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.seen.is_empty() {
            say(&format!("waited for {}; last seen:\n{}\n", self.what, self.seen));
        }
    }
}

/// Prints past the test harness, which would capture the text.
pub fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}
