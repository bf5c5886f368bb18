//! The operator's page, as operators use it and as others would like to: the way in, the session, forms, and what is done there.

use std::time::Duration;

use crate::own_page::Browser;
use crate::pages::page;
use crate::server::{Answer, Server, block_on, wait_until};

/// The link that a command printed, as a path.
#[track_caller]
fn path_of(link: &str) -> String {
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
    let entered = browser.post(&link, &[]).await;
    assert_eq!((entered.status.as_u16(), entered.header("location")), (303, "/operator"), "{entered:?}");
    browser
}

/// Whether the page is there is believed for a second.
async fn is_on(server: &Server) {
    wait_until(Duration::from_secs(10), async || server.get("/operator").await.status != 404).await;
}

pub(crate) fn token_of(html: &str) -> String {
    html.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// Sends a form of a page, with the token that the page has.
async fn act(browser: &mut Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    let token = token_of(&page(&browser.get("/operator").await, 200, "Overview"));
    browser.post(path, &[&[("token", token.as_str())], fields].concat()).await
}

pub(crate) fn audit(server: &Server) -> Vec<(String, String, String)> {
    let rows = server.rows("SELECT who, command, about FROM audit ORDER BY id");
    rows.into_iter().map(|row| (row[0].clone(), row[1].clone(), row[2].clone())).collect()
}

#[test]
fn a_link_signs_in_once_and_what_is_done_is_audited_by_name() {
    block_on(async {
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
        assert_eq!((entered.status.as_u16(), entered.header("location")), (303, "/operator"));
        let cookie = entered.header("set-cookie");
        assert!(cookie.starts_with("union-operator=") && cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(cookie.contains("Max-Age=43200; "), "{cookie}");
        let overview = ana.get("/operator").await;
        assert_eq!(overview.header("cache-control"), "no-store");
        page(&overview, 200, "Signed in as <strong>ana</strong>");

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
            assert_eq!((paused.status.as_u16(), paused.header("location")), (303, "/operator"));
            let html = page(&ana.get("/operator").await, 200, "Sign-ups are paused");
            assert!(html.contains("<code>unionhall signups resume</code>"), "{html}");
        }
        act(&mut ana, "/operator/sign-ups", &[("sign-ups", "resume")]).await;
        page(&ana.get("/operator").await, 200, "Sign-ups are on");
        let done: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").collect();
        let expected = ["page sign-in", "signups pause", "signups resume"];
        assert_eq!(done.iter().map(|(_, command, _)| command.as_str()).collect::<Vec<_>>(), expected);

        // Out: a copy of the cookie is worth nothing.
        let copy = ana.cookies.clone();
        page(&act(&mut ana, "/operator/sign-out", &[]).await, 200, "Signed out");
        assert!(ana.cookies.is_empty());
        ana.cookies = copy;
        page(&ana.get("/operator").await, 403, "unionhall operator link NAME");
    });
}
