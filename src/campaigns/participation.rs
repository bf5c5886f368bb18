//! Who takes part in a campaign: the buttons members press, and what leaving and erasing change.

use crate::campaigns::acceptances::{self, Agreed, NewAcceptance, acceptances_of, end_outdated};
use crate::campaigns::mailing::queue_receipt;
use crate::campaigns::qualify::disqualify;
use crate::campaigns::records::hold;
use crate::campaigns::sheet::counted;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::acceptance::Ended;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{BadPress, ParticipationEntry, ParticipationState, Press, PressAnswers};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::secret::session::Nonce;
use crate::domain::time::Timestamp;
use crate::membership::answers::{answers_of, set_answers};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    Done(Option<ParticipationState>),
    Refused(BadPress),
    Unknown,
    NotAMember,
}

/// A member presses a button of a campaign; a state that they say with it counts where they have named none before.
#[derive(Clone)]
pub struct PressButton {
    pub session: Nonce,
    pub slug: CampaignSlug,
    pub press: Press,
    pub said: PressAnswers,
    /// What they agree to if they accept.
    pub agreed: Agreed,
    pub now: Timestamp,
}

impl Unit for PressButton {
    type Done = Pressed;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Pressed, Failure> {
        // Lock the person first: the code that ends a membership locks them too, and looks at their participations afterwards.
        let Some(member) = answers_of(sql, &self.session).await? else { return Ok(Pressed::NotAMember) };
        let campaign = hold(sql, &self.slug).await?.filter(CampaignRecord::was_public);
        let Some(campaign) = campaign else { return Ok(Pressed::Unknown) };
        let find = "SELECT state FROM participations WHERE campaign_id = $1 AND person_id = $2 FOR UPDATE";
        let read = |row: &Row<'_>| row.parsed(0, ParticipationState::from_name);
        if sql.row(find, values![campaign.id.0, member.person], read).await? == Some(ParticipationState::Accepted) {
            end_outdated(sql, campaign.id.0, member.person, self.now).await?;
        }
        let before = sql.row(find, values![campaign.id.0, member.person], read).await?;
        let us_state = member.answers.us_state.or(self.said.us_state);
        let is_offer = |offer: &Offer| offer.mark(self.agreed.language) == self.agreed.mark;
        let agrees = self.press == Press::Accept && campaign.offer.as_ref().is_some_and(is_offer);
        let after = match campaign.press(before, self.press, PressAnswers { us_state, agrees, ..self.said }, self.now) {
            Ok(after) => after,
            Err(refused) => return Ok(Pressed::Refused(refused)),
        };
        if us_state != member.answers.us_state && matches!(self.press, Press::In | Press::Accept) {
            let mut answers = member.answers.clone();
            answers.us_state = us_state;
            set_answers(sql, &member, &answers, self.now).await?;
        }
        let Some(state) = after.filter(|_| after != before) else { return Ok(Pressed::Done(after)) };
        let (of, person) = (campaign.id.0, member.person);
        let write = concat!(
            "INSERT INTO participations (campaign_id, person_id, state, in_at, accepted_at, changed_at)
             VALUES ($1, $2, $3, $5, $6, $4)
             ON CONFLICT (campaign_id, person_id) DO UPDATE SET state = excluded.state,
                 in_at = coalesce(excluded.in_at, participations.in_at),
                 accepted_at = coalesce(excluded.accepted_at, participations.accepted_at), changed_at = excluded.changed_at,
                 hold_checked = participations.hold_checked AND excluded.accepted_at IS NULL,
                 hold_from = CASE WHEN excluded.accepted_at IS NULL THEN participations.hold_from END, counted = ",
            counted!()
        );
        let at = |this| (state == this).then_some(self.now);
        let (in_at, accepted_at) = (at(ParticipationState::In), at(ParticipationState::Accepted));
        sql.execute(write, values![of, person, state.name(), self.now, in_at, accepted_at]).await?;
        if before == Some(ParticipationState::Accepted) {
            disqualify(sql, of, person, Ended::Passed).await?;
            acceptances::end(sql, person, Some(of), Ended::Passed, self.now).await?;
        }
        if state == ParticipationState::Accepted {
            self.keep_acceptance(sql, of, person, campaign.offer.as_ref()).await?;
        }
        Ok(Pressed::Done(after))
    }
}

