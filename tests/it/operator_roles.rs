//! What each role may do on the operator's page: by its pages, by its forms, and by forms that somebody made up.

use crate::operator_page::{act, audit, path_of};
use crate::prelude::*;
use crate::reward_commands::{CAMPAIGN, union_with_groups};
use unionhall::domain::operator::Role;

use Role::{All, Look, Money, Support};

/// Each page with who sees it, and who sends its form.
const PAGES: &[(&str, Role, Option<Role>)] = &[
    ("/operator", Look, None),
    ("/operator/audit", Look, None),
    ("/operator/mail", Look, Some(Support)),
    ("/operator/mail/outbox", Look, Some(Support)),
    ("/operator/mail/test", Support, Some(Support)),
    ("/operator/mail/previews", Look, None),
    ("/operator/mail/previews/{name}", Look, None),
    ("/operator/mail/previews/{name}/html", Look, None),
    ("/operator/backup", Look, Some(All)),
    ("/operator/people", Support, Some(Support)),
    ("/operator/people/export", Support, Some(Support)),
    ("/operator/people/leave", Support, Some(Support)),
    ("/operator/people/unsuppress", Support, Some(Support)),
    ("/operator/people/retry", Support, Some(Support)),
    ("/operator/people/erase", Support, Some(Support)),
    ("/operator/partners", Look, None),
    ("/operator/partners/issue", Support, Some(Support)),
    ("/operator/partners/rotate", Look, Some(Support)),
    ("/operator/partners/revoke", Look, Some(Support)),
    ("/operator/partners/suspend", Look, Some(Support)),
    ("/operator/partners/withdraw", Look, Some(Support)),
    ("/operator/partners/test-keys", Look, None),
    ("/operator/partners/{partner}", Look, None),
    ("/operator/partners/{partner}/settings", Support, Some(Support)),
    ("/operator/partners/{partner}/webhooks", Support, Some(Support)),
    ("/operator/campaigns", Look, None),
    ("/operator/campaigns/{slug}", Look, Some(All)),
    ("/operator/new-campaign", All, Some(All)),
    ("/operator/campaigns/{slug}/edit", All, Some(All)),
    ("/operator/campaigns/{slug}/bid", All, Some(All)),
    ("/operator/campaigns/{slug}/offer", All, Some(All)),
    ("/operator/campaigns/{slug}/draft", Look, Some(All)),
    ("/operator/campaigns/{slug}/round", All, Some(All)),
    ("/operator/campaigns/{slug}/redact", Look, Some(All)),
    ("/operator/campaigns/{slug}/say", All, Some(All)),
    ("/operator/campaigns/{slug}/negotiator", Look, Some(All)),
    ("/operator/negotiator", Look, Some(All)),
    ("/operator/campaigns/{slug}/handover", Look, Some(Money)),
    ("/operator/campaigns/{slug}/settle", Look, Some(Money)),
    ("/operator/rewards", Look, None),
    ("/operator/rewards/batch", Look, Some(Money)),
    ("/operator/rewards/batches/{number}", Look, Some(Money)),
    ("/operator/rewards/settle", Look, Some(Money)),
    ("/operator/rewards/review", Money, None),
    ("/operator/rewards/accounts", Money, None),
    ("/operator/rewards/tax", Look, Some(Money)),
    ("/operator/rewards/void", Money, Some(Money)),
    ("/operator/sign-ups", Look, Some(Support)),
    // One's own, whatever the role.
    ("/operator/account", Look, Some(Look)),
    ("/operator/second-factor", Look, Some(Look)),
    ("/operator/sign-out", Look, Some(Look)),
];

/// For whoever is not signed in.
const OPEN: [&str; 3] = ["/operator/style.css", "/operator/enter/{token}", "/operator/sign-in"];

/// The rule, once more: written down, not asked of the program.
fn may(has: Role, needed: Role) -> bool {
    matches!((has, needed), (All, _) | (_, Look) | (Support, Support) | (Money, Money))
}

fn path(pattern: &str) -> String {
    pattern.replace("{partner}", "1").replace("{slug}", CAMPAIGN).replace("{number}", "1")
}

async fn signed_in_as<'a>(server: &'a Server, role: Role, n: u8) -> Browser<'a> {
    let link = path_of(&server.run(&["operator", "add", role.name(), "--role", role.name()]));
    wait_for!(async || server.get("/operator").await.status != 404).await;
    let mut browser = Browser::new(server, n);
    leads(&browser.post(&link, &[]).await, "/operator");
    browser
}

const REFUSED: &str = "Not for your role";

