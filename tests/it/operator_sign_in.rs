//! Signing in to the operator's page without a shell: mailed links and second factors, as operators use them and as others try them.

use crate::operator_page::{act, audit, path_of, signed_in};
use crate::prelude::*;
use unionhall::domain::operator::second_factor::{FactorSecret, RECOVERY_CODES, TRIES, WRONG_CODES_A_DAY};

const SIGN_IN: &str = "/operator/sign-in";
const CODE: &str = "/operator/second-factor";
const ACCOUNT: &str = "/operator/account";

fn start(mail: &Mailserver, flags: &[&str]) -> Server {
    let mail = format!("smtp://127.0.0.1:{}?tls=none", mail.port);
    let server = Server::start_with(&[&["--mail", &mail, "--mail-from", "hello@union.example"], flags].concat());
    server.run(&["operator", "add", "ana", "--email", "Ana@Union.example"]);
    server
}

async fn asks(server: &Server, from: u8, email: &str) -> Answer {
    Browser::new(server, from).post(SIGN_IN, &[("email", email)]).await
}

/// The link of the mail that arrived last, as a path.
fn mailed(arrived: &[Value]) -> String {
    let content = arrived.last().unwrap()["content"].as_str().unwrap();
    path_of(&crate::mail::link(content, "http"))
}

/// Time passes for links that were mailed.
fn minutes_later(server: &Server, minutes: i64) {
    server.execute(&format!("UPDATE operators SET mailed_at = mailed_at - {}", minutes * 60_000));
    server.execute(&format!("UPDATE operator_links SET expires_at = expires_at - {}", minutes * 60_000));
}

/// An answer without what differs from request to request.
fn seen(answer: &Answer) -> (u16, Vec<String>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()));
    (answer.status.as_u16(), headers.map(|(name, value)| format!("{name}: {value:?}")).collect(), answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailed_link_signs_in_and_the_answer_tells_nothing_of_an_address() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = start(&mail, &["--log", "requests"]);
    wait_for!(async || server.get("/operator").await.status != 404).await;
    let mut ana = Browser::new(&server, 1);
    page(&ana.get("/operator").await, 403, "Email me a link");
    let answers = [
        asks(&server, 2, "nobody@union.example").await,
        asks(&server, 3, "ana@union.EXAMPLE").await,
        // Again at once: one is on its way.
        asks(&server, 4, "ana@union.example").await,
    ];
    page(&answers[0], 200, "Check your email");
    assert!(answers.iter().all(|answer| seen(answer) == seen(&answers[0])), "{answers:?}");
    assert_eq!(answers[0].header("cache-control"), "no-store");
    for (typed, problem) in [("", "Type your whole"), ("ana", "Type your whole"), ("<b>@", "&#60;b&#62;@")] {
        page(&asks(&server, 5, typed).await, 400, problem);
    }
    let elsewhere = Request::post(SIGN_IN).header("sec-fetch-site", "cross-site");
    page(&ana.send(elsewhere, form(&[("email", "ana@union.example")])).await, 403, "not sent from this page");

    let arrived = mail.wait_for(1).await;
    assert_eq!(arrived[0]["to"], json!(["Ana@Union.example"]), "to the address as it was given");
    let link = mailed(&arrived);
    page(&ana.get(&link).await, 200, "Sign in as ana");
    leads(&ana.post(&link, &[]).await, "/operator");
    page(&ana.get("/operator").await, 200, "<strong>ana</strong>");
    page(&ana.post(&link, &[]).await, 410, "This link was used");
    assert_eq!(mail.arrived().len(), 1);
    let log = server.log().to_lowercase();
    assert!(!log.contains("ana@union.example") && !log.contains(link.rsplit('/').next().unwrap()), "{log}");
    // What is kept opens nothing.
    let kept = server.rows("SELECT hash FROM operator_links");
    assert!(kept.iter().all(|row| !link.contains(row[0].as_str())));
}

