//! Every link of every mail, followed through the shipped files of the proxies: it shows its page, and leaves its token in no log.

use crate::campaign_pages;
use crate::prelude::*;
use unionhall::domain::campaign::acceptance::Reference;
use unionhall::domain::mail::MailKind;

use super::deploy::HERE;

const CAMPAIGN: &str = "internet-2099";

/// What is between `https://` and the next character that no link of ours has.
fn links(text: &str) -> impl Iterator<Item = String> + '_ {
    let link = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/.-_?=&;#:".contains(c)).unwrap_or(rest.len());
        format!("https://{}", rest[..end].trim_end_matches('.').replace("&amp;", "&"))
    };
    text.split("https://").skip(1).map(link)
}

/// The page that each path leads to, by its title.
fn title(path: &str) -> &'static str {
    let pages = [
        ("/confirm/", "Confirm your sign-up"),
        ("/not-me/", "Withdraw this "),
        ("/already-member/", "You are already a member"),
        ("/me/enter/", "Sign in"),
        ("/me", "Your page"),
        ("/joinus", "You&#39;re invited"),
        ("/privacy", "Privacy"),
        ("/terms", "Terms"),
        ("/campaigns/internet-2099", "Title of internet-2099"),
        ("/unsubscribe/", "Turn off this kind of email?"),
    ];
    pages.iter().find(|(page, _)| path.starts_with(page)).unwrap_or_else(|| panic!("{path} is no page of mails")).1
}

/// What in a link is a token, wherever it stands: nothing else there is so long.
fn tokens(link: &str) -> impl Iterator<Item = &str> {
    link.split(['/', '?', '&', '=', '#']).filter(|part| part.len() >= 20)
}

/// Asks for a link as a browser does: by the name in it.
async fn follow(front: &Proxy, link: &str, method: &str, body: &str) -> Answer {
    let (host, path) = link.strip_prefix("https://").unwrap().split_once('/').unwrap();
    let request = Request::builder().method(method).uri(format!("/{path}")).header("sec-fetch-site", "same-origin");
    front.connect_to(host, HERE).await.send(request, body.to_owned()).await
}

/// Causes a mail of this kind. Those of the kinds before it in the table have been sent, and the first was confirmed.
async fn cause(kind: MailKind, node: &Server, front: &Proxy, key: &str) {
    let mail_about_it = || {
        let kind = kind.name();
        node.execute(&format!("INSERT INTO campaign_mailings (campaign_id, kind, started_at) VALUES (1, '{kind}', 0)"));
    };
    match kind {
        MailKind::Confirm | MailKind::AlreadyMember => {
            let body = json!({ "email": "ana@example.com", "categories": { "internet": true } });
            node.post("/v1/invite", key, body.to_string()).await.good();
        }
        MailKind::SignIn => {
            let address = form(&[("email", "ana@example.com")]);
            let asked = follow(front, "https://union.example/me/sign-in", "POST", &address).await;
            leads(&asked, "/me/sign-in");
        }
        MailKind::CampaignOpened => {
            campaign_pages::open(node, CAMPAIGN, "").await;
            mail_about_it();
        }
        MailKind::CampaignOffer => {
            node.execute(
                "INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at) SELECT 1, id, 'in', 1, 1 FROM people",
            );
            campaign_pages::publish(node, CAMPAIGN, campaign_pages::OFFER).await;
            mail_about_it();
        }
        MailKind::CampaignResult => {
            campaign_pages::step(node, CAMPAIGN, "cancelled").await;
            mail_about_it();
        }
        MailKind::Receipt => {
            let reference = Reference::from_random(&[7; Reference::ENTROPY]);
            node.execute(&format!(
                "INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at)
                 SELECT 1, id, '{}', '', 'code', 1, 1, 1 FROM people",
                reference.as_str()
            ));
            node.execute("INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at) SELECT 1, 'receipt', id, 1 FROM people");
            node.execute(
                "INSERT INTO outbox (campaign_mail_id, kind, recipient, created_at, send_after)
                 SELECT id, 'receipt', 'ana@example.com', 1, 1 FROM campaign_mails WHERE kind = 'receipt'",
            );
        }
    }
}

