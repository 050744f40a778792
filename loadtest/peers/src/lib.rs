//! What the peer servers share: the arguments, the allocator and the fixed answer.
//!
//! Each peer is written as its framework's documentation would have it, with the answer prepared
//! once, so that what is measured is the framework. Peers check nothing and log nothing.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

/// Their frameworks allocate per request, so the peers get a fast allocator.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Worker threads of every peer: as many as bhav has on the two cores of the reference machine.
pub const WORKERS: usize = 2;

/// The one route that every peer serves.
pub const SNAPSHOT_PATH: &str = "/api/index/snapshot";

/// How long an idle connection is kept, in seconds: longer than any run, where a peer can be told.
pub const KEEP_ALIVE_S: u64 = 3_600;

/// Arguments of a peer.
#[derive(Debug, Parser)]
pub struct Args {
    /// Address to listen on; the driver picks a free port
    #[arg(long)]
    pub listen: SocketAddr,

    /// File with the response body, served byte for byte
    #[arg(long)]
    pub body: PathBuf,

    /// Response header as "Name: value", repeatable
    #[arg(long = "header", value_parser = parse_header)]
    pub headers: Vec<(String, String)>,

    /// Pin each worker to a core, where the framework can
    #[arg(long)]
    pub pin_workers: bool,
}

/// The answer to every request. It lives as long as the process, because one of the frameworks
/// takes nothing but `&'static str`.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The body, as it was in the file.
    pub body: &'static str,
    /// Name and value of each header, in the order given.
    pub headers: &'static [(String, String)],
}

impl Args {
    /// Reads the body and pins the answer for the life of the process.
    ///
    /// # Errors
    /// The body file cannot be read or is not UTF-8.
    pub fn answer(self) -> io::Result<Answer> {
        Ok(Answer {
            body: fs::read_to_string(&self.body)?.leak(),
            headers: self.headers.leak(),
        })
    }
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| format!("header \"{text}\" has no colon"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
