//! What is fuzzed through something that runs: MCP's messages through its server, a mail server's answers through a
//! connection. Each is set up once for a process.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use unionhall::app::{App, Parts};
use unionhall::cli::remedy;
use unionhall::clock::Clock;
use unionhall::config::UnionSettings;
use unionhall::domain::mail::lane::Lane;
use unionhall::domain::mail::{DueMail, MailAbout, MailId, MailKind};
use unionhall::domain::referral::ReferralCode;
use unionhall::domain::secret::Secret;
use unionhall::domain::sign_up::{SignUpId, SignUpRef};
use unionhall::domain::time::Timestamp;
use unionhall::domain::union::Union;
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::log::{Format, Level, Log};
use unionhall::mail::smtp::Smtp;
use unionhall::mail::{Delivery, OutgoingMail, ReadableMail, SendError, Transport};
use unionhall::mcp::{McpServer, RpcContext, RpcHeaders};
use unionhall::operations::CONTRACT_TOOLS;
use unionhall::operations::dispatch::{CallTrace, Dispatcher};
use unionhall::store::Store;
use unionhall::store::sqlite::SqliteStore;

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let build = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    RUNTIME.get_or_init(build)
}

fn mcp_server() -> &'static (McpServer, Clock) {
    static SERVER: OnceLock<(McpServer, Clock)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let _inside = runtime().enter();
        let clock = Clock::start();
        // Nobody has a key, so nobody writes; and the names of its files are needed no longer than this.
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("unionhall.db")).unwrap();
        let union = Union { public_per_minute: 1_000_000, key_per_minute: 1_000_000, ..UnionSettings::sample() };
        let app = App::new(Parts {
            union: Arc::new(union),
            secret: Secret::new("the secret of a fuzzed installation").unwrap(),
            store: Store::new(Arc::new(store)),
            limiter: Arc::new(MemoryLimiter::new(1_000_000)),
            log: Log::start(Level::Errors, Format::Json, clock, remedy::write, std::io::sink()).unwrap(),
            mail: Delivery::Held,
            webhooks: Arc::default(),
            outbound: unionhall::outbound::GuardedClient::new(Vec::new(), false),
            budget: unionhall::domain::mail::budget::MailBudget::NONE,
            disposable: unionhall::domain::email::disposable::DisposableDomains::default(),
            erasures: unionhall::people::erasures::ErasureLog::beside(folder.path()),
            retention: unionhall::domain::person::RetentionTimes::DEFAULT,
        });
        (McpServer::new(Dispatcher::new(app), CONTRACT_TOOLS), clock)
    })
}

/// Any message gets one answer of the protocol or, where it asks for none, none. What follows a NUL is taken for headers.
pub fn mcp(data: &[u8]) {
    let (server, clock) = mcp_server();
    let mut parts = data.split(|byte| *byte == 0);
    let message = parts.next().unwrap_or_default();
    let mut header = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
    let headers = RpcHeaders { version: header(), method: header(), name: header(), misplaced_key: None };
    let context = RpcContext {
        authorization: None,
        address: another_address(),
        now: clock.now(),
        headers: data.contains(&0).then_some(headers),
        request_id: None,
        client: None,
    };
    let mut trace = CallTrace::default();
    let response = runtime().block_on(server.answer(message, context, &mut trace));
    assert_eq!(trace.key, None, "nobody has a key");
    assert!([200, 202, 400, 404, 429].contains(&response.status), "{}", response.status);
    // In what it does not look at, the server does not notice what is no text; nothing is claimed about such a message.
    let sent: Option<Value> = serde_json::from_slice(message).ok();
    let Some(body) = response.body else {
        assert_eq!(response.status, 202);
        let asks_nothing = |sent: &Value| {
            sent.is_object() && (sent.get("id").is_none() || sent.get("method").is_none_or(Value::is_null))
        };
        assert!(sent.as_ref().is_none_or(asks_nothing), "{sent:?}");
        return;
    };
    assert_ne!(response.status, 202);
    let body: Value = serde_json::from_slice(&body).expect("an answer is JSON");
    assert_eq!(body["jsonrpc"], "2.0");
    assert!(body.get("result").is_some() != body.get("error").is_some(), "one of the two: {body}");
    if let Some(is_json) = super::targets::is_json(message) {
        assert_eq!(body["error"]["code"] == -32700, !is_json, "what is no JSON is told so: {body}");
    }
    let is_id = |id: &Value| id.is_string() || id.is_number();
    assert!(body.get("id").is_none_or(|id| id.is_null() || is_id(id)), "{body}");
    if let (Some(sent), Some(_)) = (sent, body.get("result")) {
        assert_eq!(body.get("id"), sent.get("id"), "the answer is to this message");
    }
}

