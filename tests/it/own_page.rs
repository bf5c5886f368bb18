//! A member's own page, as members use it and as others would like to: signing in, the session, leaving, being erased.

use crate::prelude::*;
use unionhall::domain::sign_in::{SignInId, SignInRef, TRIES, WRONG_CODES_A_DAY};

/// A browser with its cookies, at an address of its own.
pub(crate) struct Browser<'a> {
    server: &'a Server,
    from: Ipv4Addr,
    pub(crate) cookies: BTreeMap<String, String>,
}

/// Names and values.
pub(crate) type Fields = Vec<(String, String)>;

const ORIGIN: &str = "http://unionhall.test";

/// Where a code leads that is not taken.
const WRONG: &str = "/me/sign-in?refused=code";

impl<'a> Browser<'a> {
    pub(crate) fn new(server: &'a Server, n: u8) -> Self {
        Self { server, from: Ipv4Addr::new(127, 0, 7, n), cookies: BTreeMap::new() }
    }

    /// The same, in which somebody is signed in.
    pub(crate) async fn member(server: &'a Server, n: u8, email: &str) -> Self {
        let mut browser = Self::new(server, n);
        browser.sign_in(email).await;
        browser
    }

    fn request(&self, builder: hyper::http::request::Builder) -> hyper::http::request::Builder {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if cookies.is_empty() { builder } else { builder.header("cookie", cookies.join("; ")) }
    }

    pub(crate) async fn send(&mut self, builder: hyper::http::request::Builder, body: String) -> Answer {
        let answer = self.server.send_from(self.from, self.request(builder), body).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let (pair, attributes) = cookie.to_str().unwrap().split_once("; ").unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Request::get(path), String::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(Request::post(path).header("sec-fetch-site", "same-origin"), form(fields)).await
    }

    /// Goes where the answer to a form leads.
    pub(crate) async fn follow(&mut self, answer: Answer) -> Answer {
        assert_eq!(answer.status, 303, "{answer:?}");
        self.get(answer.header("location")).await
    }

    /// The same, and goes where the answer leads.
    pub(crate) async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let answer = self.post(path, fields).await;
        self.follow(answer).await
    }

    /// The same, and goes where the answer leads.
    pub(crate) async fn acted(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let answer = self.act(path, fields).await;
        self.follow(answer).await
    }

    /// Sends a form of the own page, with the token that the page has.
    pub(crate) async fn act(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.token().await;
        // What stands beside the button names the offer that they were shown.
        let offer = match fields.contains(&("press", "accept")) {
            true => {
                let html = self.get(path).await.text();
                html.contains("name=\"offer\"").then(|| hidden(&html, "offer"))
            }
            false => None,
        };
        let offer = offer.as_ref().map(|offer| ("offer", offer.as_str()));
        self.post(path, &[&[("token", token.as_str())], fields, offer.as_slice()].concat()).await
    }

    /// The fields of the form with their answers, as the page shows it: those with a text, and the boxes that are ticked.
    pub(crate) async fn shown_answers(&mut self) -> (Fields, Fields) {
        let html = page(&self.get("/me").await, 200, "Save my answers");
        let form = html.split("action=\"/me/answers\"").nth(1).unwrap().split("</form>").next().unwrap();
        let value_of = |tag: &str, name: &str| {
            let value = tag.split(&format!(" {name}=\"")).nth(1)?;
            Some(value.split('"').next().unwrap().to_owned())
        };
        let (mut texts, mut boxes) = (Fields::new(), Fields::new());
        for element in form.split('<') {
            let (tag, text) = element.split_once('>').unwrap_or_default();
            let (name, value) = (value_of(tag, "name"), value_of(tag, "value").unwrap_or_default());
            match (tag.split(' ').next().unwrap(), name) {
                ("option", None) if tag.ends_with(" selected") => texts.last_mut().unwrap().1 = value,
                ("select", Some(name)) => texts.push((name, String::new())),
                ("textarea", Some(name)) => texts.push((name, text.trim_start_matches('\n').to_owned())),
                ("input", Some(name)) if !tag.contains("type=\"checkbox\"") => texts.push((name, value)),
                ("input", Some(name)) if tag.contains(" checked") => boxes.push((name, value)),
                _ => {}
            }
        }
        (texts, boxes)
    }

    /// The form with their answers as they send it: what is not given is empty.
    pub(crate) async fn filled_in(&mut self, given: &[(&str, &str)]) -> Fields {
        let (mut fields, _) = self.shown_answers().await;
        fields.iter_mut().filter(|(name, _)| name != "token").for_each(|(_, value)| value.clear());
        fields.retain(|(name, _)| given.iter().all(|(other, _)| other != name));
        fields.extend(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        fields
    }

    pub(crate) async fn change_answers(&mut self, given: &[(&str, &str)]) -> Answer {
        let fields = self.filled_in(given).await;
        self.post_all("/me/answers", &fields).await
    }

    pub(crate) async fn post_all(&mut self, path: &str, fields: &Fields) -> Answer {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post(path, &fields).await
    }

    pub(crate) async fn token(&mut self) -> String {
        let html = page(&self.get("/me").await, 200, "Sign out everywhere");
        hidden(&html, "token")
    }

    /// Asks to sign in; the request that came of it.
    async fn ask(&mut self, email: &str) -> SignInRef {
        page(&self.submit("/me/sign-in", &[("email", email)]).await, 200, "Check your inbox");
        newest_request(self.server)
    }

    pub(crate) async fn sign_in(&mut self, email: &str) {
        let id = self.ask(email).await;
        leads(&self.post(&enter(self.server, id), &[]).await, "/me");
        // So that the next one of a test may be mailed at once.
        self.server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    }

    pub(crate) async fn is_signed_in(&mut self) -> bool {
        let html = self.get("/me").await.text();
        assert_ne!(html.contains("Sign out everywhere"), html.contains("Send me the email"));
        html.contains("Sign out everywhere")
    }
}

