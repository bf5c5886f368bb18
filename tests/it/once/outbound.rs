//! The guarded client: what it must not reach is not reached, and whoever answers it cannot hold it or fill it.

use std::collections::VecDeque;
use std::io;

use crate::prelude::*;
use rcgen::{Issuer, date_time_ymd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use unionhall::domain::webhook::url::{BadEndpoint, EndpointUrl};
use unionhall::outbound::{GuardedClient, LookupPlace, OutboundAnswer, OutboundError, OutboundRefusal, Resolver};

/// Gives its answers one after the other, the last for ever, and counts the questions.
#[derive(Debug, Default)]
struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Names {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answer = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self { answers: Mutex::new(answers.iter().map(answer).collect()), ..Self::default() })
    }
}

impl Resolver for Names {
    fn resolve(&self, _host: &str, port: u16, _place: LookupPlace) -> Reply<'_, io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let socket = |address| SocketAddr::new(address, port);
        let sockets = answer.map(|addresses| addresses.into_iter().map(socket).collect());
        Reply::now(sockets.ok_or_else(|| io::Error::other("no such name")))
    }
}

#[derive(Debug)]
struct Silence;

impl Resolver for Silence {
    fn resolve(&self, _host: &str, _port: u16, _place: LookupPlace) -> Reply<'_, io::Result<Vec<SocketAddr>>> {
        Reply::later(std::future::pending())
    }
}

#[derive(Clone)]
enum Manner {
    Says(String),
    Hangs,
    /// Says this, and then nothing.
    HangsAfter(&'static str),
    /// Says the first, and then the second for ever.
    NeverEnds(&'static str, &'static str),
}

struct Endpoint {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    /// A permit for each connection that the other side has ended.
    ended: Arc<Semaphore>,
}

impl Endpoint {
    async fn start(manner: Manner) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), None, manner)
    }

    async fn start_with(tls: TlsAcceptor, manner: Manner) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), Some(tls), manner)
    }

    fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, manner: Manner) -> Self {
        let endpoint = Self {
            address: listener.local_addr().unwrap(),
            accepted: Arc::default(),
            requests: Arc::default(),
            ended: Arc::new(Semaphore::new(0)),
        };
        let (accepted, requests) = (Arc::clone(&endpoint.accepted), Arc::clone(&endpoint.requests));
        let ended = Arc::clone(&endpoint.ended);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                let (tls, manner) = (tls.clone(), manner.clone());
                let (requests, ended) = (Arc::clone(&requests), Arc::clone(&ended));
                tokio::spawn(async move {
                    serve(stream, tls, manner, &requests).await;
                    ended.add_permits(1);
                });
            }
        });
        endpoint
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    fn url(&self, start: &str, path: &str) -> EndpointUrl {
        url(&format!("{start}:{}{path}", self.address.port()))
    }

    async fn is_left(&self) {
        in_time("the end of the connection", self.ended.acquire()).await.unwrap().forget();
    }
}

/// Until the other side has ended the connection.
async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, manner: Manner, requests: &Mutex<Vec<String>>) {
    match tls {
        None => act(stream, manner, requests).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                act(stream, manner, requests).await;
            }
        }
    }
}

async fn act(mut stream: impl AsyncRead + AsyncWrite + Unpin, manner: Manner, requests: &Mutex<Vec<String>>) {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    if !matches!(manner, Manner::Hangs) {
        // All requests of these tests end in the end of their JSON.
        while !request.ends_with(b"}") {
            match stream.read(&mut part).await {
                Ok(length) if length > 0 => request.extend(&part[..length]),
                _ => return,
            }
        }
        requests.lock().unwrap().push(String::from_utf8(request).unwrap());
    }
    match manner {
        Manner::Hangs => {}
        Manner::Says(text) => {
            let _gone = stream.write_all(text.as_bytes()).await;
            let _gone = stream.shutdown().await;
        }
        Manner::HangsAfter(text) => stream.write_all(text.as_bytes()).await.unwrap(),
        Manner::NeverEnds(start, again) => {
            stream.write_all(start.as_bytes()).await.unwrap();
            while stream.write_all(again.as_bytes()).await.is_ok() {}
            return;
        }
    }
    while stream.read(&mut part).await.is_ok_and(|length| length > 0) {}
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    roots: RootCertStore,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(params.self_signed(&key).unwrap().der().clone()).unwrap();
        Self { issuer: Issuer::new(params, key), roots }
    }

    fn certify(&self, name: &str, until: i32) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let chain = vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key.into())
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn url(text: &str) -> EndpointUrl {
    EndpointUrl::parse(text).unwrap()
}

