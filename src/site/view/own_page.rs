//! A member's own page and the way into it.

use askama::Template;

use super::join::{Bills, JoinForm, ReferralOffer};
use super::own_campaigns::{OwnCampaigns, OwnView, ended_deals};
use super::qr_code::QrCode;
use super::rewards::RewardsView;
use super::{Frame, rendered};
use crate::domain::answers::ShownAnswer;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignMail, CampaignSlug, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::figure::grouped;
use crate::domain::language::{Language, Phrase, Words, WrittenTime};
use crate::domain::mail::MailKind;
use crate::domain::mail::budget::FORM;
use crate::domain::person::{
    MailboxStanding, PersonDetails, PersonRecord, PersonState, Referrals, RetentionTimes, SignUpEntry,
};
use crate::domain::reward::ledger::RewardStanding;
use crate::domain::share::ShareWays;
use crate::domain::sign_in::{SIGN_IN_FOR, TRIES};
use crate::domain::sign_up::{Channel, SignUpState};
use crate::domain::text::{Comments, seen};
use crate::domain::time::Timestamp;

#[derive(Template)]
#[template(path = "me/sign_in.html")]
struct SignInPage<'a> {
    page: Frame<'a>,
    view: SignInView<'a>,
}

#[derive(Clone, Copy, Default)]
pub struct SignInView<'a> {
    pub email: &'a str,
    pub error: Option<&'a str>,
    pub note: Option<&'a str>,
    pub campaign: Option<&'a CampaignSlug>,
    /// What a mailed sign-in is asked for, if it is.
    pub wanted: &'a str,
    /// Whether this browser's code may still work.
    pub asked: bool,
}

impl SignInPage<'_> {
    fn title(&self) -> &'static str {
        let words = &self.page.words.sign_in;
        if self.view.wanted.is_empty() { &words.title } else { &words.first }.as_str()
    }
}

pub fn sign_in(page: Frame<'_>, view: SignInView<'_>) -> String {
    rendered(page, &SignInPage { page, view })
}

#[derive(Template)]
#[template(path = "me/sent.html")]
struct SentPage<'a> {
    page: Frame<'a>,
    email: &'a str,
    ask_again: &'a str,
    error: Option<&'static Phrase>,
    minutes: u64,
    tries: u32,
}

/// The page after it. It is the same whatever the address's state, so that it tells nobody who is a member.
pub fn sign_in_sent(page: Frame<'_>, email: &str, ask_again: &str, error: Option<&'static Phrase>) -> String {
    rendered(page, &SentPage { page, email, ask_again, error, minutes: SIGN_IN_FOR.as_secs() / 60, tries: TRIES })
}

#[derive(Template)]
#[template(path = "me/enter.html")]
struct EnterPage<'a> {
    page: Frame<'a>,
    address: &'a str,
    path: &'a str,
}

/// What a mailed link shows: whom it signs in, and a button. Opening it changes nothing.
pub fn enter(page: Frame<'_>, masked_address: &str, path: &str) -> String {
    rendered(page, &EnterPage { page, address: masked_address, path })
}

#[derive(Template)]
#[template(path = "me/leave.html")]
struct LeavePage<'a> {
    page: Frame<'a>,
    token: &'a str,
    kept: String,
    has_rewards: bool,
    /// Each deal that ends by it.
    deals: Vec<String>,
}

/// Asks whether they want to leave; `find` looks up a campaign.
pub fn leave<'a>(
    page: Frame<'_>,
    token: &str,
    file: &PersonDetails,
    times: RetentionTimes,
    find: impl Fn(&CampaignSlug) -> Option<&'a CampaignRecord>,
) -> String {
    let has_rewards = file.rewards != RewardStanding::default();
    let (kept, deals) = (page.words.days(times.left), ended_deals(page, &file.participations, find));
    rendered(page, &LeavePage { page, token, kept, has_rewards, deals })
}

#[derive(Template)]
#[template(path = "me/erased.html")]
struct ErasedPage<'a> {
    page: Frame<'a>,
    mailbox_is_shared: bool,
}

pub fn erased(page: Frame<'_>, mailbox_is_shared: bool) -> String {
    rendered(page, &ErasedPage { page, mailbox_is_shared })
}

