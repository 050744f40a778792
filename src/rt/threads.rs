//! Named OS threads. No other module starts one, except the log (`ops/log.rs`) and the simulator's
//! server.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. Its name shows in the process list and in log lines about panics.
///
/// # Errors
/// If the system cannot start another thread.
pub fn spawn<F, T>(name: &str, body: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Niceness of threads whose work can wait: the lowest priority.
const LOWERED_NICENESS: i32 = 19;

/// Lowers the priority of the calling thread, and of no other (Linux takes a thread id here).
///
/// # Errors
/// If the system refuses; the thread then keeps its priority.
pub(crate) fn lower_own_priority() -> io::Result<()> {
    let own = rustix::thread::gettid();
    Ok(rustix::process::setpriority_process(Some(own), LOWERED_NICENESS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowering_the_priority_affects_the_calling_thread_only() {
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
