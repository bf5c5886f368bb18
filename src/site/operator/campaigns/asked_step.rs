//! Asking about a step of a campaign, and taking it.

use crate::campaigns::TakenStep;
use crate::campaigns::operator_step::{StepNote, read_note, read_reason};
use crate::domain::campaign::record::CampaignDetails;
use crate::domain::campaign::{CampaignState, CampaignStep};
use crate::domain::language::Language;
use crate::site::operator::question::{AskedReason, Question};
use crate::site::operator::session::OperatorVisit;
use crate::site::{PageResult, field, field_is};

/// What a form calls the reasons that are signed for an offer.
pub(super) const OUTSIDE: &str = "outside-mandate";
pub(super) const FIGURES: &str = "figures-checked";

/// And why an offer is withdrawn, for members.
pub(super) const fn reason_field(language: Language) -> &'static str {
    match language {
        Language::English => "reason-en",
        Language::Spanish => "reason-es",
    }
}

/// A step that is asked about.
pub(super) struct AskedStep {
    pub taken: TakenStep,
    pub command: &'static str,
    pub title: String,
    pub facts: Vec<(String, Vec<(String, String)>)>,
    pub says: Vec<String>,
    pub reasons: Vec<AskedReason>,
    pub button: &'static str,
}

/// What a form sends beside the step.
pub(super) struct SentStep<'a> {
    pub action: &'a str,
    /// What is sent again with the answer.
    pub again: &'a [(&'a str, &'a str)],
    /// Whether it came from a form that can be opened again.
    pub can_change: bool,
    pub fields: &'a [u8],
}

/// Asks about a step, and takes it once the operator is sure.
pub(super) async fn take(
    found: &OperatorVisit<'_>,
    file: &CampaignDetails,
    asked: AskedStep,
    sent: SentStep<'_>,
) -> PageResult {
    let (slug, state, now) = (file.campaign.slug(), file.campaign.state, found.visit.now.time);
    let note = match read_note(&field(sent.fields, "note").unwrap_or_default()) {
        Ok(note) => note,
        Err(why) => return Ok(found.refuse(&format!("The note is not as it should be: {why}."))),
    };
    let mails = !field_is(sent.fields, "no-mail", "yes");
    let AskedStep { mut taken, command, title, facts, mut says, reasons, button } = asked;
    let after = match state.after(taken.step()) {
        Ok(after) => after,
        Err(bad) => return Ok(found.refuse(&format!("{slug}: {bad}."))),
    };
    says.insert(0, format!("It is {} now.", state.name()));
    let concerns_nobody = state == CampaignState::Draft && taken.step() == CampaignStep::Cancel;
    let is_news = after.mailed_about().is_some() || taken.step() == CampaignStep::WithdrawOffer;
    says.extend((is_news && !concerns_nobody).then(|| match mails {
        true => "Those whom it concerns are mailed, if they want such mail.".to_owned(),
        false => "Nobody is mailed about it, as you asked.".to_owned(),
    }));
    // Each change of a campaign is in its history, and the question has every word of an offer.
    let about = file.history.len().to_string();
    let question = Question {
        title: &title,
        facts: &facts,
        says: &says,
        reasons: &reasons,
        can_change: sent.can_change,
        action: sent.action,
        fields: sent.again,
        about: &about,
        button,
        ..Question::default()
    };
    found.require_sure(&question, sent.fields)?;
    if let TakenStep::WithdrawOffer(reasons) = &mut taken {
        let reason = |language| field(sent.fields, reason_field(language)).and_then(|text| read_reason(&text).ok());
        reasons.extend(Language::ALL.into_iter().filter_map(|language| Some((language, reason(language)?))));
    }
    if let TakenStep::Offer(publication) = &mut taken {
        // Of those that were asked for alone; each was read before.
        let asks = |name| reasons.iter().any(|asked| asked.name == name);
        let reason = |name| field(sent.fields, name).filter(|_| asks(name)).and_then(|text| read_reason(&text).ok());
        publication.outside_mandate = reason(OUTSIDE);
        publication.figures_checked = reason(FIGURES);
    }
    let act = found.who.act(command, slug.to_string(), now);
    let who = act.who.clone();
    let said = StepNote { who: &who, note: &note, mails };
    let admin = found.operator().audited(act).campaigns();
    let taken = found.stored(admin.take_step(slug, taken, said, now).await)?;
    // A draft waits now, or no longer.
    found.access.findings.forget().await;
    Ok(match taken {
        Ok(done) => found.done_at(
            &format!("/operator/campaigns/{slug}"),
            "Done",
            &done.words(mails, now, found.access.write_remedy),
        ),
        Err(refused) => found.refuse(&found.sentence(refused.to_string(), refused.remedy())),
    })
}
