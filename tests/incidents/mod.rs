//! An operator's bad mornings: incidents around the opening bell, with the real program in a
//! simulated world. Each scene checks that nothing wrong is served unmarked, that `bhav status`
//! names cause and cure, and that the service recovers by itself where it should.

mod clock;
mod disk;
mod faults;
mod instance;
mod key;
mod log;
mod morning;
mod reconnect;
mod room;
#[cfg(feature = "engines")]
mod shared_cache;
mod token;