/// Whoever knows an operator's address asks for links, as often as they like and from everywhere.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_locks_an_operator_out_by_asking_for_links() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = start(&mail, &[]);
    wait_for!(async || server.get("/operator").await.status != 404).await;
    let flood = async |email: &str| {
        for round in 0..10 {
            let answers = together((20..40).map(|from| asks(&server, from, email))).await;
            // The first of them show no page while it is found out whether there is one.
            assert!(answers.iter().all(|answer| answer.status == 200), "{round}: {answers:?}");
        }
    };
    flood("ana@union.example").await;
    flood("nobody@union.example").await;
    // She asks, too, and has one that works in her inbox.
    page(&asks(&server, 1, "ana@union.example").await, 200, "Check your email");
    let first = mailed(&mail.wait_for(1).await);
    // They go on: a mail comes every five minutes, and ends none before it.
    minutes_later(&server, 5);
    flood("ana@union.example").await;
    let second = mailed(&mail.wait_for(2).await);
    assert_ne!(first, second);
    minutes_later(&server, 5);
    flood("ana@union.example").await;
    mail.wait_for(3).await;
    let mut ana = Browser::new(&server, 1);
    page(&ana.get(&first).await, 200, "Sign in as ana");
    leads(&ana.post(&second, &[]).await, "/operator");
    leads(&ana.post(&first, &[]).await, "/operator");
    assert_eq!(mail.arrived().len(), 3);
    assert!(server.number("SELECT count(*) FROM operator_links") <= 4);
    // A neighbor who spends what the network may spend on links does not keep her from the form.
    let mut neighbor = Browser::new(&server, 1);
    let mut tried = 0;
    while neighbor.get("/operator/enter/00000000000000000000000000").await.status != 429 {
        tried += 1;
        assert!(tried <= 300);
    }
    page(&Browser::new(&server, 1).get("/operator").await, 403, "Email me a link");
    page(&asks(&server, 1, "ana@union.example").await, 200, "Check your email");
    // A link of the shell ends those that were mailed, and so does another address.
    minutes_later(&server, 5);
    page(&asks(&server, 1, "ana@union.example").await, 200, "Check your email");
    let third = mailed(&mail.wait_for(4).await);
    server.run(&["operator", "change", "ana", "--email", "new@union.example"]);
    page(&ana.get(&third).await, 429, "Too many");
    page(&Browser::new(&server, 50).get(&third).await, 404, "This link does not work");
    page(&asks(&server, 2, "ana@union.example").await, 200, "Check your email");
    page(&asks(&server, 2, "new@union.example").await, 200, "Check your email");
    assert_eq!(mail.wait_for(5).await.last().unwrap()["to"], json!(["new@union.example"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_mails_nothing_says_so() {
    let server = Server::start_with(&["--mail", "hold"]);
    server.run(&["operator", "add", "ana", "--email", "ana@union.example"]);
    wait_for!(async || server.get("/operator").await.status != 404).await;
    let html = page(&server.get("/operator").await, 403, "unionhall operator link NAME");
    assert!(!html.contains("Email me a link"), "{html}");
    page(&asks(&server, 1, "ana@union.example").await, 503, "This service mails no links");
    // Two operators cannot have one address, nor is anything else an address.
    for (arguments, why) in [
        (&["operator", "add", "ben", "--email", "ANA@union.example"][..], "another operator has that address"),
        (&["operator", "change", "ana", "--email", "x"], "is not an email address"),
        (&["operator", "change", "ana"], "--email"),
        (&["operator", "change", "ben", "--role", "look"], "there is no operator called ben"),
        (&["operator", "add", "ben", "--role", "root"], "one of look, support, money, all"),
        (&["operator", "reset-second-factor", "anna"], "did you mean ana?"),
    ] {
        let output = server.try_run(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(why), "{arguments:?}: {told}");
    }
    server.run(&["operator", "change", "ana", "--role", "money"]);
    let listed = server.json(&["operator", "list", "--json"]);
    assert_eq!(
        (&listed[0]["role"], &listed[0]["email"], &listed[0]["secondFactor"]),
        (&json!("money"), &json!("ana@union.example"), &json!(false))
    );
    assert!(!audit(&server).iter().any(|(_, _, about)| about.contains("union.example")), "{:?}", audit(&server));
}

/// What an app on a phone has.
pub(crate) struct Phone(FactorSecret);

impl Phone {
    /// Reads the key off the page, as an app reads the code.
    fn of(html: &str) -> Self {
        let key = html.split("<pre tabindex=\"0\"><code>").nth(1).unwrap().split('<').next().unwrap();
        Self(FactorSecret::read(key).unwrap_or_else(|| panic!("{key}")))
    }

    pub(crate) fn code(&self) -> String {
        self.0.code_at(Clock::start().now().time)
    }

    /// One that is wrong, now and in the next minutes.
    fn wrong(&self) -> String {
        let now = Clock::start().now().time;
        let near: Vec<_> =
            (-4..20).map(|step| self.0.code_at(Timestamp::from_millis(now.as_millis() + step * 30_000))).collect();
        (0..100).map(|n| format!("{n:06}")).find(|code| !near.contains(code)).unwrap()
    }
}

/// Time passes: the code that was used is of an earlier step.
fn another_code(server: &Server) {
    server.execute("UPDATE operators SET factor_step = 0");
}

/// Sets up a second factor; the phone, and the recovery codes.
pub(crate) async fn set_up(browser: &mut Browser<'_>) -> (Phone, Vec<String>) {
    let html = page(&browser.get(&format!("{ACCOUNT}?set-up")).await, 200, "Set up a second factor");
    assert!(html.contains("<svg") && html.contains("class=\"qr-ink\""), "{html}");
    let phone = Phone::of(&html);
    let (token, sealed) = (hidden(&html, "token"), hidden(&html, "factor"));
    let send = async |browser: &mut Browser<'_>, code: &str| {
        browser.post(ACCOUNT, &[("token", &token), ("factor", &sealed), ("act", "set-up"), ("new-code", code)]).await
    };
    let again = page(&send(browser, &phone.wrong()).await, 400, "not the code that the app shows");
    assert_eq!(hidden(&again, "factor"), sealed, "the same one is asked for again");
    let html = page(&send(browser, &phone.code()).await, 200, "Your recovery codes");
    let codes = html.split("<code>").nth(1).unwrap().split('<').next().unwrap();
    (phone, codes.split_whitespace().map(str::to_owned).collect())
}

/// A browser that has opened a link and not typed a code.
async fn opened<'a>(server: &'a Server, n: u8) -> Browser<'a> {
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    let mut browser = Browser::new(server, n);
    let entered = browser.post(&link, &[]).await;
    leads(&entered, "/operator");
    assert!(entered.header("set-cookie").contains("Max-Age=600;"), "{entered:?}");
    browser
}

