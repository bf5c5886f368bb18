//! `/operator`: what an operator sees of the union and does there, instead of with a command. In English, as the commands are.
//!
//! Off until somebody was added (`unionhall operator add`); then every page asks who is signed in, and every form carries a token
//! (CSRF). What is done goes through `operator`, as the commands do, and is audited under the operator's name. A GET changes
//! nothing, and what cannot be undone is asked about on a page of its own.

pub mod account;
pub mod accounts;
pub mod audit;
pub mod backup;
pub mod campaigns;
mod file_form;
mod filter;
mod form;
pub(in crate::site) mod frame;
pub mod mail;
pub mod outbox;
pub mod overview;
pub mod partners;
pub mod people;
pub mod person;
pub mod previews;
pub(in crate::site) mod question;
pub mod review;
pub mod rewards;
pub(in crate::site) mod session;
pub mod sign_in;
pub mod tax;
pub mod test_mail;
pub mod void;

use hyper::Request;

use super::{PageResult, Visit};
use crate::http::request::body::SentBody;

/// The stylesheet of these pages, beside that of all pages.
pub async fn style(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    Ok(visit.site.operator_style.answer(request.headers()))
}