impl PressButton {
    /// Keeps what somebody agreed to who accepts, and mails them a receipt.
    async fn keep_acceptance(
        &self,
        sql: &mut dyn Sql,
        campaign: i64,
        person: i64,
        offer: Option<&Offer>,
    ) -> Result<(), Failure> {
        let Some((offer, told)) = offer.and_then(|offer| Some((offer, offer.consent(self.agreed.language)?))) else {
            return Ok(());
        };
        let Some(handover) = offer.terms.handover else { return Ok(()) };
        let (reference, told, now) = (self.agreed.reference, &told, self.now);
        let is_new = NewAcceptance { campaign, person, handover, told, reference, now }.keep(sql).await?;
        queue_receipt(sql, campaign, person, is_new, now).await
    }
}

/// A person who leaves drops out of every campaign that is still running, and out of what they accepted in others. They have at most one
/// row per campaign.
pub(crate) async fn end_participations(
    sql: &mut dyn Sql,
    person: i64,
    why: Ended,
    now: Timestamp,
) -> Result<(), Failure> {
    acceptances::end(sql, person, None, why, now).await?;
    let end = concat!(
        "UPDATE participations SET state = CASE state WHEN 'in' THEN 'out' ELSE 'passed' END, changed_at = $2, counted = ",
        counted!(),
        " WHERE person_id = $1 AND state IN ('in', 'accepted')
            AND campaign_id IN (SELECT id FROM campaigns WHERE state NOT IN ('closed', 'cancelled'))"
    );
    sql.execute(end, values![person, now]).await.map(|_| ())
}

/// When a person is erased, all that stays of a participation is that there was one.
pub(crate) async fn forget_times(sql: &mut dyn Sql, person: i64, day: Timestamp) -> Result<(), Failure> {
    acceptances::forget(sql, person, day).await?;
    let forget = concat!(
        "UPDATE participations SET in_at = NULL, accepted_at = NULL, hold_from = NULL, changed_at = $2, counted = ",
        counted!(),
        " WHERE person_id = $1"
    );
    sql.execute(forget, values![person, day]).await.map(|_| ())
}

/// A person's part in each campaign, in the order they first took part.
pub(crate) async fn participations_of(sql: &mut dyn Sql, person: i64) -> Result<Vec<ParticipationEntry>, Failure> {
    let list = "SELECT c.slug, p.state, p.in_at, p.accepted_at, p.changed_at
                FROM participations p JOIN campaigns c ON c.id = p.campaign_id WHERE p.person_id = $1 ORDER BY p.id";
    let read = |row: &Row<'_>| {
        Ok(ParticipationEntry {
            campaign: row.parsed("slug", |slug| slug.parse().ok())?,
            state: row.parsed("state", ParticipationState::from_name)?,
            in_at: row.get("in_at")?,
            accepted_at: row.get("accepted_at")?,
            changed_at: row.get("changed_at")?,
            acceptances: Vec::new(),
        })
    };
    let mut parts = sql.rows(list, values![person], read).await?;
    for (campaign, acceptance) in acceptances_of(sql, person).await? {
        if let Some(part) = parts.iter_mut().find(|part| part.campaign == campaign) {
            part.acceptances.push(acceptance);
        }
    }
    for part in &mut parts {
        // The worker may not have come to them yet.
        let has_ended = part.acceptances.last().is_some_and(|last| last.ended_why == Some(Ended::Offer));
        if part.state == ParticipationState::Accepted && has_ended {
            part.state = ParticipationState::In;
        }
    }
    Ok(parts)
}
