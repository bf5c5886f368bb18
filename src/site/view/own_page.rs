//! A member's own page and the way into it.

use askama::Template;
use qrcode::{Color, EcLevel, QrCode};

use super::join::{BillRow, Offer, bill_rows};
use super::rendered;
use crate::domain::figure::grouped;
use crate::domain::mail::brake::FORM;
use crate::domain::person::{Answers, MailboxStanding, PersonFile, PersonState, RetentionTimes, SignUpEntry};
use crate::domain::share;
use crate::domain::sign_in::{SIGN_IN_FOR, TRIES};
use crate::domain::sign_up::{Face, SignUpState};
use crate::domain::text::Comments;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::us_state::UsState;

#[derive(Template)]
#[template(path = "me/sign_in.html")]
struct SignInPage<'a> {
    union: &'a Union,
    email: &'a str,
    error: Option<&'a str>,
    note: Option<&'a str>,
}

/// The form to sign in with, as it was filled in.
pub fn sign_in(union: &Union, email: &str, error: Option<&str>, note: Option<&str>) -> String {
    rendered(&SignInPage { union, email, error, note })
}

#[derive(Template)]
#[template(path = "me/sent.html")]
struct SentPage<'a> {
    union: &'a Union,
    email: &'a str,
    error: Option<&'a str>,
    minutes: u64,
    tries: u32,
}

/// The page after it. It is the same whatever the address's state, so that it tells nobody who is a member.
pub fn sign_in_sent(union: &Union, email: &str, error: Option<&str>) -> String {
    rendered(&SentPage { union, email, error, minutes: SIGN_IN_FOR.as_secs() / 60, tries: TRIES })
}

#[derive(Template)]
#[template(path = "me/enter.html")]
struct EnterPage<'a> {
    union: &'a Union,
    address: &'a str,
    path: &'a str,
}

/// What a mailed link shows: whom it signs in, and a button. Opening it changes nothing.
pub fn enter(union: &Union, masked_address: &str, path: &str) -> String {
    rendered(&EnterPage { union, address: masked_address, path })
}

#[derive(Template)]
#[template(path = "me/leave.html")]
struct LeavePage<'a> {
    union: &'a Union,
    token: &'a str,
    kept: String,
}

pub fn leave(union: &Union, token: &str, times: RetentionTimes) -> String {
    rendered(&LeavePage { union, token, kept: days(times.left) })
}

#[derive(Template)]
#[template(path = "me/erase.html")]
struct ErasePage<'a> {
    union: &'a Union,
    token: &'a str,
    is_member: bool,
}

pub fn erase(union: &Union, token: &str, is_member: bool) -> String {
    rendered(&ErasePage { union, token, is_member })
}

#[derive(Template)]
#[template(path = "me/erased.html")]
struct ErasedPage<'a> {
    union: &'a Union,
    mailbox_is_shared: bool,
}

pub fn erased(union: &Union, mailbox_is_shared: bool) -> String {
    rendered(&ErasedPage { union, mailbox_is_shared })
}

/// What the page shows besides what is kept.
#[derive(Debug, Clone, Copy)]
pub struct OwnView<'a> {
    pub file: &'a PersonFile,
    /// What every form carries.
    pub token: &'a str,
    /// What was just done.
    pub done: Option<&'a str>,
    /// Answers that were sent and not taken, and why.
    pub refused: Option<(&'a Answers, &'a str)>,
    pub times: RetentionTimes,
    pub now: Timestamp,
}

#[derive(Template)]
#[template(path = "me/page.html")]
struct OwnPage<'a> {
    union: &'a Union,
    token: &'a str,
    done: Option<&'a str>,
    problem: Option<&'a str>,
    email: &'a str,
    is_member: bool,
    since: String,
    left_on: String,
    left_kept: String,
    link: &'a str,
    by_mail: String,
    by_text_message: String,
    qr: Option<QrView>,
    signed_up: String,
    members: String,
    offer: Offer,
    rows: Vec<BillRow>,
    states: &'static [UsState],
    us_state: &'a str,
    comments: &'a str,
    longest_comments: usize,
    joined_by: Vec<EvidenceView<'a>>,
    others: Vec<EvidenceView<'a>>,
    more: usize,
    obstacles: Vec<String>,
    wants_already_member: bool,
}

