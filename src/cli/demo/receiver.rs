//! Where a demonstration's webhooks go: a receiver of its own on this machine, which takes them all and shows the last ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::cli::files;

/// The messages that are kept to be shown, and how long one may be.
const SHOWN: usize = 50;
const LONGEST: usize = 16 << 10;

/// Connections at once, and how long each may take.
const CONNECTIONS: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The path whose messages it refuses, so that an endpoint can be seen to fail.
pub(super) const BROKEN: &str = "/broken";

pub(super) struct Receiver {
    listener: TcpListener,
    /// Its address, without a slash at the end.
    pub url: String,
}

impl Receiver {
    /// Listens on the port that the folder's endpoints lead to; the first time on any, which is kept.
    pub(super) async fn open(data: &Path) -> anyhow::Result<Self> {
        let kept = data.join("receiver");
        let port = match files::is_there(&kept)? {
            true => std::fs::read_to_string(&kept)?
                .trim()
                .parse()
                .with_context(|| format!("{} is no port", kept.display()))?,
            false => 0_u16,
        };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.with_context(|| {
            format!(
                "the demonstration's receiver of webhooks cannot listen on 127.0.0.1:{port}; end what listens there"
            )
        })?;
        let address = listener.local_addr()?;
        if port == 0 {
            files::write_private_file(&kept, &format!("{}\n", address.port()))?;
        }
        Ok(Self { listener, url: format!("http://{address}") })
    }

    /// Takes messages for as long as the process runs.
    pub(super) async fn run(self) -> Infallible {
        let (places, messages) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::<Mutex<VecDeque<String>>>::default());
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { continue };
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(TIMEOUT).await;
                continue;
            };
            let messages = Arc::clone(&messages);
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let messages = Arc::clone(&messages);
                    async move { Ok::<_, Infallible>(answer(request, &messages).await) }
                });
                let serving = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), answer);
                // How a connection ends is its peer's affair.
                let _peers_affair = tokio::time::timeout(TIMEOUT, serving).await;
                drop(place);
            });
        }
    }
}

async fn answer(request: Request<Incoming>, messages: &Mutex<VecDeque<String>>) -> Response<Full<Bytes>> {
    let kept = || messages.lock().unwrap_or_else(PoisonError::into_inner);
    if request.method() != Method::POST {
        let all: Vec<_> = kept().iter().cloned().collect();
        let text = match all.is_empty() {
            true => "No webhook has arrived since the demonstration was started.\n".to_owned(),
            false => all.join("\n\n"),
        };
        return plain(StatusCode::OK, text);
    }
    if request.uri().path() == BROKEN {
        return plain(StatusCode::SERVICE_UNAVAILABLE, String::new());
    }
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LONGEST).collect().await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, String::new());
    };
    let of_webhook = head.headers.iter().filter(|(name, _)| name.as_str().starts_with("webhook-"));
    let lines = of_webhook.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    let message = [format!("POST {}", head.uri.path())]
        .into_iter()
        .chain(lines)
        .chain([String::from_utf8_lossy(&body.to_bytes()).into_owned()])
        .collect::<Vec<_>>()
        .join("\n");
    let mut kept = kept();
    kept.truncate(SHOWN - 1);
    kept.push_front(message);
    plain(StatusCode::NO_CONTENT, String::new())
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
