//! Requests that cannot be read as HTTP. hyper answers them by itself, with a status and an empty body, and has no hook for
//! another answer. This serves developers whose client sends such a request (a space in a path, too large a header) and who
//! otherwise see a bare 400 with no reason, and operators, who otherwise have no line in the log and no count of it.
//!
//! The stream lies between hyper and the peer. It recognizes the few heads that hyper writes by itself (every answer of ours
//! has more headers) and sends our answer in their place. A write that does not end like a head, such as any answer
//! with a body, is passed on after a look at its last bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::idle_timeout::Activity;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;

/// After such an answer the rest of the request is taken in and thrown away, so that a sender who reads nothing before it has
/// sent everything gets to see it: so much, and so long, at the most.
const SWALLOWED: usize = 2 << 20;
const SWALLOWED_FOR: Duration = Duration::from_secs(2);

/// A stream that replaces hyper's own answers by what `word` makes, and tells the idle time-out when bytes come in.
#[derive(Debug)]
pub struct WordedStream<S, W> {
    stream: S,
    activity: Arc<Activity>,
    word: W,
    /// Whether the first line of the first request is over: what is too large before it is the address.
    line_ended: bool,
    last: Option<Box<LastAnswer>>,
}

/// An answer of ours in place of hyper's, after which the connection ends.
#[derive(Debug)]
struct LastAnswer {
    wire: Vec<u8>,
    written: usize,
    swallowed: usize,
    /// Since our side was closed.
    closing: Option<Pin<Box<Sleep>>>,
}

impl<S, W> WordedStream<S, W> {
    pub fn new(stream: S, activity: Arc<Activity>, word: W) -> Self {
        Self { stream, activity, word, line_ended: false, last: None }
    }
}

impl<S: AsyncRead + Unpin, W: Unpin> AsyncRead for WordedStream<S, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = &buffer.filled()[before..];
        if !came.is_empty() {
            self.activity.bytes_came();
            self.line_ended = self.line_ended || came.contains(&b'\n');
        }
        poll
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, W: Fn(HttpError) -> Answer + Unpin> AsyncWrite for WordedStream<S, W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.last.is_none() {
            let Some(own) = OwnHead::at_the_end_of(bytes) else {
                return Pin::new(&mut this.stream).poll_write(context, bytes);
            };
            // Answers of ours that have not left yet go first.
            if own.begins > 0 {
                return Pin::new(&mut this.stream).poll_write(context, &bytes[..own.begins]);
            }
            let error = match own.status {
                431 if !this.line_ended => HttpError::AddressTooLong,
                414 => HttpError::AddressTooLong,
                431 => HttpError::HeadTooLarge,
                _ => HttpError::Malformed,
            };
            let wire = wire((this.word)(error), own.date);
            this.last = Some(Box::new(LastAnswer { wire, written: 0, swallowed: 0, closing: None }));
        }
        if let Some(last) = &mut this.last {
            while last.written < last.wire.len() {
                match ready!(Pin::new(&mut this.stream).poll_write(context, &last.wire[last.written..]))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => last.written += written,
                }
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    /// HTTP/2 alone writes so, and says by itself what is wrong.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(last) = &mut this.last else { return Pin::new(&mut this.stream).poll_shutdown(context) };
        if last.closing.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let closing = last.closing.get_or_insert_with(|| Box::pin(tokio::time::sleep(SWALLOWED_FOR)));
        let mut thrown_away = [0; 4096];
        while last.swallowed < SWALLOWED && closing.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut thrown_away);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => last.swallowed += buffer.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A head that hyper wrote by itself.
#[derive(Debug, PartialEq, Eq)]
struct OwnHead<'a> {
    begins: usize,
    status: u16,
    date: &'a [u8],
}

