//! What happened in the union of a demonstration before it is shown: five months, day by day, told through the same use cases that
//! people, partners, operators and negotiators use.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};

use super::deals::NEGOTIATED;
use super::partners::{PARTNERS, issue_test_key};
use super::parts::ServiceParts;
use super::people::{self, BY_STOLEN_KEY, Decision, LIVELY, Person, Source, chance};
use super::post::Post;
use super::printed::Told;
use super::story::{ANA, Story, together};
use crate::clock::Clock;
use crate::config::ServeSettings;
use crate::domain::email::EmailAddress;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::report::{MailReport, ReportKind, ReportedMail};
use crate::domain::operator::Role;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::session::Nonce;
use crate::domain::secret::token::Purpose;
use crate::domain::sign_up::{Channel, Confirmation, DecidedHow, Declining, SeenPage, Silence, SilenceChange};
use crate::domain::time::Timestamp;
use crate::membership::{Application, SignUpContext};
use crate::operations::dispatch::Dispatcher;
use crate::people::erasures::ErasureLog;

/// The day on which it begins, counted from today.
const FIRST_DAY: i64 = -150;

pub(super) async fn tell(
    parts: &mut ServiceParts,
    post: &Post,
    settings: &ServeSettings,
    receiver: &str,
    now: Timestamp,
) -> anyhow::Result<Told> {
    let dispatcher = Dispatcher::new(Arc::clone(&parts.app));
    let (clock, today, people) = (Clock::start(), now.start_of_day(), people::invent()?);
    let mut story = Story { parts, dispatcher, clock, people, keys: Vec::new(), post, settings, today };
    let first = story.at(FIRST_DAY, 0);
    story
        .by_ana("operator add", ANA.to_owned(), first)
        .add_operator(&ANA.parse()?, Role::All, Some(EmailAddress::kept("ana@union.example")?), first)
        .await?;
    for day in FIRST_DAY..0 {
        Box::pin(story.day(day, receiver)).await?;
    }
    story.parts.app.write_uses(true, now).await;
    story.parts.work(now).await?;
    let test_key = issue_test_key(&settings.store, now).await?;
    let live_key = story.keys.first().context("there is no partner")?;
    Ok(Told {
        member: story.people[LIVELY].email.as_typed().to_owned(),
        operator: ANA.to_owned(),
        partner: PARTNERS[0].0.to_owned(),
        live_key: live_key.reveal().to_owned(),
        test_key: test_key.reveal().to_owned(),
        negotiated: NEGOTIATED.to_owned(),
    })
}

