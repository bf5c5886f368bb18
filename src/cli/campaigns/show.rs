//! What the operator sees of campaigns: the list with what happens next, and everything about one.

use serde_json::{Value, json};

use super::{ListArgs, NamedCampaign, find};
use crate::campaigns::handover::FindOrders;
use crate::campaigns::offer_facts::offer_facts;
use crate::campaigns::operator_step::terms_words;
use crate::cli::{print_json, print_line, print_lines, print_table, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::CampaignState;
use crate::domain::campaign::demand::count_words;
use crate::domain::campaign::handover::OrderCounts;
use crate::domain::campaign::offer::{Deal, Offer};
use crate::domain::campaign::record::{CampaignDetails, CampaignRecord, HistoryEntry};
use crate::domain::catalog::ReferralTerms;
use crate::domain::figure::{counted, grouped, money};
use crate::domain::reward::report::CampaignRewards;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::operations::negotiator::list_campaigns::CampaignSummary;

pub(super) fn list(task: &ListArgs) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let campaigns = with_live_records(&task.store, async |operator| Ok(operator.campaigns().list(now).await?))?;
    if task.json {
        return print_json(&Vec::from_iter(campaigns.iter().map(|campaign| CampaignSummary::of(campaign, now))));
    }
    let none = "No campaigns yet. `unionhall campaigns sample | unionhall campaigns new -` makes a sample.";
    print_table(&campaigns, none, "STATE              IN  SLUG                          NEXT", |campaign| {
        let (state, slug) = (campaign.state.name(), campaign.slug().as_str());
        let counted = campaign.counted_in().map_or_else(|| "counting".to_owned(), |count| count_words(Some(count)));
        let next = next(campaign, now);
        format!("{state:<13}{counted:>8}  {slug:<30}{next}")
    })?;
    match campaigns.is_empty() {
        true => Ok(()),
        false => print_line(
            "\nIN is counted at each step and once a day, after changes of at least 5 people, and rounded down to a multiple of 5.",
        ),
    }
}

/// What happens next: by a date, or by a command.
fn next(campaign: &CampaignRecord, now: Timestamp) -> String {
    let slug = campaign.slug();
    match (campaign.next_date(now), campaign.state) {
        (Some(next), _) => next.to_string(),
        (None, CampaignState::Draft) => format!("`campaigns open {slug}` publishes it"),
        (None, CampaignState::Negotiating) => format!("`campaigns offer {slug} FILE` publishes an offer"),
        (None, CampaignState::Offered) => {
            format!("accepting has ended; `campaigns activate {slug}` once the deal has started, or `cancel`")
        }
        (None, CampaignState::Active) => {
            format!("accepting has ended; `campaigns close {slug}` at the end of the deal")
        }
        (None, CampaignState::Gathering | CampaignState::Closed | CampaignState::Cancelled) => "nothing".to_owned(),
    }
}

pub(super) fn show(task: &NamedCampaign) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let (file, rewards, (orders, differences)) = with_live_records(&task.store, async |operator| {
        let file = find(&operator, &task.slug, now).await?;
        let orders = operator.ask(FindOrders(task.slug.clone())).await?;
        Ok((file, operator.rewards().campaign(&task.slug).await?, orders))
    })?;
    if task.json {
        let mut shown = as_json(&file, now);
        shown["orders"] = json!(orders);
        shown["differences"] = json!(differences);
        shown["rewards"] = file.campaign.terms.map(|terms| rewards_json(&terms, &rewards)).into();
        return print_json(&shown);
    }
    let mut said = lines(&file, &rewards, now);
    if orders != OrderCounts::default() {
        said.extend([String::new(), "Orders".to_owned()]);
        said.extend(orders.facts().into_iter().map(|(name, count)| format!("  {name}: {count}")));
        said.extend(differences.iter().map(|difference| format!("  {}", difference.words())));
    }
    print_lines(&said)
}

