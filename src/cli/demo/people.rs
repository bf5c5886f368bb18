//! The invented people of a demonstration: the same each time, at addresses that belong to nobody.

use std::borrow::Cow;
use std::collections::HashSet;

use anyhow::Context;

use crate::domain::answers::Answers;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::session::Nonce;
use crate::domain::text::Comments;
use crate::domain::us_state::UsState;

const MANY: usize = 240;

/// Whoever refers several; the first of them is the member whose page is shown.
pub(super) const LIVELY: usize = 0;
const SOCIABLE: usize = 1;
const NEIGHBOR: usize = 2;

/// Who joined for a campaign at the invitation of one of them.
pub(super) struct Circle {
    by: usize,
    pub people: std::ops::Range<usize>,
    /// The days on which they sign up, counted from today.
    days: (i64, i64),
    pub bill: Category,
    /// They sit at one table when they accept.
    pub at_once: bool,
}

/// Five of the first were paid for, five of the second and the third are due, the fourth is on hold, the fifth is one short.
pub(super) const CIRCLES: [Circle; 5] = [
    Circle { by: LIVELY, people: 3..9, days: (-146, -139), bill: Category::MobileBills, at_once: false },
    Circle { by: SOCIABLE, people: 9..16, days: (-144, -132), bill: Category::MobileBills, at_once: true },
    Circle { by: LIVELY, people: 16..21, days: (-112, -102), bill: Category::MobileBills, at_once: false },
    Circle { by: LIVELY, people: 21..26, days: (-92, -78), bill: Category::Groceries, at_once: false },
    Circle { by: NEIGHBOR, people: 26..30, days: (-100, -84), bill: Category::Groceries, at_once: false },
];

/// Whom the last partner signs up in the last days, who have not answered yet, and whom a stolen key signs up.
const LATEST: std::ops::Range<usize> = 230..234;
const UNANSWERED: std::ops::Range<usize> = 234..238;
pub(super) const BY_STOLEN_KEY: std::ops::Range<usize> = 238..MANY;

/// The domain at which nobody has a mailbox.
pub(super) const NO_MAILBOX: &str = "moved-away.example.org";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// So many days after the mail; 0 is within hours.
    Confirms(i64),
    Declines,
    /// The mail is never answered.
    Lapses,
}

/// How somebody comes to the union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Form,
    /// By the partner with that place.
    Partner(usize),
}

pub(super) struct Person {
    pub email: EmailAddress,
    pub language: Language,
    pub answers: Answers,
    pub source: Source,
    /// The day of the sign-up, counted from today.
    pub day: i64,
    pub invited_by: Option<usize>,
    pub decision: Decision,
    /// Once they were signed up.
    pub code: Option<ReferralCode>,
    /// Once they are a member.
    pub session: Option<Nonce>,
    pub joined: Option<i64>,
}

impl Person {
    pub(super) fn pays(&self, bill: Category) -> bool {
        self.answers.chosen().contains(bill)
    }
}

/// A number below `most` that depends on nothing but what it is asked for (SplitMix64).
pub(super) fn chance(one: usize, about: &str, most: u64) -> u64 {
    let mut seed = about.bytes().fold(one as u64 + 56, |seed, byte| seed.wrapping_mul(1099).wrapping_add(byte.into()));
    seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (seed ^ (seed >> 31)) % most
}

fn pick<T: Copy>(one: usize, about: &str, from: &[T]) -> T {
    from[usize::try_from(chance(one, about, from.len() as u64)).unwrap_or(0)]
}

/// Everybody who is ever signed up.
pub(super) fn invent() -> anyhow::Result<Vec<Person>> {
    let mut taken = HashSet::new();
    (0..MANY).map(|one| person(one, &mut taken)).collect()
}

