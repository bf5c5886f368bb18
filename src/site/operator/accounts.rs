//! `/operator/rewards/accounts`: what each account earned and was paid, some at a time. It shows addresses, so the audit log has each page
//! that does.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::OperatorVisit;
use crate::domain::figure::{counted, grouped, money};
use crate::domain::reward::RewardAccount;
use crate::domain::share::encoded;
use crate::http::request::body::SentBody;
use crate::rewards::standing::ListRewardAccounts;
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Rewards;

/// Accounts of a page.
const AT_ONCE: u32 = 50;

#[derive(Template)]
#[template(path = "operator/accounts.html")]
struct AccountsPage<'a> {
    frame: OperatorFrame<'a>,
    accounts: &'a [RewardAccount],
    /// Where the next page is.
    next: Option<String>,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default().as_bytes();
    // An account is never that long, and a database takes no NUL.
    let is_one = |text: &String| text.len() <= 64 && !text.contains('\0');
    let after = field(query, "after").filter(is_one).unwrap_or_default();
    // One more than is shown: whether there are further ones.
    let list = ListRewardAccounts(after, AT_ONCE + 1);
    let mut accounts = found.stored(found.operator().ask(list).await)?;
    let has_more = accounts.len() > AT_ONCE as usize;
    accounts.truncate(AT_ONCE as usize);
    if !accounts.is_empty() {
        let act = found.who.act("rewards list", counted(accounts.len() as u64, "account"), visit.now.time);
        found.stored(found.operator().note(act).await)?;
    }
    let last = accounts.last().filter(|_| has_more);
    let next = last.map(|last| format!("/operator/rewards/accounts?after={}", encoded(last.account.as_str())));
    Ok(found.page(render(&AccountsPage { frame: found.frame(), accounts: &accounts, next })))
}