pub(crate) async fn types(browser: &mut Browser<'_>, code: &str) -> Answer {
    let token = hidden(&page(&browser.get("/operator").await, 403, "Your code"), "token");
    browser.post(CODE, &[("token", &token), ("code", code)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_is_asked_for_and_cannot_be_skipped() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let mut elsewhere = {
        let link = path_of(&server.run(&["operator", "link", "ana"]));
        let mut browser = Browser::new(&server, 2);
        leads(&browser.post(&link, &[]).await, "/operator");
        browser
    };
    let (phone, recovery) = set_up(&mut ana).await;
    assert_eq!(recovery.len(), RECOVERY_CODES);
    page(&ana.get("/operator").await, 200, "Overview");
    page(&elsewhere.get("/operator").await, 403, "You are not signed in");
    // What is kept is neither the key nor a code.
    let kept = server.rows("SELECT factor FROM operators").remove(0).remove(0);
    assert!(!kept.contains(&phone.0.shown()) && kept.len() > 40, "{kept}");
    let codes = server.rows("SELECT hash FROM operator_recovery_codes");
    assert!(codes.len() == RECOVERY_CODES && codes.iter().all(|row| row[0].len() == 52));

    // A link alone opens no page and takes no form, whichever.
    let mut waiting = opened(&server, 3).await;
    for (pattern, roles) in unionhall::server::operator_roles().filter(|(_, roles)| roles.is_some()) {
        let path = pattern.replace("{partner}", "1").replace("{slug}", "x").replace("{number}", "1");
        let shown = waiting.get(&path).await;
        if shown.status == 303 {
            leads(&shown, "/operator");
        } else {
            page(&shown, 403, "Your code");
        }
        let of_sign_in = [CODE, "/operator/sign-out"].contains(&pattern);
        if roles.is_some_and(|(_, act)| act.is_some()) && !of_sign_in {
            let token = hidden(&page(&waiting.get("/operator").await, 403, "Your code"), "token");
            let fields = [("token", token.as_str()), ("sign-ups", "pause"), ("sure", "yes"), ("act", "turn-off")];
            page(&waiting.post(&path, &fields).await, 403, "Your code");
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'signups pause'"), 0);
    let half = waiting.cookies.clone();
    page(&types(&mut waiting, &phone.wrong()).await, 400, "That code is not right");
    page(&types(&mut waiting, "").await, 400, "That code is not right");
    another_code(&server);
    let code = phone.code();
    let entered = types(&mut waiting, &code).await;
    leads(&entered, "/operator");
    assert!(entered.header("set-cookie").contains("Max-Age=43200;"), "{entered:?}");
    page(&waiting.get("/operator").await, 200, "Overview");
    // The cookie that waited is another session's, which is over.
    let mut copy = Browser::new(&server, 4);
    copy.cookies = half;
    page(&copy.get("/operator").await, 403, "You are not signed in");
    // A code is used once: whoever looked over a shoulder has nothing.
    let mut thief = opened(&server, 5).await;
    page(&types(&mut thief, &code).await, 400, "or was used before");
    // A recovery code, once, however it is typed.
    let typed = recovery[0].to_uppercase().replace('-', " ");
    leads(&types(&mut thief, &typed).await, "/operator");
    let mut again = opened(&server, 6).await;
    page(&types(&mut again, &recovery[0]).await, 400, "or was used before");
    // Forms from elsewhere, and of another session.
    let sent = again.send(Request::post(CODE).header("sec-fetch-site", "cross-site"), form(&[("code", &code)])).await;
    page(&sent, 403, "not sent from this page");
    page(&again.post(CODE, &[("token", "x"), ("code", &recovery[1])]).await, 400, "another session");
    let rows: Vec<_> = audit(&server).into_iter().map(|(_, command, about)| format!("{command} {about}")).collect();
    assert!(rows.contains(&"operator second-factor set up".to_owned()), "{rows:?}");
    assert!(!rows.iter().any(|row| recovery.iter().any(|code| row.contains(code.as_str()))));
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_cannot_be_tried_out_and_the_operator_is_not_locked_out() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let (phone, recovery) = set_up(&mut ana).await;
    // Somebody who reads her mail tries codes: five for each link, at once or one after another.
    let mut thief = opened(&server, 2).await;
    let token = hidden(&page(&thief.get("/operator").await, 403, "Your code"), "token");
    let wrong = phone.wrong();
    let mut copies: Vec<_> = (0..20)
        .map(|n| {
            let mut copy = Browser::new(&server, 20 + n);
            copy.cookies = thief.cookies.clone();
            copy
        })
        .collect();
    let fields = [("token", token.as_str()), ("code", wrong.as_str())];
    let tried = together(copies.iter_mut().map(|copy| copy.post(CODE, &fields))).await;
    let compared = tried.iter().filter(|answer| answer.text().contains("That code is not right")).count();
    assert_eq!(compared, TRIES as usize, "{tried:?}");
    another_code(&server);
    let late = thief.post(CODE, &[("token", &token), ("code", &phone.code())]).await;
    assert_eq!(late.status.as_u16(), 403, "even the right one comes too late: {late:?}");
    page(&thief.get("/operator").await, 403, "You are not signed in");
    assert!(
        audit(&server).iter().any(|(_, command, about)| command == "page sign-in" && about == "refused: wrong codes")
    );
    // With link after link, until the day's are spent.
    for n in 1..WRONG_CODES_A_DAY / TRIES {
        let mut thief = opened(&server, 40 + n as u8).await;
        for _ in 0..TRIES {
            page(&types(&mut thief, &wrong).await, 400, "That code is not right");
        }
    }
    let mut thief = opened(&server, 3).await;
    page(&types(&mut thief, &phone.code()).await, 400, "Too many codes were wrong today");
    // She is in where she was, and has her recovery codes.
    page(&ana.get("/operator").await, 200, "Overview");
    let mut other = opened(&server, 4).await;
    page(&types(&mut other, &phone.code()).await, 400, "Too many codes were wrong today");
    leads(&types(&mut other, &recovery[3]).await, "/operator");
    // Tomorrow the app's are taken again.
    server.execute("UPDATE operators SET wrong_codes_day = wrong_codes_day - 1");
    another_code(&server);
    let mut tomorrow = opened(&server, 5).await;
    leads(&types(&mut tomorrow, &phone.code()).await, "/operator");
    // And a command starts over.
    assert!(server.run(&["operator", "reset-second-factor", "ana"]).contains("signed out everywhere"));
    page(&tomorrow.get("/operator").await, 403, "You are not signed in");
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    leads(&ana.post(&link, &[]).await, "/operator");
    page(&ana.get("/operator").await, 200, "Overview");
    assert_eq!(server.number("SELECT count(*) FROM operator_recovery_codes"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_is_replaced_and_turned_off_with_a_code_of_it() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let mut ben = signed_in(&server, "ben", 2).await;
    let (phone, recovery) = set_up(&mut ana).await;
    // An open browser is not enough to take it over.
    let html = page(&ana.get(&format!("{ACCOUNT}?set-up")).await, 200, "A code of the old app");
    let new = Phone::of(&html);
    let (token, sealed) = (hidden(&html, "token"), hidden(&html, "factor"));
    let (new_code, wrong) = (new.code(), phone.wrong());
    let fields = |code| {
        [("token", token.as_str()), ("factor", &sealed), ("act", "set-up"), ("new-code", &new_code), ("code", code)]
    };
    for code in ["", wrong.as_str(), new_code.as_str()] {
        page(&ana.post(ACCOUNT, &fields(code)).await, 400, "That code is not right");
    }
    // Nor is a factor that another was shown, or that was made long ago or never.
    let bens = page(&ben.get(&format!("{ACCOUNT}?set-up")).await, 200, "Set up a second factor");
    for foreign in [hidden(&bens, "factor"), format!("{sealed}A"), String::new()] {
        let mut fields = fields(&recovery[0]);
        fields[1].1 = &foreign;
        page(&ana.post(ACCOUNT, &fields).await, 400, "Begin again");
    }
    page(&ana.post(ACCOUNT, &fields(&recovery[0])).await, 200, "Your recovery codes");
    another_code(&server);
    let mut browser = opened(&server, 3).await;
    page(&types(&mut browser, &phone.code()).await, 400, "That code is not right");
    page(&types(&mut browser, &recovery[1]).await, 400, "That code is not right");
    leads(&types(&mut browser, &new.code()).await, "/operator");
    // New codes end the old ones; off, a link is enough.
    another_code(&server);
    let html =
        page(&act(&mut browser, ACCOUNT, &[("act", "new-codes"), ("code", &new.code())]).await, 200, "These are new.");
    let codes = html.split("<code>").nth(1).unwrap().split('<').next().unwrap();
    let code = codes.split_whitespace().next().unwrap();
    page(&act(&mut browser, ACCOUNT, &[("act", "turn-off"), ("code", "x")]).await, 400, "That code is not right");
    page(&act(&mut browser, ACCOUNT, &[("act", "turn-off"), ("code", code)]).await, 200, "It is off");
    let mut plain = Browser::new(&server, 4);
    leads(&plain.post(&path_of(&server.run(&["operator", "link", "ana"])), &[]).await, "/operator");
    page(&plain.get("/operator").await, 200, "Overview");
    page(&act(&mut plain, ACCOUNT, &[("act", "nothing")]).await, 400, "does not say what");
    page(&act(&mut plain, ACCOUNT, &[("act", "sign-out-everywhere")]).await, 200, "signed out in all browsers");
    for browser in [&mut plain, &mut browser] {
        page(&browser.get("/operator").await, 403, "You are not signed in");
    }
    page(&ben.get("/operator").await, 200, "Overview");
}

/// A form whose head is sent, and whose end comes later.
async fn held(server: &Server, browser: &Browser<'_>, path: &str, body: &str) -> (TcpStream, String) {
    let mut stream = server.dial(Ipv4Addr::new(127, 0, 7, 90)).await;
    let cookies: Vec<_> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Site: same-origin\r\nCookie: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        server.address,
        cookies.join("; "),
        body.len()
    );
    let (first, rest) = body.split_at(3);
    stream.write_all(format!("{head}{first}").as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    (stream, rest.to_owned())
}

async fn sent_on((mut stream, rest): (TcpStream, String)) -> String {
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Who may act is asked again once a form has arrived: its end may come ten seconds after its head.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_arrives_slowly_is_of_who_somebody_is_by_then() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let mut ben = signed_in(&server, "ben", 2).await;
    let token =
        async |browser: &mut Browser<'_>| hidden(&page(&browser.get("/operator").await, 200, "Overview"), "token");
    let bens = token(&mut ben).await;
    let pause = format!("token={bens}&sign-ups=pause");
    let (lesser, removed) = (
        held(&server, &ben, "/operator/sign-ups", &pause).await,
        held(&server, &ben, "/operator/sign-ups", &pause).await,
    );
    server.run(&["operator", "change", "ben", "--role", "look"]);
    assert!(sent_on(lesser).await.contains("Not for your role"));
    server.run(&["operator", "remove", "ben"]);
    assert!(sent_on(removed).await.contains("You are not signed in"));
    // Somebody with a copy of the cookie begins before there is a factor, and ends once there is one.
    let mine = token(&mut ana).await;
    let html = page(&ana.get(&format!("{ACCOUNT}?set-up")).await, 200, "Set up a second factor");
    let theirs = Phone::of(&html);
    let sealed = hidden(&html, "factor");
    let take_over = format!("token={mine}&act=set-up&factor={sealed}&new-code={}", theirs.code());
    let mut slow = Vec::new();
    for body in [format!("token={mine}&act=new-codes"), format!("token={mine}&act=turn-off"), take_over] {
        slow.push(held(&server, &ana, ACCOUNT, &body).await);
    }
    let (phone, _) = set_up(&mut ana).await;
    for form in slow {
        let answer = sent_on(form).await;
        assert!(answer.starts_with("HTTP/1.1 400") && !answer.contains("Your recovery codes"), "{answer}");
    }
    another_code(&server);
    let mut browser = opened(&server, 3).await;
    page(&types(&mut browser, &theirs.code()).await, 400, "That code is not right");
    leads(&types(&mut browser, &phone.code()).await, "/operator");
    // A code that was used works no more, also where the same app is set up again.
    let html = page(&browser.get(&format!("{ACCOUNT}?set-up")).await, 200, "A code of the old app");
    let (again, sealed) = (Phone::of(&html), hidden(&html, "factor"));
    let early = again.0.code_at(Timestamp::from_millis(Clock::start().now().time.as_millis() - 30_000));
    let step = server.number("SELECT factor_step FROM operators WHERE name = 'ana'");
    another_code(&server);
    let fields = [("act", "set-up"), ("factor", &sealed), ("new-code", &early), ("code", &phone.code())];
    page(&act(&mut browser, ACCOUNT, &fields).await, 200, "Your recovery codes");
    assert!(server.number("SELECT factor_step FROM operators WHERE name = 'ana'") >= step);
}

/// Somebody reads her mail and has no phone.
#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_that_wait_for_a_code_end_none_that_does_not() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let (phone, _) = set_up(&mut ana).await;
    let mut waiting = Vec::new();
    for n in 0..7 {
        waiting.push(opened(&server, 10 + n).await);
    }
    page(&ana.get("/operator").await, 200, "Overview");
    page(&waiting[0].get("/operator").await, 403, "You are not signed in");
    another_code(&server);
    leads(&types(&mut waiting[6], &phone.code()).await, "/operator");
    // Without a factor there are no codes to make anew.
    let mut ben = signed_in(&server, "ben", 30).await;
    page(&act(&mut ben, ACCOUNT, &[("act", "new-codes"), ("code", "x")]).await, 400, "or there is none");
    assert_eq!(server.number("SELECT count(*) FROM operator_recovery_codes"), 10);
    // What was open is not afterwards: links where a factor was lost, sessions where a mailbox was.
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    server.run(&["operator", "reset-second-factor", "ana"]);
    page(&Browser::new(&server, 31).get(&link).await, 404, "This link does not work");
    server.run(&["operator", "change", "ben", "--email", "ben@union.example"]);
    page(&ben.get("/operator").await, 403, "You are not signed in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_factor_can_be_a_must() {
    let server = Server::start_with(&["--mail", "hold", "--require-second-factor"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    // Before it is set up, there is nothing but that.
    for path in ["/operator", "/operator/people", "/operator/rewards", "/operator/audit"] {
        leads(&ana.get(path).await, ACCOUNT);
    }
    let html = page(&ana.get(ACCOUNT).await, 200, "asks every operator for one");
    let fields = [("token", hidden(&html, "token")), ("sign-ups", "pause".to_owned()), ("sure", "yes".to_owned())];
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    leads(&ana.post("/operator/sign-ups", &fields).await, ACCOUNT);
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'signups pause'"), 0);
    let (_, recovery) = set_up(&mut ana).await;
    page(&ana.get("/operator").await, 200, "Overview");
    let html = page(&ana.get(ACCOUNT).await, 200, "Second factor");
    assert!(!html.contains("Turn it off"), "{html}");
    page(&act(&mut ana, ACCOUNT, &[("act", "turn-off"), ("code", &recovery[0])]).await, 400, "Replace the app instead");
    // The code was not spent by that.
    let mut other = opened(&server, 2).await;
    leads(&types(&mut other, &recovery[0]).await, "/operator");
}