fn tokens(server: &Server) -> TokenMaker {
    TokenMaker::new(&server.records().secret())
}

/// The newest request to sign in.
pub(crate) fn newest_request(server: &Server) -> SignInRef {
    let id = server.number("SELECT max(id) FROM sign_ins");
    let created_at = server.number(&format!("SELECT created_at FROM sign_ins WHERE id = {id}"));
    SignInRef { id: SignInId(id), created_at: Timestamp::from_millis(created_at) }
}

pub(crate) fn enter(server: &Server, id: SignInRef) -> String {
    format!("/me/enter/{}", tokens(server).sign_in_token(id))
}

fn code(server: &Server, id: SignInRef) -> String {
    tokens(server).sign_in_code(id).to_string()
}

/// A server whose mail waits, and its partner's key.
pub(crate) fn start() -> (Server, String) {
    Server::with_key(&["--mail", "hold", "--log", "errors"])
}

pub(crate) async fn invite(server: &Server, key: &str, email: &str, ref_code: Option<&str>) -> String {
    let mut body = json!({ "email": email });
    if let Some(code) = ref_code {
        body["refCode"] = code.into();
    }
    let done = server.post("/v1/invite", key, body.to_string()).await.good();
    done["inviteLink"].as_str().unwrap().rsplit_once("joinus").unwrap().1.to_owned()
}

pub(crate) async fn join(server: &Server, key: &str, email: &str, ref_code: Option<&str>) -> String {
    let code = invite(server, key, email, ref_code).await;
    page(&server.confirm(server.number("SELECT max(id) FROM sign_ups")).await, 200, &code);
    code
}

async fn members(server: &Server) -> u64 {
    server.get("/v1/stats").await.good()["memberCount"].as_u64().unwrap()
}

