//! HTTPS without a proxy: the certificate and key from two PEM files, reloaded on the operator's request.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_cert::der::Decode;

use crate::domain::time::Timestamp;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read a certificate from {}: {source}", path.display())]
    Certificate { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("there is no certificate in {}; it should hold PEM, the server's own certificate first", path.display())]
    NoCertificate { path: PathBuf },
    #[error("cannot read a private key from {}: {source}", path.display())]
    Key { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error(
        "the private key in {0} is encrypted, and nobody types its passphrase when the service starts; write one that is \
         not, readable to this user alone: (umask 077; openssl pkey -in {0} -out plain.pem)", path.display()
    )]
    EncryptedKey { path: PathBuf },
    #[error("there is no private key in {}; it should hold PEM with a line BEGIN PRIVATE KEY", path.display())]
    NoKey { path: PathBuf },
    #[error("{} is not a certificate: {source}", path.display())]
    NotX509 { path: PathBuf, source: x509_cert::der::Error },
    #[error("the certificate and the key do not go together: {0}")]
    Mismatch(rustls::Error),
}

pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    /// What connections are served with, and when its certificate expires.
    loaded: RwLock<(Arc<ServerConfig>, Timestamp)>,
}

impl Tls {
    pub fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let loaded = RwLock::new(load(&certificate, &key)?);
        Ok(Self { certificate, key, loaded })
    }

    /// Reads both files again; on a mistake what was read before stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let loaded = load(&self.certificate, &self.key)?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// When the certificate that is served ends to be good.
    pub fn expires_at(&self) -> Timestamp {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Shakes hands on a new connection; none if the peer does not, or not in time.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Option<TlsStream<S>> {
        let config = Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner).0);
        tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await.ok()?.ok()
    }
}

/// When the certificate in a file, the server's own, ends to be good.
pub fn expiry(certificate: &Path) -> Result<Timestamp, TlsError> {
    expiry_of(&read_chain(certificate)?, certificate)
}

fn expiry_of(chain: &[CertificateDer<'_>], certificate: &Path) -> Result<Timestamp, TlsError> {
    let path = || certificate.to_owned();
    let own = chain.first().ok_or_else(|| TlsError::NoCertificate { path: path() })?;
    let parsed = x509_cert::Certificate::from_der(own).map_err(|source| TlsError::NotX509 { path: path(), source })?;
    let end = parsed.tbs_certificate.validity.not_after.to_unix_duration();
    Ok(Timestamp::from_millis(0).plus(end))
}

fn read_chain(certificate: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Certificate { path: certificate.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(unreadable)?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: certificate.to_owned() }) } else { Ok(chain) }
}

fn read_key(key: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(key).map_err(|source| {
        let path = key.to_owned();
        // The parser passes over the one form and stumbles over the head of the other.
        let text = std::fs::read_to_string(key).unwrap_or_default();
        if ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"].iter().any(|mark| text.contains(mark)) {
            return TlsError::EncryptedKey { path };
        }
        match source {
            rustls::pki_types::pem::Error::NoItemsFound => TlsError::NoKey { path },
            source => TlsError::Key { path, source },
        }
    })
}

fn load(certificate: &Path, key: &Path) -> Result<(Arc<ServerConfig>, Timestamp), TlsError> {
    let (chain, private) = (read_chain(certificate)?, read_key(key)?);
    let expires_at = expiry_of(&chain, certificate)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Mismatch)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(TlsError::Mismatch)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((Arc::new(config), expires_at))
}
