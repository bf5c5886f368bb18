//! Whose certificate is believed (TLS), as libpq's `sslmode` says it.

use std::path::{Path, PathBuf};

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{Error, RootCertStore};

use crate::certificates::{ShownCertificate, client_judging};

/// What is wrong with an option of the URL, and what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{option}: {problem}; {remedy}")]
pub struct BadOption {
    pub option: &'static str,
    pub problem: String,
    pub remedy: &'static str,
}

/// What a server must show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Anything: the connection is private, and whoever stands in the middle is not noticed.
    Anyone,
    /// A certificate that leads to somebody we trust (`verify-ca`).
    Chain,
    /// That, and the name of the host in it (`verify-full`).
    Name,
}

/// The files that a URL names; libpq's usual places when it names none.
#[derive(Clone, Default)]
pub(super) struct Files {
    pub root: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
}

impl Files {
    fn root(&self) -> Option<PathBuf> {
        self.root.as_ref().map(PathBuf::from).or_else(|| usual("root.crt"))
    }

    fn client(&self) -> Result<Option<(PathBuf, PathBuf)>, BadOption> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
            (None, None) => Ok(usual("postgresql.crt").zip(usual("postgresql.key"))),
            (Some(_), None) => Err(lonely("sslkey", "sslcert")),
            (None, Some(_)) => Err(lonely("sslcert", "sslkey")),
        }
    }
}

fn lonely(option: &'static str, given: &str) -> BadOption {
    BadOption { option, problem: format!("{given} is given without it"), remedy: "give both files" }
}

/// A file in the folder where libpq looks, if it is there.
fn usual(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("HOME")?).join(".postgresql").join(name);
    path.is_file().then_some(path)
}

pub(super) fn connector(trust: Trust, files: &Files, direct: bool) -> Result<MakeRustlsConnect, BadOption> {
    let roots = roots(trust, files)?;
    let builder = client_judging(move |shown| judge(trust, &roots, shown)).map_err(|error| unusable(&error))?;
    let mut config = match files.client()? {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("sslcert", &certificate)?;
            let key = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable("sslkey", &key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| unreadable("sslcert", &certificate, &error))?
        }
    };
    if direct {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
    }
    Ok(MakeRustlsConnect::new(config))
}

/// The system's cryptography does not do what every server needs; no option of ours fixes that.
fn unusable(error: &Error) -> BadOption {
    BadOption { option: "sslmode", problem: error.to_string(), remedy: "use another build of this program" }
}

fn certificates(option: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, BadOption> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unreadable(option, path, &"there is no certificate in it")),
        Err(error) => Err(unreadable(option, path, &error)),
    }
}

fn unreadable(option: &'static str, path: &Path, error: &dyn std::fmt::Display) -> BadOption {
    let remedy = "give a file in PEM that this user can read";
    BadOption { option, problem: format!("{}: {error}", path.display()), remedy }
}

/// Whom we trust, and their certificates as they are.
struct Roots {
    anchors: RootCertStore,
    given: Vec<CertificateDer<'static>>,
}

fn roots(trust: Trust, files: &Files) -> Result<Roots, BadOption> {
    let mut roots = Roots { anchors: RootCertStore::empty(), given: Vec::new() };
    if files.root.as_deref() == Some("system") {
        if trust != Trust::Name {
            let problem = "anyone can have a certificate of the system's authorities".to_owned();
            return Err(BadOption { option: "sslrootcert", problem, remedy: "use it with sslmode=verify-full" });
        }
        for certificate in rustls_native_certs::load_native_certs().certs {
            // Some systems carry a few that nobody can read; the others serve.
            let _unreadable = roots.anchors.add(certificate);
        }
        return Ok(roots);
    }
    if trust == Trust::Anyone {
        return Ok(roots);
    }
    let Some(path) = files.root() else {
        let problem = "it is needed to check the server's certificate".to_owned();
        let remedy = "give the file of the authority, or `system` with sslmode=verify-full";
        return Err(BadOption { option: "sslrootcert", problem, remedy });
    };
    for certificate in certificates("sslrootcert", &path)? {
        roots.given.push(certificate.clone());
        roots.anchors.add(certificate).map_err(|error| unreadable("sslrootcert", &path, &error))?;
    }
    Ok(roots)
}

fn judge(trust: Trust, roots: &Roots, shown: &ShownCertificate<'_>) -> Result<(), Error> {
    if trust == Trust::Anyone {
        return Ok(());
    }
    let parsed = ParsedCertificate::try_from(shown.certificate)?;
    // A server that signed its own certificate is trusted by that certificate: OpenSSL takes this for a chain of one.
    if !roots.given.contains(shown.certificate) {
        let ShownCertificate { intermediates, now, algorithms, .. } = *shown;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots.anchors, intermediates, now, algorithms.all)?;
    }
    if trust == Trust::Name { verify_server_name(&parsed, shown.name) } else { Ok(()) }
}
