//! The snapshot on axum 0.8 and tokio's multi-thread runtime.

use std::error::Error;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use bytes::Bytes;
use clap::Parser;
use peers::{Answer, Args, SNAPSHOT_PATH, WORKERS};
use tokio::net::TcpListener;

/// Prepared parts; a clone is a reference count and a small header table.
#[derive(Clone)]
struct Prepared {
    body: Bytes,
    headers: &'static HeaderMap,
}

async fn snapshot(State(prepared): State<Prepared>) -> Response<Body> {
    let mut response = Response::new(Body::from(prepared.body));
    *response.headers_mut() = prepared.headers.clone();
    response
}

fn prepare(answer: Answer) -> Result<Prepared, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    for (name, value) in answer.headers {
        headers.append(
            HeaderName::from_bytes(name.as_bytes())?,
            HeaderValue::from_static(value.as_str()),
        );
    }
    Ok(Prepared {
        body: Bytes::from_static(answer.body.as_bytes()),
        headers: Box::leak(Box::new(headers)),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let listen = args.listen;
    let prepared = prepare(args.answer()?)?;
    let router = Router::new()
        .route(SNAPSHOT_PATH, get(snapshot))
        .with_state(prepared);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?.tap_io(|stream| {
            // Without it Nagle may hold a response back; a socket that refuses still works.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
        Ok(())
    })
}
