//! The turns between pages, where something could get lost: a friend's code, a form that was sent, a language, a way back.

use crate::campaign_pages;
use crate::own_page::{enter, invite, join, newest_request, start};
use crate::prelude::*;

fn leads(answer: &Answer, to: &str) {
    assert_eq!((answer.status.as_u16() / 100, answer.header("location")), (3, to), "{answer:?}");
}

/// The addresses that a page's links and forms lead to, those of files left out.
fn addresses(html: &str) -> Vec<String> {
    let links = [" href=\"/", " action=\"/"].into_iter().flat_map(|begin| html.split(begin).skip(1));
    let all = links.map(|rest| format!("/{}", rest.split('"').next().unwrap().replace("&amp;", "&")));
    all.filter(|address| !address.contains('.') && address != "/logo").collect()
}

/// By every link, from every page that a friend's link leads to, in either language.
#[tokio::test(flavor = "multi_thread")]
async fn a_friends_code_survives_every_link() {
    let (server, key) = start();
    let code = join(&server, &key, "friend@example.com", None).await;
    let mut looked_at = Vec::new();
    let mut next = vec![format!("/joinus{code}"), format!("/join?ref={code}")];
    while let Some(path) = next.pop() {
        let shown = page(&server.get(&path).await, 200, "</html>");
        if path.starts_with("/join") {
            assert!(shown.contains(&format!("name=\"refCode\" value=\"{code}\"")), "{path}");
        }
        for address in addresses(&shown) {
            assert!(address.contains(&code), "{path} leads to {address}");
            let is_form = ["/join?", "/me/"].iter().any(|form| address.starts_with(form));
            if !is_form && !looked_at.contains(&address) {
                looked_at.push(address.clone());
                next.push(address);
            }
        }
    }
    assert!(looked_at.len() > 10, "{looked_at:?}");
    // The form with a mistake, and the page after it, in another language too.
    let sent = |email: &'static str| form(&[("email", email), ("refCode", &code)]);
    let wrong = page(&server.submit(Request::post("/join"), sent("ana")).await, 200, "aria-invalid");
    let inbox = server.send(Request::post("/join"), sent("ana@example.com")).await;
    let (shown, spanish) = (inbox.header("location"), format!("{}?lang=es", inbox.header("location")));
    let shown = page(&server.get(shown).await, 200, "ana@example.com");
    let spanish = page(&server.get(&spanish).await, 200, "<html lang=\"es\">");
    assert!(spanish.contains("ana@example.com"), "the address that was typed");
    for html in [wrong, shown, spanish] {
        assert!(addresses(&html).iter().all(|address| address.contains(&code)), "{:?}", addresses(&html));
    }
    let lost = page(&server.get("/joinuszzzzzzzzzzzz").await, 200, "recognize this invitation link");
    assert!(addresses(&lost).contains(&"/join".to_owned()), "nobody's code is not handed on");
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_the_page_after_the_form_again_signs_nobody_up_again() {
    let (server, key) = start();
    join(&server, &key, "member@example.com", None).await;
    let sent = |email: &str| form(&[("email", email), ("otherComments", "Ring <b>after</b> six."), ("lang", "es")]);
    let post = async |email: &str| server.send(Request::post("/join"), sent(email)).await;
    let (new, known) = (post("newana@example.com").await, post("member@example.com").await);
    let place = new.header("location").to_owned();
    assert_eq!((new.status.as_u16(), new.body.len()), (303, 0));
    assert_eq!(place.len(), known.header("location").len(), "it does not tell who is a member");
    assert!(place.starts_with("/join/sent/") && !place.contains("ana"), "{place}");
    let count = || server.number("SELECT count(*) FROM sign_ups") + server.number("SELECT count(*) FROM outbox");
    let before = count();
    for _ in 0..3 {
        let shown = page(&server.get(&place).await, 200, "newana@example.com");
        assert!(shown.contains("<html lang=\"es\">") && shown.contains("Ring &#60;b&#62;after&#60;/b&#62; six."));
    }
    assert_eq!(count(), before);
    // What is none of ours, or was changed on the way, leads to the form.
    for other in ["/join/sent/x", &place[..place.len() - 1], &format!("{place}A")] {
        leads(&server.get(other).await, "/join");
    }
    let log = server.log();
    assert!(!log.contains(&place) && !log.contains("ana@"), "{log}");
}

/// Whoever left signs in by mail, takes everything along, and has it erased; and the operator lets mail reach them before its time.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_left_can_still_take_their_data_along_and_be_erased() {
    let (server, key) = start();
    let code = join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    leads(&ana.act("/me/leave", &[]).await, "/me?done=left");
    ana.act("/me/sign-out", &[]).await;
    assert!(!ana.is_signed_in().await);
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    ana.sign_in("ana@example.com").await;
    let shown = page(&ana.get("/me").await, 200, "no longer a member");
    assert!(shown.contains("href=\"/me/export\"") && shown.contains("href=\"/me/erase\""));
    let export: serde_json::Value = serde_json::from_slice(&ana.get("/me/export").await.body).unwrap();
    assert_eq!(export["email"], "ana@example.com");
    leads(&ana.act("/me/erase", &[]).await, "/me/erased");
    assert!(!page(&ana.get("/me/erased").await, 200, "ask").contains("unsuppress"), "no command for members");
    holds(&server.run(&["members", "unsuppress", "ana@example.com"]), &["that is lifted"]);
    assert_eq!(server.number("SELECT count(*) FROM people WHERE account IS NOT NULL AND erased_at IS NOT NULL"), 0);
    assert_eq!(invite(&server, &key, "ana@example.com", None).await, code);
    assert_eq!(server.number("SELECT count(*) FROM mailboxes WHERE suppressed_until > 0"), 0);
}

