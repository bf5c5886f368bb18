//! After confirming: the press that makes somebody a member signs them in, and what such a session cannot do.

use crate::own_page::{Browser, invite, join, start};
use crate::prelude::*;

/// The newest sign-up.
fn newest(server: &Server) -> i64 {
    server.number("SELECT max(id) FROM sign_ups")
}

/// The only press that signs in is the one that joins, sent from our own page.
#[tokio::test(flavor = "multi_thread")]
async fn the_press_that_joins_signs_in_from_our_own_page_alone() {
    let (server, key) = start();
    let mut n = 0;
    for (name, value, signs_in) in [
        ("sec-fetch-site", "same-origin", true),
        ("origin", "http://unionhall.test", true),
        ("sec-fetch-site", "cross-site", false),
        ("sec-fetch-site", "same-site", false),
        ("origin", "https://evil.example", false),
        ("origin", "null", false),
        ("x-nothing", "said", false),
    ] {
        n += 1;
        invite(&server, &key, &format!("ana{n}@example.com"), None).await;
        let (confirm, mut browser) = (server.confirm_path(newest(&server)), Browser::new(&server, n));
        page(&browser.get(&confirm).await, 200, "Confirm and join");
        assert!(browser.cookies.is_empty(), "looking signs nobody in");
        let pressed = browser.send(Request::post(&confirm).header(name, value), String::new()).await;
        page(&browser.follow(pressed).await, 200, "Welcome to the union");
        assert_eq!(browser.is_signed_in().await, signs_in, "{name}: {value}");
        // A second press finds a member: whoever holds the mail later is not signed in by it.
        let mut second = Browser::new(&server, 100 + n);
        page(&second.submit(&confirm, &[]).await, 200, "already confirmed");
        page(&second.submit(&server.decline_path(newest(&server)), &[("do", "take-back")]).await, 200, "confirmed");
        assert!(second.cookies.is_empty(), "{name}: {value}");
    }
    // Nor does a press that comes to nothing.
    invite(&server, &key, "ben@example.com", None).await;
    let (sign_up, mut ben) = (newest(&server), Browser::new(&server, 90));
    let confirm = server.confirm_path(sign_up);
    page(&ben.submit(&confirm, &[("notice", "older words")]).await, 200, "has changed since you opened it");
    page(&ben.submit(&confirm, &[("seen", "1")]).await, 200, "has changed since you opened it");
    assert!(ben.cookies.is_empty());
    // Taking back "this wasn't me" makes a member as well.
    let decline = server.decline_path(sign_up);
    let shown = page(&ben.submit(&decline, &[("do", "withdraw")]).await, 200, "The sign-up is withdrawn");
    assert!(ben.cookies.is_empty());
    let (notice, seen) = (hidden(&shown, "notice"), hidden(&shown, "seen"));
    let fields = [("do", "take-back"), ("notice", notice.as_str()), ("seen", seen.as_str())];
    page(&ben.submit(&decline, &fields).await, 200, "Welcome to the union");
    assert!(ben.is_signed_in().await);
    let mut again = Browser::new(&server, 91);
    again.post(&decline, &fields).await;
    assert!(again.cookies.is_empty());
}

/// Whoever pressed the button may have been a program that follows mailed links.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_came_of_joining_cannot_export_leave_or_erase() {
    let (server, key) = start();
    invite(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    page(&ana.submit(&server.confirm_path(1), &[]).await, 200, "Welcome to the union");
    let why = "First, check your email";
    for (path, status) in [("/me/leave", 200), ("/me/erase", 200), ("/me/export", 403)] {
        let asked = page(&ana.get(path).await, status, why);
        assert!(asked.contains("value=\"ana@example.com\"") && asked.contains("Send me the email"), "{path}");
        assert!(asked.contains(&format!("<title>{why}")), "it is called what it is");
    }
    for path in ["/me/leave", "/me/erase"] {
        page(&ana.acted(path, &[]).await, 200, why);
    }
    page(&ana.get("/me/leave?lang=es").await, 200, "Primero, revisa tu correo");
    ana.cookies.remove("union-language");
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 1);
    // All else works.
    leads(&ana.change_answers(&[("usState", "CA"), ("internet", "true")]).await, "/me?done=answers");
    // The cookie says which of the two it is, and nobody can change that.
    let joined = ana.cookies["union"].clone();
    assert!(joined.contains(".join."), "{joined}");
    ana.cookies.insert("union".to_owned(), joined.replace(".join.", ".mail."));
    assert!(!ana.is_signed_in().await);

    ana.cookies.clear();
    ana.sign_in("ana@example.com").await;
    page(&ana.get("/me/erase").await, 200, "Erase everything now");
    assert_eq!(ana.get("/me/export").await.status, 200);
    // Signing out everywhere ends both kinds.
    let mut elsewhere = Browser::new(&server, 2);
    elsewhere.cookies.insert("union".to_owned(), joined);
    assert!(elsewhere.is_signed_in().await);
    page(&ana.acted("/me/sign-out", &[("everywhere", "true")]).await, 200, "signed out everywhere");
    assert!(!elsewhere.is_signed_in().await);
    ana.sign_in("ana@example.com").await;
    leads(&ana.act("/me/leave", &[]).await, "/me?done=left");
}

/// Every page leads to their own; only the store knows whether a cookie still opens it, and whoever left is asked to sign up.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_signed_in_is_greeted_and_not_asked_to_sign_up() {
    let (server, key) = start();
    let code = join(&server, &key, "ana@example.com", None).await;
    let sign_in = "<a class=\"own\" href=\"/me\">Sign in</a>";
    let own_page = "<a class=\"own\" href=\"/me\">Your page</a>";
    let joining = ["/join".to_owned(), format!("/joinus{code}")];
    for path in &joining {
        assert!(page(&server.get(path).await, 200, "name=\"email\"").contains("Sign in</a>"));
    }
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    for path in &joining {
        let greeted = page(&ana.get(path).await, 200, "Welcome back");
        assert!(!greeted.contains("<form") && !greeted.contains("ana@"), "{greeted}");
    }
    page(&ana.get("/join?lang=es").await, 200, "href=\"/me\">Tu página</a>");
    ana.cookies.remove("union-language");
    for path in ["/about", "/campaigns", "/me"] {
        page(&ana.get(path).await, 200, own_page);
    }
    page(&server.get("/about").await, 200, sign_in);
    // Signed out everywhere, by another browser.
    let kept = ana.cookies.clone();
    ana.act("/me/sign-out", &[("everywhere", "true")]).await;
    ana.cookies = kept;
    page(&ana.get("/join").await, 200, "name=\"email\"");
    page(&ana.get("/me").await, 200, sign_in);
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    ana.cookies.clear();
    ana.sign_in("ana@example.com").await;
    leads(&ana.act("/me/leave", &[]).await, "/me?done=left");
    page(&ana.get("/join").await, 200, "name=\"email\"");
}
