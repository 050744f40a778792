//! Named OS threads. No other module starts one, except the log (`ops/log.rs`) and the simulator's
//! server.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};

use crate::rt::staged;

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

/// Tells a thread that it is to end.
pub(crate) struct Stop(Receiver<()>);

impl Stop {
    /// Whether the thread is to end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits, but not once the thread is to end; whether it is.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        self.0.recv_timeout(longest) == Err(RecvTimeoutError::Disconnected)
    }

    /// Disconnected when the thread is to end, for a thread that waits for several things.
    pub(crate) fn signal(&self) -> &Receiver<()> {
        &self.0
    }
}

/// A running thread that ends when this is dropped.
pub(crate) struct Stoppable {
    running: Option<Sender<()>>,
    ended: Receiver<()>,
    wait: Duration,
}

impl Stoppable {
    /// Starts a thread. The drop of this waits for its end, but no longer than `wait`; a thread
    /// that takes longer is left to itself.
    ///
    /// # Errors
    /// If the system cannot start another thread.
    pub(crate) fn spawn(
        name: &str,
        wait: Duration,
        body: impl FnOnce(Stop) + Send + 'static,
    ) -> io::Result<Self> {
        let (running, stop) = bounded(0);
        let (done, ended) = bounded(0);
        spawn(name, move || {
            // Dropped with the thread, whatever ends it.
            let _done: Sender<()> = done;
            body(Stop(stop));
        })?;
        Ok(Self {
            running: Some(running),
            ended,
            wait,
        })
    }

    /// Tells the thread to end, before it is woken by other means.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        self.stop();
        let _ = self.ended.recv_timeout(self.wait);
    }
}

/// Starts a thread, or a task of the calling thread's stage, which nobody can join.
///
/// # Errors
/// If the system cannot start another thread.
pub(crate) fn start(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<Option<JoinHandle<()>>> {
    match staged::spawn(body) {
        Ok(()) => Ok(None),
        Err(body) => spawn(name, body).map(Some),
    }
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

    #[test]
    fn dropping_a_thread_waits_for_its_end_but_not_for_ever() {
        let (send, told) = bounded(1);
        let patient = Duration::from_secs(20);
        let ends = Stoppable::spawn("ends", patient, move |stop| {
            while !stop.wait(patient) {}
            assert!(stop.is_set());
            send.send(()).unwrap();
        });
        drop(ends.unwrap());
        assert_eq!(told.try_recv(), Ok(()));
        let (release, released) = bounded::<()>(0);
        let hangs = Stoppable::spawn("hangs", Duration::from_millis(1), move |_| {
            let _ = released.recv();
        });
        drop(hangs.unwrap());
        assert!(release.send(()).is_ok(), "it was left behind");
    }
}
