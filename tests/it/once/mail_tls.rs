//! A mail server that cannot be trusted gets neither a password nor a mail, and the operator reads why.

use std::sync::mpsc;

use crate::prelude::*;

/// A server that offers a login and no STARTTLS; says every line that it is sent.
fn without_starttls() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, (sender, lines)) = (listener.local_addr().unwrap().port(), mpsc::channel());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            let _gone = stream.write_all(b"220 mail.example.com\r\n");
            for line in reader.lines().map_while(Result::ok) {
                let _gone = stream.write_all(b"250-mail.example.com\r\n250 AUTH PLAIN LOGIN\r\n");
                if sender.send(line).is_err() {
                    return;
                }
            }
        }
    });
    (port, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_sent_to_a_server_without_starttls() {
    let (port, lines) = without_starttls();
    let url = format!("smtp://union:hunter2@localhost:{port}?tls=required");
    let server = Server::start_with_env(&[("UNIONHALL_MAIL", &url)], &[]);
    let key = server.key();
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let refused = "it does not offer STARTTLS, and neither a password nor a mail is sent to it in the clear";
    wait_for!(async || server.log().contains(refused)).await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains(refused)).unwrap();
    assert!(line.contains("\"level\":\"error\"") && line.contains("?tls=none"), "{line}");
    assert_eq!(server.get("/readyz").await.good()["mail"], "failing");

    let mut command = server.command();
    command.env("UNIONHALL_MAIL", &url).env("UNIONHALL_LISTEN", server.address.to_string());
    let found = Diagnosis::of(command);
    let mail = found.of_check("mail")[0];
    assert_eq!(mail["state"], "fail");
    assert!(mail["message"].as_str().unwrap().contains(refused), "{mail}");
    assert!(mail["fix"].as_str().unwrap().starts_with("turn STARTTLS on there"), "{mail}");
    let sent: Vec<_> = lines.try_iter().collect();
    assert!(sent.len() >= 2 && sent.iter().all(|line| line.starts_with("EHLO ")), "{sent:?}");
}

/// A certificate that has signed itself, with its key; the paths of both.
fn certify(folder: &Path, name: &str, host: &str, change: fn(&mut CertificateParams)) -> [String; 2] {
    let mut parameters = CertificateParams::new(vec![host.to_owned()]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, name);
    change(&mut parameters);
    let key = KeyPair::generate().unwrap();
    let paths = ["cert", "key"].map(|kind| folder.join(format!("{name}-{kind}.pem")).to_str().unwrap().to_owned());
    std::fs::write(&paths[0], parameters.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&paths[1], key.serialize_pem()).unwrap();
    paths
}

#[test]
fn what_is_wrong_with_the_certificate_of_a_mail_server_is_told() {
    needs!(MailServer);
    let folder = tempfile::tempdir().unwrap();
    let certify = |name, host, change| certify(folder.path(), name, host, change);
    let [trusted, trusted_key] = certify("trusted", "localhost", |_| {});
    let [strange, strange_key] = certify("strange", "localhost", |_| {});
    let [other, other_key] = certify("other", "mail.example.com", |_| {});
    let [old, old_key] = certify("old", "localhost", |new| new.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let [young, young_key] = certify("young", "localhost", |new| new.not_before = rcgen::date_time_ymd(3000, 1, 1));
    let is_ca = |new: &mut CertificateParams| new.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let [ca, ca_key] = certify("ca", "localhost", is_ca);
    let not_trusted = "the mail server's certificate is not trusted: ";
    for (cert, key, authorities, message, fix) in [
        (&trusted, &trusted_key, &trusted, "accepts the login", ""),
        (&strange, &strange_key, &trusted, "it is signed by no CA that this machine trusts", "in SSL_CERT_FILE"),
        (&other, &other_key, &other, "it is not for localhost", "write a name that it is for in UNIONHALL_MAIL"),
        (&old, &old_key, &old, "it has expired", "renew it on the mail server"),
        (&young, &young_key, &young, "it is not valid yet", "set this machine's clock"),
        (&ca, &ca_key, &ca, "it is the certificate of a CA", "signed by that CA"),
    ] {
        for (tls, scheme, query) in [("implicit", "smtps", ""), ("starttls", "smtp", "?tls=required")] {
            let mail = Mailserver::start(&["--tls", tls, "--cert", cert, "--key", key]);
            let mut command = unionhall(folder.path());
            command.env("UNIONHALL_MAIL", format!("{scheme}://localhost:{}{query}", mail.port));
            let found = Diagnosis::of({
                command.env("SSL_CERT_FILE", authorities).env("UNIONHALL_LISTEN", "127.0.0.1:0");
                command
            });
            let mail = found.of_check("mail")[0];
            let (said, right) = (mail["message"].as_str().unwrap(), mail["fix"].as_str().unwrap_or_default());
            assert!(said.contains(message) && right.contains(fix), "{tls}: {mail}");
            assert_eq!(said.starts_with(not_trusted), mail["state"] == "fail", "{mail}");
        }
    }
}
