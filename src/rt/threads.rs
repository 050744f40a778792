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
