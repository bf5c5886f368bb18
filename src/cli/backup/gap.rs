//! What happened after a copy of the records was made and is not in them, as far as the operator can do something about it.

use crate::campaigns::records::ListCampaigns;
use crate::cli::print_line;
use crate::cli::secret::is_unknown;
use crate::config::quoted;
use crate::domain::api_key::{KeyRecord, KeyStatus};
use crate::domain::partner::endpoint::EndpointRecord;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::installation::{AreSignUpsPaused, ListGenerations};
use crate::keys::records::ListKeys;
use crate::operator::Operator;
use crate::partners::endpoints::ListEndpoints;
use crate::rewards::PAGE;
use crate::rewards::standing::ListRewardAccounts;

/// Keys and endpoints that are named one by one; a command lists the others.
const NAMED: usize = 20;

pub(super) struct Gap {
    pub taken_at: Timestamp,
    /// Mail that waited then.
    held: u64,
    /// The keys that were revoked again.
    revoked: Vec<KeyRecord>,
    /// The keys that work.
    keys: Vec<KeyRecord>,
    endpoints: Vec<EndpointRecord>,
    /// Whether the secret has a generation that these records do not know.
    is_rotated: bool,
    is_paused: bool,
    has_campaigns: bool,
    has_rewards: bool,
}

impl Gap {
    pub(super) async fn look(
        operator: &Operator,
        taken_at: Timestamp,
        held: u64,
        revoked: Vec<KeyRecord>,
        secret: Option<&Secret>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let known = operator.ask(ListGenerations).await?;
        let generations = secret.map(Secret::generations);
        let mut generations = generations.iter().flat_map(|generations| generations.all());
        let keys = operator.ask(ListKeys).await?.into_iter().map(|(key, _)| key);
        let endpoints = operator.ask(ListEndpoints(None)).await?.into_iter().map(|listed| listed.endpoint);
        Ok(Self {
            taken_at,
            held,
            revoked,
            keys: keys.filter(|key| key.status(now) == KeyStatus::Valid).collect(),
            endpoints: endpoints.collect(),
            is_rotated: generations.any(|generation| is_unknown(generation.number, &known)),
            is_paused: operator.ask(AreSignUpsPaused).await?,
            has_campaigns: !operator.ask(ListCampaigns).await?.is_empty(),
            has_rewards: !operator.ask(ListRewardAccounts(String::new(), PAGE)).await?.is_empty(),
        })
    }

    /// `flags` are those of the records, for the commands that are named.
    pub(super) fn report(&self, flags: &str) -> anyhow::Result<()> {
        print_line(&format!("\nThey do not contain what happened after {}:", self.taken_at))?;
        print_line(
            "- Links mailed before that still work, except sign-in links. Links mailed after that do not work.",
        )?;
        if self.is_rotated {
            print_line(&format!(
                "- The secret was rotated since: `unionhall secret rotate{flags}` goes on with that, and makes no new one. After a leak the \
                 service then mails those again whose links no longer work, and partners have to rotate the secrets of their webhook endpoints."
            ))?;
        }
        self.report_keys(flags)?;
        self.report_endpoints(flags)?;
        print_line(
            "- People who left, declined or complained since are as before. People who joined since have to sign up again.",
        )?;
        print_line(
            "- Everyone is signed out of their page. Answers and mail choices that were changed there since are as before.",
        )?;
        if self.has_campaigns {
            print_line(&format!(
                "- Campaigns are as they were: `unionhall campaigns list{flags}`. Repeat each step that was taken since, with --no-mail, \
                 because mail about it was already sent; what members pressed since is lost. Mail about campaigns that was under way \
                 is stopped, so that no one gets it twice."
            ))?;
        }
        if self.has_rewards {
            print_line(&format!(
                "- Rewards that were paid since are due again, under other ids. Before you send the next file to the payment provider, compare it with what \
                 was paid, by address and campaign, and record what was paid under the new ids: `unionhall rewards batch settle{flags} FILE`. An answer \
                 about a batch from before then needs the column amount_cents."
            ))?;
        }
        if self.is_paused {
            print_line(&format!("- Sign-ups are paused, as they were: `unionhall signups resume{flags}`."))?;
        }
        self.report_mail(flags)
    }

    fn report_keys(&self, flags: &str) -> anyhow::Result<()> {
        print_line(&format!(
            "- Keys revoked since then work again, except those in a log of erasures that was read. Keys issued since then do not work. \
             Partners suspended since then are active again. See `unionhall keys list{flags}`."
        ))?;
        if !self.revoked.is_empty() {
            print_line("  These were revoked since, and were revoked again:")?;
            self.name(&self.revoked)?;
        }
        if self.keys.is_empty() {
            return print_line("  No key works.");
        }
        print_line("  These work. Revoke each that was revoked before:")?;
        self.name(&self.keys)
    }

    fn name(&self, keys: &[KeyRecord]) -> anyhow::Result<()> {
        for key in keys.iter().take(NAMED) {
            print_line(&format!("    {} of {}", key.id.as_str(), key.partner.as_str()))?;
        }
        self.more(keys.len())
    }

    fn report_endpoints(&self, flags: &str) -> anyhow::Result<()> {
        if self.endpoints.is_empty() {
            return print_line("- No webhook endpoint is in them.");
        }
        print_line(&format!(
            "- Webhook endpoints are as they were: `unionhall webhooks list{flags}`. Where a secret was rotated since, rotate it \
             again and tell the partner:"
        ))?;
        for EndpointRecord { id, partner, rotated_at, created_at, disabled_at, .. } in self.endpoints.iter().take(NAMED)
        {
            let state = if disabled_at.is_some() { ", disabled" } else { "" };
            let since = rotated_at.unwrap_or(*created_at);
            print_line(&format!("    endpoint {id} of {partner}: secret of {since}{state}"))?;
        }
        self.more(self.endpoints.len())
    }

    fn more(&self, all: usize) -> anyhow::Result<()> {
        match all.saturating_sub(NAMED) {
            0 => Ok(()),
            more => print_line(&format!("    and {more} more")),
        }
    }

    fn report_mail(&self, flags: &str) -> anyhow::Result<()> {
        let many = match self.held {
            0 => return print_line("- No mail is held, because none was waiting then."),
            1 => "1 mail that was waiting then is held: it".to_owned(),
            count => format!("{count} mails that were waiting then are held: they"),
        };
        print_line(&format!(
            "- {many} may have been sent since: `unionhall mail release{flags}` sends what is held, `unionhall mail drop{flags}` \
             deletes it. Links in mail that did arrive work either way."
        ))
    }
}

/// What erases somebody, as a shell takes it.
pub(super) fn erase_command(flags: &str, address: &str) -> String {
    // One that begins like a flag is none.
    let end = if address.starts_with('-') { " --" } else { "" };
    let plain = |c: char| c.is_ascii_alphanumeric() || "@._-+".contains(c);
    let shown = if address.chars().all(plain) { address.to_owned() } else { quoted(address) };
    // They were paid before, or gave it up; what is due to them again is not to be paid twice.
    format!("  unionhall members erase{flags} --waive-rewards{end} {shown}")
}