fn lines(file: &CampaignDetails, rewards: &CampaignRewards, now: Timestamp) -> Vec<String> {
    let CampaignDetails { campaign, counts, .. } = file;
    let (draft, state) = (&campaign.draft, campaign.state.name());
    let mut lines = vec![
        format!("{}: {state}", campaign.slug()),
        format!("  next: {}", next(campaign, now)),
        format!("  {} {}", draft.category.slug(), campaign.places()),
        format!("  gathers until the end of {}", draft.gather_until),
    ];
    for (language, text) in &draft.texts {
        lines.push(format!("  {}: {}", language.code(), quote(&text.title)));
    }
    lines.extend([String::new(), "Members".to_owned()]);
    lines.push(format!("  now {}", counts.words()));
    lines.push(format!("  published {}", campaign.published_words()));
    if let Some(offer) = &campaign.offer {
        lines.extend([String::new(), "Offer".to_owned()]);
        lines.extend(offer_facts(offer).into_iter().map(|(name, fact)| format!("  {name}: {}", quote(&fact))));
    }
    if let Some(terms) = &campaign.terms {
        lines.extend([String::new(), "Rewards".to_owned()]);
        lines.extend(reward_lines(terms, rewards));
    }
    lines.extend([String::new(), "Negotiation".to_owned()]);
    lines.push(format!("  {}, {}", counted(file.rounds, "round"), counted(file.drafts, "draft of an offer")));
    lines.extend([String::new(), "Mailings".to_owned()]);
    lines.extend(file.mailings.iter().map(|mailing| format!("  {}", mailing.words())));
    if file.mailings.is_empty() {
        lines.push("  none yet".to_owned());
    }
    lines.extend([String::new(), "History".to_owned()]);
    lines.extend(file.history.iter().map(history_line));
    lines
}

fn reward_lines(terms: &ReferralTerms, rewards: &CampaignRewards) -> [String; 3] {
    let CampaignRewards { groups, capped, dissolved, reversed, waived, .. } = rewards;
    let mut counts = format!("  {} rewarded, {} capped", counted(*groups, "group"), grouped(*capped));
    for (count, what) in [(dissolved, "dissolved"), (reversed, "reversed after paying"), (waived, "waived")] {
        if *count > 0 {
            counts.push_str(&format!(", {} {what}", grouped(*count)));
        }
    }
    let money = format!(
        "  earned {}, reversed {}, paid or being paid {}",
        money(rewards.accrued_cents),
        money(-rewards.reversed_cents),
        money(rewards.paid_out_cents)
    );
    [format!("  {}", terms_words(terms)), counts, money]
}

fn rewards_json(terms: &ReferralTerms, rewards: &CampaignRewards) -> Value {
    json!({
        "terms": {
            "rewardCents": terms.reward_cents(), "groupSize": terms.group_size, "maxGroups": terms.max_groups,
            "holdDays": terms.hold_days, "countsOn": terms.counts_on.name(),
        },
        "groups": rewards.groups, "capped": rewards.capped, "dissolved": rewards.dissolved,
        "reversed": rewards.reversed, "waived": rewards.waived, "accruedCents": rewards.accrued_cents,
        "reversedCents": rewards.reversed_cents, "paidOutCents": rewards.paid_out_cents,
    })
}

fn history_line(entry: &HistoryEntry) -> String {
    let HistoryEntry { at, who, note, .. } = entry;
    let is_shown = !note.is_empty() && !entry.is_edit();
    let note = if is_shown { format!("  {}", quote(note)) } else { String::new() };
    format!("  {at}  {who:<16}{}{note}", entry.words())
}

/// As it is kept, with what was reckoned.
fn offer_json(offer: &Offer) -> Value {
    let mut shown: Value = serde_json::from_str(&offer.written()).unwrap_or_default();
    shown["supplier"] = offer.supplier().into();
    shown["annualSaving"] = offer.saving().into();
    shown["reckoned"] = match &offer.deal {
        Deal::Reckoned(deal) => json!(deal.reckoned()),
        Deal::AsText(_) => Value::Null,
    };
    shown
}

/// The summary, and what the operator alone sees.
fn as_json(file: &CampaignDetails, now: Timestamp) -> Value {
    let CampaignDetails { campaign, counts, .. } = file;
    let mut shown = json!(CampaignSummary::of(campaign, now));
    let texts = campaign.draft.texts.iter();
    shown["text"] = texts
        .map(|(language, text)| (language.code().to_owned(), json!({ "title": text.title, "summary": text.summary })))
        .collect();
    shown["createdAt"] = json!(campaign.created_at);
    shown["activeAt"] = json!(campaign.active_at);
    shown["closedAt"] = json!(campaign.closed_at);
    shown["countedAt"] = json!(campaign.sheet.as_ref().map(|(taken_at, _)| taken_at));
    shown["exactCounts"] = json!({
        "in": counts.members_in, "out": counts.out, "accepted": counts.accepted, "passed": counts.passed,
    });
    shown["offer"] = campaign.offer.as_ref().map(offer_json).into();
    shown["rounds"] = file.rounds.into();
    shown["drafts"] = file.drafts.into();
    shown["mailings"] = json!(file.mailings);
    shown["history"] = json!(file.history);
    shown
}
