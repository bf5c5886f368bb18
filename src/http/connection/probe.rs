//! A health probe: asks a listener on this machine who it is.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::certificates::client_judging;

/// How long connecting may take, and each piece of the answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Bytes that are read of an answer at the most.
const LONGEST_ANSWER: u64 = 64 << 10;

/// The whole answer to `GET PATH`, head and body, as text; over TLS if so told.
pub fn ask(address: SocketAddr, tls: bool, path: &str) -> io::Result<String> {
    let stream = TcpStream::connect_timeout(&reachable(address), PROBE_TIMEOUT)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    if !tls {
        return exchange(stream, &request);
    }
    // Any certificate will do: nothing secret is said, and one that has expired is reported elsewhere.
    let config = client_judging(|_| Ok(())).map_err(io::Error::other)?.with_no_client_auth();
    let name = ServerName::from(address.ip());
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(connection, stream), &request)
}

/// Who listens on all addresses is reached on this machine's own.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    match stream.take(LONGEST_ANSWER).read_to_end(&mut answer) {
        // Some end without taking leave, or keep the connection; what they said stands.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}
