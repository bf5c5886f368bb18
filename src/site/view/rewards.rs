//! What a member earned by those whom they referred: on their own page, and before they are erased.

use askama::Template;

use super::own_campaigns::ended_deals;
use super::{Frame, rendered};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::catalog::ReferralTerms;
use crate::domain::figure::{grouped, money};
use crate::domain::language::{Filling, Phrase, Words};
use crate::domain::person::{PersonDetails, PersonState};
use crate::domain::reward::ledger::{CampaignStanding, RewardStanding};

/// Campaigns that are seen at once; the others are folded.
const FIRST: usize = 2;

/// A member's rewards; what is nothing is left out.
pub(super) struct RewardsView<'a> {
    /// Amounts and what they are: due, being paid, paid.
    pub(super) money: Vec<(String, &'static str)>,
    pub(super) is_due: bool,
    pub(super) overpaid: Option<String>,
    /// That friends joined, and none takes part in a deal yet.
    pub(super) none_yet: Option<String>,
    /// Newest first.
    pub(super) first: Vec<CampaignLines<'a>>,
    pub(super) more: Vec<CampaignLines<'a>>,
}

/// The same of one campaign.
pub(super) struct CampaignLines<'a> {
    pub(super) title: &'a str,
    /// Of its page, if people know it.
    pub(super) slug: Option<&'a str>,
    /// What each line is about, and what it says.
    pub(super) lines: Vec<(&'static str, String)>,
    /// How many friends of the next group take part, of how many, and what is missing.
    pub(super) meter: Option<(u32, u32, String)>,
}

impl<'a> RewardsView<'a> {
    /// None where there is nothing to show. `campaigns` are those that people know in which somebody counts, and `active` those that a
    /// friend can still accept.
    pub(super) fn of(
        page: Frame<'a>,
        file: &'a PersonDetails,
        campaigns: &[&'a CampaignRecord],
        active: impl Iterator<Item = &'a CampaignRecord>,
    ) -> Option<Self> {
        let (rewards, words) = (&file.rewards, &page.words.reward);
        let sums =
            [(rewards.due_cents, &words.due), (rewards.out_cents, &words.out), (rewards.paid_cents, &words.paid)];
        let sums = sums.into_iter().filter(|(sum, _)| *sum > 0);
        let sums: Vec<_> = sums.map(|(sum, label)| (money(sum), label.as_str())).collect();
        let is_member = file.person.state == PersonState::Member;
        let of_campaign = |standing: &'a CampaignStanding| {
            let record = campaigns.iter().find(|record| *record.slug() == standing.campaign);
            let text = record.and_then(|record| record.draft.text(page.language));
            let state = record.map(|record| record.state);
            let has_meter = is_member && !standing.has_the_most && !is_over(standing, state);
            CampaignLines {
                title: text.map_or(standing.campaign.as_str(), |text| &text.title),
                slug: record.map(|record| record.slug().as_str()),
                lines: lines(page.words, file, standing, state),
                meter: has_meter
                    .then(|| meter(page.words, (standing.in_deal(), standing.group_size), standing.reward_cents)),
            }
        };
        let mut first: Vec<_> = rewards.campaigns.iter().rev().map(of_campaign).collect();
        first.retain(|campaign| !campaign.lines.is_empty() || campaign.meter.is_some());
        let friends = file.referrals.members;
        // Where not all of them are looked at, another may take part.
        let none_yet = is_member && first.is_empty() && (1..=RewardStanding::MOST_LOOKED_AT.into()).contains(&friends);
        let none_yet = none_yet.then(|| words.none_yet.put("friends", page.words.friends(friends)).plain());
        first.extend(active.filter(|_| is_member).filter_map(|record| {
            let is_there = rewards.campaigns.iter().any(|standing| standing.campaign == *record.slug());
            let earns = |terms: &ReferralTerms| terms.may_reward(rewards.rewarded_groups, rewards.rewarded_cents);
            let terms = record.terms.filter(|terms| !is_there && earns(terms))?;
            let text = record.draft.text(page.language);
            Some(CampaignLines {
                title: text.map_or(record.slug().as_str(), |text| &text.title),
                slug: Some(record.slug().as_str()),
                lines: Vec::new(),
                meter: Some(meter(page.words, (0, terms.group_size), terms.reward_cents())),
            })
        }));
        let more = first.split_off(FIRST.min(first.len()));
        let overpaid = (rewards.due_cents < 0).then(|| money(-rewards.due_cents));
        let is_something = !sums.is_empty() || overpaid.is_some() || none_yet.is_some() || !first.is_empty();
        is_something.then_some(Self { money: sums, is_due: rewards.due_cents > 0, overpaid, none_yet, first, more })
    }
}