/// A QR code as the outline of its dark parts.
struct QrView {
    size: usize,
    path: String,
}

/// A sign-up, as its person reads how it came about.
struct EvidenceView<'a> {
    asked: String,
    through: String,
    client: Option<&'a str>,
    mailed: Option<String>,
    outcome: String,
    referrer: Option<&'a str>,
    /// What was said then.
    said: String,
    comments: &'a str,
    notice: Option<&'a str>,
    /// It is one that they were shown a notice for, and the words are not known.
    lacks_notice: bool,
}

/// What others asked for, at the most: the download has all of it.
const OTHERS: usize = 10;

pub fn own_page(union: &Union, view: &OwnView<'_>) -> String {
    let PersonFile { person, mailbox, sign_ups, referrals, .. } = view.file;
    let link = person.code.link(&union.join_site);
    let kept = Answers { us_state: person.us_state, categories: person.categories, comments: person.comments.clone() };
    let answers = view.refused.map_or(&kept, |(answers, _)| answers);
    let (joined_by, others): (Vec<_>, Vec<_>) = sign_ups
        .iter()
        .rev()
        .partition(|entry| entry.state == SignUpState::Confirmed && entry.decided_at == person.joined_at);
    let day = |time: Option<Timestamp>| time.map(Timestamp::day).unwrap_or_default();
    rendered(&OwnPage {
        union,
        token: view.token,
        done: view.done,
        problem: view.refused.map(|(_, why)| why),
        email: &person.email,
        is_member: person.state == PersonState::Member,
        since: day(person.joined_at.or(Some(person.created_at))),
        left_on: day(person.left_at),
        left_kept: days(view.times.left),
        by_mail: share::by_mail(&union.name, &link),
        by_text_message: share::by_text_message(&union.name, &link),
        qr: qr(&link),
        link: &link,
        signed_up: grouped(referrals.signed_up),
        members: grouped(referrals.members),
        offer: Offer::of(&union.catalog),
        rows: bill_rows(&union.catalog, answers.categories),
        states: UsState::ALL,
        us_state: answers.us_state.map(UsState::code).unwrap_or_default(),
        comments: &answers.comments,
        longest_comments: Comments::LONGEST,
        joined_by: joined_by.into_iter().map(evidence).collect(),
        more: others.len().saturating_sub(OTHERS),
        others: others.into_iter().take(OTHERS).map(evidence).collect(),
        obstacles: obstacles(mailbox, person.undeliverable_until, view.now),
        wants_already_member: !person.unwanted_mail.already_member,
    })
}

