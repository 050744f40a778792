//! The command line, and the small protocol by which the driver attends a run.
//!
//! Attended, the generator prints `ready` when its connections are warm, starts at the next line
//! of standard input, prints its figures, and holds the connections until standard input ends: so
//! the driver can read the server's CPU time around the measured part and nothing else.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use crate::engine::{Engine, Pace};
use crate::idle::{IdleConnections, Many};
use crate::readers::Readers;
use crate::request::render_get;
use crate::schedule::{NS_PER_S, Schedule};
use crate::sys;

/// Arguments of the generator.
#[derive(Debug, Parser)]
#[command(about = "Open-loop HTTP/1.1 load generator", version)]
pub struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Requests at a fixed rate, with latency from the due time; without a rate, the next request
    /// as soon as the last is answered: saturation
    Load(Load),
    /// Open connections, one request on each, and hold them until standard input ends
    Idle(Many),
    /// Readers of a stream of events. Prints how many are open, then its figures at each line
    /// "report" of standard input; "go" forgets what was counted; ends with it
    Readers {
        #[command(flatten)]
        many: Many,
        /// Ask and never read
        #[arg(long)]
        never_read: bool,
        /// Receive buffer of the socket of one that never reads, in bytes; 0 leaves the system's
        #[arg(long, default_value_t = 0)]
        receive_buffer_bytes: usize,
    },
}

#[derive(Debug, Args)]
struct Load {
    /// Server, as ADDRESS:PORT
    #[arg(long)]
    target: SocketAddr,
    #[command(flatten)]
    what: What,
    /// Keep-alive connections
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests a second, over all connections
    #[arg(long)]
    rate: Option<u64>,
    /// Length of the measured part, in milliseconds
    #[arg(long, default_value_t = 4_000)]
    duration_ms: u64,
    /// Status that an answer is expected to have; others are counted apart
    #[arg(long, default_value_t = 200)]
    status: u16,
    /// Measure from the first request of each connection on, which otherwise is a warm-up
    #[arg(long)]
    cold: bool,
    /// Print "ready", start at a line of standard input, end with it
    #[arg(long)]
    attended: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Path to request
    #[arg(long)]
    path: Option<String>,
    /// File with whole requests, a JSON list of texts; connection n sends the n-th, and the list
    /// begins again where it is shorter
    #[arg(long)]
    requests: Option<PathBuf>,
}

impl Cli {
    /// Runs the mode and prints its figures, each as one line of JSON.
    ///
    /// # Errors
    /// The server cannot be reached, the arguments make no sense, or a system call failed.
    pub fn execute(self) -> Result<(), Box<dyn Error>> {
        sys::raise_open_files_limit()?;
        match self.mode {
            Mode::Load(load) => load.measure(),
            Mode::Idle(many) => {
                let connections = IdleConnections::open(&many)?;
                print_json(&connections.report)?;
                wait_for_end();
                Ok(print_json(&connections.still_open())?)
            }
            Mode::Readers {
                many,
                never_read,
                receive_buffer_bytes,
            } => attend(many, never_read.then_some(receive_buffer_bytes)),
        }
    }
}

impl Load {
    /// Opens the connections and, once all are warm and the word is given, asks at a rate or as
    /// fast as the answers come.
    fn measure(self) -> Result<(), Box<dyn Error>> {
        let requests = self.requests()?;
        if requests.is_empty() {
            return Err("at least one connection is needed".into());
        }
        let pace = match self.rate {
            Some(rate) => Pace::Open(Schedule::new(rate, self.duration_ms, requests.len())),
            None => Pace::Closed {
                duration_ns: self.duration_ms * (NS_PER_S / 1_000),
            },
        };
        sys::tighten_timers();
        let mut engine = Engine::connect(self.target, &requests, self.status)?;
        if !self.cold {
            let lost = engine.run(Pace::Once)?.counts.errors;
            if lost > 0 {
                let what = format!("{lost} connections did not answer their first request");
                return Err(what.into());
            }
        }
        if self.attended {
            println!("ready");
            // Standard input that ends early means the driver is gone; the run then ends by itself.
            let _ = io::stdin().lock().read_line(&mut String::new());
        }
        let cpu_before_ns = sys::own_cpu_ns();
        let tally = engine.run(pace)?;
        print_json(&tally.report(sys::own_cpu_ns() - cpu_before_ns))?;
        if self.attended {
            // Closing the connections is not load.
            wait_for_end();
        }
        Ok(())
    }

    /// One request for each connection.
    fn requests(&self) -> Result<Vec<Arc<[u8]>>, Box<dyn Error>> {
        let whole: Vec<Vec<u8>> = match &self.what.requests {
            Some(file) => {
                let texts: Vec<String> = serde_json::from_slice(&fs::read(file)?)?;
                texts.into_iter().map(String::into_bytes).collect()
            }
            None => vec![render_get(
                self.target,
                self.what.path.as_deref().unwrap_or("/"),
            )],
        };
        let shared: Vec<Arc<[u8]>> = whole.into_iter().map(Arc::from).collect();
        Ok(shared
            .iter()
            .cycle()
            .take(self.connections)
            .cloned()
            .collect())
    }
}

/// The first line is the number of open streams.
fn attend(many: Many, never_read: Option<usize>) -> Result<(), Box<dyn Error>> {
    sys::tighten_timers();
    let mut readers = Readers::open(many, never_read)?;
    print_json(&readers.open_now())?;
    let (sender, commands) = mpsc::channel();
    // Ends with standard input.
    thread::spawn(move || {
        let mut lines = io::stdin().lock().lines().map_while(Result::ok);
        lines.all(|line| sender.send(line).is_ok())
    });
    Ok(readers.run(&commands, print_json)?)
}

fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn wait_for_end() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}
