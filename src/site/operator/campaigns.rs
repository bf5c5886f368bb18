//! `/operator/campaigns`: how far each campaign is, everything about one, its next step, and drafts of its offer with the rounds behind
//! them.

use askama::Template;
use hyper::{Request, StatusCode};

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::{OperatorVisit, Question};
use crate::campaigns::TakenStep;
use crate::campaigns::bids::ListBids;
use crate::campaigns::drafts::ListOfferDrafts;
use crate::campaigns::offer_facts::offer_facts;
use crate::campaigns::operator_step::{StepNote, read_note, terms_words};
use crate::campaigns::records::{FindCampaign, ListCampaigns};
use crate::campaigns::rounds::ListRounds;
use crate::domain::campaign::demand::count_words;
use crate::domain::campaign::offer::{Offer, Proposal, Publication};
use crate::domain::campaign::record::{
    CampaignDetails, CampaignRecord, HistoryEntry, MailingEntry, NegotiationRound, OfferDraft,
};
use crate::domain::campaign::{BadFile, CampaignSlug, CampaignState, CampaignStep};
use crate::domain::figure::counted;
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::view::operator::{accepted, next, title};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Campaigns;

/// Steps of its history that are shown, the newest: it has one for each edit.
const MOST_HISTORY: usize = 50;

#[derive(Template)]
#[template(path = "operator/campaigns.html")]
struct CampaignListPage<'a> {
    frame: OperatorFrame<'a>,
    campaigns: &'a [CampaignRecord],
    now: Timestamp,
}

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut campaigns = found.stored(found.operator().ask(ListCampaigns).await)?;
    campaigns.sort_by_key(|campaign| (campaign.closed_at.is_some(), std::cmp::Reverse(campaign.id)));
    let page = CampaignListPage { frame: found.frame(), campaigns: &campaigns, now: visit.now.time };
    Ok(found.page(render(&page)))
}

#[derive(Template)]
#[template(path = "operator/campaign.html")]
struct CampaignDetailsPage<'a> {
    frame: OperatorFrame<'a>,
    campaign: &'a CampaignRecord,
    now: Timestamp,
    /// What it is about, and what was counted.
    facts: Vec<(&'static str, String)>,
    offer: Vec<(String, String)>,
    /// Buttons: what they send, what they say, and whether they end it.
    steps: Vec<(&'static str, &'static str, bool)>,
    drafts: Vec<ShownDraft<'a>>,
    rounds: &'a [NegotiationRound],
    mailings: &'a [MailingEntry],
    history: Vec<&'a HistoryEntry>,
    is_history_cut: bool,
}

struct ShownDraft<'a> {
    number: usize,
    draft: &'a OfferDraft,
    facts: Vec<(String, String)>,
    /// How many rounds were recorded before it.
    rounds: String,
    /// Why it cannot be published now.
    mistakes: Vec<String>,
    can_publish: bool,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let slug = slug_of(&found)?;
    let (operator, now) = (found.operator(), visit.now.time);
    let file = found.stored(operator.ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(&found))?;
    let drafts = found.stored(operator.ask(ListOfferDrafts(slug.clone())).await)?;
    let rounds = found.stored(operator.ask(ListRounds(slug.clone())).await)?;
    let bids = found.stored(operator.ask(ListBids(slug.clone())).await)?;
    let campaign = &file.campaign;
    let can_publish = campaign.state.after(CampaignStep::Offer).is_ok();
    let drafts = drafts.iter().enumerate().rev().map(|(at, draft)| {
        let read = Proposal::parse(&draft.file).and_then(|proposal| Offer::of(&campaign.draft, &bids, &proposal, now));
        let facts = read.as_ref().map(offer_facts).unwrap_or_default();
        let mistakes = read.err().map(|BadFile(mistakes)| mistakes).unwrap_or_default();
        let before = rounds.iter().filter(|round| round.at <= draft.at).count() as u64;
        let (rounds, can_publish) = (counted(before, "round"), can_publish && mistakes.is_empty());
        ShownDraft { number: at + 1, draft, facts, rounds, mistakes, can_publish }
    });
    let page = CampaignDetailsPage {
        frame: found.frame(),
        campaign,
        now,
        facts: facts(&file),
        offer: campaign.offer.as_ref().map(offer_facts).unwrap_or_default(),
        steps: steps(campaign.state),
        drafts: drafts.collect(),
        rounds: &rounds,
        mailings: &file.mailings,
        history: file.history.iter().rev().take(MOST_HISTORY).collect(),
        is_history_cut: file.history.len() > MOST_HISTORY,
    };
    Ok(found.page(render(&page)))
}

