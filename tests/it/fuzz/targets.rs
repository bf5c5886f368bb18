//! What is fuzzed: each function takes any bytes and asserts what must hold of whatever is made of them.
//!
//! The fuzz crate (`fuzz/`) and the tests of `mod.rs` call the same functions, so nothing here may need a test's own helpers.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use ring::hmac;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use unionhall::domain::api_key::{ApiKey, KeyId};
use unionhall::domain::catalog::Catalog;
use unionhall::domain::catalog::category::{Category, CategorySet};
use unionhall::domain::email::EmailAddress;
use unionhall::domain::email::suggestion::suggestion;
use unionhall::domain::language::Language;
use unionhall::domain::mail::report::ReportedMail;
use unionhall::domain::referral::ReferralCode;
use unionhall::domain::secret::Secret;
use unionhall::domain::secret::proof::{self, ProofCheck, ProofMaker};
use unionhall::domain::secret::session::{Nonce, SessionMaker, SignedInBy};
use unionhall::domain::secret::token::{Purpose, TokenMaker};
use unionhall::domain::sign_in::SignInCode;
use unionhall::domain::sign_up::{SignUpId, SignUpRef};
use unionhall::domain::text::Comments;
use unionhall::domain::time::Timestamp;
use unionhall::error::Error;
use unionhall::http::request::client_address::TrustedProxies;
use unionhall::http::request::multipart;
use unionhall::mail::report::postmark::{self, PostmarkLogin};
use unionhall::mail::report::resend::{self, ResendSecret, SvixHeaders};
use unionhall::mail::report::{Untaken, mime};
use unionhall::operations::create_referral_link::ReferralLinkRequest;
use unionhall::operations::sign_up_user::InviteRequest;
use unionhall::operations::{Input, sign_up_user};
use unionhall::site::own_text::{OwnTexts, PolicyPage};

/// A sign-up reads back as it was understood, or is refused in words that say which of the two kinds of mistake it is.
pub fn invite_request(data: &[u8]) {
    let read = match InviteRequest::decode(data) {
        Ok(read) => read,
        Err(error) => return refused(data, &error),
    };
    assert!(read.other_comments.as_ref().is_none_or(|text| text.as_str().chars().count() <= Comments::LONGEST));
    let again = InviteRequest::decode(said(&read).to_string().as_bytes()).expect("what was read can be said again");
    assert_eq!(said(&again), said(&read));
}

