//! One request and its response, on a connection that ends with it. Nothing keeps running in the background: dropping the
//! future drops the connection.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use jiff::fmt::rfc2822;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

use super::{LONGEST_ANSWER, OutboundAnswer, OutboundError};
use crate::domain::time::Timestamp;
use crate::domain::webhook;
use crate::domain::webhook::url::EndpointUrl;

/// How long the rest of an answer is listened to once its head is there: the status is all that counts, but a server that is
/// cut off at once takes it for a fault.
const REST_TIMEOUT: Duration = Duration::from_secs(1);

/// The head of an answer has no reason to be longer.
const LONGEST_HEAD: usize = 16 * 1024;

pub(super) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

pub(super) fn tls_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, OutboundError> {
    if roots.is_empty() {
        return Err(OutboundError::NoAuthorities);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|_| OutboundError::NoAuthorities)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

pub(super) fn request(
    url: &EndpointUrl,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, OutboundError> {
    let mut request = Request::post(url.path_and_query())
        .header(HOST, url.authority())
        .header(USER_AGENT, webhook::USER_AGENT)
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "close");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(Full::new(body)).map_err(|_| OutboundError::Unwritable)
}

/// What is known of an exchange wherever it has got to.
pub(super) struct OutboundExchange<'a> {
    pub at: &'a str,
    pub deadline: Instant,
    pub allowed: Duration,
    pub now: Timestamp,
}

impl OutboundExchange<'_> {
    async fn in_time<T>(&self, stage: &'static str, asked: impl Future<Output = T>) -> Result<T, OutboundError> {
        let answer = timeout_at(self.deadline, asked).await;
        answer.map_err(|_| OutboundError::Late { at: self.at.to_owned(), stage, allowed: self.allowed })
    }

    /// Connects to the first of the addresses that takes us. Each has its part of the time that is left, so that one that
    /// says nothing leaves some for the others.
    pub(super) async fn dial(&self, addresses: &[SocketAddr]) -> Result<TcpStream, OutboundError> {
        let mut why = "nobody answers there";
        for (index, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
            let part = self.deadline.saturating_duration_since(Instant::now()) / left;
            match tokio::time::timeout(part, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => why = words(error.kind()),
                Err(_) => why = "nobody answers there",
            }
        }
        Err(OutboundError::NotConnected { at: self.at.to_owned(), why })
    }

    pub(super) async fn encrypt(
        &self,
        config: Arc<ClientConfig>,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, OutboundError> {
        let failed = |why| OutboundError::Tls { at: self.at.to_owned(), why };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| failed("no certificate can be for that name"))?;
        let shaken = self.in_time("to agree on TLS", TlsConnector::from(config).connect(name, stream)).await?;
        shaken.map_err(|error| failed(tls_words(&error)))
    }

    pub(super) async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<OutboundAnswer, OutboundError> {
        let no_answer =
            |error: hyper::Error| OutboundError::NoAnswer { at: self.at.to_owned(), why: http_words(&error) };
        let stream = TokioIo::new(BoundedStream { stream, left: LONGEST_ANSWER });
        let mut builder = http1::Builder::new();
        builder.max_buf_size(LONGEST_HEAD);
        let (mut sender, connection) = builder.handshake(stream).await.map_err(no_answer)?;
        // Driven here and not in a task: it ends with whoever waits for the answer. Its own end says nothing that the answer
        // does not say.
        let mut connection = pin!(async {
            let _over = connection.await;
            std::future::pending::<Infallible>().await
        });
        let head = alongside(connection.as_mut(), sender.send_request(request));
        let answer = self.in_time("to answer", head).await?.map_err(no_answer)?;
        let answered =
            OutboundAnswer { status: answer.status().as_u16(), retry_after: retry_after(answer.headers(), self.now) };
        let mut body = answer.into_body();
        let rest = alongside(connection, async { while let Some(Ok(_)) = body.frame().await {} });
        // However it ends, the answer was given.
        let _heard = timeout_at(self.deadline.min(Instant::now() + REST_TIMEOUT), rest).await;
        Ok(answered)
    }
}