/// Every message counts against its address's budget, which is not what is tried here.
fn another_address() -> IpAddr {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0x0b00_0000);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_be_bytes().into()
}

/// A mail server that answers `RCPT TO` with whatever it is given, once to a connection.
fn mail_server() -> &'static (SocketAddr, Mutex<Vec<u8>>) {
    static SERVER: OnceLock<(SocketAddr, Mutex<Vec<u8>>)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let listener = runtime().block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // One that is hung up on in the middle has nothing more to be told.
                tokio::spawn(async move { drop(converse(stream).await) });
            }
        });
        (address, Mutex::default())
    })
}

async fn converse(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 mail.example.com\r\n").await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if line.starts_with("RCPT") {
            let reply = mail_server().1.lock().unwrap().clone();
            stream.write_all(&reply).await?;
            return stream.shutdown().await;
        }
        stream.write_all(b"250 mail.example.com\r\n").await?;
        line.clear();
    }
    Ok(())
}

/// Whether it holds the server's words, which may hold an address.
fn repeats(told: &str) -> bool {
    told.contains('@') || told.contains("zoe") || told.contains(char::is_control) || told.len() >= 200
}

/// Whatever a mail server answers, what is told of it holds none of its words; only a 5.1.x is final.
pub fn smtp_reply(data: &[u8]) {
    const TOLD: [&str; 2] = ["the mail server answered ", "the mail server could not be used: "];
    let (address, reply) = mail_server();
    reply.lock().unwrap().clear();
    reply.lock().unwrap().extend_from_slice(data);
    let sent = runtime().block_on(async {
        let transport = Smtp::new(&format!("smtp://{address}?tls=none")).unwrap();
        let message = lettre::Message::builder()
            .from("union@example.com".parse().unwrap())
            .to("zoe@example.net".parse().unwrap())
            .body("text".to_owned())
            .unwrap();
        let empty = String::new;
        let readable =
            ReadableMail { to: empty(), from: empty(), subject: empty(), date: empty(), text: empty(), html: empty() };
        let due = DueMail {
            id: MailId(1),
            about: MailAbout::SignUp(SignUpRef { id: SignUpId(1), created_at: Timestamp::from_millis(0) }),
            kind: MailKind::Confirm,
            recipient: "zoe@example.net".to_owned(),
            partner_id: None,
            partner: None,
            asked_at: Timestamp::from_millis(0),
            code: ReferralCode::from_canonical("0123456789ab").unwrap(),
            attempts: 1,
            first_attempt_at: Timestamp::from_millis(0),
            lane: Lane::of(b"x"),
            language: None,
            is_reminder: false,
        };
        let mail = OutgoingMail { name: empty(), message, readable, inbox: None, due: Some(due) };
        tokio::time::timeout(Duration::from_secs(10), transport.send(mail)).await.expect("it never waits for more")
    });
    match sent {
        Ok(()) => panic!("it hung up before it had the mail"),
        Err(SendError::Rejected) => {
            assert!(data.windows(4).any(|part| part == b"5.1."), "{:?}", String::from_utf8_lossy(data));
        }
        Err(SendError::NotBefore(at)) => panic!("a mail server says no time: {at}"),
        Err(SendError::Later(told) | SendError::Unknown(told)) => {
            assert!(TOLD.iter().any(|words| told.starts_with(words)), "{told}");
            assert!(!repeats(&told), "{told:?}");
        }
    }
}
