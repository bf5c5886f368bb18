//! The limit: hyper and nothing else, answering as many bytes as the product does.
//!
//! It runs as a process of its own (`bench bare FILE`), on the same runtime and allocator as the product. What it is given
//! is a list of paths, each with a body and a number of bytes that the product's head has more than a bare one; those are
//! sent as one header, so that both write the same number of bytes and this one does the least that hyper can do.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What one path is answered with.
#[derive(Clone)]
struct Reply {
    body: Bytes,
    padding: HeaderValue,
}

/// Describes a path to [`run`]: one line of the file.
pub(crate) fn line(path: &str, padding: usize, body: &str) -> String {
    format!("{path}\t{padding}\t{body}\n")
}

pub(crate) fn run(answers: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(answers)?;
    let replies = text.lines().map(parse).collect::<anyhow::Result<HashMap<_, _>>>()?;
    let replies = Arc::new(replies);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("bare hyper listens on http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let replies = Arc::clone(&replies);
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let reply = replies.get(request.uri().path()).cloned();
                    async move { Ok::<_, Infallible>(answer(reply)) }
                });
                // How a connection ends is its peer's affair.
                let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

fn answer(reply: Option<Reply>) -> Response<Full<Bytes>> {
    let Some(Reply { body, padding }) = reply else {
        let mut missing = Response::new(Full::default());
        *missing.status_mut() = hyper::StatusCode::NOT_FOUND;
        return missing;
    };
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(HeaderName::from_static("x-padding"), padding);
    response
}

fn parse(line: &str) -> anyhow::Result<(String, Reply)> {
    let mut parts = line.splitn(3, '\t');
    let mut next = || parts.next().context("a line is a path, a number and a body");
    let (path, padding, body) = (next()?, next()?, next()?);
    let padding = HeaderValue::from_str(&"x".repeat(padding.parse()?))?;
    Ok((path.to_owned(), Reply { body: Bytes::from(body.to_owned()), padding }))
}
