//! Taking other market files into use while the service runs. On the scheduler's thread.

use super::event::MarketFiles;
use super::scheduler::Scheduler;
use super::signals::SignalsWarmer;

impl Scheduler {
    /// The calendar from this moment on; the universe when [`follow_universe`] finds room for it.
    ///
    /// [`follow_universe`]: Self::follow_universe
    pub fn take_files(&mut self, files: MarketFiles) {
        self.parts.calendar = files.calendar;
        self.parts.provisional_signals = files.provisional_signals;
        if files.universe != self.parts.universe {
            self.parts.universe = files.universe;
            self.universe_changed = true;
        }
    }

    /// Goes over to the new universe as soon as nothing is under way for the old one. What is
    /// stored of each symbol stays, and is read again for those that are in the new one.
    pub fn follow_universe(&mut self) {
        if self.universe_changed && self.signals.is_idle() && self.instruments.is_idle() {
            self.universe_changed = false;
            self.signals = SignalsWarmer::new(&self.parts.universe);
            tracing::info!(symbols = self.parts.universe.symbols().len(), "another universe");
        }
    }
}
