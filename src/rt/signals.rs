//! Termination signals, heard on the main thread.

use std::io;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signals that ask the process to end, armed before anything starts so that none is missed.
pub struct Termination(Signals);

impl Termination {
    /// Takes over SIGTERM and SIGINT.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn arm() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT]).map(Self)
    }

    /// Blocks the calling OS thread until the first of them arrives; gives its number.
    pub fn wait(&mut self) -> i32 {
        self.0.forever().next().unwrap_or(SIGTERM)
    }
}