fn show(server: &Server, email: &str) -> Value {
    serde_json::from_str(&server.run(&["members", "show", email, "--json"])).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_in_any_browser_and_looking_does_not() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let (mut asking, mut other) = (Browser::new(&server, 1), Browser::new(&server, 2));
    let id = asking.ask("ANA@example.com").await;
    let link = enter(&server, id);
    for _ in 0..3 {
        page(&other.get(&link).await, 200, "a•••@e•••.com");
        let head = other.send(Request::head(&link), String::new()).await;
        assert!(head.status == 200 && head.headers.get("set-cookie").is_none());
    }
    assert!(other.cookies.is_empty() && !other.is_signed_in().await);
    // A page elsewhere makes its reader press the button: they would be signed in as somebody else (login CSRF).
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
        let forged = other.send(Request::post(&link).header(name, value), String::new()).await;
        page(&forged, 403, "out of date");
    }
    assert_eq!(other.post(&link, &[]).await.status, 303);
    assert!(other.is_signed_in().await);
    for again in [other.get(&link).await, other.submit(&link, &[]).await] {
        assert_eq!((again.status.as_u16(), again.header("location")), (303, "/me"), "whoever is in is led there");
    }
    page(&asking.submit(&link, &[]).await, 410, "This link no longer works");
    page(&asking.get(&link).await, 410, "This link no longer works");
    page(&asking.get(&format!("{link}0")).await, 404, "This link no longer works");
    let after = asking.submit("/me/code", &[("code", &code(&server, id))]).await;
    page(&after, 200, "code is wrong");
    assert!(!asking.is_signed_in().await);
    // Neither a link of a sign-up nor one that has ended opens anything.
    let token = server.confirm_path(1).replace("/confirm/", "");
    page(&asking.post(&format!("/me/enter/{token}"), &[]).await, 404, "This link no longer works");
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    let late = asking.ask("ana@example.com").await;
    server.execute("UPDATE sign_ins SET expires_at = created_at");
    page(&asking.submit(&enter(&server, late), &[]).await, 410, "This link no longer works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_signs_in_the_browser_that_asked_and_no_other() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    join(&server, &key, "ben@example.com", None).await;
    let (mut ana, mut eve) = (Browser::new(&server, 1), Browser::new(&server, 2));
    let id = ana.ask("ana@example.com").await;
    let right = code(&server, id);
    let typed = [("email", "ana@example.com"), ("code", right.as_str())];
    page(&eve.submit("/me/code", &typed).await, 200, "code is wrong");
    // With a nonce of her own, for another address, she is no nearer; nor for this one.
    eve.ask("ben@example.com").await;
    page(&eve.submit("/me/code", &typed).await, 200, "code is wrong");
    let cookie = eve.cookies["union-asked"].clone();
    let (nonce, asked) = (cookie.split('.').next().unwrap(), ana.cookies["union-asked"].split('.').nth(1).unwrap());
    eve.cookies.insert("union-asked".to_owned(), format!("{nonce}.{asked}"));
    page(&eve.submit("/me/code", &typed).await, 200, "code is wrong");
    eve.cookies.insert("union-asked".to_owned(), cookie);
    // What is no code costs no try.
    for _ in 0..2 * TRIES {
        page(&ana.submit("/me/code", &[("code", "1234")]).await, 200, "eight letters and digits");
    }
    for _ in 1..TRIES {
        page(&ana.submit("/me/code", &[("code", "0000-0000")]).await, 200, "code is wrong");
    }
    let spaced = right.to_lowercase().replace('-', " ");
    leads(&ana.post("/me/code", &[("code", &spaced)]).await, "/me");
    assert!(ana.is_signed_in().await && !eve.is_signed_in().await);
    assert_eq!(ana.cookies.keys().collect::<Vec<_>>(), ["union"], "the nonce is spent");
    page(&eve.submit("/me/code", &typed).await, 200, "code is wrong");
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_cannot_be_guessed_and_links_still_work() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let is_right = async |browser: &mut Browser<'_>, code: &str| {
        let answer = browser.post("/me/code", &[("code", code)]).await;
        assert!(["/me", WRONG].contains(&answer.header("location")), "{answer:?}");
        answer.header("location") == "/me"
    };
    let mut guesser = Browser::new(&server, 1);
    let mut wrong = 0;
    while wrong < WRONG_CODES_A_DAY {
        let id = guesser.ask("ana@example.com").await;
        for _ in 0..TRIES {
            assert!(!is_right(&mut guesser, "0000-0000").await);
            wrong += 1;
        }
        assert!(!is_right(&mut guesser, &code(&server, id)).await, "after five tries not even the right one");
        server.execute("UPDATE sign_ins SET created_at = created_at - 3600001, expires_at = created_at");
    }
    assert_eq!(show(&server, "ana@example.com")["email"], "ana@example.com");
    let mut ana = Browser::new(&server, 2);
    let id = ana.ask("ana@example.com").await;
    assert!(!is_right(&mut ana, &code(&server, id)).await, "the day has had its wrong codes");
    leads(&ana.post(&enter(&server, id), &[]).await, "/me");
    // Tomorrow codes work again.
    server.execute("UPDATE people SET wrong_codes_day = wrong_codes_day - 1");
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    let mut again = Browser::new(&server, 3);
    let id = again.ask("ana@example.com").await;
    assert!(is_right(&mut again, &code(&server, id)).await);
}

