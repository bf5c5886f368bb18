//! TLS to PostgreSQL, as users of libpq expect it: the same words, the same answers.

use rcgen::Issuer;

use crate::machines::{give_to_postgres, within_a_minute};
use crate::prelude::*;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(file: PathBuf) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, file.file_stem().unwrap().to_str().unwrap());
        let key = KeyPair::generate().unwrap();
        std::fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), file }
    }

    /// Writes a certificate for that host or user, and its key; gives both files.
    fn certify(&self, name: &str, folder: &Path, file: &str) -> [PathBuf; 2] {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let files = [folder.join(format!("{file}.crt")), folder.join(format!("{file}.key"))];
        std::fs::write(&files[0], params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        files
    }
}

#[test]
fn every_sslmode_is_what_libpq_makes_of_it() {
    needs!(PostgresPrograms);
    let cluster = Cluster::primary();
    let folder = tempfile::tempdir().unwrap();
    let data = PathBuf::from(&cluster.ask("SHOW data_directory")[0][0]);
    let authority = Authority::new(folder.path().join("authority.crt"));
    let stranger = Authority::new(folder.path().join("stranger.crt"));
    let server = authority.certify("localhost", &data, "server");
    std::fs::copy(&authority.file, data.join("authority.crt")).unwrap();
    give_to_postgres(&[data.join("server.crt"), data.join("server.key"), data.join("authority.crt")]);
    cluster.ask("ALTER SYSTEM SET ssl_ca_file = 'authority.crt'");
    for database in ["encrypted", "certified"] {
        cluster.ask(&format!("CREATE DATABASE {database}"));
    }
    let rules = "hostssl encrypted postgres 127.0.0.1/32 trust\n\
                 hostssl certified postgres 127.0.0.1/32 cert\n\
                 host    postgres  postgres 127.0.0.1/32 trust\n";
    assert_eq!(cluster.faults_in_hba(rules), Vec::<Vec<String>>::new());
    assert_eq!(cluster.ask("SELECT pg_reload_conf()"), [["t"]]);

    let root = format!("&sslrootcert={}", authority.file.display());
    let other = format!("&sslrootcert={}", stranger.file.display());
    let its_own = format!("&sslrootcert={}", server[0].display());
    let user = |who: &Authority, file: &str| {
        let [certificate, key] = who.certify("postgres", folder.path(), file);
        format!("&sslcert={}&sslkey={}", certificate.display(), key.display())
    };
    let (known, unknown) = (user(&authority, "known"), user(&stranger, "unknown"));
    let opens = |database: &str, host: &str, options: String| {
        let url = format!("postgres://postgres@{host}:{}/{database}?{options}", cluster.port);
        block_on(async {
            let address = Address::parse(&url).map_err(|error| error.to_string())?;
            let store = PostgresStore::open(address, Prepare::Upgrade, 256).await.map_err(|error| error.to_string())?;
            OpenStore::new(store).close().await.map_err(|error| error.to_string())
        })
    };
    // A reload is not waited for by who asks for it.
    let is_reloaded = || opens("encrypted", "localhost", format!("sslmode=verify-full{root}")).is_ok();
    assert!(within_a_minute(is_reloaded), "PostgreSQL has not read its files again in a minute");
    for (database, host, options, told) in [
        ("encrypted", "127.0.0.1", String::new(), None),
        ("encrypted", "127.0.0.1", "sslmode=disable".to_owned(), Some("no encryption")),
        ("encrypted", "127.0.0.1", "sslmode=require".to_owned(), None),
        ("encrypted", "127.0.0.1", format!("sslmode=require{other}"), Some("UnknownIssuer")),
        ("encrypted", "127.0.0.1", format!("sslmode=verify-ca{root}"), None),
        ("encrypted", "127.0.0.1", format!("sslmode=verify-ca{its_own}"), None),
        ("encrypted", "127.0.0.1", format!("sslmode=verify-full{root}"), Some("not valid for name")),
        ("encrypted", "127.0.0.1", format!("sslmode=verify-full{its_own}"), Some("not valid for name")),
        ("encrypted", "localhost", format!("sslmode=verify-full{root}"), None),
        ("encrypted", "localhost", format!("sslmode=verify-full{its_own}"), None),
        ("encrypted", "localhost", format!("sslmode=verify-full{other}"), Some("UnknownIssuer")),
        ("encrypted", "localhost", "sslmode=verify-full&sslrootcert=system".to_owned(), Some("UnknownIssuer")),
        ("encrypted", "localhost", "sslmode=verify-full".to_owned(), Some("sslrootcert: it is needed")),
        ("certified", "localhost", format!("sslmode=verify-full{root}{known}"), None),
        ("certified", "localhost", format!("sslmode=require{known}"), None),
        ("certified", "localhost", format!("sslmode=require{unknown}"), Some("")),
        ("certified", "localhost", "sslmode=require".to_owned(), Some("certificate")),
    ] {
        let done = opens(database, host, options.clone());
        match told {
            None => assert_eq!(done, Ok(()), "{database} at {host} with {options}"),
            Some(told) => {
                let error = done.expect_err(&options);
                assert!(error.contains(told), "{database} at {host} with {options}: {error}");
            }
        }
    }
}
