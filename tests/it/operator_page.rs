//! The operator's page, as operators use it and as others would like to: the way in, the session, forms, and what is done there.

use crate::own_page::join;
use crate::prelude::*;

/// The link that a command printed, as a path.
#[track_caller]
pub(crate) fn path_of(link: &str) -> String {
    let (_, path) = link.trim().split_once("/operator/enter/").expect(link);
    format!("/operator/enter/{path}")
}

fn add(server: &Server, name: &str) -> String {
    path_of(&server.run(&["operator", "add", name]))
}

/// A browser in which the operator is signed in.
pub(crate) async fn signed_in<'a>(server: &'a Server, name: &str, n: u8) -> Browser<'a> {
    let link = add(server, name);
    is_on(server).await;
    let mut browser = Browser::new(server, n);
    leads(&browser.post(&link, &[]).await, "/operator");
    browser
}

/// Whether the page is there is believed for a second.
async fn is_on(server: &Server) {
    wait_for!(async || server.get("/operator").await.status != 404).await;
}

/// Sends a form, with the token that the overview has. Whoever says that they are sure is asked before.
pub(crate) async fn act(browser: &mut Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    let token = hidden(&page(&browser.get("/operator").await, 200, "Overview"), "token");
    let token = ("token", token.as_str());
    let asks = fields.contains(&("sure", "yes")) && !fields.iter().any(|(name, _)| *name == "asked");
    let asked = match asks {
        true => {
            let unsure: Vec<_> = fields.iter().copied().filter(|(name, _)| *name != "sure").collect();
            asked_of(&browser.post(path, &[&[token], &unsure[..]].concat()).await)
        }
        false => None,
    };
    let asked = asked.as_ref().map(|asked| ("asked", asked.as_str()));
    browser.post(path, &[&[token], fields, asked.as_slice()].concat()).await
}

/// Asks, and keeps the form of the question: what it sends once it is pressed.
pub(crate) async fn asked_form<'f>(
    browser: &mut Browser<'_>,
    path: &str,
    fields: &[(&'f str, &'f str)],
) -> Vec<(&'f str, String)> {
    let asked = act(browser, path, fields).await;
    let mark = asked_of(&asked).unwrap_or_else(|| panic!("{asked:?}"));
    let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
    fields.chain([("sure", "yes".to_owned()), ("asked", mark)]).collect()
}

/// Presses the button of such a form.
pub(crate) async fn press(browser: &mut Browser<'_>, path: &str, form: &[(&str, String)]) -> Answer {
    let fields: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    act(browser, path, &fields).await
}

/// What is said where a question is no longer what was asked.
pub(crate) const CHANGED: &str = "This changed meanwhile. Look again.";

/// What a question is about, as its page has it.
pub(crate) fn asked_of(answer: &Answer) -> Option<String> {
    let html = String::from_utf8_lossy(&answer.body);
    Some(html.split("name=\"asked\" value=\"").nth(1)?.split('"').next()?.to_owned())
}

