//! What suppliers said: recording a bid, and comparing them.

use anyhow::bail;
use serde_json::{Value, json};

use super::{NamedCampaign, RecordBid, file, find};
use crate::campaigns::bids::{AddBid, BidAdded, ListBids};
use crate::cli::audit::act;
use crate::cli::{print_json, print_line, print_lines, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::bid::{Bid, RecordedBid, compared, missed};
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::mandate::Measure;
use crate::domain::campaign::reckoning::Reckoning;
use crate::domain::campaign::wording::BidWords;
use crate::domain::text::quote;

pub(super) fn record(task: &RecordBid) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let (text, name) = file::read(&task.new.file)?;
    let bid = Bid::parse(&text).map_err(|bad| file::mistakes(name, &bad))?;
    let act = act("campaigns bid", slug.to_string(), now);
    let who = act.who.clone();
    let (added, draft) = with_live_records(&task.new.store, async |operator| {
        let draft = find(&operator, slug, now).await?.campaign.draft;
        let add = AddBid { slug: slug.clone(), bid: bid.clone(), who, now };
        Ok((operator.audited(act).run(add).await?, draft))
    })?;
    match added {
        BidAdded::Done(number) => {
            print_line(&format!("Bid {number} of {slug} is recorded."))?;
            print_lines(&comes_to(&bid, &draft))
        }
        BidAdded::Refused(bad) => Err(file::mistakes(name, &bad)),
        BidAdded::NotNow(state) => {
            bail!("{slug} is {}; bids are recorded while a campaign is gathering or negotiating", state.name())
        }
        BidAdded::Full => bail!("{slug} has {} bids already, which is the most", Bid::MOST),
        BidAdded::Unknown => bail!("there is no campaign {slug} anymore"),
    }
}

/// What it costs and saves, and whether it is within the mandate.
fn comes_to(bid: &Bid, campaign: &CampaignDraft) -> Vec<String> {
    let Some((words, reckoned)) = BidWords::of(bid, campaign) else { return Vec::new() };
    let mut lines = vec![format!("  {}, typical {}; saves {}", words.all_in, words.typical, words.saving)];
    let outside = missed(campaign.mandate.as_ref(), bid, reckoned, Measure::WalkAway);
    lines.push(match (outside.is_empty(), campaign.mandate.is_some()) {
        (true, true) => "  within the mandate".to_owned(),
        (true, false) => "  the campaign has no mandate".to_owned(),
        (false, _) => format!("  outside: {}", outside.join("; ")),
    });
    lines
}

pub(super) fn list(task: &NamedCampaign) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let (bids, draft) = with_live_records(&task.store, async |operator| {
        let draft = find(&operator, slug, now).await?.campaign.draft;
        Ok((operator.ask(ListBids(slug.clone())).await?, draft))
    })?;
    let compared = compared(&bids, &draft);
    if task.json {
        return print_json(&Vec::from_iter(compared.iter().map(|(bid, reckoned)| as_json(bid, *reckoned, &draft))));
    }
    if compared.is_empty() {
        return print_line(&format!(
            "No bid of {slug} is recorded. `unionhall campaigns bid {slug} FILE` records one."
        ));
    }
    for (recorded, _) in compared {
        let RecordedBid { number, at, who, bid, is_superseded } = recorded;
        let superseded = if *is_superseded { ", superseded by a later one" } else { "" };
        print_line(&format!("{number}  {}, recorded at {at} by {}{superseded}", quote(&bid.supplier), quote(who)))?;
        if !is_superseded {
            print_lines(&comes_to(bid, &draft))?;
        }
        print_lines(&terms(bid, &draft))?;
    }
    Ok(())
}

fn terms(bid: &Bid, campaign: &CampaignDraft) -> Vec<String> {
    let Some((words, _)) = BidWords::of(bid, campaign) else { return Vec::new() };
    let mut lines = vec![format!("  {}; {}; leaving early: {}", words.price, words.term, words.exit_fee)];
    lines.extend(words.fees.iter().map(|fee| format!("  fee {}", quote(fee))));
    let mut conditions = vec![format!("commission {}", words.commission), format!("valid until {}", bid.valid_until)];
    conditions.extend(words.conditions);
    lines.push(format!("  {}", conditions.join("; ")));
    lines.extend(bid.evidence.as_ref().map(|evidence| format!("  said  {}", quote(evidence))));
    lines
}

fn as_json(recorded: &RecordedBid, reckoned: Option<Reckoning>, campaign: &CampaignDraft) -> Value {
    let RecordedBid { number, at, who, bid, is_superseded } = recorded;
    let outside = reckoned.map(|reckoned| missed(campaign.mandate.as_ref(), bid, reckoned, Measure::WalkAway));
    json!({
        "number": number, "at": at, "who": who, "superseded": is_superseded, "bid": bid,
        "allInCents": reckoned.map(|reckoned| reckoned.all_in_cents),
        "typicalCents": reckoned.map(|reckoned| reckoned.typical_cents),
        "saving": reckoned.map(|reckoned| reckoned.saving),
        "outside": outside,
    })
}
