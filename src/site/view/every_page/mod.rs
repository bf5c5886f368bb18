//! Every page in every shape and language: whole, our own, and with nothing of a caller's as markup.

pub(super) mod samples;

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::samples::{acceptance_of, answers_of, campaign_of, own_file, sign_up_of};
    use crate::config::UnionSettings;
    use crate::domain::answers::{Answers, TypedAnswers};
    use crate::domain::campaign::participation::{BadPress, ParticipationState, Press};
    use crate::domain::campaign::record::{CampaignRecord, Withdrawal};
    use crate::domain::campaign::{CampaignMail, CampaignState};
    use crate::domain::catalog::category::CategorySet;
    use crate::domain::person::{PersonState, RetentionTimes};
    use crate::domain::sign_up::{SignUpRecord, SignUpState, Silence};
    use crate::domain::time::Timestamp;
    use crate::domain::us_state::UsState;
    use crate::mail::ReadableMail;
    use crate::membership::form_throttle::FormGate;
    use crate::sandbox::ReceivedMail;
    use crate::site::own_text::PolicyPage;

    const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror='a' style=\"b\">";

    /// Every page in every shape, with the caller's texts given: kind ones to look at, hostile ones to test with.
    fn every_page(text: &str, language: Language) -> Vec<(&'static str, String)> {
        let union = &Union { name: format!("Consumer Union{text}"), ..UnionSettings::sample() };
        let now = Timestamp::from_millis(1_794_743_200_000);
        let page = Frame::new(union, language, "/join", now);
        let partner = format!("Acme Assistant{text}");
        let answers = TypedAnswers::from(&answers_of(text));
        let mut refused = answers.clone();
        refused.us_state.text.push_str(text);
        refused.us_state.mistake = Some(format!("Choose a state from the list.{text}"));
        refused.comments.mistake = Some(format!("Shorten this to 1,000 characters or fewer.{text}"));
        let form = JoinForm {
            email: format!("ana@example{text}"),
            answers: refused.clone(),
            email_error: Some(format!("Write a whole email address, such as ana@example.com.{text}")),
            general_error: Some(format!("Your sign-up was not sent yet.{text}")),
            suggestion: Some(format!("ana@example.com{text}")),
            campaign: None,
            again: None,
        };
        let meant = JoinForm {
            email: format!("kim@gmial.com{text}"),
            suggestion: Some(format!("kim@gmail.com{text}")),
            ..JoinForm::default()
        };
        let shown_again = |again| JoinForm {
            email_error: None,
            answers: answers.clone(),
            general_error: None,
            again: Some(again),
            ..form.clone()
        };
        let sent = [("email", form.email.clone()), ("otherComments", form.answers.comments.text.clone())];
        let masked = format!("a•••@example.com{text}");
        let link = format!("https://union.example/joinusyd8z2z0xsrw1{text}");
        let sign_up = &sign_up_of(text);
        let nothing = Answers::default();
        let bare = SignUpRecord { partner: None, referrer: None, answers: nothing, ..sign_up.clone() };
        let confirming = |page, sign_up| {
            let (confirm_path, decline_path) = ("/confirm/abc", "/decline/abc");
            confirm(page, &ConfirmView { sign_up, changed: true, confirm_path, decline_path })
        };
        let mail = ReadableMail {
            to: format!("ana@example.com{text}"),
            from: format!("Consumer Union <hello@union.example>{text}"),
            subject: format!("Confirm your sign-up with Consumer Union{text}"),
            date: format!("Nov 14, 2026, 9:15 AM UTC{text}"),
            text: format!("Good day,\n\nconfirm here:\nhttps://union.example/confirm/abc\n\nThank you{text}"),
            html: String::new(),
        };
        let entries = [(format!("20261114-091500-1.eml{text}"), mail.clone())];
        let tried = Frame { path: "/sandbox/confirm/abc", ..page };
        let received = ReceivedMail {
            id: 1,
            to: mail.to.clone(),
            from: mail.from.clone(),
            subject: mail.subject.clone(),
            text: mail.text.clone(),
            html: String::new(),
            received_at: now,
            confirm_link: None,
            decline_link: None,
        };
        let file = own_file(text);
        let refused = JoinForm { answers: refused, ..JoinForm::default() };
        let states = [CampaignState::Gathering, CampaignState::Negotiating, CampaignState::Offered];
        let more = [CampaignState::Active, CampaignState::Closed, CampaignState::Cancelled];
        let all: Vec<_> = states.into_iter().chain(more).map(|state| campaign_of(text, state)).collect();
        let [gathering, negotiating, offered, active, closed, cancelled] = &all[..] else { unreachable!() };
        let part =
            |state| MemberPart { state, ..MemberPart::of("abc", None, Some(UsState::CA), CategorySet::default()) };
        let acceptance = acceptance_of(now);
        let accepted = CampaignReader::Member(MemberPart {
            acceptance: Some(&acceptance),
            ..part(Some(ParticipationState::Accepted))
        });
        let mut too_late = offered.clone();
        too_late.offer.as_mut().unwrap().terms.decide_by = "2026-01-31".parse().unwrap();
        let withdrawal = Withdrawal {
            at: now,
            supplier: format!("Example Fiber{text}"),
            reasons: Language::ALL.map(|language| (language, format!("They cannot deliver.{text}"))).into(),
        };
        let withdrawn_offer = CampaignRecord { withdrawn: Some(withdrawal), ..negotiating.clone() };
        let nowhere = MemberPart { us_state: None, ..part(None) };
        let member = CampaignReader::Member;
        let about = |campaign, reader| {
            let code = Some(sign_up.code).filter(|_| matches!(reader, CampaignReader::Member(_)));
            CampaignView { campaign, reader, code, gets_offer: true, done: None, refused: None }
        };
        let shown = |campaign, reader| super::super::campaign(page, &about(campaign, reader));
        let refused_press = refusal(page.words, gathering, BadPress::StateMissing);
        let slug = gathering.slug();
        let join = |page, count, invited_by, gate: &FormGate, form: &JoinForm| {
            super::super::join(page, count, invited_by, gate, form, &all)
        };
        let for_campaign = JoinForm { campaign: Some(slug.clone()), ..JoinForm::default() };
        let own = OwnView {
            file: &file,
            token: "abc",
            campaigns: &[
                (active, part(Some(ParticipationState::Accepted))),
                (offered, part(Some(ParticipationState::In))),
                (gathering, part(Some(ParticipationState::In))),
                (negotiating, nowhere),
                (closed, part(Some(ParticipationState::Passed))),
            ],
            rewarded: &[active, closed],
            gets_offer: true,
            done: Some("Your answers are saved."),
            pressed: Some((Press::In, "internet-gathering")),
            refused: Some(&refused),
            sign_ups_paused: false,
            times: RetentionTimes::DEFAULT,
        };
        let mut left = file.clone();
        left.person.state = PersonState::Left;
        let mut overpaid = file.clone();
        (overpaid.rewards.due_cents, overpaid.rewards.out_cents) = (-10_000, 0);
        let asks = FormGate::Asks("1.a.b".to_owned());
        let declining = |sign_up: SignUpRecord| {
            let saved = sign_up.state == SignUpState::Declined;
            decline(page, &DeclineView { sign_up: &sign_up, again_path: "/confirm/abc", saved })
        };
        let withdrawn = || SignUpRecord {
            state: SignUpState::Declined,
            can_take_back: true,
            silence: Silence { partner: true, ..Silence::default() },
            silent_until: Some(now),
            ..sign_up.clone()
        };
        let invited = format!("yd8z2z0xsrw1{text}");
        let (open, nobody) = (&FormGate::Open, InvitedBy::Nobody);
        let simple = |outcome: Outcome| super::super::outcome(page, outcome, Home::Join);
        vec![
            ("join-shut", join(page, None, nobody, &FormGate::Shut, &JoinForm::default())),
            ("join", join(page, Some(12_345), nobody, open, &JoinForm::default())),
            ("greeting", greeting(Frame { signed_in: true, ..page }, &all)),
            ("join-throttled", join(page, None, nobody, &asks, &JoinForm::default())),
            ("join-ask-again", join(page, None, nobody, &asks, &shown_again(ShownAgain::Asks))),
            ("join-expired", join(page, None, nobody, open, &shown_again(ShownAgain::Expired))),
            ("join-changes", join(page, None, nobody, open, &shown_again(ShownAgain::Changes))),
            ("join-invited", join(page, None, InvitedBy::Code(&invited), open, &JoinForm::default())),
            ("join-unknown-code", join(page, None, InvitedBy::Unknown, open, &JoinForm::default())),
            ("join-errors", join(page, Some(1), nobody, open, &form)),
            ("join-meant", join(page, Some(1), nobody, open, &meant)),
            ("check-inbox", check_inbox(page, &form.email, &sent, false)),
            ("check-inbox-may-wait", check_inbox(page, &form.email, &sent, true)),
            ("confirm", confirming(page, sign_up)),
            ("confirm-bare", confirming(page, &bare)),
            ("share-first", share(page, Welcome::FirstTime, &link, Some(12_346), &[])),
            ("share-campaign", share(page, Welcome::FirstTime, &link, None, &[(gathering, nowhere)])),
            ("share-again", share(page, Welcome::Again, &link, None, &[])),
            ("me-sign-in", {
                let error = format!("Write a whole address.{text}");
                let (error, note) = (Some(error.as_str()), Some("Sign in."));
                let view =
                    SignInView { email: &form.email, error, note, campaign: Some(slug), ..SignInView::default() };
                sign_in(page, SignInView { asked: true, ..view })
            }),
            (
                "me-needs-mail",
                sign_in(page, SignInView { email: &form.email, wanted: "leave", ..SignInView::default() }),
            ),
            ("join-campaigns", super::super::join(page, None, nobody, open, &for_campaign, &all[..1])),
            ("campaigns", campaigns(page, &all[..5])),
            ("campaigns-none", campaigns(page, &[])),
            ("campaign-gathering", shown(gathering, CampaignReader::Stranger)),
            ("campaign-left", shown(gathering, CampaignReader::Left)),
            ("campaign-in", {
                let view = about(gathering, member(part(Some(ParticipationState::In))));
                super::super::campaign(
                    page,
                    &CampaignView { done: Some(page.words.campaign.done_in_mailed.as_str()), ..view },
                )
            }),
            ("campaign-refused", {
                let view = about(gathering, member(nowhere));
                super::super::campaign(page, &CampaignView { refused: Some(&refused_press), ..view })
            }),
            ("campaign-elsewhere", {
                shown(negotiating, member(MemberPart { us_state: Some(UsState::NY), ..part(None) }))
            }),
            ("campaign-offered", shown(offered, member(part(Some(ParticipationState::In))))),
            ("campaign-offered-stranger", shown(offered, CampaignReader::Stranger)),
            ("campaign-offered-left", shown(offered, CampaignReader::Left)),
            ("campaign-accepted", shown(offered, accepted)),
            ("campaign-passed", shown(active, member(part(Some(ParticipationState::Passed))))),
            ("campaign-active", shown(active, accepted)),
            ("campaign-too-late", shown(&too_late, CampaignReader::Stranger)),
            ("campaign-closed", shown(closed, accepted)),
            ("campaign-withdrawn", shown(&withdrawn_offer, member(part(Some(ParticipationState::In))))),
            ("campaign-cancelled", shown(cancelled, CampaignReader::Stranger)),
            ("outcome-no-campaign", simple(Outcome::NoCampaign)),
            ("unsubscribe", unsubscribe(page, CampaignMail::Offer, false)),
            ("unsubscribed", unsubscribe(page, CampaignMail::Result, true)),
            ("me-sent", sign_in_sent(page, &form.email, "/me", Some(&page.words.mistake.code_wrong))),
            ("me-enter", enter(page, &masked, "/me/enter/abc")),
            ("me", own_page(page, &own)),
            ("me-left", own_page(page, &OwnView { file: &left, done: None, refused: None, ..own })),
            ("me-overpaid", own_page(page, &OwnView { file: &overpaid, done: None, refused: None, ..own })),
            ("me-leave", leave(page, "abc", &file, RetentionTimes::DEFAULT, |_| Some(active))),
            ("me-erase", erase(page, "abc", &overpaid, false, |_| None)),
            ("me-erase-refused", erase(page, "abc", &file, true, |_| Some(active))),
            ("me-erased", erased(page, false)),
            ("decline", declining(sign_up.clone())),
            ("decline-member", declining(SignUpRecord { is_member: true, ..sign_up.clone() })),
            ("decline-bare", declining(bare.clone())),
            ("declined", declining(withdrawn())),
            ("declined-member", declining(SignUpRecord { is_member: true, can_take_back: false, ..withdrawn() })),
            ("decline-confirmed", declining(SignUpRecord { state: SignUpState::Confirmed, ..withdrawn() })),
            ("decline-lapsed", declining(SignUpRecord { state: SignUpState::Expired, ..withdrawn() })),
            ("about", policy(page, PolicyPage::About, Some(12_345), RetentionTimes::DEFAULT)),
            ("privacy", policy(page, PolicyPage::Privacy, None, RetentionTimes::DEFAULT)),
            ("terms", policy(page, PolicyPage::Terms, None, RetentionTimes::DEFAULT)),
            ("outcome-unknown", simple(Outcome::Unknown)),
            ("outcome-was-declined", simple(Outcome::WasDeclined { take_back: "/not-me/abc" })),
            ("outcome-too-many", simple(Outcome::TooMany { retry_after: 40 })),
            ("outcome-sign-ups-off", simple(Outcome::SignUpsOff)),
            ("outcome-problem", simple(Outcome::Problem)),
            ("outcome-not-found", simple(Outcome::NotFound)),
            ("outcome-wrong-origin", simple(Outcome::WrongOrigin)),
            ("mailbox", mailbox(page, &entries)),
            ("mailbox-empty", mailbox(page, &[])),
            ("opened-mail", opened_mail(page, &mail, "/dev/mailbox/1/html")),
            ("sandbox-inbox", inbox(tried, &partner, 100, &[received], "abc")),
            ("sandbox-inbox-empty", inbox(tried, &partner, 100, &[], "abc")),
            ("sandbox-confirm", confirming(tried, sign_up)),
            ("sandbox-elsewhere", super::super::outcome(tried, Outcome::NotInSandbox, Home::Sandbox)),
        ]
    }

    fn without_our_scripts(html: &str) -> String {
        ["copy", "proof", "times", "total"].iter().fold(html.to_owned(), |html, name| {
            html.replace(&format!("<script src=\"/{name}.js\" defer></script>"), "")
        })
    }

    #[test]
    fn every_page_is_whole_and_loads_nothing_but_our_own() {
        for language in Language::ALL {
            whole_and_our_own(language);
        }
    }

    fn whole_and_our_own(language: Language) {
        let pages = every_page("", language);
        // For looking at them: `UNIONHALL_PAGES_TO=FOLDER cargo test --lib every_page_is_whole`.
        if let Some(folder) = std::env::var_os("UNIONHALL_PAGES_TO") {
            let folder = std::path::Path::new(&folder);
            pages.iter().for_each(|(name, html)| {
                let name = format!("{name}-{}.html", language.code());
                std::fs::write(folder.join(name), html).unwrap();
            });
        }
        for (name, html) in pages {
            assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{name}");
            assert_eq!(html.matches("<h1").count(), 1, "{name}");
            assert_eq!(html.matches("<main").count(), 1, "{name}");
            assert!(html.contains("Consumer Union</title>"), "{name}: a title that ends with the union's name");
            assert!(html.contains("12 Mill Street") && html.contains("mailto:hello@union.example"), "{name}");
            // Scripts of our own, which nothing depends on.
            let html = without_our_scripts(&html);
            for forbidden in ["<script", "style=", "src=", "<style", " onclick", "javascript:", "@import", "<img"] {
                assert!(!html.contains(forbidden), "{name} holds {forbidden}");
            }
            let sheets: Vec<_> = html.split("<link ").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
            let own = [
                r#"rel="preload" href="/heading.woff2" as="font" type="font/woff2" crossorigin"#,
                r#"rel="stylesheet" href="/style.css""#,
                r#"rel="icon" href="/icon.svg" type="image/svg+xml""#,
                r#"rel="apple-touch-icon" href="/icon.png""#,
            ];
            assert_eq!(sheets, own, "{name}");
            // Whatever is not filled in would stand there in braces.
            assert!(!html.contains('{'), "{name} in {}: {:?}", language.code(), html.split_once('{'));
            for policy in ["/about", "/privacy", "/terms"] {
                assert!(html.contains(&format!("href=\"{policy}\"")), "{name} leads to {policy}");
            }
        }
    }

    #[test]
    fn nothing_of_the_callers_becomes_markup() {
        for (name, html) in every_page(HOSTILE, Language::Spanish) {
            assert!(html.contains("&#60;script&#62;"), "{name} shows the text as text");
            let html = without_our_scripts(&html);
            for forbidden in ["<script", "<img", "style=\""] {
                assert!(!html.contains(forbidden), "{name} lets {forbidden} through");
            }
        }
    }

    #[test]
    fn ids_are_unique_and_every_reference_finds_its_own() {
        for (name, html) in every_page("", Language::English) {
            let values = |attribute: &str| -> Vec<String> {
                let opening = format!(" {attribute}=\"");
                let parts = html.split(&opening).skip(1);
                parts.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
            };
            let ids = values("id");
            let distinct: std::collections::HashSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), ids.len(), "{name}: {ids:?}");
            let described = values("aria-describedby").join(" ");
            let labelled = values("aria-labelledby").join(" ");
            let links = values("href").into_iter().filter_map(|link| link.strip_prefix('#').map(str::to_owned));
            let named = described.split_whitespace().chain(labelled.split_whitespace()).map(str::to_owned);
            for target in named.chain(values("for")).chain(links) {
                assert!(ids.contains(&target), "{name}: nothing is called {target}");
            }
        }
    }

    #[test]
    fn a_union_without_an_address_asks_nobody_to_write() {
        let bare = Union { contact_email: None, postal_address: None, ..UnionSettings::sample() };
        for language in Language::ALL {
            let page = Frame::new(&bare, language, "/", Timestamp::from_millis(0));
            let html = policy(page, PolicyPage::Privacy, None, RetentionTimes::DEFAULT);
            assert!(!html.contains("mailto:") && !html.contains("Mill Street"));
        }
        for (name, html) in every_page("", Language::English) {
            assert!(!html.to_lowercase().contains("write to us"), "{name}");
        }
    }
}