pub(crate) fn audit(server: &Server) -> Vec<(String, String, String)> {
    let rows = server.rows("SELECT who, command, about FROM audit ORDER BY id");
    rows.into_iter().map(|row| (row[0].clone(), row[1].clone(), row[2].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_and_what_is_done_is_audited_by_name() {
    let server = Server::start();
    let link = add(&server, "ana");
    is_on(&server).await;
    let mut ana = Browser::new(&server, 1);
    // Opening it does nothing, however often.
    for _ in 0..2 {
        page(&ana.get(&link).await, 200, "Sign in as ana");
    }
    assert!(ana.cookies.is_empty());
    let entered = ana.post(&link, &[]).await;
    leads(&entered, "/operator");
    let cookie = entered.header("set-cookie");
    assert!(cookie.starts_with("union-operator=") && cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(cookie.contains("Max-Age=43200; "), "{cookie}");
    let overview = ana.get("/operator").await;
    assert_eq!(overview.header("cache-control"), "no-store");
    page(&overview, 200, "<strong>ana</strong>");
    // A second browser finds the link used, and reads which command makes the next.
    let mut other = Browser::new(&server, 2);
    for answer in [other.get(&link).await, other.post(&link, &[]).await] {
        assert!(page(&answer, 410, "This link was used").contains("unionhall operator link ana"));
    }
    assert!(other.cookies.is_empty());
    // Pausing asks first; both ways are audited under the name.
    page(&act(&mut ana, "/operator/sign-ups", &[("sign-ups", "pause")]).await, 200, "Pause sign-ups?");
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'signups pause'"), 0);
    for _ in 0..2 {
        let paused = act(&mut ana, "/operator/sign-ups", &[("sign-ups", "pause"), ("sure", "yes")]).await;
        leads(&paused, "/operator");
        let told = page(&ana.get("/operator").await, 200, "Sign-ups are paused");
        assert!(told.contains("<a href=\"/operator#sign-ups\">Turn sign-ups on</a>"), "{told}");
    }
    act(&mut ana, "/operator/sign-ups", &[("sign-ups", "resume")]).await;
    page(&ana.get("/operator").await, 200, "Sign-ups are not paused");
    let done: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").collect();
    let expected = ["page sign-in", "signups pause", "signups resume"];
    assert_eq!(done.iter().map(|(_, command, _)| command.as_str()).collect::<Vec<_>>(), expected);
    // Out: a copy of the cookie is worth nothing.
    let copy = ana.cookies.clone();
    page(&act(&mut ana, "/operator/sign-out", &[]).await, 200, "Signed out");
    assert!(ana.cookies.is_empty());
    ana.cookies = copy;
    page(&ana.get("/operator").await, 403, "unionhall operator link NAME");
}

/// An answer without what differs from request to request.
fn seen(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    (answer.status.as_u16(), headers, answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_is_added_there_is_nothing() {
    let server = Server::start();
    let ours = ["/operator", "/operator/", "/OPERATOR", "/operator/style.css", "/operator/people", "/operator/enter/x"];
    let ask = async |method: &str, path: &str, accept: &str| {
        let request = Request::builder().method(method).uri(path).header("accept", accept);
        seen(&server.send(request.header("sec-fetch-site", "same-origin"), "").await)
    };
    for method in ["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE"] {
        for accept in ["text/html", "application/json"] {
            let unknown = ask(method, "/zzzzzzzz", accept).await;
            assert_eq!(unknown.0, 404);
            for path in ours {
                assert_eq!(ask(method, path, accept).await, unknown, "{method} {path} {accept}");
            }
        }
    }
    // Nothing tells of it, either.
    assert!(!server.get("/operater").await.refused(404, serde_json::Value::Null).contains("operator"));

    add(&server, "ana");
    is_on(&server).await;
    assert_eq!(ask("GET", "/operator", "text/html").await.0, 403);
    assert_eq!(ask("GET", "/operator/style.css", "*/*").await.0, 200);
    assert!(server.run(&["operator", "remove", "ana"]).contains("the page /operator is off"));
    wait_for!(async || server.get("/operator").await.status == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_sessions_end() {
    let server = Server::start_with(&["--log", "requests"]);
    let first = add(&server, "ana");
    is_on(&server).await;
    // The next link ends the one before.
    let second = path_of(&server.run(&["operator", "link", "ana"]));
    let mut ana = Browser::new(&server, 1);
    page(&ana.get(&first).await, 404, "A newer link was made since");
    page(&ana.post(&first, &[]).await, 404, "A newer link was made since");
    // A quarter of an hour later it has expired.
    server.execute("UPDATE operator_links SET expires_at = expires_at - 900000");
    for answer in [ana.get(&second).await, ana.post(&second, &[]).await] {
        assert!(page(&answer, 410, "This link has expired").contains("unionhall operator link ana"));
    }
    for odd in ["/operator/enter/x", "/operator/enter/%00", "/operator/enter/00000000000000000000000000"] {
        page(&ana.get(odd).await, 404, "This link does not work");
    }
    assert!(ana.cookies.is_empty());
    // Pressed at once in several browsers, it signs one in.
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    let mut rivals: Vec<_> = (20..24).map(|n| Browser::new(&server, n)).collect();
    let entered = together(rivals.iter_mut().map(|browser| browser.post(&link, &[]))).await;
    let mut statuses: Vec<_> = entered.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410, 410, 410]);
    // In six browsers: the first is signed out by the sixth.
    let mut browsers = Vec::new();
    for n in 10..16 {
        let link = path_of(&server.run(&["operator", "link", "ana"]));
        let mut browser = Browser::new(&server, n);
        assert_eq!(browser.post(&link, &[]).await.status.as_u16(), 303);
        browsers.push(browser);
    }
    page(&browsers[0].get("/operator").await, 403, "You are not signed in");
    for browser in &mut browsers[1..] {
        page(&browser.get("/operator").await, 200, "Overview");
    }
    assert_eq!(server.number("SELECT count(*) FROM operator_sessions"), 5);
    let listed = server.json(&["operator", "list", "--json"]);
    assert_eq!((&listed[0]["name"], &listed[0]["sessions"]), (&"ana".into(), &5.into()), "{listed}");
    // Twelve hours later a session has ended.
    server.execute("UPDATE operator_sessions SET expires_at = expires_at - 43200000 WHERE id = (SELECT max(id) FROM operator_sessions)");
    page(&browsers[5].get("/operator").await, 403, "your session has ended");
    // Whoever is removed is out at once, and so is a link of theirs.
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    add(&server, "ben");
    server.run(&["operator", "remove", "ana"]);
    page(&browsers[4].get("/operator").await, 403, "You are not signed in");
    page(&ana.post(&link, &[]).await, 404, "This link does not work");
    // Also when somebody of the same name is added again.
    add(&server, "ana");
    page(&browsers[4].get("/operator").await, 403, "You are not signed in");
    assert_eq!(server.number("SELECT count(*) FROM operator_sessions"), 0);
    // No token is in the log or in the records.
    wait_for!(async || server.log().contains("/operator/enter/{token}")).await;
    for token in [&first, &second, &link].map(|path| path.rsplit_once('/').unwrap().1.to_owned()) {
        assert!(!server.log().contains(&token));
        assert_eq!(server.number(&format!("SELECT count(*) FROM operator_links WHERE hash LIKE '%{token}%'")), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_gets_in_and_no_form_of_elsewhere_is_taken() {
    let (server, key) = crate::own_page::start();
    join(&server, &key, "ana@example.com", None).await;
    let mut operator = signed_in(&server, "ana", 1).await;
    let mut member = Browser::member(&server, 2, "ana@example.com").await;
    // A member's session is nothing here, under whichever name; and the other way round.
    page(&member.get("/operator").await, 403, "You are not signed in");
    let theirs = member.cookies["union"].clone();
    let mut copied = Browser::new(&server, 3);
    copied.cookies.insert("union-operator".to_owned(), theirs);
    page(&copied.get("/operator").await, 403, "You are not signed in");
    let ours = operator.cookies["union-operator"].clone();
    copied.cookies = [("union".to_owned(), ours.clone())].into();
    assert!(!copied.is_signed_in().await);
    for forged in [format!("{ours}x"), ours.replacen('.', "..", 1), ours.split('.').next().unwrap().to_owned()] {
        copied.cookies = [("union-operator".to_owned(), forged)].into();
        page(&copied.get("/operator").await, 403, "You are not signed in");
    }
    // Forms: without the token, with a member's, with another operator's, from elsewhere, from nowhere.
    let token = hidden(&page(&operator.get("/operator").await, 200, "Overview"), "token");
    let mut ben = signed_in(&server, "ben", 4).await;
    let bens = hidden(&page(&ben.get("/operator").await, 200, "Overview"), "token");
    let members = member.token().await;
    for wrong in ["", "x", &members, &bens] {
        let fields = [("token", wrong), ("sign-ups", "pause"), ("sure", "yes")];
        page(&operator.post("/operator/sign-ups", &fields).await, 400, "another session");
    }
    let body = format!("token={token}&sign-ups=pause&sure=yes");
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("x-nothing", "said"),
    ] {
        let sent = operator.send(Request::post("/operator/sign-ups").header(name, value), body.clone()).await;
        page(&sent, 403, "not sent from this page");
    }
    // Nor is anybody signed in by a page elsewhere.
    let link = path_of(&server.run(&["operator", "link", "ben"]));
    let sent = copied.send(Request::post(&link).header("sec-fetch-site", "cross-site"), String::new()).await;
    page(&sent, 403, "not sent from this page");
    assert!(server.run(&["signups", "status", "--json"]).contains("\"paused\": false"));
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'signups pause'"), 0);
    // A GET changes nothing.
    for path in ["/operator/sign-ups?sign-ups=pause&sure=yes", "/operator/sign-out"] {
        assert_eq!(operator.get(path).await.status.as_u16(), 303);
    }
    page(&operator.get("/operator").await, 200, "Sign-ups are not paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_configured_addresses_send_forms() {
    let flags = ["--base-url", "https://api.union.example", "--join-site", "https://union.example"];
    let server = Server::start_with(&[&flags[..], &["--mail", "hold"]].concat());
    let mut ana = signed_in(&server, "ana", 1).await;
    let token = hidden(&page(&ana.get("/operator").await, 200, "Overview"), "token");
    let send = |origin: &str| Request::post("/operator/sign-ups").header("origin", origin);
    let body = format!("token={token}&sign-ups=pause");
    for (origin, says) in [("https://api.union.example", "same-origin"), ("https://union.example", "none")] {
        let sent = ana.send(send(origin), body.clone()).await;
        page(&sent, 200, "Pause sign-ups?");
        page(&ana.send(send(origin).header("sec-fetch-site", says), body.clone()).await, 200, "Pause sign-ups?");
    }
    // The host that the form was sent to may be anybody's name for this machine.
    for origin in ["https://unionhall.test", "https://evil.example", "null"] {
        page(&ana.send(send(origin), body.clone()).await, 403, "not sent from");
        let same = send(origin).header("sec-fetch-site", "same-origin");
        page(&ana.send(same, body.clone()).await, 403, "not sent from");
    }
    // Nothing of it is kept on the way.
    for request in [Request::get("/operator/"), Request::get("/OPERATOR/mail"), Request::options("/operator")] {
        let answer = ana.send(request, String::new()).await;
        assert!([301, 204].contains(&answer.status.as_u16()), "{answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store", "{answer:?}");
    }
}

/// Somebody else behind the same address opens and presses links that do not work, as many as the network may.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_works_is_never_refused_for_what_others_tried() {
    let server = Server::start();
    add(&server, "ana");
    is_on(&server).await;
    let (mut neighbor, mut ana) = (Browser::new(&server, 1), Browser::new(&server, 1));
    let made_up = "/operator/enter/00000000000000000000000000";
    let mut tried = 0;
    while neighbor.get(made_up).await.status != 429 {
        tried += 1;
        assert!(tried <= 300, "a network may try that often");
    }
    for _ in 0..20 {
        let pressed = neighbor.post(made_up, &[]).await.status.as_u16();
        assert!([404, 429].contains(&pressed), "{pressed}");
    }
    assert_eq!(neighbor.post(made_up, &[]).await.status.as_u16(), 429, "pressing spends the same");
    // Also one that was made after the others began.
    let link = path_of(&server.run(&["operator", "link", "ana"]));
    for _ in 0..3 {
        page(&ana.get(&link).await, 200, "Sign in as ana");
    }
    leads(&ana.post(&link, &[]).await, "/operator");
    page(&ana.get("/operator").await, 200, "<strong>ana</strong>");
    assert_eq!(ana.post(&link, &[]).await.status.as_u16(), 429, "it was used: it is one that does not work");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_names_the_operator_only_from_its_own_address() {
    let flags = ["--operator-header", "X-Operator", "--operator-header-from", "127.0.7.1,10.0.0.0/8"];
    let own = ["--base-url", "https://unionhall.test", "--join-site", "https://unionhall.test", "--mail", "hold"];
    let server = Server::start_with(&[&flags[..], &own, &["--trusted-proxies", "127.0.7.2"]].concat());
    add(&server, "ana");
    is_on(&server).await;
    let (mut proxy, mut other) = (Browser::new(&server, 1), Browser::new(&server, 2));
    let named = |value: &str| Request::get("/operator").header("x-operator", value);
    let html = page(&proxy.send(named("ana"), String::new()).await, 200, "<strong>ana</strong>");
    assert!(!html.contains("Sign out"), "that is the proxy's to do");
    page(&proxy.get("/operator").await, 403, "You are not signed in");
    // Not from elsewhere, whatever it says of where it is from; not for names that nobody added; not two.
    for request in [
        named("ana"),
        named("ana").header("x-forwarded-for", "127.0.7.1"),
        named("ana").header("x-forwarded-for", "10.0.0.1"),
    ] {
        page(&other.send(request, String::new()).await, 403, "You are not signed in");
    }
    for strange in ["ben", "Ana", "ana ben", "", "ana,ben", "ana (page)", "<b>"] {
        page(&proxy.send(named(strange), String::new()).await, 403, "nobody of that name was added");
    }
    page(&proxy.send(named("ana").header("x-operator", "ana"), String::new()).await, 403, "You are not signed in");
    // Nor does a cookie help where it is unclear whom the proxy means; where it names nobody, it does.
    assert_eq!(proxy.post(&path_of(&server.run(&["operator", "link", "ana"])), &[]).await.status.as_u16(), 303);
    let latin = hyper::header::HeaderValue::from_bytes(b"an\xe9").unwrap();
    for unclear in [named("ana").header("x-operator", "ben"), Request::get("/operator").header("x-operator", latin)] {
        page(&proxy.send(unclear, String::new()).await, 403, "You are not signed in: the proxy names");
    }
    page(&proxy.get("/operator").await, 200, "<strong>ana</strong>");
    proxy.cookies.clear();
    // Its forms carry a token, too, which is the name's own.
    let token = hidden(&html, "token");
    let pause = |token: &str| format!("token={token}&sign-ups=pause&sure=yes");
    let post = || Request::post("/operator/sign-ups").header("x-operator", "ana");
    let sent = proxy.send(post().header("sec-fetch-site", "same-origin"), pause("x")).await;
    page(&sent, 400, "another session");
    page(&proxy.send(post().header("sec-fetch-site", "cross-site"), pause(&token)).await, 403, "not sent from");
    let sent = proxy.send(post().header("sec-fetch-site", "same-origin"), pause(&token)).await;
    page(&sent, 200, "Pause sign-ups?");
    let sure = format!("{}&asked={}", pause(&token), asked_of(&sent).unwrap());
    let sent = proxy.send(post().header("sec-fetch-site", "same-origin"), sure).await;
    assert_eq!(sent.status.as_u16(), 303);
    assert_eq!(audit(&server).last().unwrap().0, "ana (page)");
    // Removed, they are out.
    add(&server, "ben");
    server.run(&["operator", "remove", "ana"]);
    page(&proxy.send(named("ana"), String::new()).await, 403, "nobody of that name was added");
}

/// A page elsewhere may give this machine a name of its own (DNS rebinding), and a proxy that signs people in names them there, too.
#[tokio::test(flavor = "multi_thread")]
async fn whom_a_proxy_names_is_let_in_only_under_our_own_name() {
    let header = ["--operator-header", "X-Operator", "--operator-header-from", "127.0.7.1"];
    let own = ["--base-url", "https://api.union.example", "--join-site", "https://union.example", "--mail", "hold"];
    let ours = ["api.union.example", "API.union.example:443", "union.example"];
    let others = ["unionhall.test", "evil.example", "localhost", "127.0.0.1", "union.example.evil.example", ""];
    let of_this_machine = ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"];
    for (flags, ours, others) in [
        ([&header[..], &own].concat(), &ours[..], &others[..]),
        (header.to_vec(), &of_this_machine[..], &["unionhall.test", "evil.example", "localhost.evil.example", ""][..]),
    ] {
        let server = Server::start_with(&flags);
        add(&server, "ana");
        is_on(&server).await;
        let send = async |host: &str, request: hyper::http::request::Builder, body: &str| {
            let mut connection = Connection::over(server.dial(Ipv4Addr::new(127, 0, 7, 1)).await, host).await;
            connection.send(request.header("x-operator", "ana"), body.to_owned()).await
        };
        for host in ours {
            page(&send(host, Request::get("/operator"), "").await, 200, "<strong>ana</strong>");
        }
        let html = send(ours[0], Request::get("/operator"), "").await.text();
        let body = format!("token={}&sign-ups=pause", hidden(&html, "token"));
        for host in others {
            let refused = send(host, Request::get("/operator"), "").await;
            let html = page(&refused, 421, "asked for under another name");
            assert!(html.contains("--base-url") && !html.contains("Signed in as"), "{html}");
            let post = Request::post("/operator/sign-ups").header("sec-fetch-site", "same-origin");
            page(&send(host, post, &body).await, 421, "asked for under another name");
        }
        let post = Request::post("/operator/sign-ups").header("sec-fetch-site", "same-origin");
        page(&send(ours[0], post, &body).await, 200, "Pause sign-ups?");
    }
}

/// Without a session a form's token is of its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_a_proxys_operator_left_open_for_long_is_shown_again_as_it_was_typed() {
    let flags = ["--operator-header", "X-Operator", "--operator-header-from", "127.0.7.1"];
    let own = ["--base-url", "https://unionhall.test", "--join-site", "https://unionhall.test", "--mail", "hold"];
    let server = Server::start_with(&[&flags[..], &own].concat());
    add(&server, "ana");
    is_on(&server).await;
    let mut proxy = Browser::new(&server, 1);
    let post = || Request::post("/operator/people").header("x-operator", "ana");
    let post = || post().header("sec-fetch-site", "same-origin");
    let overview = proxy.send(Request::get("/operator").header("x-operator", "ana"), String::new()).await;
    let token = hidden(&page(&overview, 200, "Overview"), "token");
    let (until, proof) = token.split_once('.').expect("a time, and its proof");
    let now = Clock::start().now().time;
    let left = until.parse::<i64>().unwrap() - now.as_millis() / 1000;
    assert!((43_000..=43_200).contains(&left), "{left} seconds");
    // Nor can the time be changed.
    let later = until.parse::<i64>().unwrap() + 1;
    for forged in
        [format!("{later}.{proof}"), format!(".{proof}"), proof.to_owned(), format!("x.{proof}"), String::new()]
    {
        let sent = proxy.send(post(), form(&[("token", forged.as_str()), ("text", "<b>@example.com")])).await;
        page(&sent, 400, "another session");
    }
    let name: unionhall::domain::operator::OperatorName = "ana".parse().unwrap();
    let proofs = unionhall::domain::secret::operator::OperatorProofs::new(&server.records().secret());
    let owner = unionhall::domain::secret::operator::FormOwner::Named(&name);
    let ago = |seconds: i64| proofs.form_token(owner, Timestamp::from_millis(now.as_millis() - seconds * 1000));
    let fields = [("text", "<b>@example.com"), ("note", "two\r\nlines"), ("sure", "yes")];
    let sent = proxy.send(post(), form(&[&[("token", ago(43_300).as_str())], &fields[..]].concat())).await;
    let shown = page(&sent, 400, "was open for more than 12 hours");
    holds(&shown, &["&#60;b&#62;@example.com", "action=\"/operator/people\"", "Send it again"]);
    assert!(!shown.contains("name=\"sure\""), "it is asked again: {shown}");
    let again = [("token", hidden(&shown, "token")), ("text", "p@example.com".to_owned())];
    let again: Vec<_> = again.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sent = proxy.send(post(), form(&again)).await;
    page(&sent, 400, "Nobody has that address");
    let sent = proxy.send(post(), form(&[("token", &ago(43_000)), ("text", "p@example.com")])).await;
    page(&sent, 400, "Nobody has that address");
}

/// The key that a page shows.
#[track_caller]
pub(crate) fn key_on(html: &str) -> String {
    html.split("<code>uh_").nth(1).map(|rest| format!("uh_{}", rest.split('<').next().unwrap())).expect(html)
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_partners_are_issued_rotated_revoked_and_suspended() {
    let server = Server::start_with(&["--key-per-minute", "100000"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let works = async |key: &str| server.post("/v1/invite", key, sign_up("a@example.com")).await.status == 200;
    let name = "<b>Acme</b> & \"Co\"";
    let list = page(&ana.get("/operator/partners").await, 200, "No partners yet");
    let fields = [("name", name), ("form", &hidden(&list, "form"))];
    let issued = page(&act(&mut ana, "/operator/partners/issue", &fields).await, 200, "It is shown only now");
    let key = key_on(&issued);
    assert!(works(&key).await);
    // The same form again, as a reload sends it: nothing more is issued, and no key is shown.
    let again = page(&act(&mut ana, "/operator/partners/issue", &fields).await, 400, "was sent before");
    assert!(!again.contains(&key));
    assert_eq!(server.number("SELECT count(*) FROM api_keys"), 1);
    // Markup in a name is text.
    let id = server.number("SELECT id FROM partners");
    let path = format!("/operator/partners/{id}");
    for place in ["/operator/partners", &path, "/operator/audit", "/operator/mail", "/operator"] {
        let html = page(&ana.get(place).await, 200, "Signed in as");
        assert!(!html.contains("<b>Acme"), "{place}");
    }
    page(&ana.get(&path).await, 200, "&#60;b&#62;Acme");
    // A name that is nearly the same is asked about.
    let list = page(&ana.get("/operator/partners").await, 200, "Acme");
    let alike = [("name", "<B>acme</b> & \"Co\""), ("form", &hidden(&list, "form"))];
    page(&act(&mut ana, "/operator/partners/issue", &alike).await, 200, "Make a new partner?");
    for bad in ["", "https://acme.example", "the form"] {
        page(
            &act(&mut ana, "/operator/partners/issue", &[("name", bad), ("form", &hidden(&list, "form"))]).await,
            400,
            "Nothing was saved",
        );
    }
    page(&act(&mut ana, "/operator/partners/issue", &[("name", "New")]).await, 400, "A part of the form is missing");
    assert_eq!(server.number("SELECT count(*) FROM api_keys"), 1);
    // Rotated without grace, the old key ends, and the successor works.
    let old = &key[3..11];
    let asks = page(&act(&mut ana, "/operator/partners/rotate", &[("key", old)]).await, 200, "Rotate key");
    let fields = [("key", old), ("form", &hidden(&asks, "form")), ("grace", "0s"), ("sure", "yes")];
    let successor = key_on(&page(&act(&mut ana, "/operator/partners/rotate", &fields).await, 200, "replaces"));
    assert!(works(&successor).await);
    wait_for!(async || !works(&key).await).await;
    page(&act(&mut ana, "/operator/partners/rotate", &fields).await, 400, "was sent before");
    let over = page(&act(&mut ana, "/operator/partners/rotate", &[("key", "00000000")]).await, 400, "no key");
    assert!(!over.contains("uh_"));
    // Suspended, nothing works; resumed, it does; each once in the audit log.
    let partner = id.to_string();
    let suspend = |act| [("act", act), ("partner", partner.as_str())];
    page(&act(&mut ana, "/operator/partners/suspend", &suspend("suspend")).await, 200, "Suspend ");
    assert!(works(&successor).await, "only asked so far");
    for _ in 0..2 {
        let fields = [&suspend("suspend")[..], &[("sure", "yes")]].concat();
        page(&act(&mut ana, "/operator/partners/suspend", &fields).await, 200, "is suspended");
    }
    wait_for!(async || !works(&successor).await).await;
    page(&ana.get(&path).await, 200, "Suspended since");
    // The button of a page from before somebody suspended it anew asks.
    let stale = [&suspend("resume")[..], &[("since", "2020-01-01T00:00:00Z")]].concat();
    page(&act(&mut ana, "/operator/partners/suspend", &stale).await, 200, "Resume ");
    page(&ana.get(&path).await, 200, "Suspended since");
    let html = page(&ana.get(&path).await, 200, "name=\"since\"");
    let since = &hidden(&html, "since");
    for said in ["no longer suspended", "was not suspended"] {
        let fields = [&suspend("resume")[..], &[("since", since)]].concat();
        page(&act(&mut ana, "/operator/partners/suspend", &fields).await, 200, said);
    }
    wait_for!(async || works(&successor).await).await;
    // Revoked for good, once.
    let id = &successor[3..11];
    page(&act(&mut ana, "/operator/partners/revoke", &[("key", id)]).await, 200, "Revoke key");
    page(&act(&mut ana, "/operator/partners/revoke", &[("key", id), ("sure", "yes")]).await, 200, "is revoked.");
    page(&act(&mut ana, "/operator/partners/revoke", &[("key", id), ("sure", "yes")]).await, 200, "is revoked already");
    wait_for!(async || !works(&successor).await).await;
    page(&ana.get(&path).await, 200, "revoked");
    for wrong in ["/operator/partners/99", "/operator/partners/x"] {
        page(&ana.get(wrong).await, 404, "There is no such partner");
    }
    let done: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").collect();
    let commands: Vec<_> = done.iter().map(|(_, command, _)| command.as_str()).collect();
    assert_eq!(
        commands,
        ["page sign-in", "keys issue", "keys rotate", "partners suspend", "partners resume", "keys revoke"]
    );
    assert!(!format!("{done:?}{}", server.log()).contains(&successor));
}

#[tokio::test(flavor = "multi_thread")]
async fn held_mail_is_sent_or_deleted_by_source() {
    let (server, key) = crate::own_page::start();
    let mut ana = signed_in(&server, "ana", 1).await;
    for n in 0..3 {
        server.post("/v1/invite", &key, sign_up(&format!("p{n}@example.com"))).await.good();
    }
    let form = crate::pages::form(&[("email", "f@example.com"), ("consent", "true")]);
    server.submit(Request::post("/join"), form).await;
    assert_eq!(server.number("SELECT count(*) FROM outbox"), 4);
    server.execute("UPDATE outbox SET held_at = 1");
    let html = page(&ana.get("/operator/mail").await, 200, "Delete…");
    assert!(html.contains("The join form"), "{html}");
    let held = |server: &Server| server.number("SELECT count(*) FROM outbox WHERE held_at IS NOT NULL");
    let of = |act| [("act", act), ("source", "Acme Assistant")];
    page(
        &act(&mut ana, "/operator/mail", &of("drop")).await,
        200,
        "To be deleted: 3 mails held for partner Acme Assistant",
    );
    assert_eq!(held(&server), 4, "only asked so far");
    page(&act(&mut ana, "/operator/mail", &of("release")).await, 200, "3 mails are sent");
    assert_eq!(held(&server), 1);
    page(&act(&mut ana, "/operator/mail", &of("release")).await, 200, "No such mail is held");
    server.execute("UPDATE outbox SET held_at = 1");
    // What came to be held since was not asked about.
    let stale = asked_form(&mut ana, "/operator/mail", &of("drop")).await;
    server.post("/v1/invite", &key, sign_up("late@example.com")).await.good();
    server.execute("UPDATE outbox SET held_at = 1");
    let again = page(&press(&mut ana, "/operator/mail", &stale).await, 200, CHANGED);
    assert!(again.contains("To be deleted: 4 mails held") && held(&server) == 5, "{again}");
    server.execute("DELETE FROM outbox WHERE id = (SELECT max(id) FROM outbox)");
    let fields = [&of("drop")[..], &[("sure", "yes")]].concat();
    page(&act(&mut ana, "/operator/mail", &fields).await, 200, "3 mails were deleted, and their sign-ups ended");
    page(&act(&mut ana, "/operator/mail", &fields).await, 200, "No such mail is held");
    assert_eq!((held(&server), server.number("SELECT count(*) FROM sign_ups WHERE state = 'expired'")), (1, 3));
    let source = html.split("name=\"source\" value=\"").find(|part| !part.contains("Acme")).unwrap();
    assert!(!source.is_empty());
    page(&act(&mut ana, "/operator/mail", &[("act", "release"), ("source", "Nobody")]).await, 400, "no such source");
    page(&act(&mut ana, "/operator/mail", &[("act", "x"), ("source", "Acme Assistant")]).await, 400, "neither");
    let rows: Vec<_> = audit(&server).into_iter().filter(|(_, command, _)| command.starts_with("mail ")).collect();
    let row = |command: &str| ("ana (page)".to_owned(), command.to_owned(), "partner Acme Assistant".to_owned());
    assert_eq!(rows, [row("mail release"), row("mail drop")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_looked_up_and_erased_and_the_log_has_no_address() {
    let (server, key) = crate::own_page::start();
    let code = join(&server, &key, "Cleo@Example.com", None).await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let look = async |ana: &mut Browser<'_>, text: &str| act(ana, "/operator/people", &[("text", text)]).await;
    let told = page(&look(&mut ana, " cleo@example.COM ").await, 200, "Cleo@Example.com");
    assert!(told.contains("member since") && told.contains("through Acme Assistant"), "{told}");
    let account = server.rows("SELECT account FROM people")[0][0].clone();
    for text in [&code, &format!("http://x.example/joinus{code}"), &account] {
        page(&look(&mut ana, text).await, 200, "Cleo@Example.com");
    }
    for nobody in ["nobody@example.com", "cleo", "c", "@", "%", &"x".repeat(500)] {
        page(&look(&mut ana, nobody).await, 400, "Nobody has that address");
    }
    page(&look(&mut ana, " ").await, 400, "Type an address");
    let looks: Vec<_> = audit(&server).into_iter().filter(|(_, command, _)| command == "members show").collect();
    let about: Vec<_> = looks.iter().map(|(.., about)| about.as_str()).collect();
    let named = format!("account {account}");
    assert_eq!(about, [named.as_str(), &named, &named, &named, "nobody"]);
    // Erasing asks for the address again.
    let email = ("email", "cleo@example.com");
    page(&act(&mut ana, "/operator/people/erase", &[email]).await, 200, "Erase this person?");
    // That says who somebody is, and is audited as looking is: also where nobody is found.
    assert_eq!(audit(&server).last().unwrap().1, "members show");
    let count = || server.number("SELECT count(*) FROM audit WHERE command = 'members show'");
    assert_eq!(count(), 6);
    let stranger = ("email", "nobody@example.com");
    for fields in [&[stranger][..], &[stranger, ("sure", "yes"), ("typed", "nobody@example.com")]] {
        let before = count();
        page(&act(&mut ana, "/operator/people/erase", fields).await, 400, "Nobody has that address");
        assert!(count() > before && audit(&server).last().unwrap().2 == "nobody");
    }
    for typed in ["", "cleo", "cleo@example.org"] {
        let (before, fields) = (count(), [email, ("sure", "yes"), ("typed", typed)]);
        page(&act(&mut ana, "/operator/people/erase", &fields).await, 400, "Nothing was erased");
        assert_eq!(count(), before + 2, "asked, and refused");
    }
    assert_eq!(server.number("SELECT member_count FROM installation"), 1);
    let fields = [email, ("sure", "yes"), ("typed", "CLEO@example.com")];
    let done = page(&act(&mut ana, "/operator/people/erase", &fields).await, 200, "They were a member and are erased");
    assert!(done.contains(&format!("Kept: the code {code}")), "{done}");
    page(&act(&mut ana, "/operator/people/erase", &fields).await, 400, "Nobody has that address");
    assert_eq!(server.number("SELECT member_count FROM installation"), 0);
    page(&look(&mut ana, "cleo@example.com").await, 200, "Erased on");
    let all = audit(&server);
    let erased: Vec<_> = all.iter().filter(|(_, command, _)| command == "members erase").collect();
    assert_eq!(erased, [&("ana (page)".to_owned(), "members erase".to_owned(), named)]);
    assert_eq!(all[all.len() - 1].2, "somebody who was erased");
    assert!(!format!("{all:?}{}", server.log()).to_lowercase().contains("example.com"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_read_by_who_what_and_when_some_at_a_time() {
    let server = Server::start();
    let mut ana = signed_in(&server, "ana", 1).await;
    // 1970-01-02 and on, a row a minute; some by another.
    for n in 0..250 {
        let (at, who) = (86_400_000 + n * 60_000, if n % 50 == 0 { "ben" } else { "cleo" });
        server.execute(&format!(
            "INSERT INTO audit (at, who, command, about) VALUES ({at}, '{who}', 'keys issue', 'key {n:04}x')"
        ));
    }
    let rows = |html: &str| html.matches("<tr><td data-label=\"When\">").count();
    let first = page(&ana.get("/operator/audit").await, 200, "ana (page)");
    assert_eq!(rows(&first), 100);
    assert!(first.contains("0249x") && !first.contains("0100x"), "newest first");
    let mut older = first;
    let mut seen: i64 = 100;
    while let Some(link) = older.split("<a href=\"/operator/audit?").nth(1) {
        let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
        older = page(&ana.get(&format!("/operator/audit?{link}")).await, 200, "<h1>Audit");
        seen += i64::try_from(rows(&older)).unwrap();
    }
    assert_eq!(seen, server.number("SELECT count(*) FROM audit"), "each once");
    for (query, count) in [
        ("who=ben", 5),
        ("who=be", 0),
        ("what=0042X", 1),
        ("what=KEYS", 100),
        ("who=ben&what=0050", 1),
        ("since=1970-01-02&until=1970-01-02T00:05:00Z", 5),
        ("until=1970-01-02", 0),
        ("what=%3Cb%3E&before=x", 0),
        ("before=9.9.9&who=ben", 5),
    ] {
        let html = page(&ana.get(&format!("/operator/audit?{query}")).await, 200, "<h1>Audit");
        assert_eq!(rows(&html), count, "{query}");
        assert!(!html.contains("<b>"));
    }
    let html = page(&ana.get("/operator/audit?since=tomorrow&until=2027-13-01").await, 200, "From is no day");
    assert!(html.contains("Before is no day"), "all mistakes at once");
}

#[test]
fn the_commands_about_operators_say_what_helps() {
    let server = Server::start();
    let said = |arguments: &[&str]| {
        let output = server.try_run(arguments);
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, nobody, _) = said(&["operator", "list"]);
    assert!(nobody.contains("`unionhall operator add NAME` adds somebody"), "{nobody}");
    // Only the link is on standard output.
    let (_, link, aside) = said(&["operator", "add", "ana", "--base-url", "https://api.union.example/"]);
    let token = link.trim().strip_prefix("https://api.union.example/operator/enter/").unwrap();
    assert!(token.len() == 26 && link.lines().count() == 1, "{link}");
    assert!(aside.contains("within 15 minutes") && !aside.contains(token), "{aside}");
    // Where the service is, whatever this command would listen on.
    let (_, link, aside) = said(&["operator", "link", "ana", "--listen", ":9090"]);
    assert!(link.starts_with(&format!("http://{}/operator/enter/", server.address)), "{link}");
    assert!(!aside.contains("own settings"), "{aside}");
    for (arguments, why) in [
        (&["operator", "add", "ana"][..], "`unionhall operator link ana` makes a new link"),
        (&["operator", "link", "anna"], "did you mean ana?"),
        (&["operator", "remove", "ben"], "there is no operator called ben"),
        (&["operator", "add", "ana (page)"], "letters"),
        (&["operator", "add", "-"], "letters"),
    ] {
        let (done, _, told) = said(arguments);
        assert!(!done && told.contains(why), "{arguments:?}: {told}");
    }
    let about: Vec<_> = audit(&server).into_iter().map(|(_, command, about)| (command, about)).collect();
    let row = |command: &str| (command.to_owned(), "ana".to_owned());
    assert_eq!(about, [("operator add".to_owned(), "ana, role all".to_owned()), row("operator link")]);
    // One setting of the header needs the other.
    for flags in [&["--operator-header", "X-Operator"][..], &["--operator-header-from", "10.0.0.1"]] {
        let (done, _, told) = said(&[&["serve"], flags].concat());
        assert!(!done && told.contains("--operator-header"), "{told}");
    }
    // Whoever names the operator is not everybody.
    for everybody in ["0.0.0.0/0", "10.0.0.1,::/0"] {
        let (done, _, told) = said(&["serve", "--operator-header", "X-Operator", "--operator-header-from", everybody]);
        assert!(!done && told.contains("anyone could name themselves"), "{told}");
    }
}

/// Commands print what the last start of the service says of itself. One that differs is told of, once.
#[test]
fn links_and_names_are_those_of_the_service() {
    let home = Home::new();
    let command = |home: &Home, arguments: &[&str]| {
        let output = unionhall(home.path()).envs(home.records().settings()).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(output.stderr.clone()));
        (text(output.stdout), text(output.stderr))
    };
    home.prepare();
    command(&home, &["keys", "issue", "Acme", "--new"]);
    let (link, aside) = command(&home, &["operator", "add", "ana"]);
    assert!(link.starts_with("http://127.0.0.1:8080/operator/enter/"), "{link}");
    let own = "The service has not run with these records yet, so the link is made from this command's own settings.\n";
    assert!(aside.contains(own), "{aside}");

    let flags =
        |join_site| ["--base-url", "https://api.union.example", "--join-site", join_site, "--name", "Example Union"];
    let changed = "the settings differ from those of the last start on these records: ";
    let mut home = home;
    let log = |home: &Home| std::fs::read_to_string(home.path().join("stderr")).unwrap();
    for _ in 0..2 {
        home = Server::start_in(home, &flags("https://union.example")).stopped();
        assert!(!log(&home).contains(changed), "{}", log(&home));
    }
    let (link, aside) = command(&home, &["operator", "link", "ana"]);
    assert!(link.starts_with("https://api.union.example/operator/enter/") && !aside.contains(own), "{link} {aside}");
    let (link, _) = command(&home, &["operator", "link", "ana", "--base-url", "http://10.0.0.1"]);
    assert!(link.starts_with("http://10.0.0.1/operator/enter/"), "what is given wins: {link}");
    for process in ["negotiator", "mcp"] {
        let mut child = unionhall(home.path());
        child.envs(home.records().settings()).arg(process).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let begin =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
        child.stdin.take().unwrap().write_all(format!("{begin}\n").as_bytes()).unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert!(said.contains("Example Union") && !said.contains("127.0.0.1"), "{process}: {said}");
    }
    // Another node, or another start.
    home = Server::start_in(home, &flags("https://join.example")).stopped();
    let line = "join site https://join.example (before: https://union.example); commands print the new ones from now on, so give every node \
                the same";
    assert_eq!(log(&home).matches(&format!("{changed}{line}")).count(), 1, "{}", log(&home));
}
