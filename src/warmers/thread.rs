//! Starts and ends the scheduler's thread. A panic in it ends the process.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ops::{Exit, log};
use crate::rt::threads;
use crate::warmers::context::WarmerContext;
use crate::warmers::mailbox::{Event, EventSender, Mailbox, MarketFiles};
use crate::warmers::scheduler::Scheduler;

/// Longest wait for the last log line of a process that ends by a panic here.
const LOG_FLUSH_MAX: Duration = Duration::from_secs(1);

/// The running scheduler.
pub struct Warmers {
    events: EventSender,
    thread: Option<JoinHandle<()>>,
}

impl Warmers {
    /// Restores what the second level kept (quotes and the snapshot, both marked stale), then
    /// starts the scheduler. Blocks for the restore: call it before listening, so that the first
    /// client is served.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(context: WarmerContext, mailbox: Mailbox) -> io::Result<Self> {
        let (events, received) = mailbox.open();
        let mut scheduler = Scheduler::new(context, &events);
        scheduler.restore();
        let thread = threads::spawn("warm", move || {
            if catch_unwind(AssertUnwindSafe(|| scheduler.run(&received))).is_err() {
                // What is published would stand still and look fresh. A restart serves again at
                // once, from the second level and marked stale.
                tracing::error!("the scheduler panicked; ending the process");
                log::flush(LOG_FLUSH_MAX);
                std::process::exit(Exit::Internal as i32);
            }
        })?;
        Ok(Self { events, thread: Some(thread) })
    }

    /// Takes other market files into use, the universe as soon as no work on the old one is under
    /// way.
    pub fn take_files(&self, files: MarketFiles) {
        self.events.send(Event::Files(Box::new(files)));
    }

    /// Ends the scheduler after it has stored what is not stored yet.
    pub fn stop(mut self) {
        self.events.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            // Its panics were caught, and ended the process.
            let _ = thread.join();
        }
    }
}