/// Two requests in one browser within a minute: the code of the first mail, the only one that goes, still works.
#[tokio::test(flavor = "multi_thread")]
async fn asking_twice_does_not_spoil_the_code_that_was_mailed() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let first = ana.ask("ana@example.com").await;
    let second = ana.ask("ana@example.com").await;
    assert_ne!(first, second);
    // One that was never mailed is nobody's.
    leads(&ana.post("/me/code", &[("code", &code(&server, second))]).await, WRONG);
    leads(&ana.post("/me/code", &[("code", &code(&server, first))]).await, "/me");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_when_they_are_to() {
    let (server, key) = start();
    for address in ["ana@example.com", "ben@example.com"] {
        join(&server, &key, address, None).await;
    }
    let (mut here, mut there, mut ben) = (Browser::new(&server, 1), Browser::new(&server, 2), Browser::new(&server, 3));
    here.sign_in("ana@example.com").await;
    there.sign_in("ana@example.com").await;
    ben.sign_in("ben@example.com").await;
    let (kept, before) = (there.cookies.clone(), here.cookies.clone());
    page(&here.acted("/me/sign-out", &[]).await, 200, "signed out in this browser");
    assert!(here.cookies.is_empty() && there.is_signed_in().await, "only this browser");
    here.cookies = before.clone();
    assert!(!here.is_signed_in().await, "nor whoever copied its cookie");
    page(&there.acted("/me/sign-out", &[("everywhere", "true")]).await, 200, "signed out everywhere");
    for old in [kept, before] {
        there.cookies = old;
        assert!(!there.is_signed_in().await, "a cookie from before");
    }
    assert!(ben.is_signed_in().await, "nobody else is");
    there.sign_in("ana@example.com").await;
    assert!(there.is_signed_in().await);

    let cookie = ben.cookies["union"].clone();
    let (nonce, rest) = cookie.split_once('.').unwrap();
    let (ends, proof) = rest.split_once('.').unwrap();
    let later = ends.parse::<i64>().unwrap() + 1;
    for forged in [
        format!("{nonce}.{later}.{proof}"),
        format!("{}.{ends}.{proof}", there.cookies["union"].split('.').next().unwrap()),
        format!("{nonce}.{ends}."),
        "x".repeat(5000),
        String::new(),
    ] {
        ben.cookies.insert("union".to_owned(), forged);
        assert!(!ben.is_signed_in().await);
    }
    ben.cookies.insert("union".to_owned(), cookie.clone());
    let token = ben.token().await;
    let erased = ben.post("/me/erase", &[("token", &token)]).await;
    leads(&erased, "/me/erased");
    page(&ben.get("/me/erased").await, 200, "Your data is erased");
    assert!(ben.cookies.is_empty());
    page(&ben.submit("/me/erase", &[("token", &token)]).await, 200, "the first one counted");
    ben.cookies = BTreeMap::from([("union".to_owned(), format!("{nonce}.{ends}.{proof}"))]);
    assert!(!ben.is_signed_in().await, "a cookie of somebody who is erased");
    assert_eq!(ben.get("/me/export").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_https_the_cookies_are_secure_and_of_this_host_alone() {
    let (server, key) = Server::with_key(&["--mail", "hold", "--base-url", "https://union.example"]);
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let asked = ana.post("/me/sign-in", &[("email", "ana@example.com")]).await;
    let cookie = asked.header("set-cookie");
    let attributes = "Path=/; Max-Age=600; HttpOnly; SameSite=Strict; Secure";
    assert!(cookie.starts_with("__Host-union-asked=") && cookie.ends_with(attributes), "{cookie}");
    assert_eq!(asked.header("cache-control"), "no-store");
    let entered = ana.post(&enter(&server, newest_request(&server)), &[]).await;
    let cookie = entered.headers.get("set-cookie").unwrap().to_str().unwrap();
    let attributes = "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure";
    assert!(cookie.starts_with("__Host-union=") && cookie.ends_with(attributes), "{cookie}");
    assert!(!cookie.contains("Domain"));
    let own = ana.get("/me").await;
    page(&own, 200, "ana@example.com");
    assert_eq!(own.header("referrer-policy"), "strict-origin");
    assert!(own.header("content-security-policy").contains("frame-ancestors 'none'"));
    let away = ana.get("/me?done=left").await;
    assert!(!String::from_utf8_lossy(&away.body).contains("You have left the union."), "what is not so is not said");
    let plain = ana.send(Request::post("/me/leave").header("origin", "http://unionhall.test"), String::new()).await;
    page(&plain, 403, "out of date");
    // Under its bare name, which any other host of the domain could set, it opens nothing.
    let value = ana.cookies.remove("__Host-union").unwrap();
    ana.cookies.insert("union".to_owned(), value);
    assert!(!ana.is_signed_in().await);
    // What stands in the address leads nowhere.
    for (name, value) in [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site")] {
        let led = ana.send(Request::get("/me/export").header(name, value), String::new()).await;
        page(&led, 403, "Send me the email");
    }
    for path in ["/me?next=https://evil.example", "/me?done=https://evil.example", "/me?done=%22%3E%3Cscript%3E"] {
        let answer = ana.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (200, ""));
        assert!(!String::from_utf8_lossy(&answer.body).contains("evil"));
    }
    // The press that joins signs in the same way, over HTTPS alone.
    for (n, origin, signs_in) in [(1, "https://union.example", true), (2, "http://unionhall.test", false)] {
        invite(&server, &key, &format!("ana{n}@example.com"), None).await;
        let newest = server.number("SELECT max(id) FROM sign_ups");
        let press = Request::post(server.confirm_path(newest)).header("origin", origin);
        let pressed = server.send(press, form(&[])).await;
        page(&server.get(pressed.header("location")).await, 200, "Welcome to the union");
        let cookie = pressed.header("set-cookie");
        assert_eq!(!cookie.is_empty(), signs_in, "{origin}: {cookie}");
        if signs_in {
            assert!(cookie.starts_with("__Host-union=") && cookie.ends_with(attributes), "{cookie}");
        }
    }
}

/// Every form needs a session, that session's token, and to come from a page of ours.
#[tokio::test(flavor = "multi_thread")]
async fn forms_of_the_own_page_cannot_be_forged() {
    let (server, key) = start();
    for address in ["ana@example.com", "eve@example.com"] {
        join(&server, &key, address, None).await;
    }
    let (mut ana, mut eve) = (Browser::new(&server, 1), Browser::new(&server, 2));
    ana.sign_in("ana@example.com").await;
    eve.sign_in("eve@example.com").await;
    let (token, others) = (ana.token().await, eve.token().await);
    let before = show(&server, "ana@example.com");
    for path in ["/me/answers", "/me/mail", "/me/mail-again", "/me/sign-out", "/me/leave", "/me/erase"] {
        let body = |token: &str| form(&[("token", token), ("everywhere", "true"), ("travel", "true")]);
        let own = || Request::post(path).header("origin", ORIGIN);
        for (request, body) in [
            (Request::post(path), body(&token)),
            (Request::post(path).header("origin", "https://evil.example"), body(&token)),
            (Request::post(path).header("origin", "null"), body(&token)),
            (own().header("sec-fetch-site", "cross-site"), body(&token)),
            (own().header("sec-fetch-site", "same-site"), body(&token)),
            (own(), body(&others)),
            (own(), body("")),
            (own(), String::new()),
        ] {
            page(&ana.send(request, body).await, 403, "nothing was changed");
        }
        let mut nobody = Browser::new(&server, 3);
        let signed_out = nobody.send(own(), body(&token)).await;
        page(&nobody.follow(signed_out).await, 200, "accept what you just sent");
        // A GET changes nothing, whatever stands behind it.
        assert_eq!(ana.get(&format!("{path}?token={token}")).await.status, 200);
    }
    assert_eq!(show(&server, "ana@example.com"), before);
    assert!(ana.is_signed_in().await);
}

/// Whose address it is cannot be told from what is answered: by no byte of it, whether asked for a mail or for a code.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_does_not_tell_whose_address_it_is() {
    let (server, key) = start();
    let states = ["unknown", "invited", "pending", "members", "lefties", "erasedx", "silence", "bounced"];
    let address = |state: &str| format!("{state:.7}@example.com");
    server.post("/v1/referral-link", &key, sign_up(&address("invited"))).await.good();
    invite(&server, &key, &address("pending"), None).await;
    for state in &states[3..] {
        join(&server, &key, &address(state), None).await;
    }
    server.run(&["members", "leave", &address("lefties")]);
    server.run(&["members", "erase", &address("erasedx")]);
    server.execute("INSERT INTO mailboxes (mailbox, suppressed_until) VALUES ('silence@example.com', 9000000000000)");
    server.execute("UPDATE people SET undeliverable_until = 9000000000000 WHERE email = 'bounced@example.com'");
    let seen = |answer: Answer, address: &str| {
        let body = answer.text().replace(address, "ADDRESS");
        let mut headers: Vec<_> = answer.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        headers.retain(|(name, _)| !["x-request-id", "date", "set-cookie"].contains(&name.as_str()));
        let cookies = answer.headers.get_all("set-cookie").iter().map(|cookie| {
            let text = cookie.to_str().unwrap();
            text.split_once('=').map(|(name, rest)| (name.to_owned(), rest.len())).unwrap()
        });
        (answer.status, headers, cookies.collect::<Vec<_>>(), body)
    };
    let mut expected = None;
    for (n, state) in (1..).zip(states) {
        let (address, mut browser) = (address(state), Browser::new(&server, n));
        let asked = seen(browser.post("/me/sign-in", &[("email", &address)]).await, &address);
        let mut shown =
            vec![seen(browser.get("/me/sign-in").await, &address), seen(browser.get("/me").await, &address)];
        for _ in 0..=TRIES {
            shown.push(seen(browser.post("/me/code", &[("code", "0000-0000")]).await, &address));
            shown.push(seen(browser.get(WRONG).await, &address));
        }
        let all = (asked, shown);
        match &expected {
            None => expected = Some(all),
            Some(expected) => assert_eq!(&all, expected, "{state}"),
        }
    }
    let mailed = server.rows("SELECT kind, recipient FROM outbox ORDER BY recipient, kind");
    assert_eq!(
        mailed.iter().map(|row| row.join(" ")).collect::<Vec<_>>(),
        ["sign_in lefties@example.com", "sign_in members@example.com", "confirm pending@example.com"]
            .map(str::to_owned),
        "a member or who left is mailed a way in, and who has not confirmed that mail; nobody else anything"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_mail_has_caps_of_its_own() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    join(&server, &key, "ana+bills@example.com", None).await;
    server.execute("DELETE FROM mailboxes");
    let mailed = || server.number("SELECT count(*) FROM sign_ins WHERE mailed");
    let mut n = 0;
    let mut ask = async |address: &str| {
        n += 1;
        Browser::new(&server, n).ask(address).await;
    };
    let later = |seconds: u32| server.execute(&format!("UPDATE sign_ins SET created_at = created_at - {seconds}000"));
    ask("ana@example.com").await;
    ask("ana@example.com").await;
    ask("ana+bills@example.com").await;
    assert_eq!(mailed(), 1, "one a minute, over all addresses of the mailbox");
    for expected in [2, 3, 4, 5, 5] {
        later(61);
        ask("ana@example.com").await;
        assert_eq!(mailed(), expected, "five an hour");
    }
    later(3600);
    for _ in 0..8 {
        later(601);
        ask("ana+bills@example.com").await;
    }
    assert_eq!(mailed(), 10, "ten a day");
    later(24 * 3600);
    ask("ana@example.com").await;
    assert_eq!(mailed(), 11);
    assert_eq!(
        server.number("SELECT count(*) FROM outbox WHERE kind = 'sign_in'"),
        mailed(),
        "none waits that was not made"
    );
    assert_eq!(server.number("SELECT count(*) FROM mailboxes"), 0, "and they spend nothing of other mail's");
}

/// The mail itself: to the address that they joined with, its link and code lead in, and it is sent once.
#[tokio::test(flavor = "multi_thread")]
async fn the_mail_leads_in_and_goes_once() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("Ana@Example.com")).await.good();
    crate::pages::letter(&server, 1).await;
    server.confirm(1).await;
    let mut ana = Browser::new(&server, 1);
    ana.post("/me/sign-in", &[("email", "aNA@example.com")]).await;
    let mail = crate::pages::letter(&server, 2).await;
    assert!(mail.contains("To: Ana@Example.com") && !mail.contains("List-Unsubscribe"), "{mail}");
    let link = crate::mail::link(&mail, "/me/enter/");
    assert_eq!(link, enter(&server, newest_request(&server)));
    assert!(mail.contains(&code(&server, newest_request(&server))));
    assert_eq!(ana.post(&link, &[]).await.status, 303);
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    let evidence = show(&server, "ana@example.com")["signUps"][0].clone();
    assert!(evidence["mailedAt"].is_string() && evidence["decidedHow"] == "button", "{evidence}");
    // Whoever wants no mail about sign-ups of their address gets none; the sign-up is taken all the same.
    ana.act("/me/mail", &[]).await;
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    ana.act("/me/mail", &[("alreadyMember", "true")]).await;
    server.execute("DELETE FROM mailboxes");
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    holds(&crate::pages::letter(&server, 3).await, &["You are already a member"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_changes_what_they_said_and_the_figures_follow() {
    let (server, key) = start();
    let body =
        json!({ "email": "ana@example.com", "usState": "CA", "categories": { "travel": true, "internet": true } });
    server.post("/v1/invite", &key, body.to_string()).await.good();
    server.confirm(1).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let demand = || {
        // Takes in what happened, where no service does so at this moment.
        server.run(&["stats", "--by", "category"]);
        let cells = server.rows("SELECT category, us_state, members FROM demand WHERE members <> 0 ORDER BY category");
        cells.into_iter().map(|cell| cell.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(demand(), [" CA 1", "internet CA 1", "travel CA 1"]);
    let done = ana.change_answers(&[("usState", "NY"), ("internet", "true"), ("otherComments", "Moved\r\neast")]).await;
    leads(&done, "/me?done=answers");
    page(&ana.get("/me?done=answers").await, 200, "Your answers are saved.");
    assert_eq!(demand(), [" NY 1", "internet NY 1"]);
    let shown = show(&server, "ana@example.com");
    assert_eq!((&shown["usState"], &shown["categories"]), (&json!("NY"), &json!(["internet"])));
    assert_eq!(shown["signUps"][0]["usState"], "CA", "what they signed up with stays as evidence");
    let too_long = ana.change_answers(&[("travel", "true"), ("otherComments", &"x".repeat(1001))]).await;
    let html = page(&ana.follow(too_long).await, 200, "Nothing was saved");
    assert!(
        html.contains(&"x".repeat(1001))
            && html.contains("name=\"travel\" value=\"true\" data-savings=\"350\" checked"),
        "kept as typed"
    );
    // Half a form, or a state that is none, changes nothing.
    let wrong = ana.change_answers(&[("usState", "XX"), ("otherComments", "")]).await;
    page(&ana.follow(wrong).await, 200, "Choose a state");
    page(&ana.acted("/me/answers", &[("travel", "true")]).await, 200, "arrived incomplete");
    assert_eq!(show(&server, "ana@example.com"), shown);
    ana.change_answers(&[("usState", ""), ("otherComments", ""), ("pets", "true")]).await;
    let shown = show(&server, "ana@example.com");
    assert_eq!((&shown["usState"], &shown["categories"]), (&Value::Null, &json!([])));
    ana.change_answers(&[("usState", "HI"), ("travel", "true"), ("otherComments", "Aloha")]).await;
    let before = ana.filled_in(&[("usState", "NY")]).await;
    ana.act("/me/leave", &[]).await;
    assert!(demand().is_empty(), "{:?}", demand());
    page(&ana.get("/me").await, 200, "You're no longer a member");
    assert_eq!(ana.post_all("/me/answers", &before).await.header("location"), "/me");
    let export: Value = serde_json::from_slice(&ana.get("/me/export").await.body).unwrap();
    assert_eq!((&export["answers"]["usState"], &export["answers"]["comments"]), (&json!("HI"), &json!("Aloha")));
    // Whoever comes back keeps what they do not answer anew; they are shown it before they confirm.
    invite(&server, &key, "ana@example.com", None).await;
    let id = server.number("SELECT max(id) FROM sign_ups");
    holds(&page(&server.get(&server.confirm_path(id)).await, 200, "Hawaii"), &["Aloha", "Travel"]);
    page(&server.confirm(id).await, 200, "Welcome");
    let shown = show(&server, "ana@example.com");
    assert_eq!((&shown["usState"], &shown["categories"]), (&json!("HI"), &json!(["travel"])));
    assert_eq!(shown["answers"]["changedAt"], Value::Null);
    assert_eq!(demand(), [" HI 1", "travel HI 1"]);
    // By the form, where an empty field is an answer of everybody else.
    ana.act("/me/leave", &[]).await;
    let back = [("email", "ana@example.com"), ("usState", ""), ("otherComments", "Back"), ("internet", "true")];
    page(&server.submit(Request::post("/join"), form(&back)).await, 200, "Check your inbox");
    page(&server.confirm(server.number("SELECT max(id) FROM sign_ups")).await, 200, "Welcome");
    let shown = show(&server, "ana@example.com");
    assert_eq!((&shown["usState"], &shown["categories"]), (&json!("HI"), &json!(["internet"])));
}

/// Join, leave, join again, be erased, join again: the count, the code, the credit and the mail are right at every step.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_and_goes_keeps_their_code_and_earns_nobody_twice() {
    let (server, key) = start();
    let referrer = join(&server, &key, "ref@example.com", None).await;
    let credited = || {
        let shown = show(&server, "ref@example.com");
        // Figures are rolled up by `stats`, where no service does so at this moment.
        server.run(&["stats", "--by", "referrer"]);
        shown["membersReferred"].as_u64().unwrap()
    };
    let kinds = || {
        let rows = server.rows("SELECT kind FROM outbox ORDER BY id");
        rows.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>()
    };
    let mut ana = Browser::new(&server, 1);
    let code = join(&server, &key, "ana@example.com", Some(&referrer)).await;
    (credited(), assert_eq!((members(&server).await, credited()), (2, 1))).1;
    ana.sign_in("ana@example.com").await;
    invite(&server, &key, "ana@example.com", None).await;
    assert_eq!(kinds(), ["sign_in", "already_member"]);
    let left = ana.act("/me/leave", &[]).await;
    leads(&left, "/me?done=left");
    (credited(), assert_eq!((members(&server).await, credited()), (1, 0))).1;
    assert!(kinds().is_empty(), "nothing is mailed to who left");
    page(&ana.get("/me").await, 200, "You're no longer a member");
    ana.act("/me/leave", &[]).await;
    assert_eq!(members(&server).await, 1, "twice is once");
    assert_eq!(show(&server, "ana@example.com")["state"], "left");

    assert_eq!(join(&server, &key, "ana@example.com", None).await, code, "the same code");
    (credited(), assert_eq!((members(&server).await, credited()), (2, 1), "the credit is restored, not given twice")).1;
    assert!(ana.is_signed_in().await);
    let others = join(&server, &key, "other@example.com", None).await;
    let erased = ana.act("/me/erase", &[]).await;
    assert_eq!(erased.header("location"), "/me/erased");
    page(&ana.get("/me/erased").await, 200, "We send no email to that mailbox for 30 days");
    (credited(), assert_eq!((members(&server).await, credited()), (2, 0))).1;
    assert_eq!(server.number("SELECT count(*) FROM people WHERE email LIKE 'ana%' OR email_normalized LIKE 'ana%'"), 0);
    assert_eq!(
        server.number(
            "SELECT count(*) FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE p.erased_at IS NOT NULL"
        ),
        0
    );
    // Another spelling of the mailbox earns nobody a credit, nor does coming back with another's code.
    join(&server, &key, "ana+again@example.com", Some(&others)).await;
    assert_eq!(show(&server, "other@example.com")["membersReferred"], 0);
    server.execute("UPDATE mailboxes SET suppressed_until = NULL");
    assert_eq!(join(&server, &key, "ana@example.com", Some(&others)).await, code);
    (credited(), assert_eq!((members(&server).await, credited()), (4, 1), "who referred them first is credited again"))
        .1;
    assert_eq!(show(&server, "other@example.com")["membersReferred"], 0);
    // The link of somebody who left earns nothing until they are back.
    server.run(&["members", "leave", "other@example.com"]);
    join(&server, &key, "new@example.com", Some(&others)).await;
    assert_eq!(show(&server, "new@example.com")["referredBy"], Value::Null);
    join(&server, &key, "other@example.com", None).await;
    join(&server, &key, "newer@example.com", Some(&others)).await;
    assert_eq!(show(&server, "newer@example.com")["referredBy"], others);
    let audit = server.run(&["audit", "--json"]);
    assert!(audit.contains("own page: leave") && audit.contains("own page: erase") && !audit.contains('@'), "{audit}");
}

/// Who asked, through what, what was said, when it was mailed and how it was decided.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_consent_is_kept_and_shown() {
    let (server, key) = start();
    invite(&server, &key, "rest@example.com", None).await;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "signUpUser", "arguments": { "email": "mcp@example.com" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": format!("Helper\u{7} {}", "x".repeat(200)), "version": "1" },
            },
        },
    });
    let request = Request::post("/mcp").header("authorization", format!("Bearer {key}"));
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    let answer = server.send(request.header("mcp-name", "signUpUser"), call.to_string()).await.json_rpc();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let body = form(&[("email", "form@example.com")]);
    page(&server.submit(Request::post("/join"), body).await, 200, "Check your inbox");
    let evidence = |email: &str| show(&server, email)["signUps"][0].clone();
    let words = "By confirming, you join Consumer Union.";
    for (email, channel) in [("rest@example.com", "rest"), ("mcp@example.com", "mcp"), ("form@example.com", "form")] {
        let kept = evidence(email);
        assert_eq!(kept["channel"], channel);
        assert!(kept["notice"]["words"].as_str().unwrap().starts_with(words), "{kept}");
        assert_eq!((&kept["mailedAt"], &kept["decidedHow"]), (&Value::Null, &Value::Null));
    }
    let client = evidence("mcp@example.com")["clientSelfAsserted"].as_str().unwrap().to_owned();
    assert!(client.starts_with("Helper xxx") && client.chars().count() == 100, "{client}");
    assert_eq!(evidence("rest@example.com")["clientSelfAsserted"], Value::Null);
    holds(&server.run(&["members", "show", "mcp@example.com"]), &["by mcp", "(self-asserted)", "notice "]);
    // What the page to confirm on shows is what is kept, even if other words were shown before.
    server.execute("UPDATE sign_ups SET notice = 'older'");
    let confirm = server.confirm_path(1);
    let html = page(&server.get(&confirm).await, 200, words);
    let hash = hidden(&html, "notice");
    let stale = server.submit(Request::post(&confirm), form(&[("notice", "older")])).await;
    page(&stale, 200, "has changed since you opened it");
    assert_eq!(members(&server).await, 0);
    page(&server.submit(Request::post(&confirm), form(&[("notice", &hash)])).await, 200, "Welcome");
    let kept = evidence("rest@example.com");
    assert_eq!((&kept["notice"]["hash"], &kept["decidedHow"]), (&json!(hash), &json!("button")));
    let mut person = Browser::member(&server, 1, "rest@example.com").await;
    let own = page(&person.get("/me").await, 200, "Acme Assistant (through its API)");
    assert!(own.contains(words) && own.contains("with the button our email led to"));
    // An earlier version wrote it as one paragraph.
    let site = format!("http://{}/me", server.address);
    server.execute(&format!(
        "INSERT INTO notices (hash, text, first_shown_at, names_campaign_mail) VALUES ('older', 'You join. Leave at {site}.', 1, TRUE)"
    ));
    server.execute("UPDATE sign_ups SET notice = 'older' WHERE id = 1");
    let older = format!("<p>You join. Leave at <a href=\"{site}\">{site}</a>.</p>");
    page(&person.get("/me").await, 200, &older);

    server.send(Request::post(server.decline_path(2)), "List-Unsubscribe=One-Click").await;
    assert_eq!(evidence("mcp@example.com")["decidedHow"], "one-click");
}

/// What is shown in the log: no address, no token, no code, no cookie.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_signing_in_is_in_the_log() {
    let (server, key) = Server::with_key(&["--mail", "hold", "--log", "requests"]);
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let id = ana.ask("ana@example.com").await;
    ana.post("/me/code", &[("code", &code(&server, id))]).await;
    let cookie = ana.cookies["union"].clone();
    ana.get(&enter(&server, id)).await;
    ana.act("/me/leave", &[]).await;
    wait_for!(async || server.log().contains("/me/leave")).await;
    let log = server.log();
    for secret in ["ana@", &code(&server, id), &tokens(&server).sign_in_token(id), cookie.split('.').next().unwrap()] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert!(log.contains("/me/enter/{token}"));
}