fn slug_of(found: &OperatorVisit<'_>) -> PageResult<CampaignSlug> {
    Ok(found.visit.parameter.parse().map_err(|_| missing(found))?)
}

fn missing(found: &OperatorVisit<'_>) -> Answer {
    let says = ["There is no campaign at this address.".to_owned()];
    found.message(StatusCode::NOT_FOUND, "No such campaign", &says)
}

fn facts(file: &CampaignDetails) -> Vec<(&'static str, String)> {
    let CampaignDetails { campaign, counts, .. } = file;
    let mut facts = vec![
        ("About", format!("{}, {}", campaign.draft.category.label(), campaign.places())),
        ("Gathers until", format!("the end of {}", campaign.draft.gather_until)),
        ("Members now", counts.words()),
        ("Published", campaign.published_words()),
    ];
    facts.extend(campaign.terms.map(|terms| ("Referrals", terms_words(&terms))));
    facts
}

/// The steps that a form can ask for; an offer is published from its draft.
const FORM_STEPS: [(CampaignStep, &str, &str); 5] = [
    (CampaignStep::Open, "open", "Open it to members…"),
    (CampaignStep::Negotiate, "negotiate", "Begin to negotiate…"),
    (CampaignStep::Activate, "activate", "The deal has started…"),
    (CampaignStep::Close, "close", "Close it…"),
    (CampaignStep::Cancel, "cancel", "Cancel it…"),
];

fn steps(state: CampaignState) -> Vec<(&'static str, &'static str, bool)> {
    let possible = FORM_STEPS.iter().filter(|(step, ..)| state.after(*step).is_ok());
    possible.map(|(step, name, label)| (*name, *label, *step == CampaignStep::Cancel)).collect()
}

struct AskedStep {
    taken: TakenStep,
    command: &'static str,
    title: String,
    says: Vec<String>,
    button: &'static str,
}

/// Takes a step, once the operator is sure.
pub async fn step(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (slug, now) = (slug_of(&found)?, visit.now.time);
    let [step, draft, note, no_mail] =
        ["step", "draft", "note", "no-mail"].map(|name| field(&fields, name).unwrap_or_default());
    let note = match read_note(&note) {
        Ok(note) => note,
        Err(why) => return Ok(found.refuse(&format!("The note is not as it should be: {why}."))),
    };
    let asked = asked_step(&found, &slug, (&step, &draft), &fields).await?;
    let mails = no_mail != "yes";
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(&found))?;
    let state = file.campaign.state;
    let after = match state.after(asked.taken.step()) {
        Ok(after) => after,
        Err(bad) => return Ok(found.refuse(&format!("{slug}: {bad}."))),
    };
    let mut says = asked.says;
    says.insert(0, format!("It is {} now.", state.name()));
    let concerns_nobody = state == CampaignState::Draft && asked.taken.step() == CampaignStep::Cancel;
    says.extend((after.mailed_about().is_some() && !concerns_nobody).then(|| match mails {
        true => "Those whom it concerns are mailed, if they want such mail.".to_owned(),
        false => "Nobody is mailed about it, as you asked.".to_owned(),
    }));
    let action = format!("/operator/campaigns/{slug}");
    let [outside, figures] =
        ["outside-mandate", "figures-checked"].map(|name| field(&fields, name).unwrap_or_default());
    let again = [
        ("step", step.as_str()),
        ("draft", &draft),
        ("outside-mandate", &outside),
        ("figures-checked", &figures),
        ("note", &note),
        ("no-mail", if mails { "" } else { "yes" }),
    ];
    // Each change of a campaign is in its history, and the question has every word of an offer.
    let about = file.history.len().to_string();
    let (title, button) = (asked.title.as_str(), asked.button);
    let question = Question { title, says: &says, action: &action, fields: &again, about: &about, button };
    found.require_sure(&question, &fields)?;
    let act = found.who.act(asked.command, slug.to_string(), now);
    let who = act.who.clone();
    let said = StepNote { who: &who, note: &note, mails };
    let admin = found.operator().audited(act).campaigns();
    Ok(match found.stored(admin.take_step(&slug, asked.taken, said, now).await)? {
        Ok(done) => found.done_at(
            &format!("/operator/campaigns/{slug}"),
            "Done",
            &done.words(mails, now, found.access.write_remedy),
        ),
        Err(refused) => found.refuse(&found.sentence(refused.to_string(), refused.remedy())),
    })
}

