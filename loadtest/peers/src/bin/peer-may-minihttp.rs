//! The snapshot on may_minihttp 0.1.11: its workers are may's, the answer is `&'static str`.
//!
//! may pins its workers to cores unless told otherwise. A pinned worker cannot be woken on the core
//! that is free, which costs 1.6 to 1.9 times the CPU when requests come one by one; so the peer
//! runs unpinned, which is its best, unless `--pin-workers` asks for may's default.

use std::error::Error;
use std::io;

use clap::Parser;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use peers::{Args, SNAPSHOT_PATH, WORKERS};

#[derive(Clone, Copy)]
struct Snapshot {
    body: &'static str,
    headers: &'static [&'static str],
}

impl HttpService for Snapshot {
    fn call(
        &mut self,
        request: Request<'_, '_, '_>,
        response: &mut Response<'_>,
    ) -> io::Result<()> {
        if request.path() != SNAPSHOT_PATH {
            response.status_code(404, "Not Found");
            return Ok(());
        }
        for line in self.headers {
            response.header(line);
        }
        response.body(self.body);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let listen = args.listen;
    let pin_workers = args.pin_workers;
    let answer = args.answer()?;
    let lines: Vec<&'static str> = answer
        .headers
        .iter()
        .map(|(name, value)| &*format!("{name}: {value}").leak())
        .collect();
    may::config().set_workers(WORKERS);
    may::config().set_worker_pin(pin_workers);
    let service = Snapshot {
        body: answer.body,
        headers: lines.leak(),
    };
    let server = HttpServer(service).start(listen)?;
    server.join().map_err(|_| "the accept loop panicked")?;
    Ok(())
}