/// Whether nobody else can come to count in it.
fn is_over(standing: &CampaignStanding, state: Option<CampaignState>) -> bool {
    match state {
        Some(CampaignState::Closed) => standing.on_hold == 0,
        state => state == Some(CampaignState::Cancelled),
    }
}

/// What there is to say of one campaign besides its meter. Whoever left earns nothing new, so only their groups count.
fn lines(
    words: &'static Words,
    file: &PersonDetails,
    standing: &CampaignStanding,
    state: Option<CampaignState>,
) -> Vec<(&'static str, String)> {
    let reward = &words.reward;
    let mut lines = Vec::new();
    let mut add = |label: &'static Phrase, text: Filling| lines.push((label.as_str(), text.plain()));
    let with_most = |phrase: &'static Phrase| {
        let most = money(standing.reward_cents * i64::from(standing.max_groups));
        phrase.put("most_groups", words.groups(standing.max_groups)).put("most", most)
    };
    if standing.groups > 0 {
        let groups = reward.groups_text.put("groups", words.groups(standing.groups));
        add(&reward.groups, groups.put("reward", money(standing.reward_cents)));
    }
    if standing.capped > 0 {
        let phrase = if standing.has_uncounted_capped() { &reward.capped_many } else { &reward.capped_text };
        let groups = words.groups(standing.capped.min(RewardStanding::MOST_COUNTED));
        add(&reward.capped, with_most(phrase).put("groups", groups));
    }
    if file.person.state != PersonState::Member {
        return lines;
    }
    if let Some(until) = standing.on_hold_until.filter(|_| standing.on_hold > 0) {
        // Where not all of them are looked at, another's hold may be over before.
        let is_all = file.referrals.members <= RewardStanding::MOST_LOOKED_AT.into();
        let phrase = if is_all { &reward.on_hold_text } else { &reward.on_hold_some };
        add(
            &reward.on_hold,
            phrase.put("friends", words.friends(standing.on_hold.into())).put("date", words.date(until)),
        );
    }
    let is_over = is_over(standing, state);
    if standing.waiting > 0 {
        let phrase = if is_over { &reward.waiting_over } else { &reward.waiting_text };
        add(&reward.waiting, phrase.put("friends", words.friends(standing.waiting.into())));
    }
    if !is_over && standing.has_the_most && standing.capped == 0 {
        add(&reward.next, with_most(&reward.next_capped));
    }
    lines
}

/// How many friends take part already, of so many in a group, and what is missing for its reward.
fn meter(words: &Words, (count, size): (u32, u32), reward_cents: i64) -> (u32, u32, String) {
    let reward = &words.reward;
    let (count, more) = (count.min(size), size.saturating_sub(count));
    let phrase = match (size, more) {
        (1, 0) => &reward.next_one_full,
        (1, _) => &reward.next_one,
        (_, 0) => &reward.next_full,
        (_, _) => &reward.next_text,
    };
    let text = phrase.put("count", grouped(count.into())).put("size", grouped(size.into()));
    let text = text.put("more", grouped(more.into())).put("reward", money(reward_cents));
    (count, size, text.plain())
}

#[derive(Template)]
#[template(path = "me/erase.html")]
struct ErasePage<'a> {
    page: Frame<'a>,
    token: &'a str,
    is_member: bool,
    due_cents: i64,
    out_cents: i64,
    /// Whether people whom they referred would still have counted.
    lapses: bool,
    /// Each deal that ends by it.
    deals: Vec<String>,
    refused: bool,
}

/// Asks whether everything is to be erased; `find` looks up a campaign. `refused`: it was asked for, and what is due was not given up.
pub fn erase<'a>(
    page: Frame<'_>,
    token: &str,
    file: &PersonDetails,
    refused: bool,
    find: impl Fn(&CampaignSlug) -> Option<&'a CampaignRecord>,
) -> String {
    let RewardStanding { due_cents, out_cents, ref campaigns, .. } = file.rewards;
    let is_member = file.person.state == PersonState::Member;
    let lapses = campaigns.iter().any(|campaign| campaign.on_hold > 0 || campaign.waiting > 0);
    let deals = ended_deals(page, &file.participations, find);
    rendered(page, &ErasePage { page, token, is_member, due_cents, out_cents, lapses, deals, refused })
}
