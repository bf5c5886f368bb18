//! The site that people trust: their language, the union's own words and look, pictures of shared links; and the ways back from a
//! mistake, as a browser without scripts goes them.

use crate::mail::link;
use crate::prelude::*;

async fn read(server: &Server, path: &str, language: &str, cookie: &str) -> Answer {
    let request = Request::get(path).header("accept", "text/html").header("accept-language", language);
    server.send(request.header("cookie", cookie), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_and_its_pages_are_in_the_language_of_the_form_and_stay_so() {
    let (server, key) = Server::with_key(&[]);
    let sent = Request::post("/join").header("accept-language", "en");
    let sent = server.submit(sent, form(&[("email", "ana@example.com"), ("lang", "es")])).await;
    page(&sent, 200, "<html lang=\"es\">");
    let mail = letter(&server, 1).await;
    assert!(mail.contains("Content-Language") || mail.contains("/privacy"), "{mail}");
    let confirm = link(&mail, "/confirm/");
    // Opened where nothing says what its reader likes.
    let asked = page(&server.get(&confirm).await, 200, "<html lang=\"es\">");
    let notice = hidden(&asked, "notice");
    let press = server.submit(Request::post(&confirm), form(&[("notice", &notice), ("lang", "es")])).await;
    page(&press, 200, "<html lang=\"es\">");
    assert_eq!(server.rows("SELECT language FROM people WHERE email = 'ana@example.com'"), [["es"]]);
    let words = server.rows("SELECT text FROM notices JOIN sign_ups ON notice = hash WHERE state = 'confirmed'");
    assert!(words[0][0].starts_with("Al confirmar"), "the words that were read are kept: {words:?}");
    // Neither a stranger's post in another language nor a partner changes what the member chose.
    server.send(Request::post("/join"), form(&[("email", "ana@example.com"), ("lang", "en")])).await;
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(server.rows("SELECT language FROM people WHERE email = 'ana@example.com'"), [["es"]]);
}

/// Whoever said "this wasn't me" by mistake, and everything that they can do after it.
#[tokio::test(flavor = "multi_thread")]
async fn declining_by_mistake_is_taken_back_and_signing_up_again_is_mailed() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let mail = letter(&server, 1).await;
    let (confirm, decline) = (link(&mail, "/confirm/"), link(&mail, "/not-me/"));
    let act = async |fields: &[(&str, &str)]| server.submit(Request::post(&decline), form(fields)).await;
    // A scanner that posts nothing of ours takes nothing back.
    page(&act(&[("do", "take-back")]).await, 200, "Withdraw this sign-up?");
    page(&act(&[("do", "withdraw")]).await, 200, "The sign-up is withdrawn");
    let shown = page(&server.get(&confirm).await, 410, "Review and confirm");
    assert!(shown.contains(&decline[decline.find("/not-me/").unwrap()..]));
    page(&act(&[("do", "take-back"), ("seen", "1"), ("notice", "older words")]).await, 200, "The sign-up is withdrawn");
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 0);
    // Signing up again is mailed: nothing was silenced.
    server.execute("UPDATE mailboxes SET sent_1 = NULL, last_mail_id = NULL");
    page(&server.submit(Request::post("/join"), form(&[("email", "ana@example.com")])).await, 200, "Check your inbox");
    assert!(letter(&server, 2).await.contains("To: ana@example.com"));
    let shown = page(&server.get(&decline).await, 200, "It was me");
    let notice = hidden(&shown, "notice");
    page(&act(&[("do", "take-back"), ("notice", &notice)]).await, 200, "The sign-up is withdrawn");
    page(&act(&[("do", "take-back"), ("notice", &notice), ("seen", "1")]).await, 200, "The sign-up is withdrawn");
    let seen = hidden(&shown, "seen");
    let back = act(&[("do", "take-back"), ("notice", &notice), ("seen", &seen)]).await;
    page(&back, 200, "Welcome to the union");
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 1);
    page(&server.get(&confirm).await, 200, "already confirmed");
    let after = page(&server.get(&decline).await, 200, "You are now a member");
    assert!(!after.contains("It was me"));
    let keys = server.json(&["keys", "list", "--json"]);
    assert_eq!((&keys[0]["declined"], &keys[0]["confirmed"]), (&0.into(), &1.into()), "{keys}");
}

