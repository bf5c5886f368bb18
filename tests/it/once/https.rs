//! HTTPS without a proxy.

use crate::prelude::*;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

/// Writes a new certificate for localhost and its key; gives the certificate.
pub(crate) fn certify(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

/// Connects trusting that certificate alone.
pub(crate) async fn connect(
    server: &Server,
    trusted: &CertificateDer<'static>,
    protocol: &[u8],
) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = tokio::net::TcpStream::connect(server.address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_are_served_and_a_renewed_certificate_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let old = certify(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = Server::start_with(&["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem")]);

    let stream = connect(&server, &old, b"h2").await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Full::<bytes::Bytes>::default()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let root: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(root["openapi"], format!("https://{}/openapi.json", server.address));

    let stream = connect(&server, &old, b"http/1.1").await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = || Request::get("/v1/stats").header("host", "localhost").body(Full::<bytes::Bytes>::default());
    assert_eq!(sender.send_request(request().unwrap()).await.unwrap().status(), 200);
    // A broken file changes nothing; a good one is used for the next handshake, and open connections live on.
    std::fs::write(folder.path().join("cert.pem"), "broken").unwrap();
    server.signal("HUP");
    wait_for!(async || server.log().contains("the certificate in use stays")).await;
    connect(&server, &old, b"http/1.1").await.unwrap();
    let new = certify(folder.path());
    server.signal("HUP");
    wait_for!(async || server.log().contains("the certificate was read again")).await;
    connect(&server, &new, b"http/1.1").await.unwrap();
    assert!(connect(&server, &old, b"http/1.1").await.is_err());
    sender.ready().await.unwrap();
    assert_eq!(sender.send_request(request().unwrap()).await.unwrap().status(), 200);
    assert_eq!(server.stop().0, Some(0));
}