/// Reads what a form asks for; what is wrong with it ends the visit.
async fn asked_step(
    found: &OperatorVisit<'_>,
    slug: &CampaignSlug,
    (step, draft): (&str, &str),
    fields: &[u8],
) -> PageResult<AskedStep> {
    let union = &found.visit.app().union;
    let plain = |step, command, title: &str, says: &[&str], button| AskedStep {
        taken: TakenStep::Plain(step),
        command,
        title: format!("{title} {slug}?"),
        says: says.iter().map(|&line| line.to_owned()).collect(),
        button,
    };
    Ok(match step {
        "open" if union.postal_address.is_none() => {
            let why = "The postal address is unset, and mail about a campaign must name one. Set UNIONHALL_POSTAL_ADDRESS for the service.";
            return Err(found.refuse(why).into());
        }
        "open" => plain(
            CampaignStep::Open,
            "campaigns open",
            "Open",
            &["Everybody sees it, and members are asked whether they are in."],
            "Open it",
        ),
        "negotiate" => plain(
            CampaignStep::Negotiate,
            "campaigns negotiate",
            "Begin to negotiate",
            &["It no longer waits for its day. Members can still count themselves in or out."],
            "Begin to negotiate",
        ),
        "activate" => {
            let terms = union.catalog.referral;
            let mut says = vec![
                "The deal has started: members who accepted take part from now on.".to_owned(),
                format!("These referral terms are copied for good: {}.", terms_words(&terms)),
            ];
            if union.catalog.is_sample() {
                says.push("They are the sample catalog's, and made up. They cannot be changed later.".to_owned());
            }
            AskedStep {
                taken: TakenStep::Activate(terms),
                command: "campaigns activate",
                title: format!("Has the deal of {slug} started?"),
                says,
                button: "It has started",
            }
        }
        "close" => plain(
            CampaignStep::Close,
            "campaigns close",
            "Close",
            &["Nobody can accept anymore, and its page shows the result. This cannot be undone."],
            "Close it",
        ),
        "cancel" => plain(
            CampaignStep::Cancel,
            "campaigns cancel",
            "Cancel",
            &["Nobody can take part anymore. This cannot be undone."],
            "Cancel it",
        ),
        "offer" => offered(found, slug, draft, fields).await?,
        _ => return Err(found.refuse("The form names no step of a campaign.").into()),
    })
}

/// The draft of that number, to be published as it is.
async fn offered(found: &OperatorVisit<'_>, slug: &CampaignSlug, draft: &str, fields: &[u8]) -> PageResult<AskedStep> {
    let operator = found.operator();
    let drafts = found.stored(operator.ask(ListOfferDrafts(slug.clone())).await)?;
    let number = draft.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(draft) = number.and_then(|at| drafts.get(at)) else {
        return Err(found.refuse(&format!("{slug} has no such draft of an offer.")).into());
    };
    let bids = found.stored(operator.ask(ListBids(slug.clone())).await)?;
    let file = found.stored(operator.ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(found))?;
    let reason = |name| field(fields, name).filter(|reason| !reason.trim().is_empty());
    let [outside_mandate, figures_checked] = ["outside-mandate", "figures-checked"].map(reason);
    let proposal = Proposal::parse(&draft.file);
    let publication = proposal.map(|proposal| Publication { proposal, outside_mandate, figures_checked });
    let publication =
        publication.map_err(|bad| found.refuse(&format!("The draft cannot be published: {}.", bad.0.join("; "))))?;
    let published = publication.offer(&file.campaign.draft, &bids, found.visit.now.time);
    let (offer, signed) = published
        .map_err(|refused| found.refuse(&format!("The draft cannot be published: {}.", refused.sentence())))?;
    let mut says: Vec<_> = offer_facts(&offer).into_iter().map(|(name, fact)| format!("{name}: {fact}")).collect();
    says.extend((!signed.is_empty()).then(|| format!("You sign: {signed}.")));
    says.push("Members accept or pass. A published offer cannot be changed.".to_owned());
    let taken = TakenStep::Offer(Box::new(publication));
    let (title, button) = (format!("Publish this offer of {slug}?"), "Publish it");
    Ok(AskedStep { taken, command: "campaigns offer", title, says, button })
}