impl Story<'_> {
    async fn day(&mut self, day: i64, receiver: &str) -> anyhow::Result<()> {
        self.partners_on(day, receiver).await?;
        self.steps_on(day).await?;
        let hour = 13 + chance(day.unsigned_abs() as usize, "hour", 8);
        let signs_up = |one: &usize| self.people[*one].day == day && !BY_STOLEN_KEY.contains(one);
        let new: Vec<_> = (0..self.people.len()).filter(signs_up).collect();
        let story = &*self;
        let signed_up = together(new.iter().enumerate().map(|(nth, one)| async move {
            Ok((*one, story.sign_up(*one, story.at(day, hour * 60 + nth as u64)).await?))
        }));
        for (one, code) in signed_up.await? {
            self.people[one].code = Some(code);
        }
        if day == -1 {
            self.lose_a_key(BY_STOLEN_KEY, self.at(day, hour * 60 + 30)).await?;
        }
        if !new.is_empty() {
            self.parts.deliver(self.at(day, hour * 60 + 31)).await?;
        }
        self.decide(day, hour).await?;
        self.change_their_minds(day).await?;
        self.presses_on(day).await?;
        // Every other day will do, but for the last ones, which are looked at.
        if day % 2 == 0 || day > -14 {
            self.parts.work(self.at(day, 23 * 60 + 40)).await?;
        }
        Ok(())
    }

    async fn sign_up(&self, one: usize, now: Timestamp) -> anyhow::Result<ReferralCode> {
        let person = &self.people[one];
        let partner = match person.source {
            Source::Partner(partner) => return self.sign_up_by(partner, one, now).await,
            Source::Form => None,
        };
        let ref_code = person.invited_by.and_then(|by| self.people[by].code);
        let application = Application { email: person.email.clone(), answers: person.answers.clone(), ref_code };
        let context = SignUpContext {
            channel: Channel::Form,
            client: None,
            lane: Lane::of(&one.to_be_bytes()),
            proven: false,
            language: Some(person.language),
            request: None,
        };
        let done = self.parts.app.membership.sign_up(&application, partner, context, now).await;
        Ok(done.map_err(|refused| anyhow::anyhow!("a sign-up was refused: {refused:?}"))?.code)
    }

    /// People read their mail, and press a button there or not.
    async fn decide(&mut self, day: i64, hour: u64) -> anyhow::Result<()> {
        let decides = |person: &Person| match person.decision {
            Decision::Confirms(after) => person.day + after == day,
            Decision::Declines => person.day == day,
            Decision::Lapses => false,
        };
        let deciding: Vec<_> = (0..self.people.len()).filter(|one| decides(&self.people[*one])).collect();
        let story = &*self;
        let decided = together(deciding.into_iter().map(|one| async move {
            let now = story.at(day, hour * 60 + 32 + chance(one, "minute", 100));
            let person = &story.people[one];
            match person.decision {
                Decision::Declines => story.decline(person, now).await.map(|()| (one, None)),
                _ => Ok((one, story.confirm(person, now).await?)),
            }
        }));
        for (one, session) in decided.await? {
            let person = &mut self.people[one];
            person.joined = session.is_some().then_some(day);
            person.session = session;
        }
        Ok(())
    }

    /// Opens the link in the mail, reads the page and presses its button. None if no mail came.
    async fn confirm(&self, person: &Person, now: Timestamp) -> anyhow::Result<Option<Nonce>> {
        let Some(token) = self.post.token(person, "/confirm/") else { return Ok(None) };
        let (app, language) = (&self.parts.app, person.language);
        let page = app.membership.find(Purpose::Confirm, &token, now).await?.context("a link leads nowhere")?;
        let notice = Arc::clone(&self.parts.union.notices.in_language(language).hash);
        let seen = SeenPage { answers: Some(page.record.updated_at), notice: Some(notice), language: Some(language) };
        match app.membership.confirm(&token, seen, now).await? {
            Confirmation::Joined(_) => {}
            other => bail!("somebody who confirms is not in: {other:?}"),
        }
        let entered = app.own_pages.enter_by_joining(Purpose::Confirm, &token, now).await?;
        let session = entered.and_then(|entered| app.own_pages.session(&entered.cookie, now));
        Ok(Some(session.context("a new member is not signed in")?.nonce))
    }

    /// "This wasn't me."
    async fn decline(&self, person: &Person, now: Timestamp) -> anyhow::Result<()> {
        let token = self.post.token(person, "/not-me/").context("somebody declines a mail that they did not get")?;
        let wanted = Silence { mailbox: true, ..Silence::default() };
        let silence = Some(SilenceChange::between(Silence::default(), wanted));
        let declined = self.parts.app.membership.decline(&token, DecidedHow::Button, silence, now).await?;
        ensure!(declined == Declining::Declined, "somebody who declines is not let go: {declined:?}");
        Ok(())
    }

    /// Two call a mail unwanted, three leave, and one is erased.
    async fn change_their_minds(&mut self, day: i64) -> anyhow::Result<()> {
        let now = self.at(day, 18 * 60);
        let Some((_, what)) = CHANGES.iter().find(|(on, _)| *on == day) else { return Ok(()) };
        // Somebody who is in nothing that is paid for.
        let is_apart = |person: &Person| {
            let is_new = match what {
                // While they still remember why they got it.
                Change::Complains => person.joined.is_some_and(|joined| joined > day - 6),
                _ => person.joined.is_some_and(|joined| joined < day - 5) && person.day > -125,
            };
            is_new && person.session.is_some() && person.invited_by.is_none()
        };
        let one = self.people.iter().rposition(is_apart).context("nobody can change their mind")?;
        let person = &self.people[one];
        match what {
            Change::Complains => {
                let mail = ReportedMail::To(person.email.normalized());
                let report = MailReport { mail, kind: ReportKind::Complaint, once: None };
                self.parts.app.membership.note_report(report, now).await?;
            }
            Change::Leaves => {
                self.parts.app.own_pages.leave(&person.email, now).await?;
            }
            Change::IsErased => {
                let log = ErasureLog::beside(&self.settings.store.data);
                let people = self.by_ana("members erase", String::new(), now).people(&self.parts.secret, log);
                people.erase(&person.email, None, now).await?;
            }
        }
        if !matches!(what, Change::Complains) {
            self.people[one].session = None;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Change {
    Complains,
    Leaves,
    IsErased,
}

/// The days of these, counted from today.
const CHANGES: [(i64, Change); 6] = [
    (-83, Change::Leaves),
    (-61, Change::Complains),
    (-49, Change::IsErased),
    (-33, Change::Leaves),
    (-6, Change::Leaves),
    (-3, Change::Complains),
];
