//! `unionhall campaigns`

mod bids;
mod drafts;
mod file;
mod handover;
mod negotiation;
mod show;
mod step;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::ListArgs;
use crate::campaigns::TakenStep;
use crate::campaigns::negotiation::{read_message, read_round_text};
use crate::campaigns::operator_step::{read_note, read_reason};
use crate::config::{CatalogSettings, PostalSettings, ServiceSettings, StoreSettings, whole};
use crate::domain::campaign::record::CampaignDetails;
use crate::domain::campaign::{CampaignSlug, CampaignStep, LastDay};
use crate::domain::text::did_you_mean;
use crate::domain::time::Timestamp;
use crate::operator::Operator;

/// How the files look, below the help of the commands that read them.
const CAMPAIGN_FORMAT: &str = concat!(
    "The file, in TOML. Every language that the pages have needs its texts; all mistakes are listed at once.\n\n",
    include_str!("campaign.sample.toml")
);
const OFFER_FORMAT: &str = concat!(
    "The file, in TOML. Every language that the pages have needs its texts; all mistakes are listed at once.\n\n",
    include_str!("offer.sample.toml")
);

const BID_FORMAT: &str = concat!(
    "The file, in TOML. What it costs and saves is reckoned; all mistakes are listed at once.\n\n",
    include_str!("bid.sample.toml")
);

#[derive(Subcommand)]
pub(super) enum CampaignsCommand {
    /// Make a campaign from a file. It is a draft that nobody sees until `campaigns open`.
    #[command(after_long_help = CAMPAIGN_FORMAT)]
    New(NewCampaign),
    /// Replace what a campaign's file said.
    ///
    /// The slug always stays. Of a draft everything else may change. Category and states stay once members are asked, and
    /// `gather_until` stays once gathering is over; the texts may change until the campaign is closed or cancelled.
    #[command(after_long_help = CAMPAIGN_FORMAT)]
    Edit(EditedCampaign),
    /// List all campaigns: how far each is, how many are in, and what happens next.
    List(ListArgs),
    /// Show everything about a campaign: counts, offer, rewards, mailings, and every step with who took it.
    Show(NamedCampaign),
    /// Publish a draft, ask members whether they are in, and mail the members it fits.
    ///
    /// It becomes `negotiating` by itself once the day `gather_until` has ended everywhere in the US (10:00 UTC of the next day).
    /// It mails members who chose the campaign's category, live where it is for, and want such mail. Refused while the
    /// postal address is unset, because such mail must name it.
    Open(OpenCampaign),
    /// Begin to negotiate before `gather_until`. Members can still count themselves in or out.
    Negotiate(StepArgs),
    /// Record what a supplier said: a bid, as data.
    ///
    /// A later bid of the same supplier takes the place of the earlier; both stay. Nothing of it is published: `campaigns bids` compares
    /// them, and `campaigns offer` publishes one.
    #[command(after_long_help = BID_FORMAT)]
    Bid(RecordBid),
    /// Compare the bids: what each costs in a year with everything, and saves against the benchmark; the cheapest first.
    Bids(NamedCampaign),
    /// Publish a bid as the offer: members accept or pass until `decide_by`, and those who are in are mailed.
    ///
    /// What it costs and saves is reckoned from the bid and the campaign's benchmark. An offer that misses a point of the campaign's mandate,
    /// or whose texts have figures that are neither its own nor in the campaign's texts, is refused unless you give a reason.
    /// Possible while the campaign is gathering or negotiating. A published offer cannot be changed. Accepting ends by itself
    /// once the day `decide_by` has ended everywhere in the US; the campaign becomes active only by `campaigns activate`.
    #[command(after_long_help = OFFER_FORMAT)]
    Offer(PublishOffer),
    /// Withdraw the published offer before its deal starts: the campaign is negotiating again, and acceptances end.
    ///
    /// Members stay in. Those who are in or accepted read the reason on the campaign's page and are mailed it. `campaigns handover` tells
    /// the supplier who no longer accepts. To replace an offer by another, publish that one with `campaigns offer`: where it is no worse in
    /// any field, acceptances stand; otherwise they end, and members are asked anew.
    WithdrawOffer(WithdrawOffer),
    /// Say that the deal has started: members who accepted take part from now on, others from when they accept.
    ///
    /// The catalog's referral terms are copied into the campaign, and the command prints them: later changes of the catalog do not change
    /// what referring its members earns. Give the service's own catalog.
    Activate(ActivateCampaign),
    /// Tell the supplier who accepted since the last time, and who withdrew, in a file.
    ///
    /// The file is CSV: reference,status and, where the offer says handover = "address", email,state. The reference is the code that a
    /// member orders with. `status` is accepted; or withdrawn, for members who were handed over before and withdrew, left or were erased since. The
    /// rows are sorted by reference. The file is written whole or not at all, and readable to its owner alone. A row whose address a
    /// spreadsheet would run as a formula is withheld and named on standard error.
    ///
    /// Each file is a batch with a number, and the same member is in one only. If the command is killed, run it again: it goes on with the
    /// batch whose file was never written. `--batch N` writes the file of batch N once more, without those who withdrew since.
    Handover(HandOver),
    /// End an active campaign: accepting ends, the result is published, and those who were in are mailed.
    Close(StepArgs),
    /// Cancel a campaign, in any state before `closed`. If members had seen it, those who were in are mailed.
    Cancel(StepArgs),
    /// Print the demand sheet, which a negotiator shows to suppliers. It counts nothing.
    ///
    /// A sheet is taken once a day, and when the campaign is negotiated, offered, activated and closed, but only once at least five members
    /// are in, out or have accepted who were not when the last was taken. Counts are rounded down to a multiple of 5, and a state or another
    /// bill is named from 20 members. Savings are calculated with the catalog's estimate.
    Demand(PrintDemand),
    /// Record a round with a supplier by hand: what was asked, and answered.
    ///
    /// A negotiator does the same with its tool recordRound, and reads what you record. Terms that the supplier named go to `campaigns bid`.
    Round(RecordRound),
    /// Show the rounds with suppliers, blank one, or delete old ones.
    Rounds(RoundsArgs),
    /// Print a negotiator's draft of an offer, as a file that `campaigns offer` takes, or reject one.
    ///
    /// It is the newest, unless told otherwise. Beside it stands who proposed it, why it is outside the mandate if it is, and what became of
    /// it. `campaigns offer SLUG --draft N` publishes one as it is.
    Drafts(DraftsArgs),
    /// Tell the negotiator something about a campaign: it reads it with the campaign, at its next call. The last 100 are kept.
    Say(SayToNegotiator),
    /// Print a sample of a file: `unionhall campaigns sample | unionhall campaigns new -` makes a campaign of it.
    Sample(PrintSample),
}

