//! The bad mornings of an operator: what goes wrong around the opening bell, against the real
//! program in a simulated world. Each scene asks three things: is anything wrong served without a
//! mark, does `bhav status` name the cause and the cure, and does it mend itself where it should.

mod clock;
mod disk;
mod faults;
mod feeds;
mod instance;
mod key;
mod log;
mod morning;
mod reconnect;
mod room;
#[cfg(feature = "engines")]
mod shared_cache;
mod token;