/// From a campaign, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_used_sign_in_link_leads_whoever_is_signed_in_to_their_page() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let link = enter(&server, newest_request(&server));
    let old = link.clone();
    assert!(ana.is_signed_in().await);
    // It is as old as a test needs it, and was used.
    server.execute("UPDATE sign_ins SET created_at = created_at + 3600001");
    let link = enter(&server, newest_request(&server));
    assert_ne!(link, old);
    leads(&ana.get(&link).await, "/me");
    leads(&ana.submit(&link, &[]).await, "/me");
    let mut stranger = Browser::new(&server, 2);
    page(&stranger.get(&link).await, 410, "Ask for a new link");
}

/// Loads a page of ours again and again, and in the other language: it is the same each time, and nothing is asked or done anew.
async fn stays(browser: &mut Browser<'_>, place: &str, parts: &[&str]) -> String {
    let shown = page(&browser.get(place).await, 200, parts[0]);
    holds(&shown, parts);
    assert_eq!(browser.get(place).await.text().replace("&#39;", "'"), shown, "{place}");
    let spanish = addresses(&shown).into_iter().find(|address| address.contains("lang=es")).unwrap();
    page(&browser.get(&spanish).await, 200, "<html lang=\"es\">");
    browser.cookies.remove("union-language");
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_with_its_mistakes_can_be_loaded_again_in_each_language() {
    let (server, key) = start();
    let code = invite(&server, &key, "friend@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let typed = [("email", "ana@"), ("usState", "XX"), ("travel", "true"), ("otherComments", "Two\r\n<b>lines</b>")];
    let mistaken = [&typed[..], &[("refCode", code.as_str()), ("lang", "en")]].concat();
    let sent = ana.post("/join", &mistaken).await;
    let place = sent.header("location").to_owned();
    assert!(sent.status == 303 && place.starts_with("/join/sent/") && !place.contains('@'), "{place}");
    let kept = ["value=\"ana@\"", "data-savings=\"350\" checked", "Two\n&#60;b&#62;lines", &*code, "noindex"];
    let told =
        [&["looks incomplete. A complete one", "Choose a state from the list", "<title>Problem: "], &kept[..]].concat();
    stays(&mut ana, &place, &told).await;
    let spanish = page(&ana.get(&format!("{place}?lang=es")).await, 200, "Elige un estado de la lista");
    holds(&spanish, &kept);
    ana.cookies.clear();
    // One more question, whose answer is not asked for again; and the form once more, to change it.
    let meant = ana.post("/join", &[("email", "ana@gmial.com"), ("lang", "en")]).await;
    stays(&mut ana, meant.header("location"), &["Did you mean", "name=\"sure\" value=\"ana@gmial.com\""]).await;
    let sure = [("email", "ana@gmial.com"), ("sure", "ana@gmial.com"), ("usState", "XX"), ("lang", "en")];
    let sure = ana.post("/join", &sure).await;
    let shown = stays(&mut ana, sure.header("location"), &["Choose a state from the list"]).await;
    assert!(!shown.contains("Did you mean"), "they have answered that");
    let change = ana.post("/join", &[("email", "ana@example.com"), ("change", "true"), ("lang", "en")]).await;
    stays(&mut ana, change.header("location"), &["Change your sign-up", "value=\"ana@example.com\""]).await;
    assert_eq!(server.number("SELECT count(*) FROM people WHERE email LIKE 'ana%'"), 0);
}

/// A proxy takes 4 KB of an answer's head. What is longer is shown at once, and nothing of it is lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_for_an_address_is_shown_at_once() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let all = unionhall::domain::catalog::category::Category::ALL.iter();
    let bills: Vec<_> = all.map(|category| (category.slug(), "true")).collect();
    for (comments, fits) in [("x".repeat(1000), true), ("é ".repeat(500), true), ("🏠".repeat(1000), false)] {
        for (email, n) in [("ben@", 2), ("ben@example.com", 3)] {
            let mut ben = Browser::new(&server, n);
            let fields = [&bills[..], &[("email", email), ("usState", "CA"), ("otherComments", &comments)]].concat();
            let sent = ben.post("/join", &fields).await;
            let place = sent.header("location").to_owned();
            assert_eq!((sent.status == 303, !place.is_empty()), (fits, fits), "{email}: {}", comments.len());
            assert!(place.len() < 3100, "{}", place.len());
            let shown = if fits { ben.get(&place).await.text() } else { sent.text() };
            holds(&shown, &[email, &comments]);
        }
        let sent = ana.change_answers(&[("usState", "XX"), ("otherComments", &comments)]).await;
        let place = sent.header("location").to_owned();
        assert_eq!((sent.status == 303, sent.status == 400), (fits, !fits));
        let shown = if fits { ana.get(&place).await.text() } else { sent.text() };
        holds(&shown, &["Choose a state from the list", &comments]);
    }
    assert_eq!(
        server.number("SELECT count(*) FROM sign_ups JOIN people ON people.id = person_id WHERE email LIKE 'ben%'"),
        3
    );
    let long = format!("{}@example.com", "é".repeat(5000));
    let asked = Browser::new(&server, 4).post("/me/sign-in", &[("email", &long)]).await;
    page(&asked, 400, "too long for an email address");
    assert!(asked.headers.get("set-cookie").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_were_not_taken_are_shown_again_to_their_own_session_alone() {
    let (server, key) = start();
    for email in ["ana@example.com", "eve@example.com"] {
        join(&server, &key, email, None).await;
    }
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let mut eve = Browser::member(&server, 2, "eve@example.com").await;
    let sent = ana.change_answers(&[("usState", "XX"), ("travel", "true"), ("otherComments", "my <i>words</i>")]).await;
    let place = sent.header("location").to_owned();
    assert!(place.starts_with("/me?again=") && !place.contains("words"), "{place}");
    let told =
        ["Nothing was saved", "Choose a state from the list", "my &#60;i&#62;words", "data-savings=\"350\" checked"];
    stays(&mut ana, &place, &told).await;
    let others = page(&eve.get(&place).await, 200, "Save my answers");
    assert!(!others.contains("words") && !others.contains("Nothing was saved"));
    page(&Browser::new(&server, 3).get(&place).await, 200, "Send me the email");
    // Nor is what another form sealed taken for answers.
    let joined = ana.post("/join", &[("email", "ana@"), ("usState", "XX"), ("otherComments", "elsewhere")]).await;
    let sealed = joined.header("location").rsplit('/').next().unwrap().to_owned();
    assert!(!ana.get(&format!("/me?again={sealed}")).await.text().contains("elsewhere"));
    let answers = place.rsplit('=').next().unwrap();
    leads(&ana.get(&format!("/join/sent/{answers}")).await, "/me");
}

/// A word in an address is believed as far as it can be true.
#[tokio::test(flavor = "multi_thread")]
async fn why_a_press_was_refused_is_told_as_long_as_it_is_so() {
    let (server, key) = start();
    campaign_pages::open(&server, "west", "states = [\"CA\", \"OR\"]").await;
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let path = "/campaigns/west";
    for (fields, word, told) in [
        (&[("press", "in")][..], "state", "Choose the state you live in"),
        (&[("press", "in"), ("usState", "NY")], "other-state", "You weren't counted in, and your answers stay"),
        (&[("press", "in"), ("usState", "XX")], "no-state", "Choose a state from the list"),
        (&[("press", "accept")], "no-offer", "There is no offer yet"),
        (&[("press", "trouble")], "trouble", "no order in this campaign"),
        (&[("press", "x")], "not-whole", "arrived incomplete"),
    ] {
        leads(&ana.act(path, fields).await, &format!("{path}?refused={word}"));
        let shown = stays(&mut ana, &format!("{path}?refused={word}"), &["Nothing was changed", told]).await;
        assert!(shown.contains("<title>Problem: ") && shown.contains("role=\"alert\" tabindex=\"-1\" autofocus"));
    }
    for untrue in ["over", "counting-over", "accepting-over", "offer-changed", "customer", "left", "nothing", ""] {
        let shown = page(&ana.get(&format!("{path}?refused={untrue}")).await, 200, "Count me in");
        assert!(!shown.contains("role=\"alert\""), "{untrue}");
    }
    let stranger = server.get(&format!("{path}?refused=state")).await.text();
    assert!(!stranger.contains("role=\"alert\""), "whoever is not signed in pressed nothing");
    // Once they are in, none of it is so.
    leads(&ana.act(path, &[("press", "in"), ("usState", "CA")]).await, &format!("{path}?done=in"));
    for over in ["state", "other-state"] {
        assert!(!ana.get(&format!("{path}?refused={over}")).await.text().contains("role=\"alert\""), "{over}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_is_asked_for_while_the_request_of_this_browser_waits() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    leads(&ana.post("/me/sign-in", &[("email", "ana@")]).await, "/me/sign-in");
    let told = ["looks incomplete", "value=\"ana@\"", "aria-invalid=\"true\"", "autofocus"];
    let mistake = stays(&mut ana, "/me/sign-in", &told).await;
    assert!(!mistake.contains("name=\"code\"") && !mistake.contains("Type it here"));
    let asked = ana.post("/me/sign-in", &[("email", "ana@example.com")]).await;
    leads(&asked, "/me/sign-in");
    assert!(!asked.header("set-cookie").contains("ana"), "{}", asked.header("set-cookie"));
    for path in ["/me/sign-in", "/me/code", "/me/sign-in?refused=code", "/me/sign-in?refused=code-form"] {
        let shown = stays(&mut ana, path, &["ana@example.com", "name=\"code\"", "href=\"/me\">ask again"]).await;
        assert_eq!(shown.contains("aria-invalid"), path.contains("refused"), "{path}");
    }
    // The form is there as well, and leads to the code; nobody else's browser is told of a code.
    holds(&page(&ana.get("/me").await, 200, "Send me the email"), &["href=\"/me/sign-in\">Type it here"]);
    let mut eve = Browser::new(&server, 2);
    for path in ["/me", "/me/sign-in", "/me/code"] {
        let shown = page(&eve.get(path).await, 200, "Send me the email");
        assert!(!shown.contains("Type it here") && !shown.contains("name=\"code\""), "{path}");
    }
    page(&eve.submit("/me/code", &[("code", "1234-5678")]).await, 200, "That code is wrong or has expired");
    // It is nobody's who cannot read it, and over once they are in.
    let cookie = ana.cookies["union-asked"].clone();
    eve.cookies.insert("union-asked".to_owned(), format!("{cookie}A"));
    page(&eve.get("/me/sign-in").await, 200, "Send me the email");
    leads(&ana.post(&enter(&server, newest_request(&server)), &[]).await, "/me");
    page(&ana.get("/me/sign-in").await, 200, "Sign out everywhere");
    leads(&ana.act("/me/sign-out", &[]).await, "/me?done=signed-out");
    stays(&mut ana, "/me?done=signed-out", &["You're signed out in this browser.", "Send me the email"]).await;
    page(&ana.get("/me/sign-in").await, 200, "Send me the email");
    let log = server.log();
    assert!(!log.contains("ana@") && !log.contains(&cookie), "{log}");
}

/// By the code or by the link, in the browser that asked; a link elsewhere leads to one's own page.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_by_mail_leads_on_to_what_it_was_asked_for() {
    let (server, key) = start();
    for (n, wanted, from, to) in [
        (1, "leave", "/me/leave", "/me/leave"),
        (2, "erase", "/me/erase", "/me/erase"),
        (3, "data", "/me/export", "/me#data"),
    ] {
        let email = format!("ana{n}@example.com");
        invite(&server, &key, &email, None).await;
        let mut ana = Browser::new(&server, n);
        page(&ana.submit(&server.confirm_path(i64::from(n)), &[]).await, 200, "Welcome to the union");
        let shown = ana.get(from).await.text();
        holds(&shown, &["First, sign in by email", &format!("name=\"wanted\" value=\"{wanted}\""), &email]);
        let fields = [("email", email.as_str()), ("wanted", wanted)];
        let shown = page(&ana.submit("/me/sign-in", &fields).await, 200, "name=\"code\"");
        assert!(shown.contains(&format!("href=\"{from}\">ask again")), "where the form is");
        let request = newest_request(&server);
        let code = TokenMaker::new(&server.records().secret()).sign_in_code(request).to_string();
        leads(&ana.post("/me/code", &[("code", &code)]).await, to);
        leads(&ana.get(&enter(&server, request)).await, "/me");
        assert_eq!(ana.get(from).await.status, 200);
    }
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    let (mut here, mut there) = (Browser::new(&server, 4), Browser::new(&server, 5));
    for (browser, to) in [(0, "/me/leave"), (1, "/me")] {
        here.post("/me/sign-in", &[("email", "ana1@example.com"), ("wanted", "leave")]).await;
        let link = enter(&server, newest_request(&server));
        let entered = if browser == 0 { here.post(&link, &[]).await } else { there.post(&link, &[]).await };
        leads(&entered, to);
        server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    }
    let odd = [("email", "ana1@example.com"), ("wanted", "https://evil.example")];
    here.post("/me/sign-in", &odd).await;
    leads(&here.post(&enter(&server, newest_request(&server)), &[]).await, "/me");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_welcome_can_be_loaded_again_while_it_is_true() {
    let (server, key) = start();
    campaign_pages::open(&server, "everywhere", "").await;
    for email in ["ana@example.com", "ben@example.com"] {
        invite(&server, &key, email, None).await;
    }
    let (mut ana, mut ben) = (Browser::new(&server, 1), Browser::new(&server, 2));
    let confirm = server.confirm_path(1);
    page(&server.get(&format!("{confirm}?done=welcome")).await, 200, "Confirm and join");
    let welcome = format!("{confirm}?done=welcome");
    leads(&ana.post(&confirm, &[]).await, &welcome);
    let shown = stays(&mut ana, &welcome, &["Welcome to the union", "What you can do next", "Count me in"]).await;
    let spanish = page(&ana.get(&format!("{welcome}&lang=es")).await, 200, "Te damos la bienvenida");
    assert!(spanish.contains("Título de everywhere"));
    ana.cookies.remove("union-language");
    let pressed = [("token", hidden(&shown, "token")), ("press", "in".to_owned())];
    let pressed = pressed.each_ref().map(|(name, value)| (*name, value.as_str()));
    leads(&ana.post("/campaigns/everywhere", &pressed).await, "/campaigns/everywhere?done=in");
    let after = stays(&mut ana, &welcome, &["Welcome to the union", "Count me out"]).await;
    assert!(!after.contains("Count me in<"));
    // Without the session, or with somebody else's, what is nobody's secret.
    ben.submit(&server.confirm_path(2), &[]).await;
    for shown in [server.get(&welcome).await, ben.get(&welcome).await] {
        let shown = page(&shown, 200, "Welcome to the union");
        assert!(!shown.contains("name=\"token\"") && !shown.contains("What you can do next"));
    }
    page(&ana.get(&confirm).await, 200, "already confirmed");
    server.execute("UPDATE sign_ups SET decided_at = decided_at - 86400000");
    server.execute("UPDATE people SET joined_at = joined_at - 86400000");
    page(&ana.get(&welcome).await, 200, "already confirmed");
    // Another sign-up of a member made nobody one; and whoever left is welcomed no more.
    server.run(&["members", "leave", "ben@example.com"]);
    page(&ben.get(&format!("{}?done=welcome", server.confirm_path(2))).await, 200, "has since ended");
}

/// What a mail program presses is answered at once (RFC 8058); what a person presses leads to a page.
#[tokio::test(flavor = "multi_thread")]
async fn this_was_not_me_leads_to_what_became_of_it() {
    let (server, key) = start();
    for email in ["ana@example.com", "ben@example.com"] {
        invite(&server, &key, email, None).await;
    }
    let (mut ana, decline, confirm) = (Browser::new(&server, 1), server.decline_path(1), server.confirm_path(1));
    leads(&ana.post(&decline, &[("do", "withdraw")]).await, &decline);
    stays(&mut ana, &decline, &["The sign-up is withdrawn", "It was me"]).await;
    let saved = format!("{decline}?done=saved");
    leads(&ana.post(&decline, &[("do", "choose"), ("mailbox", "silence")]).await, &saved);
    stays(&mut ana, &saved, &["Your choice is saved."]).await;
    leads(&ana.post(&decline, &[("do", "take-back")]).await, &decline);
    let shown = ana.get(&decline).await.text();
    let (notice, seen) = (hidden(&shown, "notice"), hidden(&shown, "seen"));
    let fields = [("do", "take-back"), ("notice", notice.as_str()), ("seen", seen.as_str())];
    leads(&ana.post(&decline, &fields).await, &format!("{confirm}?done=welcome"));
    stays(&mut ana, &format!("{confirm}?done=welcome"), &["Welcome to the union"]).await;
    leads(&ana.post(&confirm, &[]).await, &confirm);
    leads(&ana.post(&decline, &[("do", "withdraw")]).await, &decline);
    stays(&mut ana, &decline, &["This sign-up was confirmed"]).await;
    let one_click = server.send(Request::post(server.decline_path(2)), "List-Unsubscribe=One-Click").await;
    page(&one_click, 200, "The sign-up is withdrawn");
    leads(&ana.post(&server.confirm_path(2), &[]).await, &server.confirm_path(2));
}

/// A friend's code is handed on by what a form leads to, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_friends_code_survives_what_is_sent() {
    let (server, key) = start();
    let code = join(&server, &key, "friend@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let asked = ana.post(&format!("/me/sign-in?ref={code}"), &[("email", "ana@example.com")]).await;
    leads(&asked, &format!("/me/sign-in?ref={code}"));
    let wrong = ana.post(&format!("/me/code?ref={code}"), &[("code", "1")]).await;
    leads(&wrong, &format!("/me/sign-in?refused=code-form&ref={code}"));
    let shown = page(&ana.follow(wrong).await, 200, "eight letters and digits");
    assert!(addresses(&shown).iter().all(|address| address.contains(&code)), "{:?}", addresses(&shown));
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn codes_paths_and_addresses_are_read_as_people_paste_them() {
        let (server, key) = start();
        let code = invite(&server, &key, "friend@example.com", None).await;
        let kept = format!("name=\"refCode\" value=\"{code}\"");
        let capitals = code.to_uppercase();
        for path in [format!("/joinus{code}."), format!("/joinus{capitals}"), format!("/joinus{code}%20")] {
            page(&server.get(&path).await, 200, &kept);
        }
        for path in [format!("/joinus{code}/"), format!("/JOINUS{capitals}"), format!("/JoinUs{code}//")] {
            leads(&server.get(&path).await, &format!("/joinus{code}"));
        }
        leads(&server.get(&format!("/joinus{code}./?lang=es")).await, &format!("/joinus{code}.?lang=es"));
        for page in ["/join", "/about", "/privacy", "/terms", "/campaigns", "/me", "/docs", "/me/enter/x"] {
            leads(&server.get(&format!("{page}/?x=y")).await, &format!("{page}?x=y"));
        }
        leads(&server.get("/About").await, "/about");
        // Programs are told, and never led elsewhere; nor is anybody to another host.
        for path in ["/v1/stats/", "/mcp/", "/openapi.json/", "//evil.example/", "//about", "/nothing/"] {
            assert_eq!(server.get(path).await.status, 404, "{path}");
        }
        assert_eq!(server.send(Request::post("/join/"), "").await.status, 404);

        let sent = async |fields: &[(&str, &str)]| server.send(Request::post("/join"), form(fields)).await;
        let wrong = sent(&[("email", "maria@gmail"), ("lang", "en")]).await;
        let shown = page(&server.get(wrong.header("location")).await, 200, "looks incomplete");
        assert_eq!(shown.matches("looks incomplete").count(), 1);
        assert!(shown.contains("name=\"instead\" value=\"maria@gmail.com\""), "{shown}");
        let taken = sent(&[("email", "maria@gmail"), ("instead", "maria@gmail.com")]).await;
        page(&server.get(taken.header("location")).await, 200, "maria@gmail.com");
    }
}

/// Without scripts a suggestion stays beside an address that was edited: its button names one address and the field another.
#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_beside_an_edited_address_is_asked_about_again() {
    let server = Server::start();
    let pressed = form(&[("email", "kim@example.com"), ("asked", "kim@gmial.com"), ("instead", "kim@gmail.com")]);
    let asks = "Did you mean <strong>kim@gmail.com</strong>?";
    let shown = page(&server.submit(Request::post("/join"), pressed).await, 200, asks);
    for field in ["name=\"asked\" value=\"kim@example.com\"", "name=\"sure\" value=\"kim@example.com\""] {
        assert!(shown.contains(field), "{field} in {shown}");
    }
    assert_eq!(server.number("SELECT count(*) FROM sign_ups"), 0);
}
