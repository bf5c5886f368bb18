//! What a demonstration says once it is ready: links to click and lines to paste.

use std::path::Path;

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::folder::DemoFolder;
use super::parts::ServiceParts;
use crate::cli::files::{is_there, write_private_file};
use crate::clock::Clock;
use crate::config::ServeSettings;
use crate::domain::email::EmailAddress;
use crate::domain::mail::lane::Lane;
use crate::domain::operator::OperatorName;
use crate::domain::secret::token::TokenMaker;
use crate::domain::sign_in::SIGN_IN_FOR;
use crate::domain::time::Timestamp;
use crate::mail::mailbox::MailboxFolder;

/// What of its history is printed at every start. The keys are nowhere else.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    /// Whose page is opened.
    pub member: String,
    /// Who uses the operator's page.
    pub operator: String,
    /// The partner whose keys these are.
    pub partner: String,
    pub live_key: String,
    pub test_key: String,
    /// The campaign that is negotiated.
    pub negotiated: String,
}

impl Told {
    const FILE: &str = "printed.json";

    pub(super) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        write_private_file(&folder.join(Self::FILE), &serde_json::to_string_pretty(self)?)
    }

    /// None while the history is not told to its end.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(Self::FILE);
        if !is_there(&path)? {
            return Ok(None);
        }
        let unread = || format!("cannot read {}; give a new folder with --data", path.display());
        let text = std::fs::read_to_string(&path).with_context(unread)?;
        serde_json::from_str(&text).map(Some).with_context(unread)
    }
}

/// Everything that can be looked at, with links that sign in.
pub(super) async fn text(
    parts: &mut ServiceParts,
    settings: &ServeSettings,
    folder: &DemoFolder,
    told: &Told,
    receiver: &str,
) -> anyhow::Result<String> {
    let (now, data) = (Clock::start().now().time, &settings.store.data);
    let Told { member, operator, partner, live_key, test_key, negotiated } = told;
    let name: OperatorName = operator.parse().map_err(anyhow::Error::msg)?;
    let link = parts.operator.link_operator(&name, now).await?.context("the operator is gone")?;
    let own_page = own_page_link(parts, data, member, now).await?;
    let base = &parts.union.base_url;
    // A mailbox gets a few of these an hour, in a demonstration too.
    let own_page =
        own_page.unwrap_or_else(|| format!("{base}/me (its link was mailed too often: later, type {member} there)"));
    let mailbox = TokenMaker::new(&parts.secret).mailbox_key();
    let program = std::env::args().next().unwrap_or_else(|| "unionhall".to_owned());
    let (folder_flag, ends) = match folder.is_temporary {
        true => (String::new(), "Ctrl-C ends it, and removes its folder."),
        false => (settings.store.as_flags(), "Ctrl-C ends it; the same command goes on with it."),
    };
    let data_flag = settings.store.as_flags();
    let minutes = SIGN_IN_FOR.as_secs() / 60;
    let command = std::env::current_exe()?;
    let negotiator = json!({ "mcpServers": { "negotiator": {
        "command": command,
        "args": ["negotiator", "--data", std::path::absolute(data)?],
    } } });
    Ok(format!(
        "\
A demonstration of unionhall: nobody in it is real, and nothing leaves this machine.

To look at. The two links that sign in work once, within {minutes} minutes:
  Join page         {base}/join
  Campaigns         {base}/campaigns
  A member's page   {own_page}
  Operator's page   {base}/operator/enter/{link}
  All mail          {base}/dev/mailbox?key={mailbox}
  Webhooks          {receiver}/

To sign somebody up as {partner}; then open all mail, and press the button in it:
  curl {base}/v1/invite -H \"Authorization: Bearer {live_key}\" -H \"Content-Type: application/json\" \\
    -H \"Idempotency-Key: conversation-$RANDOM\" -d '{{\"email\": \"new@example.com\", \"usState\": \"CA\", \"categories\": {{\"internet\": true}}}}'
The same in the sandbox, with its test key:
  curl {base}/v1/invite -H \"Authorization: Bearer {test_key}\" -H \"Content-Type: application/json\" \\
    -d '{{\"email\": \"new@example.com\"}}'

For an assistant, over MCP with either key as a bearer token:
  {base}/mcp
For an assistant that negotiates {negotiated}, in its configuration:
  {negotiator}

To let time pass: on every page, or
  {program} demo advance 30d{folder_flag}
To sign in later: type {member} at {base}/me and open all mail; and for the operator's page
  {program} operator link {operator}{data_flag}
Every command works on it:
  {program} campaigns list{data_flag}

{ends}
",
        link = link.as_str(),
    ))
}

/// Asks for the sign-in mail as the member would, and takes the link out of it. None if none was mailed.
async fn own_page_link(
    parts: &mut ServiceParts,
    data: &Path,
    member: &str,
    now: Timestamp,
) -> anyhow::Result<Option<String>> {
    let email = EmailAddress::parse(member).map_err(|_| anyhow!("{member} is no address"))?;
    let _browser = parts.app.own_pages.ask(&email, None, None, Lane::of(b"demonstration"), now).await?;
    parts.deliver(now).await?;
    let mailbox = MailboxFolder::new(data.join("mailbox"));
    let start = format!("{}/me/enter/", parts.union.join_site);
    let newest = mailbox.names()?.first().and_then(|name| mailbox.read(name)).filter(|mail| mail.to == member);
    Ok(newest.and_then(|mail| mail.text.split_whitespace().find(|word| word.starts_with(&start)).map(str::to_owned)))
}
