//! OS threads by name. Nothing else in the product starts one (the simulator's server apart, which
//! is another program that happens to live in the same binary).

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a named thread; the name shows in the process list and in panic lines.
///
/// # Errors
/// When the system has no room for another thread.
pub fn spawn<F, T>(name: &str, body: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Niceness of threads whose work can wait: the lowest priority among equals.
const LOWERED_NICENESS: i32 = 19;

/// Lowers the priority of the calling thread alone (on Linux a thread's id names just that thread).
///
/// # Errors
/// When the system refuses; the thread then runs on as before.
pub fn lower_own_priority() -> io::Result<()> {
    let own = rustix::thread::gettid();
    Ok(rustix::process::setpriority_process(Some(own), LOWERED_NICENESS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_is_lowered() {
        let niceness =
            || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = niceness();
        let lowered = spawn("lowered", move || {
            lower_own_priority().unwrap();
            niceness()
        });
        assert_eq!(lowered.unwrap().join().unwrap(), LOWERED_NICENESS);
        assert_eq!(niceness(), before);
    }
}