/// What is wanted, while the connection that brings it is driven.
async fn alongside<T>(connection: Pin<&mut impl Future<Output = Infallible>>, wanted: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = wanted => done,
        never = connection => match never {},
    }
}

/// In seconds, or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from_millis(date.as_millisecond()).since(now))
}

/// A stream of which only so many bytes are read, whatever is made of them.
struct BoundedStream<S> {
    stream: S,
    left: usize,
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        let before = buffer.filled().len();
        let poll = if buffer.remaining() <= self.left {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        } else {
            // There is room for more than may be read: the last bytes come through a room of the right size.
            let mut room = [0; 1024];
            let size = self.left.min(room.len());
            let mut last = ReadBuf::new(&mut room[..size]);
            let poll = Pin::new(&mut self.stream).poll_read(context, &mut last);
            buffer.put_slice(last.filled());
            poll
        };
        self.left -= buffer.filled().len() - before;
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn words(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "nobody listens there",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "there is no route to it",
        io::ErrorKind::TimedOut => "nobody answers there",
        _ => "the connection broke",
    }
}

fn tls_words(error: &io::Error) -> &'static str {
    let known = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match known {
        None => "the connection broke",
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            CertificateError::UnknownIssuer => {
                "its certificate is not signed by a known authority; check that its chain is complete"
            }
            _ => "its certificate is not good",
        },
        Some(_) => "no version or cipher suits both, or it does not speak TLS there",
    }
}

fn http_words(error: &hyper::Error) -> &'static str {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let too_large = source.is_some_and(|source| source.kind() == io::ErrorKind::FileTooLarge);
    if too_large || error.is_parse_too_large() {
        "it says too much before it comes to an answer"
    } else if error.is_parse() {
        "what it says is not HTTP/1.1"
    } else {
        "the connection broke"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use super::*;

    /// A server that, once it is asked, says one thing and then `x` for ever; and how much of it was heard.
    struct Talker {
        start: &'static [u8],
        asked: bool,
        waiting: Option<Waker>,
        heard: Arc<AtomicUsize>,
    }

    impl AsyncRead for Talker {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.asked {
                self.waiting = Some(context.waker().clone());
                return Poll::Pending;
            }
            let (said, rest) = self.start.split_at(self.start.len().min(buffer.remaining()));
            self.start = rest;
            buffer.put_slice(said);
            let more = buffer.remaining();
            buffer.put_slice(&vec![b'x'; more]);
            self.heard.fetch_add(said.len() + more, Ordering::Relaxed);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Talker {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.asked = true;
            self.waiting.take().into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn no_byte_is_read_past_the_bound() {
        let url = EndpointUrl::parse("https://partner.example/").unwrap();
        let allowed = Duration::from_secs(60);
        let exchange = OutboundExchange {
            at: url.authority(),
            deadline: Instant::now() + allowed,
            allowed,
            now: Timestamp::from_millis(0),
        };
        for (start, is_answer) in [(&b"HTTP/1.1 200 OK\r\n\r\n"[..], true), (b"HTTP/1.1 200 OK\r\nx: ", false)] {
            let heard = Arc::<AtomicUsize>::default();
            let talker = Talker { start, asked: false, waiting: None, heard: Arc::clone(&heard) };
            let answer = exchange.speak(talker, request(&url, &[], Bytes::new()).unwrap()).await;
            assert_eq!(answer.is_ok(), is_answer, "{answer:?}");
            let heard = heard.load(Ordering::Relaxed);
            assert!(heard <= LONGEST_ANSWER, "{heard}");
            assert_eq!(heard == LONGEST_ANSWER, is_answer, "an answer is heard out as far as may be: {heard}");
        }
    }

    #[test]
    fn waits_are_read_in_seconds_and_as_dates() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let read = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]), now);
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(read("Mon, 16 Nov 2026 10:02:00 GMT"), Some(Duration::from_secs(120)));
        assert_eq!(read("Mon, 16 Nov 2026 09:00:00 GMT"), Some(Duration::ZERO));
        for bad in ["", "soon", "-1", "1.5", "2026-11-16T10:00:00Z"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
