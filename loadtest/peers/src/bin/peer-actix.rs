//! The snapshot on actix-web 4, one single-threaded runtime per worker.

use std::error::Error;
use std::time::Duration;

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{App, HttpResponse, HttpServer, rt, web};
use bytes::Bytes;
use clap::Parser;
use peers::{Answer, Args, KEEP_ALIVE_S, SNAPSHOT_PATH, WORKERS};

/// Above the 30,000 connections of the largest run.
const CONNECTIONS_PER_WORKER_MAX: usize = 40_000;

#[derive(Clone, Copy)]
struct Prepared {
    body: &'static [u8],
    headers: &'static [(HeaderName, HeaderValue)],
}

async fn snapshot(prepared: web::Data<Prepared>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    for (name, value) in prepared.headers {
        response.append_header((name, value.clone()));
    }
    response.body(Bytes::from_static(prepared.body))
}

fn prepare(answer: Answer) -> Result<Prepared, Box<dyn Error>> {
    let mut headers = Vec::with_capacity(answer.headers.len());
    for (name, value) in answer.headers {
        headers.push((
            HeaderName::from_bytes(name.as_bytes())?,
            HeaderValue::from_static(value.as_str()),
        ));
    }
    Ok(Prepared {
        body: answer.body.as_bytes(),
        headers: headers.leak(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let listen = args.listen;
    let prepared = prepare(args.answer()?)?;
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(prepared))
            .route(SNAPSHOT_PATH, web::get().to(snapshot))
    })
    .workers(WORKERS)
    .keep_alive(Duration::from_secs(KEEP_ALIVE_S))
    .max_connections(CONNECTIONS_PER_WORKER_MAX)
    .bind(listen)?
    .run();
    rt::System::new().block_on(server)?;
    Ok(())
}