async fn every_link_leads_to_its_page(proxy: fn(&[&Server]) -> Proxy) {
    let addresses = ["--base-url", "https://api.union.example", "--join-site", "https://union.example"];
    let more = ["--trusted-proxies", "127.0.0.1", "--log", "requests", "--postal-address", "12 Mill Street"];
    let node = Server::start_with(&[&addresses[..], &more].concat());
    let front = proxy(&[&node]);
    let key = node.key();
    let (mut found, mut one_click) = (BTreeSet::new(), BTreeSet::new());
    for (count, kind) in (1..).zip(MailKind::ALL) {
        cause(kind, &node, &front, &key).await;
        let mail = letter(&node, count).await;
        let mail = MessageParser::default().parse(mail.as_bytes()).unwrap();
        let told = mail.header_raw("Feedback-ID").unwrap().trim();
        assert!(told.starts_with(&format!("{}:", kind.name())), "{told} is no {kind:?}");
        let unsubscribe = mail.header_raw("List-Unsubscribe").unwrap_or_default().to_owned();
        let parts = [mail.body_text(0).unwrap().into_owned(), mail.body_html(0).unwrap().into_owned(), unsubscribe];
        let mut with_a_token = 0;
        for (part, from) in parts.iter().zip(["text", "html", "header"]) {
            let all: BTreeSet<_> = links(part).collect();
            // A person who asks to sign in, or accepts, gets that one mail, and no other.
            let in_header = usize::from(!matches!(kind, MailKind::SignIn | MailKind::Receipt));
            assert!(all.len() >= 5 || from == "header" && all.len() == in_header, "{kind:?}, {from}: {all:?}");
            for link in all {
                let answer = follow(&front, &link, "GET", "").await;
                let page = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!(answer.status, 200, "{link}: {page}");
                let shown =
                    page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
                let path = link.strip_prefix("https://union.example").unwrap_or_else(|| panic!("{link} is elsewhere"));
                assert!(shown.starts_with(title(path)) || link.ends_with("?lang=es"), "{link}: {shown}");
                assert_eq!(answer.headers.get_all("strict-transport-security").iter().count(), 1, "{link}");
                with_a_token += usize::from(tokens(&link).next().is_some());
                if from == "header" {
                    one_click.insert(link.clone());
                }
                found.insert(link);
            }
        }
        let needs_a_token = kind != MailKind::Receipt;
        assert_eq!(with_a_token >= 2, needs_a_token, "{kind:?} has links with tokens, in both parts");
        if kind == MailKind::Confirm {
            let confirm = found.iter().find(|link| link.contains("/confirm/")).unwrap();
            assert_eq!(follow(&front, confirm, "POST", "").await.status, 303);
        }
        // As if an hour had passed, for the next mail may go then.
        wait_for!(async || node.number("SELECT count(*) FROM outbox") == 0).await;
        node.execute("UPDATE mailboxes SET sent_1 = 0, sent_2 = 0, sent_3 = 0, sent_4 = 0");
    }
    // The button of a mail program.
    for link in &one_click {
        assert_eq!(follow(&front, link, "POST", "List-Unsubscribe=One-Click").await.status, 200, "{link}");
    }
    // Whoever typed no https:// is sent to the same name.
    for link in &found {
        let (host, path) = link.strip_prefix("https://").unwrap().split_once('/').unwrap();
        let sent = front.connect_plainly(host).await.send(Request::get(format!("/{path}")), "").await;
        assert_eq!((sent.status.as_u16(), sent.header("location")), (308, link.as_str()));
    }

    let secret: BTreeSet<_> = found.iter().flat_map(|link| tokens(link)).collect();
    assert!(
        secret.len() >= MailKind::ALL.len(),
        "one for each mail but the receipt, and one to withdraw its sign-up: {secret:?}"
    );
    wait_for!(async || node.log().contains("/unsubscribe/{token}")).await;
    let logs = [front.logs().concat(), node.log()].concat();
    assert!(logs.contains("/confirm") && logs.contains("/privacy"), "requests are logged: {logs}");
    // With every node away, each request is an error.
    drop(node);
    let mut away: Vec<_> = found.iter().filter(|link| tokens(link).next().is_some()).cloned().collect();
    away.push("https://union.example/privacy?last".to_owned());
    // At once, for Caddy looks for a node as long as five seconds.
    let front = Arc::new(front);
    let ask = |link: String| {
        let front = Arc::clone(&front);
        async move {
            let answer = follow(&front, &link, "GET", "").await;
            assert_eq!(answer.status, 503, "{link}");
            // Or the browser asks for the icon of the site with the whole link as its Referer.
            assert_eq!(answer.header("referrer-policy"), "strict-origin");
        }
    };
    JoinSet::from_iter(away.into_iter().map(ask)).join_all().await;
    wait_for!(async || front.logs().concat().contains("/privacy")).await;
    let logs = [logs, front.logs().concat()].concat();
    let told: Vec<_> = found.iter().filter(|link| tokens(link).any(|token| logs.contains(token))).collect();
    assert!(told.is_empty(), "tokens of these are in a log: {told:#?}");
}

#[test]
fn every_link_of_a_mail_works_behind_nginx_and_stands_in_no_log() {
    needs!(Nginx);
    block_on(every_link_leads_to_its_page(Proxy::nginx));
}

#[test]
fn every_link_of_a_mail_works_behind_caddy_and_stands_in_no_log() {
    needs!(Caddy);
    block_on(every_link_leads_to_its_page(Proxy::caddy));
}