fn person(one: usize, taken: &mut HashSet<String>) -> anyhow::Result<Person> {
    let circle = CIRCLES.iter().find(|circle| circle.people.contains(&one));
    let is_known = one <= NEIGHBOR || circle.is_some();
    let day = match (one, circle) {
        (LIVELY..=NEIGHBOR, _) => -149 + one as i64,
        (_, Some(circle)) => day_between(one, circle.days),
        _ if LATEST.contains(&one) => -4 + (one % 3) as i64,
        _ if UNANSWERED.contains(&one) => -6 + (one % 5) as i64,
        _ if BY_STOLEN_KEY.contains(&one) => -1,
        // The union began with a crowd.
        (..90, None) => day_between(one, (-148, -125)),
        _ => day_between(one, (-124, -1)),
    };
    let decision = match chance(one, "decision", 100) {
        _ if is_known || LATEST.contains(&one) => Decision::Confirms(0),
        _ if one >= UNANSWERED.start => Decision::Lapses,
        ..57 => Decision::Confirms(0),
        57..72 => Decision::Confirms(1),
        72..80 => Decision::Confirms(3),
        80..84 => Decision::Declines,
        _ => Decision::Lapses,
    };
    let language = match chance(one, "language", 100) {
        _ if one == LIVELY => Language::English,
        ..26 => Language::Spanish,
        _ => Language::English,
    };
    let bounces = one < LATEST.start && decision == Decision::Lapses && chance(one, "mailbox", 3) == 0;
    let domain = if bounces { NO_MAILBOX } else { pick(one, "domain", &["example.com", "example.net", "example.org"]) };
    let (firsts, lasts) = match language {
        Language::English => (ENGLISH_FIRST, ENGLISH_LAST),
        Language::Spanish => (SPANISH_FIRST, SPANISH_LAST),
    };
    let mut name = match one {
        LIVELY => "nora.whitfield".to_owned(),
        _ => format!("{}.{}", pick(one, "first", firsts), pick(one, "last", lasts)),
    };
    while !taken.insert(name.clone()) {
        name.push_str(pick(name.len() + one, "again", &["2", "7", "21", "84", "90"]));
    }
    // A few were invited by somebody else, who was there long before.
    let friend = || (chance(one, "invited", 100) < 22).then(|| pick(one, "by", &[33, 37, 41, 44, 52]));
    let is_invited = day > -120 && (60..LATEST.start).contains(&one);
    let invited_by = circle.map(|circle| circle.by).or_else(|| friend().filter(|_| is_invited));
    let source = match chance(one, "source", 100) {
        _ if LATEST.contains(&one) || BY_STOLEN_KEY.contains(&one) => Source::Partner(2),
        _ if invited_by.is_some() || one == LIVELY => Source::Form,
        ..38 => Source::Form,
        38..70 => Source::Partner(0),
        // The other two came later.
        70..87 if day > -138 => Source::Partner(1),
        87.. if day > -118 => Source::Partner(2),
        _ => Source::Partner(0),
    };
    Ok(Person {
        email: EmailAddress::parse(&format!("{name}@{domain}")).context("an invented address is none")?,
        language,
        answers: answers(one, circle.map(|circle| circle.bill), language)?,
        source,
        day,
        invited_by,
        decision,
        code: None,
        session: None,
        joined: None,
    })
}

fn day_between(one: usize, (first, last): (i64, i64)) -> i64 {
    // On two of three days at the most: what happens on one day is told together.
    let day = first + i64::try_from(chance(one, "day", (last - first + 1).unsigned_abs())).unwrap_or(0);
    if day % 3 == 0 && day < last { day + 1 } else { day }
}

fn answers(one: usize, bill: Option<Category>, language: Language) -> anyhow::Result<Answers> {
    let is_listed = |listed: &&(Category, u64)| {
        one == LIVELY && listed.1 >= 30 || bill == Some(listed.0) || chance(one, listed.0.slug(), 100) < listed.1
    };
    let bills: CategorySet = BILLS.iter().filter(is_listed).map(|(bill, _)| *bill).collect();
    let comments = match (chance(one, "comment", 100), language) {
        (..9, Language::English) => Some(pick(one, "words", ENGLISH_COMMENTS)),
        (..9, Language::Spanish) => Some(pick(one, "words", SPANISH_COMMENTS)),
        _ => None,
    };
    let comments = comments.map(|text| Comments::new(Cow::Borrowed(text))).transpose();
    Ok(Answers {
        us_state: match chance(one, "state", 100) {
            _ if one == LIVELY => UsState::from_code("CA"),
            // Some say nothing.
            ..6 => None,
            _ => UsState::from_code(pick(one, "where", STATES)),
        },
        categories: Some(bills),
        comments: comments.map_err(|_| anyhow::anyhow!("an invented comment is too long"))?,
    })
}