fn is_refused(answer: &Answer) -> bool {
    answer.status == 403 && answer.text().contains(REFUSED)
}

/// What no role may have changed: everything that an operator's act writes is audited.
fn acts(server: &Server) -> Vec<(String, String, String)> {
    let mut rows = audit(server);
    rows.retain(|(who, command, _)| who.ends_with(" (page)") && command != "page sign-in" && command != "members show");
    rows
}

#[test]
fn every_page_is_in_the_table() {
    let ours: BTreeMap<_, _> = unionhall::server::operator_roles().collect();
    let here = PAGES.iter().map(|(pattern, see, act)| (*pattern, Some((*see, *act))));
    let here: BTreeMap<_, _> = here.chain(OPEN.map(|pattern| (pattern, None))).collect();
    let names = |table: &BTreeMap<&'static str, _>| table.keys().copied().collect::<BTreeSet<_>>();
    assert_eq!(names(&ours), names(&here), "a new page of the operator's joins PAGES, with its roles");
    for (pattern, roles) in &here {
        assert_eq!(ours[pattern], *roles, "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_does_what_it_names_and_nothing_else() {
    let server = union_with_groups().await;
    let mut stranger = Browser::new(&server, 9);
    for (n, has) in [(1, Look), (2, Support), (3, Money), (4, All)] {
        let mut browser = signed_in_as(&server, has, n).await;
        let mut other = signed_in_of(&server, &format!("{}-2", has.name()), n + 10).await;
        let foreign = hidden(&page(&other.get("/operator").await, 200, "Overview"), "token");
        let before = acts(&server);
        for &(pattern, see, act_of) in PAGES {
            let here = path(pattern);
            // By the page.
            let shown = browser.get(&here).await;
            assert_eq!(is_refused(&shown), !may(has, see), "{} sees {here}: {shown:?}", has.name());
            // What it offers is what may be done.
            for action in forms(&shown.text()) {
                let needed = needed_for(&action);
                assert!(may(has, needed), "{} is offered {action} on {here}", has.name());
            }
            // One ends the session, and the other asks nothing, so whoever may press it has done it.
            let is_done_at_once = here == "/operator/sign-out" || here == "/operator/backup" && has == All;
            let Some(needed) = act_of.filter(|_| !is_done_at_once) else { continue };
            // By the form, with nothing in it: whoever may is told what is missing, or is asked.
            let sent = act(&mut browser, &here, &[]).await;
            assert_eq!(is_refused(&sent), !may(has, needed), "{} sends {here}: {sent:?}", has.name());
            assert_ne!(sent.status, 500, "{here}");
            // Sure of it at once, as if it had been asked.
            if !may(has, needed) {
                let sure =
                    [("sure", "yes"), ("asked", "x"), ("act", "release"), ("sign-ups", "resume"), ("step", "close")];
                assert!(is_refused(&act(&mut browser, &here, &sure).await), "{here}");
                assert_eq!(acts(&server), before, "{here}");
            }
            // Made up: with another's token, from another page, and by somebody who is not signed in.
            let made_up = browser.post(&here, &[("token", foreign.as_str()), ("sure", "yes")]).await;
            let status = if may(has, needed) { 400 } else { 403 };
            assert_eq!(made_up.status.as_u16(), status, "{here}: {made_up:?}");
            let elsewhere = Request::post(&here).header("sec-fetch-site", "cross-site");
            page(&browser.send(elsewhere, String::new()).await, 403, "not sent from this page");
            page(&stranger.post(&here, &[("token", foreign.as_str())]).await, 403, "You are not signed in");
        }
        assert_eq!(acts(&server), before, "{}: nothing was done by forms without an answer", has.name());
    }
    // A role is changed for good from the next request on.
    let mut browser = signed_in_of(&server, "dana", 20).await;
    assert!(!is_refused(&browser.get("/operator/people").await));
    server.run(&["operator", "change", "dana", "--role", "look"]);
    assert!(is_refused(&browser.get("/operator/people").await));
}

/// Somebody with every role.
async fn signed_in_of<'a>(server: &'a Server, name: &str, n: u8) -> Browser<'a> {
    crate::operator_page::signed_in(server, name, n).await
}

/// Where the forms of a page lead.
fn forms(html: &str) -> Vec<String> {
    let tags = html.split("<form").skip(1).filter_map(|form| form.split('>').next());
    let actions = tags.filter(|tag| tag.contains("method=\"post\"")).filter_map(|tag| tag.split("action=\"").nth(1));
    actions.map(|action| action.split('"').next().unwrap().to_owned()).collect()
}