#[derive(Template)]
#[template(path = "me/page.html")]
struct OwnPage<'a> {
    page: Frame<'a>,
    view: &'a OwnView<'a>,
    person: &'a PersonRecord,
    own: OwnCampaigns<'a>,
    is_member: bool,
    left_on: String,
    link: &'a str,
    ways: ShareWays,
    qr: Option<QrCode>,
    signed_up: String,
    offer: ReferralOffer,
    rewards: Option<RewardsView<'a>>,
    /// Their answers, as they are kept or as they were sent and not taken.
    form: &'a JoinForm,
    bills: Bills<'a>,
    joined_by: Vec<EvidenceView<'a>>,
    others: Vec<EvidenceView<'a>>,
    older: Option<String>,
    obstacles: Vec<String>,
    /// Mail about campaigns: the kind, what it is, and whether they want it.
    campaign_mail: [(&'static str, &'static Phrase, bool); CampaignMail::ALL.len()],
    kept_language: Language,
}

/// A sign-up, as its person reads how it came about.
struct EvidenceView<'a> {
    asked: WrittenTime,
    through: String,
    client: Option<&'a str>,
    mailed: Option<WrittenTime>,
    /// What was decided, when, and how.
    outcome: (&'static str, Option<WrittenTime>, String),
    referrer: Option<&'a str>,
    said: String,
    own_words: Vec<ShownAnswer<'a>>,
    notice: Option<&'a str>,
    /// It is one that they were shown a notice for, and the words are not known.
    lacks_notice: bool,
}

/// What others asked for, at the most: the download has all of it.
const OTHERS: usize = 10;

/// How many are not shown: at least so many, where no more than these were looked up.
fn older(others: usize, looked_up: usize) -> Option<String> {
    let more = others.checked_sub(OTHERS).filter(|more| *more > 0)?;
    let is_all = looked_up < PersonDetails::LAST_SIGN_UPS as usize;
    Some(if is_all { more.to_string() } else { format!("{more}+") })
}

pub fn own_page<'a>(page: Frame<'a>, view: &OwnView<'a>) -> String {
    let PersonDetails { person, mailbox, sign_ups, referrals, .. } = view.file;
    let (union, words) = (page.union, page.words);
    let link = person.code.link(&union.join_site);
    let kept = JoinForm { answers: (&person.answers).into(), ..JoinForm::default() };
    let form = view.refused.unwrap_or(&kept);
    let (joined_by, others): (Vec<_>, Vec<_>) = sign_ups
        .iter()
        .rev()
        .partition(|entry| entry.state == SignUpState::Confirmed && entry.decided_at == person.joined_at);
    let obstacles = obstacles(words, mailbox, person.undeliverable_until, page.now);
    // What they stopped of one partner keeps none of the union's own mail from them.
    let no_mail = obstacles.len() > mailbox.stopped.len();
    let mut own = OwnCampaigns::of(page, view);
    if no_mail {
        own.first.insert(0, ("#mail".to_owned(), words.own.first_mail.to_string()));
    }
    if person.answers.chosen() == CategorySet::default() {
        own.first.push(("#answers".to_owned(), words.own.first_bills.to_string()));
    }
    rendered(
        page,
        &OwnPage {
            page,
            view,
            person,
            own,
            is_member: person.state == PersonState::Member,
            left_on: person.left_at.map(|at| words.date(at)).unwrap_or_default(),
            ways: ShareWays::of(words, &union.name, &link),
            qr: QrCode::of(&link),
            link: &link,
            signed_up: match referrals.signed_up < Referrals::MOST_COUNTED.into() {
                true => grouped(referrals.signed_up),
                false => format!("{}+", grouped(referrals.signed_up)),
            },
            offer: ReferralOffer::of(page),
            rewards: {
                let shown = view.campaigns.iter().map(|(record, _)| *record);
                let active =
                    shown.filter(|record| record.state == CampaignState::Active && record.takes_acceptances(page.now));
                RewardsView::of(page, view.file, view.rewarded, active)
            },
            bills: Bills::of(page, form.answers.chosen()),
            form,
            joined_by: joined_by.into_iter().map(|entry| evidence(words, entry)).collect(),
            older: older(others.len(), sign_ups.len()),
            others: others.into_iter().take(OTHERS).map(|entry| evidence(words, entry)).collect(),
            obstacles,
            campaign_mail: CampaignMail::ALL.map(|mail| {
                let label = match mail {
                    CampaignMail::Opened => &words.own.want_opened,
                    CampaignMail::Offer => &words.own.want_offer,
                    CampaignMail::Result => &words.own.want_result,
                };
                (mail.name(), label, person.mail_choices.wants(mail.into()))
            }),
            kept_language: person.language.unwrap_or(page.language),
        },
    )
}

