//! The turns between pages, where something could get lost: a friend's code, a form that was sent, a language, a way back.

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
    let wrong = page(&server.send(Request::post("/join"), sent("ana")).await, 400, "aria-invalid");
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
    leads(&ana.post(&link, &[]).await, "/me");
    let mut stranger = Browser::new(&server, 2);
    page(&stranger.get(&link).await, 410, "Ask for a new link");
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
        let shown = page(&sent(&[("email", "maria@gmail"), ("lang", "en")]).await, 400, "looks incomplete");
        assert_eq!(shown.matches("looks incomplete").count(), 1);
        assert!(shown.contains("name=\"instead\" value=\"maria@gmail.com\""), "{shown}");
        let taken = sent(&[("email", "maria@gmail"), ("instead", "maria@gmail.com")]).await;
        page(&server.get(taken.header("location")).await, 200, "maria@gmail.com");
    }
}