fn needed_for(action: &str) -> Role {
    let fits = |pattern: &str| {
        let (mut theirs, mut ours) = (action.split('/'), pattern.split('/'));
        let all = theirs.by_ref().zip(ours.by_ref()).all(|(theirs, ours)| ours.starts_with('{') || ours == theirs);
        all && action.matches('/').count() == pattern.matches('/').count()
    };
    let found = PAGES.iter().find(|(pattern, ..)| *pattern == action).or_else(|| PAGES.iter().find(|(p, ..)| fits(p)));
    let (_, _, act) = found.unwrap_or_else(|| panic!("a form leads to {action}"));
    act.unwrap_or_else(|| panic!("{action} takes no form"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_says_who_may_do_what_by_groups() {
    let header = ["--operator-header", "X-Operator", "--operator-header-from", "127.0.7.1"];
    let groups = ["--operator-groups-header", "X-Groups", "--operator-groups", "desk=support,finance=money,leads=all"];
    let own = ["--base-url", "https://unionhall.test", "--join-site", "https://unionhall.test", "--mail", "hold"];
    let server = Server::start_with(&[&header[..], &groups, &own].concat());
    let (mut proxy, mut other) = (Browser::new(&server, 1), Browser::new(&server, 2));
    let asked = |path: &str, groups: &str| Request::get(path).header("x-operator", "eve").header("x-groups", groups);
    // Nobody was added: the proxy alone says who somebody is.
    for (groups, people, review) in
        [("desk", 200, 403), ("finance", 403, 200), ("staff, desk ,finance", 200, 200), ("leads", 200, 200)]
    {
        page(&proxy.send(asked("/operator", groups), String::new()).await, 200, "Signed in as");
        for (path, status) in [("/operator/people", people), ("/operator/rewards/review", review)] {
            let shown = proxy.send(asked(path, groups), String::new()).await;
            assert_eq!(shown.status.as_u16(), status, "{groups} {path}: {shown:?}");
        }
    }
    for none in ["", "staff", "DESK", "desk2", "desk;leads"] {
        page(&proxy.send(asked("/operator", none), String::new()).await, 403, "none of the groups");
    }
    // Two lists: one of them may be somebody's own.
    page(
        &proxy.send(asked("/operator", "staff").header("x-groups", "leads"), String::new()).await,
        403,
        "none of the groups",
    );
    page(&other.send(asked("/operator", "leads"), String::new()).await, 403, "You are not signed in");
    // One setting needs the other, and a role is one of four.
    for (flags, why) in [
        (&groups[..2], "--operator-groups"),
        (&groups[2..], "--operator-groups-header"),
        (
            &["--operator-groups-header", "X-Groups", "--operator-groups", "desk=root"][..],
            "one of look, support, money, all",
        ),
    ] {
        let output = server.try_run(&[&["serve"], &header[..], flags].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && told.contains(why), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_makes_a_batch_and_another_releases_it() {
    let server = union_with_groups().await;
    crate::reward_commands::listed(&server);
    // A start with the setting keeps it for commands, too.
    let home = server.stopped();
    let server = Server::start_in(home, &["--two-people", "--mail", "hold"]);
    let (mut ana, mut ben) = (signed_in_of(&server, "ana", 1).await, signed_in_of(&server, "ben", 2).await);
    assert_eq!(act(&mut ana, "/operator/rewards/batch", &[("sure", "yes")]).await.status.as_u16(), 303);
    let html = page(&ana.get("/operator/rewards").await, 200, "You made it: another operator downloads it");
    assert!(!html.contains("/operator/rewards/batches/1"), "{html}");
    page(&ben.get("/operator/rewards").await, 200, "/operator/rewards/batches/1");
    for _ in 0..2 {
        let own = act(&mut ana, "/operator/rewards/batches/1", &[("sure", "yes")]).await;
        page(&own, 200, "You made batch 1. Another operator has to download its file.");
    }
    assert_eq!(
        server.number("SELECT count(*) FROM payout_batches WHERE written_at IS NOT NULL OR closed_at IS NOT NULL"),
        0
    );
    let file = act(&mut ben, "/operator/rewards/batches/1", &[("sure", "yes")]).await;
    assert!(file.header("content-type").starts_with("text/csv") && file.text().lines().count() > 1, "{file:?}");
    // Once it is released, whoever made it may have it again.
    let again = act(&mut ana, "/operator/rewards/batches/1", &[("sure", "yes")]).await;
    assert_eq!(again.text(), file.text());
}
