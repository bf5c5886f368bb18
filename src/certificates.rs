//! Judging a server's certificate (TLS) by another rule than rustls' own.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, SignatureScheme};

/// What a server shows of itself, and what it is called.
pub(crate) struct ShownCertificate<'a> {
    pub certificate: &'a CertificateDer<'a>,
    pub intermediates: &'a [CertificateDer<'a>],
    pub name: &'a ServerName<'a>,
    pub now: UnixTime,
    pub algorithms: WebPkiSupportedAlgorithms,
}

/// A client that takes the certificates that `judge` takes. Signatures are checked in any case.
pub(crate) fn client_judging(
    judge: impl Fn(&ShownCertificate<'_>) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = ring::default_provider();
    let verifier = Verifier { judge, algorithms: provider.signature_verification_algorithms };
    let builder = ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

struct Verifier<J> {
    judge: J,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<J> fmt::Debug for Verifier<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl<J: Fn(&ShownCertificate<'_>) -> Result<(), Error> + Send + Sync> ServerCertVerifier for Verifier<J> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let algorithms = self.algorithms;
        (self.judge)(&ShownCertificate { certificate, intermediates, name, now, algorithms })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