fn evidence<'a>(words: &'a Words, sign_up: &'a SignUpEntry) -> EvidenceView<'a> {
    let (kept, own) = (&sign_up.evidence, &words.own);
    let source = if sign_up.source == FORM { words.confirm.our_form.as_str() } else { &sign_up.source };
    let through = match kept.channel {
        Some(Channel::Mcp) => own.by_assistant.put("source", source).plain(),
        Some(Channel::Rest) => own.by_api.put("source", source).plain(),
        Some(Channel::Form) | None => source.to_owned(),
    };
    let how = match kept.decided_how.as_deref() {
        Some("button") => own.how_button.as_str(),
        Some("one-click") => own.how_one_click.as_str(),
        Some("leaving") => own.how_leaving.as_str(),
        Some("taken-back") => own.how_taken_back.as_str(),
        _ => "",
    };
    let (on, alone) = match sign_up.state {
        SignUpState::Confirmed => (&own.confirmed_on, &own.confirmed),
        SignUpState::Declined => (&own.declined_on, &own.declined),
        SignUpState::Expired => (&own.lapsed_on, &own.lapsed),
        SignUpState::Pending => (&own.pending, &own.pending),
    };
    let (before, after) = on.around("moment");
    let outcome = match (sign_up.state, sign_up.decided_at) {
        (SignUpState::Pending, _) => (before, Some(words.day(sign_up.expires_at)), after.to_owned()),
        (_, Some(at)) => (before, Some(words.day(at)), format!("{after}{how}")),
        (_, None) => (alone.as_str(), None, how.to_owned()),
    };
    let (own_words, said): (Vec<_>, Vec<_>) = sign_up.answers.shown(words).partition(|answer| answer.is_free_text);
    let said: Vec<_> = said.into_iter().map(|answer| answer.text).collect();
    // To whoever filled in the form, and above the button; a member who is signed up again is not asked anything.
    let was_shown = sign_up.state == SignUpState::Confirmed || kept.channel == Some(Channel::Form);
    let notice = kept.notice.as_ref().and_then(|notice| notice.words.as_deref());
    EvidenceView {
        asked: words.day(sign_up.created_at),
        through,
        client: kept.client.as_deref(),
        mailed: kept.mailed_at.map(|time| words.day(time)),
        outcome,
        referrer: sign_up.referrer.as_ref().map(|code| code.as_str()),
        said: said.join(", "),
        own_words,
        notice: notice.filter(|_| was_shown),
        lacks_notice: was_shown && notice.is_none(),
    }
}

/// Why no mail reaches them, in their own words.
fn obstacles(
    words: &Words,
    mailbox: &MailboxStanding,
    undeliverable_until: Option<Timestamp>,
    now: Timestamp,
) -> Vec<String> {
    let until = |time: Option<Timestamp>| time.filter(|time| *time > now);
    let mut obstacles = Vec::new();
    if let Some(time) = until(mailbox.suppressed_until) {
        obstacles.push(words.own.silent.put("date", words.date(time)).plain());
    }
    if mailbox.complained_at.is_some() {
        obstacles.push(words.own.complained.to_string());
    }
    if let Some(time) = until(undeliverable_until) {
        obstacles.push(words.own.bounced.put("date", words.date(time)).plain());
    }
    let source = |partner: &str| if partner == FORM { words.confirm.our_form.to_string() } else { partner.to_owned() };
    obstacles
        .extend(mailbox.stopped.iter().map(|stop| words.own.stopped.put("partner", source(&stop.partner)).plain()));
    obstacles
}