/// Which bills people tick, in percent.
const BILLS: [(Category, u64); 12] = [
    (Category::MobileBills, 55),
    (Category::Internet, 62),
    (Category::CarInsurance, 48),
    (Category::HomeInsurance, 22),
    (Category::CreditCardDebt, 18),
    (Category::Mortgage, 12),
    (Category::HawaiiResortStay, 9),
    (Category::AutoLoan, 26),
    (Category::Travel, 15),
    (Category::MedicalCosts, 20),
    (Category::Subscriptions, 46),
    (Category::Groceries, 50),
];

/// The large ones stand here more than once.
const STATES: &[&str] = &[
    "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "CA", "TX", "TX", "TX",
    "TX", "TX", "TX", "TX", "TX", "TX", "FL", "FL", "FL", "FL", "FL", "FL", "NY", "NY", "NY", "NY", "NY", "NY", "IL",
    "IL", "PA", "PA", "OH", "GA", "NC", "MI", "NJ", "VA", "WA", "WA", "AZ", "AZ", "MA", "TN", "IN", "MO", "MD", "WI",
    "CO", "CO", "MN", "OR", "OR", "NV", "NM", "UT", "KS", "ME", "HI", "DC",
];

const ENGLISH_FIRST: &[&str] = &[
    "alice", "amber", "ben", "bridget", "caleb", "carol", "daniel", "dawn", "edith", "eli", "faith", "frank", "grace",
    "harriet", "henry", "iris", "jack", "joan", "karen", "keith", "laura", "leon", "marcus", "mia", "nathan", "olive",
    "oscar", "paula", "peter", "rachel", "ralph", "ruth", "sam", "stella", "tess", "theo", "vera", "wade", "willa",
    "zoe",
];
const ENGLISH_LAST: &[&str] = &[
    "abbott", "alder", "barlow", "bishop", "brook", "carver", "chase", "dalton", "draper", "ellis", "fenn", "fisher",
    "garland", "hale", "harper", "hollis", "ingram", "jarvis", "keller", "lowell", "marsh", "mercer", "nolan", "oakes",
    "parrish", "quill", "reed", "rowan", "sawyer", "shaw", "thorne", "tyler", "vance", "walsh", "winter", "yates",
];
const SPANISH_FIRST: &[&str] = &[
    "alejandra",
    "andres",
    "beatriz",
    "carlos",
    "carmen",
    "diego",
    "elena",
    "esteban",
    "gabriela",
    "hugo",
    "ines",
    "javier",
    "lucia",
    "marisol",
    "mateo",
    "noelia",
    "pablo",
    "pilar",
    "rafael",
    "rocio",
    "sofia",
    "tomas",
    "valeria",
    "ximena",
];
const SPANISH_LAST: &[&str] = &[
    "aguilar", "arroyo", "bravo", "campos", "delgado", "espinoza", "fuentes", "herrera", "ibarra", "lozano", "montoya",
    "navarro", "ochoa", "paredes", "quintero", "robles", "salinas", "trujillo", "valdez", "zamora",
];

const ENGLISH_COMMENTS: &[&str] = &[
    "My plan ends in March, so I can wait.",
    "Please no deal that jumps in price after three months.",
    "We are two households under one roof.",
    "I pay for four streaming services and watch one.",
    "Customer service in the evening matters more to me than the last dollar.",
    "There are only two internet companies on our street.",
];
const SPANISH_COMMENTS: &[&str] = &[
    "Mi contrato termina en marzo.",
    "Somos cinco en casa y el internet no alcanza.",
    "Quiero atención en español.",
    "No quiero planes que suben de precio a los tres meses.",
];