/// Pages say what is true for whoever holds an old link: a member, somebody who left, somebody whose time is over.
#[tokio::test(flavor = "multi_thread")]
async fn old_links_say_what_is_true_now() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let (confirm, decline) = (server.confirm_path(1), server.decline_path(1));
    // Declined, and its time is over: neither page leads to a button that is not there.
    server.send(Request::post(&decline), form(&[("do", "withdraw")])).await;
    server.execute("UPDATE sign_ups SET expires_at = 0");
    let again = page(&server.get(&confirm).await, 410, "That link has expired");
    assert!(again.contains("value=\"ana@example.com\"") && !again.contains("Review and confirm"));
    let withdrawn = page(&server.get(&decline).await, 200, "The sign-up is withdrawn");
    assert!(withdrawn.contains("Sign up again") && !withdrawn.contains("It was me"));
    // A member, by another sign-up; the second of which lapsed.
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(server.confirm(2).await.status, 200);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    server.execute("UPDATE sign_ups SET expires_at = 0 WHERE id = 3");
    for id in [1, 3] {
        page(&server.get(&server.confirm_path(id)).await, 200, "You are already a member");
    }
    page(&server.get(&server.decline_path(3)).await, 200, "You're a member and will stay one");
    // They left.
    server.run(&["members", "leave", "ana@example.com"]);
    page(&server.get(&server.confirm_path(2)).await, 200, "That membership has since ended");
    page(&server.get(&server.decline_path(2)).await, 200, "has since ended");
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reader_gets_the_language_they_ask_for_then_chose_then_like() {
        let server = Server::start();
        let (english, spanish) = ("<html lang=\"en\">", "<html lang=\"es\">");
        for path in ["/", "/join", "/joinus123", "/privacy", "/me", "/nothing-here", "/confirm/x"] {
            let status = if ["/nothing-here", "/confirm/x"].contains(&path) { 404 } else { 200 };
            page(&read(&server, path, "es-MX,es;q=0.9", "").await, status, spanish);
            page(&read(&server, path, "de", "").await, status, english);
            page(&read(&server, path, "en", "union-language=es").await, status, spanish);
        }
        let asked = read(&server, "/terms?lang=es", "en", "").await;
        page(&asked, 200, spanish);
        let cookie = asked.header("set-cookie");
        assert!(cookie.starts_with("union-language=es; Path=/; Max-Age=31536000"), "{cookie}");
        for path in ["/terms", "/terms?lang=xx", "/terms?lang=es%0d%0aset-cookie:x=y"] {
            let answer = read(&server, path, "es", "union-language=es").await;
            assert!(!answer.headers.contains_key("set-cookie"), "nobody gets a cookie who asked for none: {path}");
        }
        // The API speaks English to everybody.
        let refused =
            Request::post("/v1/invite").header("accept-language", "es").header("content-type", "application/json");
        let refused = server.send(refused, "{}").await;
        assert!(String::from_utf8_lossy(&refused.body).contains("key"), "{refused:?}");
        // The pages of trust end with the way to join.
        for (path, words) in [("about", "Join the union"), ("privacy", "Join the union"), ("terms?lang=es", "Unirme")] {
            let shown = page(&server.get(&format!("/{path}")).await, 200, words);
            let main = shown.split("</main>").next().unwrap().trim_end();
            assert!(main.ends_with("</a></p>") && main.rsplit("<p").next().unwrap().contains("href=\"/join\""));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_unions_own_words_and_look_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
        write("privacy.md", b"# Our promise\n\nWe *never* sell. <script>alert(1)</script>");
        write("privacy.es.md", b"Nunca vendemos.");
        write("theme.toml", b"main = \"#202060\"\nhighlight = \"#ffd080\"\nlogo = \"logo.svg\"\ncard = \"card.png\"");
        let card = [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &[0, 0, 4, 176, 0, 0, 2, 118], b"ours"].concat();
        write("card.png", &card);
        write("logo.svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>");
        let (pages, theme) =
            (folder.path().display().to_string(), folder.path().join("theme.toml").display().to_string());
        let server = Server::start_with(&["--pages", &pages, "--theme", &theme]);
        let shown = page(&server.get("/privacy").await, 200, "<h2>Our promise</h2>");
        assert!(shown.contains("<em>never</em>") && !shown.contains("<script"));
        page(&read(&server, "/privacy?lang=es", "", "").await, 200, "<p>Nunca vendemos.</p>");
        let style = server.get("/style.css").await.text();
        assert!(style.contains("--deep:#202060") && style.contains("--sun:#ffd080"));
        assert!(
            shown.contains(r#"<img class="mark" src="/logo""#) && shown.contains(r#"<link rel="icon" href="/logo">"#)
        );
        let logo = server.get("/logo").await;
        assert_eq!(logo.header("content-type"), "image/svg+xml");
        assert!(
            logo.header("content-security-policy").starts_with("default-src 'none'"),
            "a script in it does not run"
        );
        assert_eq!(logo.header("x-content-type-options"), "nosniff");
        let property = "<meta property=\"og:image:alt\" content=\"Consumer Union\">";
        assert!(
            page(&server.get("/join").await, 200, "og:image").contains(property),
            "the picture's words are not known"
        );
        for address in ["/card.png", "/card.png?lang=es"] {
            assert_eq!(server.get(address).await.body, card, "the operator's own picture, in every language");
        }
    }

    #[test]
    fn what_cannot_be_read_or_shown_is_told_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("theme.toml"), "main = \"#ccddee\"\nhighlight = \"#102030\"").unwrap();
        std::fs::write(folder.path().join("card.toml"), "card = \"none.png\"").unwrap();
        std::fs::create_dir(folder.path().join("pages")).unwrap();
        std::fs::write(folder.path().join("pages/imprint.md"), "x").unwrap();
        for (flags, told) in [
            (["--theme", "theme.toml"], &["too light", "too dark", "7 is needed"][..]),
            (["--theme", "card.toml"], &["card: cannot read none.png"]),
            (["--theme", "none.toml"], &["cannot read the theme", "UNIONHALL_THEME"]),
            (["--pages", "pages"], &["imprint.md is shown nowhere", "privacy.md", "UNIONHALL_PAGES"]),
        ] {
            let mut command = unionhall(folder.path());
            let refused = command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success());
            told.iter().for_each(|part| assert!(said.contains(part), "{part} in {said}"));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_shared_link_has_a_picture_that_anyone_may_ask_for() {
        let server = Server::start_with(&["--name", "Union <\"of\"> Ünïted & Co"]);
        let shown = page(&server.get("/joinus").await, 200, "og:image");
        let property = |name: &str| {
            let rest = shown.split(&format!("property=\"og:{name}\" content=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        assert!(property("image").ends_with("/card.png?lang=en") && property("image").starts_with("http"));
        assert_eq!(property("title"), "Join Union &#60;&#34;of&#34;&#62; Ünïted &#38; Co");
        assert_eq!(property("image:alt"), "Alone you ask. Together we bargain.");
        let first = server.get("/card.png").await;
        assert_eq!(
            (first.header("content-type"), first.header("cache-control")),
            ("image/png", "public, max-age=3600")
        );
        assert_eq!(&first.body[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&first.body[16..24], [0, 0, 4, 176, 0, 0, 2, 118], "1200 by 630 pixels");
        assert!(first.body.len() < 40_000, "{}", first.body.len());
        let named = Server::start_with(&["--name", "Unión de la Ciudad"]).get("/card.png").await;
        assert!(named.body != first.body && named.body.len() < 60_000, "one name can be written, the other cannot");
        assert_eq!(server.get("/card.png").await.body, first.body);
        let spanish = server.get("/card.png?lang=es").await;
        assert_ne!(spanish.body, first.body);
        assert!(!spanish.headers.contains_key("set-cookie"), "what caches keep for everybody is nobody's choice");
        assert_eq!(
            read(&server, "/card.png", "es", "union-language=es").await.body,
            first.body,
            "by its address alone"
        );
    }

    /// The form that comes back is the sender's own, and nothing is done by it.
    #[tokio::test(flavor = "multi_thread")]
    async fn changing_an_address_brings_the_form_back_and_signs_nobody_up() {
        let server = Server::start();
        let fields =
            [("email", "ana@example.com"), ("usState", "CA"), ("travel", "true"), ("otherComments", "<b>\r\nx")];
        let sent = server.submit(Request::post("/join"), form(&fields)).await;
        let shown = page(&sent, 200, "name=\"change\" value=\"true\"");
        holds(&shown, &["value=\"ana@example.com\"", "value=\"CA\"", "name=\"travel\" value=\"true\"", "&#60;b&#62;"]);
        let before = server.number("SELECT count(*) FROM sign_ups");
        let change: Vec<_> = fields.into_iter().chain([("change", "true")]).collect();
        let back = page(&server.submit(Request::post("/join"), form(&change)).await, 200, "<form");
        assert!(back.contains("value=\"ana@example.com\"") && back.contains("data-savings=\"350\" checked"));
        assert_eq!(server.number("SELECT count(*) FROM sign_ups"), before);
    }
}