fn evidence(sign_up: &SignUpEntry) -> EvidenceView<'_> {
    let kept = &sign_up.evidence;
    let face = match kept.face {
        Some(Face::Mcp) => " (an assistant, over MCP)",
        Some(Face::Rest) => " (over its API)",
        Some(Face::Form) | None => "",
    };
    let door = if sign_up.door == FORM { "our form" } else { &sign_up.door };
    let at = |time: Option<Timestamp>| time.map(|time| format!(" on {}", moment(time))).unwrap_or_default();
    let how = match kept.decided_how.as_deref() {
        Some("button") => ", with the button that the mailed link leads to",
        Some("one-click") => ", with your mail program's own button",
        Some("leaving") => ", by leaving",
        _ => "",
    };
    let outcome = match sign_up.state {
        SignUpState::Confirmed => format!("You confirmed it{}{how}", at(sign_up.decided_at)),
        SignUpState::Declined => format!("Declined{}{how}", at(sign_up.decided_at)),
        SignUpState::Expired => format!("Lapsed{}{how}", at(sign_up.decided_at)),
        SignUpState::Pending => format!("Not confirmed; it lapses on {}", moment(sign_up.expires_at)),
    };
    let mut said: Vec<_> = sign_up.us_state.iter().map(|state| state.name()).collect();
    said.extend(sign_up.categories.iter().map(|category| category.label()));
    // To whoever filled in the form, and above the button; a member who is signed up again is not asked anything.
    let was_shown = sign_up.state == SignUpState::Confirmed || kept.face == Some(Face::Form);
    EvidenceView {
        asked: moment(sign_up.created_at),
        through: format!("{door}{face}"),
        client: kept.client.as_deref(),
        mailed: kept.mailed_at.map(moment),
        outcome,
        referrer: sign_up.referrer.as_ref().map(|code| code.as_str()),
        said: said.join(", "),
        comments: &sign_up.comments,
        notice: kept.notice_words.as_deref().filter(|_| was_shown),
        lacks_notice: was_shown && kept.notice_words.is_none(),
    }
}

/// Why no mail reaches them, in their own words.
fn obstacles(mailbox: &MailboxStanding, undeliverable_until: Option<Timestamp>, now: Timestamp) -> Vec<String> {
    let until = |time: Option<Timestamp>| time.filter(|time| *time > now);
    let mut obstacles = Vec::new();
    if let Some(time) = until(mailbox.suppressed_until) {
        obstacles.push(format!(
            "No mail goes to your mailbox until {}: somebody there said that a sign-up was not theirs, or was erased.",
            time.day()
        ));
    }
    if mailbox.complained_at.is_some() {
        obstacles.push("No mail goes to your mailbox: our mail was reported as unwanted there.".to_owned());
    }
    if let Some(time) = until(undeliverable_until) {
        obstacles.push(format!("No mail goes to your address until {}: the last one came back.", time.day()));
    }
    obstacles
}

/// To the minute, as people write it.
fn moment(time: Timestamp) -> String {
    let text = time.to_string();
    format!("{}, {} UTC", time.day(), text.get(11..16).unwrap_or_default())
}

/// A span in whole days.
fn days(span: std::time::Duration) -> String {
    match span.as_secs() / (24 * 3600) {
        1 => "a day".to_owned(),
        days => format!("{} days", grouped(days)),
    }
}

/// The QR code of a link; none for one that is too long to be read off a screen.
fn qr(link: &str) -> Option<QrView> {
    // What readers want free around it.
    const QUIET: usize = 4;
    let code = QrCode::with_error_correction_level(link, EcLevel::M).ok()?;
    let (width, colors) = (code.width(), code.to_colors());
    let mut path = String::new();
    for (y, row) in colors.chunks(width).enumerate() {
        let mut x = 0;
        while x < width {
            let run = row[x..].iter().take_while(|color| **color == row[x]).count();
            if row[x] == Color::Dark {
                path.push_str(&format!("M{} {}h{run}v1h-{run}z", x + QUIET, y + QUIET));
            }
            x += run;
        }
    }
    Some(QrView { size: width + 2 * QUIET, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_corners_and_room_around_it() {
        let qr = qr("https://union.example/joinus0123456789ab").unwrap();
        assert_eq!(qr.size, 29 + 8, "a link of 40 characters");
        assert!(qr.path.starts_with("M4 4h7v1h-7z"), "{}", &qr.path[..40]);
        assert!(super::qr(&"x".repeat(4000)).is_none());
    }

    #[test]
    fn a_moment_is_told_to_the_minute() {
        assert_eq!(moment(Timestamp::from_millis(1_794_743_200_000)), "15 November 2026, 11:46 UTC");
        assert_eq!(days(std::time::Duration::from_secs(365 * 24 * 3600)), "365 days");
    }
}
