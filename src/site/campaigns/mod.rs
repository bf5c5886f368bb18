//! `/campaigns`, `/campaigns/<slug>` and `/campaigns.json`: what everybody may see of campaigns, what members press there, and how
//! whoever is not signed in gets back to one; and `/unsubscribe/<token>` of the mail about them.

mod document;
mod page;
pub mod unsubscribe;

use hyper::Request;

pub use self::document::json;
pub use self::page::{join, press, show, sign_in};
use super::{PageResult, Visit, view};
use crate::http::request::body::SentBody;

pub async fn list(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let campaigns = visit.stored(visit.app().campaigns.public(visit.now).await)?;
    Ok(visit.page(view::campaigns(visit.frame(), campaigns.listed())))
}