impl<'a> OwnHead<'a> {
    /// The one that these bytes end with, to the letter.
    fn at_the_end_of(bytes: &'a [u8]) -> Option<Self> {
        const DATE: usize = "Mon, 16 Nov 2026 10:00:00 GMT".len();
        const LINES: [(&[u8], u16); 3] = [
            (b" 400 Bad Request\r\n", 400),
            (b" 414 URI Too Long\r\n", 414),
            (b" 431 Request Header Fields Too Large\r\n", 431),
        ];
        let rest = bytes.strip_suffix(b"\r\n\r\n")?;
        let (rest, date) = rest.split_at_checked(rest.len().checked_sub(DATE)?)?;
        let rest = rest.strip_suffix(b"content-length: 0\r\ndate: ")?;
        let rest = rest.strip_suffix(b"connection: close\r\n").unwrap_or(rest);
        let (rest, status) = LINES.iter().find_map(|(line, status)| Some((rest.strip_suffix(*line)?, *status)))?;
        let before = rest.strip_suffix(b"HTTP/1.1").or_else(|| rest.strip_suffix(b"HTTP/1.0"))?;
        Some(Self { begins: before.len(), status, date })
    }
}

/// An answer as HTTP/1.1 has it, and the end of its connection.
fn wire(answer: Answer, date: &[u8]) -> Vec<u8> {
    let (head, mut body) = answer.into_response().into_parts();
    let mut wire = Vec::with_capacity(1024);
    wire.extend_from_slice(format!("HTTP/1.1 {}\r\n", head.status).as_bytes());
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            wire.extend_from_slice(part);
        }
    }
    // The body is there already, in one piece.
    let piece = match Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Default::default(),
    };
    wire.extend_from_slice(format!("content-length: {}\r\ndate: ", piece.len()).as_bytes());
    for part in [date, b"\r\n\r\n", &piece] {
        wire.extend_from_slice(part);
    }
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: Mon, 16 Nov 2026 10:00:00 GMT\r\n\r\n";

    fn found(text: &str) -> Option<(usize, u16)> {
        OwnHead::at_the_end_of(text.as_bytes()).map(|own| (own.begins, own.status))
    }

    #[test]
    fn only_what_hyper_says_by_itself_is_known() {
        assert_eq!(found(OWN), Some((0, 400)));
        assert_eq!(OwnHead::at_the_end_of(OWN.as_bytes()).unwrap().date, b"Mon, 16 Nov 2026 10:00:00 GMT");
        assert_eq!(found(&OWN.replace("1.1", "1.0").replace("connection: close\r\n", "")), Some((0, 400)));
        assert_eq!(found(&OWN.replace("400 Bad Request", "431 Request Header Fields Too Large")), Some((0, 431)));
        assert_eq!(found(&OWN.replace("400 Bad Request", "414 URI Too Long")), Some((0, 414)));
        assert_eq!(found(&format!("HTTP/1.1 200 OK\r\n\r\n{{}}{OWN}")), Some((21, 400)));
        for ours in [
            "",
            "\r\n\r\n",
            "{\"ok\":true}",
            "HTTP/1.1 100 Continue\r\n\r\n",
            &OWN.replace("\r\ncontent-length", "\r\nx-request-id: a\r\ncontent-length"),
            &OWN.replace("400 Bad Request", "200 OK"),
            &OWN.replace("content-length: 0", "content-length: 10"),
            &OWN.replace("GMT\r\n\r\n", "GMT\r\n\r\n{}"),
            &OWN[1..],
            &OWN[9..],
        ] {
            assert_eq!(found(ours), None, "{ours}");
        }
    }

    #[tokio::test]
    async fn our_answers_leave_first_and_whole_however_slow_the_peer() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        // A peer that takes seven bytes at a time.
        let (near, mut far) = tokio::io::duplex(7);
        let taken = tokio::spawn(async move {
            let mut taken = String::new();
            far.read_to_string(&mut taken).await.map(|_| taken)
        });
        let mut stream = WordedStream::new(near, Arc::default(), |error: HttpError| error.answer());
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{}").await.unwrap();
        stream.write_all(format!("HTTP/1.1 304 Not Modified\r\n\r\n{OWN}").as_bytes()).await.unwrap();
        drop(stream);
        let taken = taken.await.unwrap().unwrap();
        let last = taken.strip_prefix("HTTP/1.1 200 OK\r\n\r\n{}HTTP/1.1 304 Not Modified\r\n\r\n").expect(&taken);
        let (head, body) = last.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"), "{head}");
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
        assert!(head.ends_with("\r\ndate: Mon, 16 Nov 2026 10:00:00 GMT"), "{head}");
        assert!(head.contains("\r\nconnection: close"), "{head}");
        assert_eq!(body, serde_json::to_string(&HttpError::Malformed.body()).unwrap());
    }
}