#[derive(Args)]
pub(super) struct NewCampaign {
    /// The file; `-` reads standard input.
    file: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct RecordBid {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    #[command(flatten)]
    new: NewCampaign,
}

#[derive(Args)]
pub(super) struct EditedCampaign {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    #[command(flatten)]
    new: NewCampaign,
}

#[derive(Args)]
pub(super) struct NamedCampaign {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// As JSON, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct StepArgs {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    #[command(flatten)]
    note: NoteArgs,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct OpenCampaign {
    #[command(flatten)]
    step: StepArgs,
    #[command(flatten)]
    service: ServiceSettings,
    #[command(flatten)]
    postal: PostalSettings,
}

#[derive(Args)]
pub(super) struct WithdrawOffer {
    /// Why, for members who read English.
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason_en: String,
    /// Why, for members who read Spanish.
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason_es: String,
    #[command(flatten)]
    step: StepArgs,
}

#[derive(Args)]
pub(super) struct ActivateCampaign {
    #[command(flatten)]
    step: StepArgs,
    #[command(flatten)]
    catalog: CatalogSettings,
}

#[derive(Args)]
pub(super) struct PublishOffer {
    #[command(flatten)]
    step: StepArgs,
    /// The number of the bid to publish, as `campaigns bids` shows it; the file may name it instead.
    #[arg(long, value_name = "N", help_heading = None, value_parser = whole::<u32>(1, u32::MAX))]
    bid: Option<u32>,
    /// Publish it although it misses points of the mandate. The history keeps the reason with the points.
    #[arg(long, value_name = "REASON", help_heading = None, value_parser = read_reason)]
    outside_mandate: Option<String>,
    /// Publish it although its texts have figures that are none of its numbers. The history keeps the reason with the figures.
    #[arg(long, value_name = "REASON", help_heading = None, value_parser = read_reason)]
    figures_checked: Option<String>,
    /// Publish a negotiator's draft as it is, instead of a file; `campaigns drafts` shows them.
    #[arg(long, value_name = "N", help_heading = None, conflicts_with_all = ["file", "bid"], value_parser = whole::<u32>(1, u32::MAX))]
    draft: Option<u32>,
    /// The file; `-` reads standard input.
    #[arg(help_heading = None, required_unless_present = "draft")]
    file: Option<String>,
}

#[derive(Args)]
struct NoteArgs {
    /// Why, for the campaign's history; only operators read it.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = read_note)]
    note: String,
    /// Send no mail about this step: for one that was taken before and lost by a restore.
    #[arg(long)]
    no_mail: bool,
}

#[derive(Args)]
pub(super) struct PrintDemand {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// As JSON, for programs.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// As Markdown, to send to a supplier: who asks, for what, until when, and the counts.
    #[arg(long)]
    markdown: bool,
    /// List the sheets that were kept, the newest first, at most 1,000.
    #[arg(long, conflicts_with = "markdown")]
    history: bool,
    /// With --markdown: the last day on which the supplier can answer, instead of the mandate's `reply_by`.
    #[arg(long, value_name = "DAY", requires = "markdown")]
    reply_by: Option<LastDay>,
    #[command(flatten)]
    service: ServiceSettings,
    #[command(flatten)]
    catalog: CatalogSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct RecordRound {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// Who was spoken to: the company, and a role where there is one.
    #[arg(long, value_name = "TEXT", value_parser = read_round_text)]
    supplier: String,
    /// What was asked or offered.
    #[arg(long, value_name = "TEXT", value_parser = read_round_text)]
    asked: String,
    /// What the supplier answered.
    #[arg(long, value_name = "TEXT", value_parser = read_round_text)]
    answered: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct RoundsArgs {
    #[command(subcommand)]
    act: Option<RoundsCommand>,
    /// The campaign's slug, as `campaigns list` shows it.
    #[arg(required = true)]
    slug: Option<CampaignSlug>,
    /// As JSON, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Subcommand)]
enum RoundsCommand {
    /// Blank the texts of a round in which something stands that must not be kept, such as an address.
    ///
    /// When it was, who recorded it, who blanked it and why stays. It happens once and cannot be undone; backups made before still have the
    /// texts.
    Redact(RedactRoundArgs),
    /// Delete all but the last rounds of a campaign.
    Prune(PruneRoundsArgs),
}

#[derive(Args)]
struct RedactRoundArgs {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// The round's number, as `campaigns rounds` shows it.
    #[arg(value_parser = whole::<u32>(1, u32::MAX))]
    number: u32,
    /// Why, without what is blanked.
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
struct PruneRoundsArgs {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// How many to keep, the newest.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, u32::MAX))]
    keep: u32,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct SayToNegotiator {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// What to tell it, in at most 1,000 characters.
    #[arg(value_parser = read_message)]
    text: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Subcommand)]
enum DraftsCommand {
    /// Reject a draft. The negotiator reads the reason; the draft stays.
    Reject(RejectDraftArgs),
}

#[derive(Args)]
struct RejectDraftArgs {
    /// The campaign's slug, as `campaigns list` shows it.
    slug: CampaignSlug,
    /// The draft's number: 1 is the oldest.
    #[arg(value_parser = whole::<u32>(1, u32::MAX))]
    number: u32,
    /// Why, for the negotiator.
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct DraftsArgs {
    #[command(subcommand)]
    act: Option<DraftsCommand>,
    /// The campaign's slug, as `campaigns list` shows it.
    #[arg(required = true)]
    slug: Option<CampaignSlug>,
    /// Which of them: 1 is the oldest.
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = whole::<u32>(1, u32::MAX))]
    number: Option<u32>,
    /// All of them as a JSON array, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Subcommand)]
enum HandoverCommand {
    /// Record what a supplier says became of orders: a file with the columns reference,status,date, in any order; further ones are ignored.
    ///
    /// `status` is ordered, switched (the new contract began), rejected or cancelled; `date` is the day on which it happened, such as
    /// 2027-01-31, from the day on which the member accepted until tomorrow. A later date replaces an earlier one; on one date the
    /// strongest word counts: cancelled, rejected, switched, ordered. If a line is wrong, all mistakes are listed and nothing is recorded.
    /// The same file can be given again, and changes nothing.
    ///
    /// Members see on their page what their supplier says. Where rewards count on switching, a member counts from that day; one who was
    /// rejected or canceled counts no longer.
    Settle(SettleOrdersArgs),
}

#[derive(Args)]
struct SettleOrdersArgs {
    /// The supplier's file (CSV); `-` reads standard input.
    file: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct HandOver {
    #[command(subcommand)]
    act: Option<HandoverCommand>,
    /// The campaign's slug, as `campaigns list` shows it.
    #[arg(required = true)]
    slug: Option<CampaignSlug>,
    /// The file to write, such as handover.csv. It may not be there yet.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Make no batch; write the file of this one again.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, u32::MAX))]
    batch: Option<u32>,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct PrintSample {
    /// A file for `campaigns offer` instead of one for `campaigns new`.
    #[arg(long)]
    offer: bool,
    /// A file for `campaigns bid`.
    #[arg(long, conflicts_with = "offer")]
    bid: bool,
}

pub(super) fn run(command: &CampaignsCommand) -> anyhow::Result<()> {
    match command {
        CampaignsCommand::New(task) => file::new(task),
        CampaignsCommand::Edit(task) => file::edit(task),
        CampaignsCommand::List(task) => show::list(task),
        CampaignsCommand::Show(task) => show::show(task),
        CampaignsCommand::Open(task) => step::open(task),
        CampaignsCommand::Negotiate(task) => {
            step::take(task, &TakenStep::Plain(CampaignStep::Negotiate), "campaigns negotiate")
        }
        CampaignsCommand::Bid(task) => bids::record(task),
        CampaignsCommand::Bids(task) => bids::list(task),
        CampaignsCommand::Offer(task) => file::offer(task),
        CampaignsCommand::WithdrawOffer(task) => step::withdraw_offer(task),
        CampaignsCommand::Activate(task) => step::activate(task),
        CampaignsCommand::Close(task) => step::take(task, &TakenStep::Plain(CampaignStep::Close), "campaigns close"),
        CampaignsCommand::Cancel(task) => step::take(task, &TakenStep::Plain(CampaignStep::Cancel), "campaigns cancel"),
        CampaignsCommand::Demand(task) => negotiation::demand(task),
        CampaignsCommand::Round(task) => negotiation::record_round(task),
        CampaignsCommand::Rounds(task) => match (&task.act, &task.slug) {
            (Some(RoundsCommand::Redact(task)), _) => negotiation::redact(task),
            (Some(RoundsCommand::Prune(task)), _) => negotiation::prune(task),
            (None, Some(slug)) => negotiation::rounds(task, slug),
            // Clap asked for it.
            (None, None) => Ok(()),
        },
        CampaignsCommand::Drafts(task) => match (&task.act, &task.slug) {
            (Some(DraftsCommand::Reject(task)), _) => drafts::reject(task),
            (None, Some(slug)) => drafts::print(task, slug),
            (None, None) => Ok(()),
        },
        CampaignsCommand::Handover(task) => match (&task.act, &task.slug) {
            (Some(HandoverCommand::Settle(task)), _) => handover::settle(task),
            (None, Some(slug)) => handover::write(task, slug),
            (None, None) => Ok(()),
        },
        CampaignsCommand::Say(task) => negotiation::say(task),
        CampaignsCommand::Sample(task) => file::sample(task),
    }
}

/// The campaign of that slug; where there is none, the error names those that may be meant.
pub(super) async fn find(operator: &Operator, slug: &CampaignSlug, now: Timestamp) -> anyhow::Result<CampaignDetails> {
    match operator.campaigns().find(slug, now).await? {
        Some(file) => Ok(file),
        None => Err(no_such(operator, slug, now).await?),
    }
}

/// There is no campaign of that slug.
async fn no_such(operator: &Operator, slug: &CampaignSlug, now: Timestamp) -> anyhow::Result<anyhow::Error> {
    let campaigns = operator.campaigns().list(now).await?;
    let near = did_you_mean(slug.as_str(), campaigns.iter().map(|known| known.slug().as_str()), str::to_owned);
    Ok(anyhow!("there is no campaign {slug};{near} `unionhall campaigns list` shows them"))
}