fn said(read: &sign_up_user::InviteRequest) -> Value {
    let chosen = |set: CategorySet| set.iter().map(|category| (category.slug(), true)).collect::<Value>();
    let fields = [
        ("email", Some(json!(read.email.as_typed()))),
        ("usState", read.us_state.map(|state| json!(state.code()))),
        ("categories", read.categories.map(|set| if set == CategorySet::default() { json!({}) } else { chosen(set) })),
        ("otherComments", read.other_comments.as_ref().map(|text| json!(text.as_str()))),
        ("refCode", read.ref_code.as_ref().and_then(|code| Some(json!(code.0?.as_str())))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>().into()
}

pub fn referral_link_request(data: &[u8]) {
    match ReferralLinkRequest::decode(data) {
        Ok(read) => {
            let body = json!({ "email": read.email.as_typed() }).to_string();
            let again = ReferralLinkRequest::decode(body.as_bytes()).expect("what was read can be said again");
            assert_eq!(again.email.as_typed(), read.email.as_typed());
        }
        Err(error) => refused(data, &error),
    }
}

/// A form with files is read into parts that are in it, or refused: its first line says what stands between them. What was read can be
/// written so that it reads the same.
pub fn form_with_file(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let mut headers = HeaderMap::new();
    let Ok(value) = HeaderValue::from_bytes(data[..end].trim_ascii()) else { return };
    headers.insert(hyper::header::CONTENT_TYPE, value);
    let Some(Ok(boundary)) = multipart::boundary(&headers) else { return };
    let body = data.get(end + 1..).unwrap_or_default();
    let Ok(parts) = multipart::parts(boundary, body) else { return };
    assert!(parts.iter().map(|part| part.content.len()).sum::<usize>() <= body.len());
    let mut again = Vec::new();
    for part in &parts {
        // A name without quotation marks around it may hold one, or end with what would keep the next from ending it.
        let is_odd = |name: &[u8]| name.contains(&b'"') || name.ends_with(b"\\") || name.len() > 1000;
        if is_odd(part.name.as_bytes()) || part.filename.is_some_and(is_odd) {
            return;
        }
        again.extend(
            [b"--", boundary, b"\r\nContent-Disposition: form-data; name=\"", part.name.as_bytes(), b"\""].concat(),
        );
        if let Some(name) = part.filename {
            again.extend([b"; filename=\"", name, b"\""].concat());
        }
        again.extend([b"\r\n\r\n", part.content, b"\r\n"].concat());
    }
    again.extend([b"--", boundary, b"--"].concat());
    assert_eq!(multipart::parts(boundary, &again), Ok(parts));
}

/// What is no JSON is told apart from what is no good, in a few words.
fn refused(data: &[u8], error: &Error) {
    match is_json(data) {
        Some(true) => assert!(matches!(error, Error::InvalidSubmission { .. }), "{error:?}"),
        Some(false) => assert!(matches!(error, Error::InvalidJson(_)), "{error:?}"),
        None => assert!(matches!(error, Error::InvalidJson(_) | Error::InvalidSubmission { .. }), "{error:?}"),
    }
    let told = error.message();
    assert!(!told.is_empty() && told.len() <= 4096, "{} bytes", told.len());
    assert!(!told.contains(['\0', '\u{1b}']), "{told:?}");
}

/// Whether it is JSON to every reader; none where readers differ: past some depth, and in what is no text.
pub(super) fn is_json(data: &[u8]) -> Option<bool> {
    let text = std::str::from_utf8(data).ok()?;
    let shallow = text.matches(['[', '{']).count() <= 100;
    shallow.then(|| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// An address is kept as typed, and each of its other forms is an address that has the same form.
pub fn email(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(address) = EmailAddress::parse(text) else { return };
    assert_eq!(address.as_typed(), text);
    assert!(text.chars().count() <= EmailAddress::LONGEST);
    let email_normalized = EmailAddress::parse(&address.normalized()).expect("the compared form is an address");
    assert_eq!(email_normalized.normalized(), address.normalized());
    assert_eq!(email_normalized.mailbox(), address.mailbox());
    let mailbox = EmailAddress::parse(&address.mailbox()).expect("the mailbox is an address");
    assert_eq!(mailbox.mailbox(), address.mailbox());
    let sent_to = format!("{}@{}", address.local_part(), address.deliverable_domain());
    let sent_to = EmailAddress::parse(&sent_to).expect("mail goes to an address");
    assert_eq!(sent_to.normalized(), address.normalized());
    assert!(!address.masked().contains(text), "nobody can read it from the page");
}

/// What a person may have meant is an address, never the one they typed; a browser may like any language; and whatever an operator
/// writes, nothing in it becomes a script, a picture or a link to nowhere good.
pub fn people_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(meant) = suggestion(text) {
        assert!(EmailAddress::parse(&meant).is_ok() && meant != text, "{text:?}");
        // Asked about once: what was meant is not asked about again.
        assert!(
            suggestion(&meant).is_none_or(|again| again == meant || again.eq_ignore_ascii_case(&meant)),
            "{text:?}"
        );
    }
    Language::accepted(text);
    let mut texts = OwnTexts::default();
    texts.add(PolicyPage::Terms, Language::English, text);
    let (_, html) = texts.find(PolicyPage::Terms, Language::English).expect("it was added");
    for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        let harmless = "p h2 h3 h4 h5 h6 ul ol li em strong del blockquote pre code hr br a table thead tbody tr th td";
        let is_harmless = name.is_empty() || harmless.split(' ').any(|known| known == name);
        assert!(is_harmless, "{name} in {html:?} of {text:?}");
        if let Some(link) = tag.strip_prefix("a href=\"") {
            let lower = link.to_ascii_lowercase();
            let good = ["https://", "http://", "mailto:", "#", "/"].iter().any(|start| lower.starts_with(start));
            assert!(good && !link.starts_with("//") && link.matches('"').count() == 1, "{link:?} of {text:?}");
        }
    }
}

/// A key reads back as itself or not at all, and never shows its secret.
pub fn api_key(data: &[u8]) {
    if let Some(random) = data.first_chunk() {
        let made = ApiKey::from_random(random);
        assert_eq!(ApiKey::parse(made.reveal()), Ok(made));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match ApiKey::parse(text) {
        Ok(key) => {
            assert_eq!(key.reveal(), text);
            assert_eq!(text.parse::<KeyId>(), Ok(key.id()));
            assert!(!format!("{key:?}").contains(&text[12..]), "its secret is shown");
            assert_eq!(key.hash(), ApiKey::parse(text).unwrap().hash());
        }
        Err(error) => {
            assert!(text.parse::<KeyId>().is_ok_and(|id| id.as_str() == text) || text.parse::<KeyId>().is_err());
            assert!(text.len() < 20 || !error.to_string().contains(text), "what is no key is not repeated");
        }
    }
}

/// Whatever was pasted, what is read of it is a code that reads back from its own link.
pub fn referral_code(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(code) = ReferralCode::from_canonical(text) {
        assert_eq!(code.as_str(), text);
        assert_eq!(ReferralCode::from_pasted(text), Some(code), "a stored code is one that can be pasted");
    }
    let Some(code) = ReferralCode::from_pasted(text) else { return };
    assert_eq!(code.as_str().len(), ReferralCode::LENGTH);
    assert_eq!(ReferralCode::from_canonical(code.as_str()), Some(code));
    let link = code.link("https://union.example");
    for pasted in [link.clone(), link.to_uppercase(), format!(" {link}/?from=mail#top\n"), format!("\t{code} ")] {
        assert_eq!(ReferralCode::from_pasted(&pasted), Some(code), "{pasted:?}");
    }
}

/// Each line is an `X-Forwarded-For`. Nobody but a proxy of ours is believed, and what a stranger adds on the left changes
/// nothing.
pub fn forwarded(data: &[u8]) {
    let ours = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
    let proxies = TrustedProxies::new(ours.to_vec());
    let trusted = |address: IpAddr| ours.iter().any(|network: &ipnet::IpNet| network.contains(&address));
    let peer = IpAddr::from([10, 0, 0, 1]);
    let headers = |before: &str, after: &str| -> HeaderMap {
        let lines = data.split(|byte| *byte == b'\n').map(HeaderValue::from_bytes);
        let all = [before].map(HeaderValue::from_str).into_iter().filter(|_| !before.is_empty()).map(Result::unwrap);
        let last = HeaderValue::from_str(after).ok().filter(|_| !after.is_empty());
        let all = all.chain(lines.filter_map(Result::ok)).chain(last);
        all.map(|line| (hyper::header::HeaderName::from_static("x-forwarded-for"), line)).collect()
    };
    let plain = headers("", "");
    let stranger = IpAddr::from([203, 0, 113, 7]);
    assert_eq!(proxies.client(stranger, &plain), stranger, "a stranger is not believed");
    assert_eq!(TrustedProxies::default().client(peer, &plain), peer, "without proxies nobody is");
    let client = proxies.client(peer, &plain);
    assert_eq!(client, client.to_canonical());
    if !trusted(client) {
        assert_eq!(
            proxies.client(peer, &headers("198.51.100.1", "")),
            client,
            "what stands left of a stranger is idle"
        );
        assert_eq!(proxies.client(peer, &headers("nonsense", "")), client);
        assert_eq!(proxies.client(peer, &headers("", "10.9.9.9")), client, "one more proxy of ours changes nothing");
    }
    assert_eq!(proxies.client(peer, &headers("", "203.0.113.7")), stranger, "the last stranger is the client");
}

/// A good catalog says the same when it is written down again, and no sum over it overflows.
pub fn catalog(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let catalog = match Catalog::parse(text) {
        Ok(catalog) => catalog,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let listed = catalog.listed();
    assert!(!listed.is_empty() && listed.len() <= Category::ALL.len());
    assert!(listed.windows(2).all(|pair| (pair[0].0 as u16) < pair[1].0 as u16), "in order, each once");
    let mut all = CategorySet::default();
    listed.iter().for_each(|(category, _)| all.insert(*category));
    assert_eq!(catalog.savings_of(all), catalog.total_savings());
    assert!(catalog.referral.max_reward() >= catalog.referral.reward_per_group);
    let rules = catalog.rules(Language::English);
    let Some((_of_the_operator, ours)) = rules.split_last() else { panic!("there are rules") };
    assert!(ours.iter().all(|rule| rule.ends_with('.')));
    let savings: String =
        listed.iter().map(|(category, dollars)| format!("{} = {dollars}\n", category.slug())).collect();
    let terms = catalog.referral;
    let written = format!(
        "[savings]\n{savings}[referral]\nreward_per_group = {}\ngroup_size = {}\nmax_groups = {}\nhold_days = {}\n",
        terms.reward_per_group, terms.group_size, terms.max_groups, terms.hold_days
    );
    let read = Catalog::parse(&written).unwrap();
    assert_eq!((read.listed(), read.referral), (listed, terms));
}

/// A token is good for one purpose and one sign-up, in one spelling; so is the cookie of a session. A code is what it is however
/// it is typed.
pub fn link_token(data: &[u8]) {
    let secret = Secret::new("the secret of a fuzzed installation").unwrap();
    let (tokens, sessions) = (TokenMaker::new(&secret), SessionMaker::new(&secret));
    let purposes = [Purpose::Confirm, Purpose::Decline];
    if let Some((id, rest)) = data.split_first_chunk() {
        let created_at = rest.first_chunk().map_or(0, |time| i64::from_be_bytes(*time));
        let sign_up =
            SignUpRef { id: SignUpId(i64::from_be_bytes(*id)), created_at: Timestamp::from_millis(created_at) };
        for (purpose, other) in [(purposes[0], purposes[1]), (purposes[1], purposes[0])] {
            let token = tokens.token(purpose, sign_up);
            assert_eq!(tokens.read(purpose, &token), Some(sign_up));
            assert_eq!(tokens.read(other, &token), None, "it is for one purpose");
            assert_eq!(tokens.read_sign_in(&token), None);
            let mut changed = token.clone().into_bytes();
            if let [place, bits, ..] = rest {
                let place = usize::from(*place) % changed.len();
                changed[place] = (changed[place] ^ (bits % 127 + 1)) & 0x7f;
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(tokens.read(purpose, &changed), (changed == token).then_some(sign_up), "{changed}");
            }
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    for purpose in purposes {
        if let Some(sign_up) = tokens.read(purpose, text) {
            assert_eq!(tokens.token(purpose, sign_up), text);
        }
    }
    if let Some(sign_in) = tokens.read_sign_in(text) {
        assert_eq!(tokens.sign_in_token(sign_in), text);
    }
    if let Some(code) = SignInCode::from_typed(text) {
        assert!(SignInCode::from_typed(&code.to_string().to_lowercase()).unwrap().matches(&code));
    }
    let now = Timestamp::from_millis(1_800_000_000_000);
    assert_eq!(sessions.read_cookie(text, now), None, "nobody can make one up");
    if let Some((random, rest)) = data.split_first_chunk() {
        let session = Nonce::from_random(random);
        let cookie = sessions.cookie(&session, now.plus(Duration::from_secs(1)), SignedInBy::Joining);
        assert_eq!(sessions.read_cookie(&cookie, now).map(|read| read.nonce).as_ref(), Some(&session));
        let mut changed = cookie.clone().into_bytes();
        if let [place, bits, ..] = rest {
            let place = usize::from(*place) % changed.len();
            changed[place] = (changed[place] ^ (bits % 127 + 1)) & 0x7f;
            let changed = String::from_utf8(changed).unwrap();
            let read = sessions.read_cookie(&changed, now).map(|read| read.nonce);
            assert_eq!(read, (changed == cookie).then_some(session), "{changed}");
        }
    }
}

/// A report is believed about the sign-up whose token it brings, and about none without one; what a service signs is read or
/// refused.
pub fn mail_report(data: &[u8]) {
    let secret = Secret::new("the secret of a fuzzed installation").unwrap();
    let (tokens, now) = (TokenMaker::new(&secret), Timestamp::from_millis(1_800_000_000_000));
    let sign_up = SignUpRef { id: SignUpId(7), created_at: now };
    let named = format!("b-{}@bounces.union.example", tokens.token(Purpose::Bounce, sign_up));
    let (alone, with_token) = (mime::read(data, None, &tokens, now), mime::read(data, Some(&named), &tokens, now));
    assert!(alone.is_err() || with_token.is_ok(), "a token makes nothing worse");
    if let Ok(report) = with_token {
        assert_eq!(report.mail, ReportedMail::OfSignUp(sign_up));
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[7; 24]);
    let resend = ResendSecret::parse(&format!("whsec_{}", STANDARD.encode([7; 24]))).unwrap();
    let tag = hmac::sign(&key, &[b"msg_1.1800000000.", data].concat());
    let signatures = format!("v1,{}", STANDARD.encode(tag.as_ref()));
    let headers = SvixHeaders { id: "msg_1", timestamp: "1800000000", signatures: &signatures };
    assert_ne!(resend::read(&resend, headers, data, now), Err(Untaken::Unproved));
    let login = PostmarkLogin::parse("hook:correct horse battery").unwrap();
    let header = format!("Basic {}", STANDARD.encode("hook:correct horse battery"));
    assert_ne!(postmark::read(&login, Some(header.as_bytes()), data, now), Err(Untaken::Unproved));
    assert_eq!(postmark::read(&login, Some(data), b"{}", now), Err(Untaken::Unproved));
    // And as the question of a form, or its answer.
    let Ok(text) = std::str::from_utf8(data) else { return };
    let proofs = ProofMaker::new(&secret);
    let question = proofs.ask(&[7; proof::ENTROPY], now);
    assert_eq!(proofs.check(text, "1", now), ProofCheck::Wrong);
    assert!(text.is_empty() || proofs.check(&question, text, now) != ProofCheck::Not);
}
