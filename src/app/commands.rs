//! The command `serve`, and what `demo` shares with it.

use std::io;
use std::io::Write;

use crate::app::main_loop::until_end;
use crate::app::reload::Reloader;
use crate::app::start::App;
use crate::app::start_error::StartError;
use crate::auth::keys::Registration;
use crate::config::Config;
use crate::config::composed::{Reread, clock_of};
use crate::ops::exit::Failed;
use crate::ops::{Exit, notify, panic};
use crate::rt::unix_signals::{Hangup, Signals};

/// Serves the real feeds until SIGTERM or SIGINT.
///
/// # Errors
/// Why it did not start.
pub fn serve(config: &Config, reread: &Reread<'_>) -> Result<(), Failed> {
    guard_memory(config);
    let clock = clock_of(config);
    run(config, || App::start(config, &clock), |_, _| (String::new(), ()), Some(reread))
}

/// Starts the service, prints its address, waits for the end, drains. `greet` is given the service
/// and its address, and returns further text to print, and what runs beside it and ends before it.
pub(super) fn run<Beside>(
    config: &Config,
    start: impl FnOnce() -> Result<App, StartError>,
    greet: impl FnOnce(&App, &str) -> (String, Beside),
    reread: Option<&Reread<'_>>,
) -> Result<(), Failed> {
    // Armed before anything starts, so that no signal is missed.
    let hangup = if reread.is_some() {
        Hangup::Reloads
    } else {
        Hangup::Ends
    };
    let signals = Signals::arm(hangup);
    let mut signals = signals.map_err(|error| (error.to_string(), Exit::Internal))?;
    let app = start().map_err(|error| (error.to_string(), error.exit()))?;
    let url = url_of(app.address());
    let admin = match (app.admin(), &app.admin_failure) {
        (Some(admin), _) => format!("metrics on {}/metrics\n", url_of(admin.address())),
        (None, Some(failure)) => format!("no metrics: {failure}\n"),
        (None, None) => String::new(),
    };
    let others = app
        .addresses()
        .iter()
        .skip(1)
        .map(|address| url_of(address));
    let others: Vec<String> = others.collect();
    let also: String = others
        .iter()
        .map(|other| format!("also on {other}\n"))
        .collect();
    let (greeting, beside) = greet(&app, &url);
    say(&format!("{greeting}{admin}listening on {url}\n{also}"));
    for url in std::iter::once(&url).chain(&others) {
        tracing::info!(%url, "listening");
        warn_of_all_addresses(url);
    }
    match config.auth.registration {
        Registration::Open => tracing::warn!(
            "registration is open: whoever reaches this service can make an account; \
             BHAV_REGISTRATION=first or closed ends that"
        ),
        Registration::First => tracing::info!(
            "registration is open for the first account of the database, BHAV_REGISTRATION=first"
        ),
        Registration::Closed => {}
    }
    let mut reloader = reread.map(|reread| Reloader::new(&app, config, reread));
    let signal = until_end(&app, &mut signals, None, || {
        if let Some(reloader) = &mut reloader {
            reloader.reload();
        }
    });
    tracing::info!(signal, "draining");
    notify::stopping();
    drop(beside);
    let cut_off = app.stop();
    if cut_off > 0 {
        tracing::warn!(
            connections = cut_off,
            "connections cut off: BHAV_HTTP_DRAIN_TIMEOUT_MS is over"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

/// Says it where the service listens on every address, as a container image lets it.
pub(super) fn warn_of_all_addresses(url: &str) {
    if of_browser(url) != url {
        tracing::warn!(
            "listening on all addresses of this machine or container: publishing the port is the \
             decision of its operator"
        );
    }
}

/// The address as a URL. A Unix socket has none and stays as it is.
pub(super) fn url_of(address: &str) -> String {
    match address.strip_prefix("unix:") {
        Some(_) => address.to_owned(),
        None => format!("http://{address}"),
    }
}

/// The URL that a browser on this machine can open: all addresses are none.
pub(super) fn of_browser(url: &str) -> String {
    let all = ["http://0.0.0.0:", "http://[::]:"]
        .iter()
        .find_map(|all| url.strip_prefix(all));
    all.map_or_else(|| url.to_owned(), |port| format!("http://localhost:{port}"))
}

/// Closes the process's memory to debuggers, before anything starts and any secret arrives. If the
/// system refuses, that is logged and the service starts: the credentials still pass only through
/// wiped memory.
pub(super) fn guard_memory(config: &Config) {
    if config.debuggable {
        panic::allow_debugging();
        tracing::warn!("debuggable: credentials in flight can be read by this user's programs");
    } else if let Err(error) = panic::close_memory() {
        tracing::error!(%error, "core files and debuggers cannot be switched off");
    }
}

/// Prints to standard output. A closed pipe is no fault.
pub(super) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
