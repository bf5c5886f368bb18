//! Where a demonstration's webhooks go: a receiver of its own on this machine, which takes them all and shows the last ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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
                // How a connection ends is its peer's affair.
                let _peers_affair = tokio::time::timeout(TIMEOUT, answer(stream, &messages)).await;
                drop(place);
            });
        }
    }
}

/// Answers one request: a message is taken, everything else is shown the messages.
async fn answer(mut stream: TcpStream, messages: &Mutex<VecDeque<String>>) -> io::Result<()> {
    let request = read(&mut stream).await?;
    let kept = || messages.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, text) = match request.strip_prefix("POST ") {
        None => {
            let all: Vec<_> = kept().iter().cloned().collect();
            let none = || "No webhook has arrived since the demonstration was started.\n".to_owned();
            ("200 OK", if all.is_empty() { none() } else { all.join("\n\n") })
        }
        Some(path) if path.starts_with(BROKEN) => ("503 Service Unavailable", String::new()),
        Some(_) => {
            let is_shown =
                |line: &&str| line.starts_with("POST ") || line.starts_with("webhook-") || line.starts_with('{');
            let shown: Vec<_> = request.lines().filter(is_shown).collect();
            let mut kept = kept();
            kept.truncate(SHOWN - 1);
            kept.push_front(shown.join("\n"));
            ("204 No Content", String::new())
        }
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{text}").as_bytes()).await?;
    stream.shutdown().await
}

/// A request of ours or of a browser's, as text: its head, and as much of a body as it says.
async fn read(stream: &mut TcpStream) -> io::Result<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(text.into_owned());
            }
        }
        if read.len() > LONGEST || stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}