fn says(status: &str) -> Manner {
    Manner::Says(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok"))
}

fn client(allow: &[&str], development: bool, names: &Arc<Names>) -> GuardedClient {
    let names: Arc<dyn Resolver> = Arc::<Names>::clone(names);
    GuardedClient::new(allow.iter().map(|network| network.parse().unwrap()).collect(), development).with_resolver(names)
}

const PARTNER: &str = "Acme Assistant";

const NOW: &str = "2026-11-16T10:00:00Z";

async fn post(client: &GuardedClient, url: &EndpointUrl) -> Result<OutboundAnswer, OutboundError> {
    let headers = [("webhook-id", "msg_1".to_owned())];
    let answer =
        client.post(PARTNER, url, &headers, Bytes::from_static(br#"{"type":"ping"}"#), NOW.parse().unwrap()).await;
    if let Err(error) = &answer {
        let told = format!("{error} {error:?}");
        assert!(!told.contains("token") && !told.contains("ping"), "{told}");
    }
    answer
}

async fn status(client: &GuardedClient, url: &EndpointUrl) -> u16 {
    post(client, url).await.unwrap().status
}

/// Knows one address for all names but those that begin with `silent`: their servers are silent. As with threads of the system,
/// a look-up goes on when its asker has given up.
pub(crate) struct SilentNames {
    others: IpAddr,
    asked: Mutex<Vec<LookupPlace>>,
}

impl SilentNames {
    pub(crate) fn new(others: Ipv4Addr) -> Arc<Self> {
        Arc::new(Self { others: others.into(), asked: Mutex::default() })
    }

    /// Look-ups that go on.
    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(crate) fn end_all(&self) {
        self.asked.lock().unwrap().clear();
    }
}

impl Resolver for SilentNames {
    fn resolve(&self, host: &str, port: u16, place: LookupPlace) -> Reply<'_, io::Result<Vec<SocketAddr>>> {
        if !host.starts_with("silent") {
            return Reply::now(Ok(vec![(self.others, port).into()]));
        }
        self.asked.lock().unwrap().push(place);
        Reply::later(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_names_of_some_callers_leave_look_ups_to_others() {
    let names = SilentNames::new(Ipv4Addr::new(8, 8, 8, 8));
    let resolver: Arc<dyn Resolver> = names.clone();
    let guarded = GuardedClient::new(Vec::new(), false).with_resolver(resolver);
    let guarded = guarded.with_timeout(Duration::from_millis(60));
    let (silent, good) = (url("https://silent.example/"), url("https://partner.example/"));
    let busy = |url: &EndpointUrl| Err(OutboundRefusal::LookupBusy(url.authority().to_owned()));
    let late_and_busy = async |caller| {
        let asked = together((0..40).map(|_| guarded.check(caller, &silent))).await;
        let late = Err(OutboundRefusal::LookupLate("silent.example".to_owned()));
        [late, busy(&silent)].map(|told| asked.iter().filter(|one| **one == told).count())
    };
    for (caller, share) in [("one", 11), ("two", 7), ("three", 5), ("four", 3)] {
        assert_eq!(late_and_busy(caller).await, [share, 40 - share], "{caller}");
        assert_eq!(late_and_busy(caller).await, [0, 40], "{caller} gave up, and its look-ups go on");
        assert_eq!(guarded.check(caller, &good).await, busy(&good), "{caller}");
        assert!(guarded.check("another", &good).await.is_ok());
    }
    assert_eq!(names.asked(), 26);
    names.end_all();
    assert!(guarded.check("one", &good).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_lead_inside_are_not_dialled() {
    let inside = Endpoint::start(says("200 OK")).await;
    let secure = inside.url("https://partner.example", "/hook?token=1");
    let at = format!("partner.example:{}", inside.address.port());
    for answer in [
        "127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "10.0.0.1", "169.254.169.254", "fe80::1", "fd00:ec2::254", "224.0.0.1",
        "ff02::1", "8.8.8.8 127.0.0.1", "127.0.0.1 8.8.8.8", "2606:4700::1111 ::ffff:10.0.0.1",
    ] {
        let answer: Vec<_> = answer.split(' ').collect();
        for development in [false, true] {
            let client = client(&[], development, &Names::new(&[&answer]));
            let refused = OutboundRefusal::NotPublic(at.clone());
            assert_eq!(client.check(PARTNER, &secure).await, Err(refused.clone()), "{answer:?}");
            assert_eq!(post(&client, &secure).await, Err(OutboundError::Refused(refused)), "{answer:?}");
        }
    }
    for literal in ["https://127.0.0.1", "https://[::1]", "https://0.0.0.0", "https://10.0.0.1", "https://[fd00::1]"] {
        let refused = client(&[], false, &Names::new(&[])).check(PARTNER, &inside.url(literal, "/")).await;
        assert!(matches!(refused, Err(OutboundRefusal::NotPublic(_))), "{literal}");
    }
    assert_eq!(inside.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_answers_of_name_servers_are_refused() {
    let secure = url("https://partner.example/hook?token=1");
    let at = "partner.example".to_owned();
    let checked = async |answers: &[&[&str]]| client(&[], false, &Names::new(answers)).check(PARTNER, &secure).await;
    assert_eq!(checked(&[&[]]).await, Err(OutboundRefusal::NoAddress(at.clone())));
    assert_eq!(checked(&[]).await, Err(OutboundRefusal::NotFound(at.clone())));
    assert_eq!(checked(&[&["8.8.8.8"; 17]]).await, Err(OutboundRefusal::TooManyAddresses(at.clone())));
    assert_eq!(checked(&[&["8.8.8.8"; 16]]).await.unwrap().len(), 16);
    assert_eq!(checked(&[&["::ffff:8.8.8.8"]]).await.unwrap(), ["8.8.8.8:443".parse().unwrap()]);
    let slow = GuardedClient::new(Vec::new(), false).with_resolver(Arc::new(Silence));
    let slow = slow.with_timeout(Duration::from_millis(50));
    let late = OutboundRefusal::LookupLate(at);
    assert_eq!(slow.check(PARTNER, &secure).await, Err(late.clone()));
    assert_eq!(post(&slow, &secure).await, Err(OutboundError::Refused(late)));
}

/// DNS rebinding: what a name leads to now was judged now, and nothing else is dialled.
/// The port of the second may be somebody else's at the first.
async fn one_port_at_two_addresses() -> (TcpListener, TcpListener) {
    for _ in 0..100 {
        let outside = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = outside.local_addr().unwrap().port();
        if let Ok(inside) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            return (outside, inside);
        }
    }
    panic!("no port is free at both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let authority = Authority::new("authority");
    // The only address outside that this machine has is one that is allowed.
    let (outside, inside) = one_port_at_two_addresses().await;
    let tls = authority.certify("partner.example", 2100);
    let outside = Endpoint::listen(outside, Some(tls.clone()), says("200 OK"));
    let inside = Endpoint::listen(inside, Some(tls), says("200 OK"));
    let secure = outside.url("https://partner.example", "/");
    let made = |names: &Arc<Names>| client(&["127.0.0.2/32"], false, names).with_roots(authority.roots.clone());

    let names = Names::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let guarded = made(&names);
    assert_eq!(status(&guarded, &secure).await, 200);
    assert_eq!(names.asked.load(Ordering::SeqCst), 1, "asked once");
    let refused = OutboundRefusal::NotPublic(format!("partner.example:{}", inside.address.port()));
    assert_eq!(post(&guarded, &secure).await, Err(OutboundError::Refused(refused.clone())));

    let guarded = made(&Names::new(&[&["127.0.0.2"], &["127.0.0.1"]]));
    assert_eq!(guarded.check(PARTNER, &secure).await.unwrap(), [outside.address]);
    assert_eq!(post(&guarded, &secure).await, Err(OutboundError::Refused(refused)), "an old check is worth nothing");
    assert_eq!((outside.accepted(), inside.accepted()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_what_was_asked_for() {
    let authority = Authority::new("authority");
    let endpoint = Endpoint::start_with(authority.certify("partner.example", 2100), says("204 No Content")).await;
    // The first of them is nobody's.
    let names = Names::new(&[&["127.0.0.3", "127.0.0.1"]]);
    let guarded = client(&["127.0.0.0/8"], false, &names).with_roots(authority.roots.clone());
    let secure = endpoint.url("https://partner.example", "/hook?token=1");
    assert_eq!(post(&guarded, &secure).await, Ok(OutboundAnswer { status: 204, retry_after: None }));
    let requests = endpoint.requests.lock().unwrap().clone();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /hook?token=1 HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: partner.example:{}", endpoint.address.port());
    assert_eq!(
        lines,
        [
            "connection: close", "content-length: 15", "content-type: application/json", &*host,
            "user-agent: unionhall-webhooks/1", "webhook-id: msg_1"
        ]
    );
    assert_eq!(body, r#"{"type":"ping"}"#);
    endpoint.is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_open_a_network_and_opens_no_other() {
    let authority = Authority::new("authority");
    let endpoint = Endpoint::start_with(authority.certify("partner.example", 2100), says("200 OK")).await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let secure = endpoint.url("https://partner.example", "/");
    let made = |allow| client(&[allow], false, &names).with_roots(authority.roots.clone());
    assert!(matches!(post(&made("10.0.0.0/8"), &secure).await, Err(OutboundError::Refused(_))));
    assert_eq!(endpoint.accepted(), 0);
    assert_eq!(status(&made("127.0.0.0/8"), &secure).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_is_for_loopback_in_development_alone() {
    let endpoint = Endpoint::start(says("200 OK")).await;
    let names = Names::new(&[&["127.0.0.1"]]);
    for here in ["http://127.0.0.1", "http://localhost"] {
        let plain = endpoint.url(here, "/");
        for allow in [&[][..], &["127.0.0.0/8"]] {
            let refused = OutboundError::Refused(OutboundRefusal::NotEncrypted);
            assert_eq!(post(&client(allow, false, &names), &plain).await, Err(refused), "{here}");
        }
    }
    assert_eq!(endpoint.accepted(), 0);
    let development = client(&[], true, &names);
    assert_eq!(status(&development, &endpoint.url("http://localhost", "/")).await, 200);
    assert_eq!(status(&development, &endpoint.url("http://127.0.0.1", "/")).await, 200);
    let elsewhere = client(&[], true, &Names::new(&[&["127.0.0.1", "10.0.0.1"]]));
    let refused = elsewhere.check(PARTNER, &endpoint.url("http://localhost", "/")).await;
    assert!(matches!(refused, Err(OutboundRefusal::NotPublic(_))), "not even in development");
    assert_eq!(EndpointUrl::parse("http://partner.example/"), Err(BadEndpoint::NotHttps));
    assert_eq!(EndpointUrl::parse("https://me@partner.example/"), Err(BadEndpoint::UserInfo));
    // With the system's own resolver, as the service has it.
    let local = |base_url| GuardedClient::of_service_at(base_url, Vec::new());
    let found = local("http://127.0.0.1:8080").check(PARTNER, &endpoint.url("http://localhost", "/")).await.unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
    let deployed = local("https://union.example/api");
    let refused = deployed.check(PARTNER, &endpoint.url("https://localhost", "/")).await;
    assert!(matches!(refused, Err(OutboundRefusal::NotPublic(_))), "{refused:?}");
    let nobody = deployed.check(PARTNER, &url("https://nobody.invalid/")).await;
    assert_eq!(nobody, Err(OutboundRefusal::NotFound("nobody.invalid".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_answers_and_not_followed() {
    let inside = Endpoint::start(says("200 OK")).await;
    for code in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let to = format!("http://{}/", inside.address);
        let answer = format!("HTTP/1.1 {code}\r\nLocation: {to}\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
        let endpoint = Endpoint::start(Manner::Says(answer)).await;
        let answer = post(&client(&[], true, &Names::new(&[])), &endpoint.url("http://127.0.0.1", "/")).await.unwrap();
        assert_eq!(answer.status.to_string(), code[..3]);
        assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
    }
    assert_eq!(inside.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_must_be_good_and_for_that_name() {
    let (authority, stranger) = (Authority::new("authority"), Authority::new("stranger"));
    let names = Names::new(&[&["127.0.0.1"]]);
    let guarded = client(&["127.0.0.0/8"], false, &names).with_roots(authority.roots.clone());
    for (tls, told) in [
        (authority.certify("other.example", 2100), "its certificate is for another name"),
        (authority.certify("partner.example", 2001), "its certificate has expired"),
        (stranger.certify("partner.example", 2100), "its certificate is not signed by a known authority"),
    ] {
        let endpoint = Endpoint::start_with(tls, says("200 OK")).await;
        let error = post(&guarded, &endpoint.url("https://partner.example", "/?token=1")).await.unwrap_err();
        assert!(matches!(&error, OutboundError::Tls { why, .. } if why.starts_with(told)), "{error}");
        let at = format!("partner.example:{} ", endpoint.address.port());
        assert!(error.to_string().starts_with(&at), "{error}");
        endpoint.is_left().await;
        assert!(endpoint.requests.lock().unwrap().is_empty(), "nothing was said to it");
    }
    let by_address = Endpoint::start_with(authority.certify("127.0.0.1", 2100), says("200 OK")).await;
    assert_eq!(status(&guarded, &by_address.url("https://127.0.0.1", "/")).await, 200);
    let nobody = GuardedClient::new(vec!["127.0.0.0/8".parse().unwrap()], false).with_roots(RootCertStore::empty());
    let error = post(&nobody, &by_address.url("https://127.0.0.1", "/")).await;
    assert_eq!(error, Err(OutboundError::NoAuthorities));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_answers_are_cut_short() {
    // Nothing here ends because its time is over.
    let guarded = client(&[], true, &Names::new(&[])).with_timeout(Duration::from_secs(3600));
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n{}", "x".repeat(10_000_000));
    for manner in [
        Manner::Says(large),
        Manner::NeverEnds("HTTP/1.1 200 OK\r\n\r\n", "more and more of it, "),
        Manner::NeverEnds("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nxx\r\n"),
        // The head says all that is asked for.
        Manner::HangsAfter("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
    ] {
        let endpoint = Endpoint::start(manner).await;
        let url = endpoint.url("http://127.0.0.1", "/");
        assert_eq!(in_time("an answer to be cut short", Box::pin(status(&guarded, &url))).await, 200);
        endpoint.is_left().await;
    }
    for (manner, told) in [
        (Manner::NeverEnds("HTTP/1.1 200 OK\r\n", "x: y\r\n"), "too much"),
        (Manner::NeverEnds("HTTP/1.1 200 OK\r\nx: ", "yyyyyyyyyyyy"), "too much"),
        (Manner::NeverEnds("", "HTTP/1.1 102 Processing\r\n\r\n"), "too much"),
        (Manner::NeverEnds("SSH-2.0-", "what "), "not HTTP"),
        (Manner::Says("HTTP/1.1 200 OK\r\nhalf".to_owned()), "broke"),
        (Manner::Says(String::new()), "broke"),
    ] {
        let endpoint = Endpoint::start(manner).await;
        let url = endpoint.url("http://127.0.0.1", "/?token=1");
        let error = in_time("an answer to be cut short", Box::pin(post(&guarded, &url))).await.unwrap_err();
        assert!(matches!(&error, OutboundError::NoAnswer { why, .. } if why.contains(told)), "{told}: {error}");
        endpoint.is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_hangs_is_left_when_the_time_is_over() {
    let authority = Authority::new("authority");
    let names = Names::new(&[&["127.0.0.1"]]);
    let guarded =
        |timeout| client(&["127.0.0.0/8"], true, &names).with_roots(authority.roots.clone()).with_timeout(timeout);
    let silent_before_tls = Endpoint::start(Manner::Hangs).await;
    let silent_after_tls = Endpoint::start_with(authority.certify("partner.example", 2100), Manner::Hangs).await;
    let silent = Endpoint::start(Manner::Hangs).await;
    let half = Endpoint::start(Manner::HangsAfter("HTTP/1.1 200 OK\r\nx: ")).await;
    for (endpoint, start, expected) in [
        (&silent_before_tls, "https://partner.example", "to agree on TLS"),
        (&silent_after_tls, "https://partner.example", "to answer"),
        (&silent, "http://127.0.0.1", "to answer"),
        (&half, "http://127.0.0.1", "to answer"),
    ] {
        // On a busy machine the time may be over before it gets that far; then with twice the time.
        let mut timeout = Duration::from_millis(300);
        wait_for!(async || {
            let error = post(&guarded(timeout), &endpoint.url(start, "/?token=1")).await.unwrap_err();
            let OutboundError::Late { stage, .. } = &error else { panic!("{error}") };
            endpoint.is_left().await;
            timeout *= 2;
            *stage == expected
        })
        .await;
    }
    let guarded = guarded(Duration::from_secs(3600));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = post(&guarded, &url(&format!("http://{nobody}/?token=1"))).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{nobody} could not be connected to: nobody listens there"));
    // Whoever stops waiting leaves nothing behind.
    let (before, url) = (silent.accepted(), silent.url("http://127.0.0.1", "/"));
    tokio::select! {
        answer = post(&guarded, &url) => panic!("{answer:?}"),
        () = wait_for!(async || silent.accepted() > before) => {}
    }
    silent.is_left().await;
}

#[test]
fn the_time_and_the_bytes_allowed_are_what_partners_are_told() {
    assert_eq!(unionhall::outbound::OUTBOUND_TIMEOUT, Duration::from_secs(15));
    assert_eq!(unionhall::outbound::LONGEST_ANSWER, 65_536);
}
