//! The routes of the operator's page.

use super::{Handler, Route, get};
use crate::site;

/// Those of every page below `/operator`. While the page is off none of them is there.
pub(super) fn routes() -> impl Iterator<Item = Route> {
    [
        get("/operator", page!(site::operator::overview::show)),
        get("/operator/style.css", page!(site::operator::style)),
        get("/operator/enter/{token}", page!(site::operator::sign_in::show_link))
            .posted(page!(site::operator::sign_in::enter)),
        get("/operator/sign-out", page!(site::operator::sign_in::home))
            .posted(page!(site::operator::sign_in::sign_out)),
        get("/operator/audit", page!(site::operator::audit::show)),
        get("/operator/mail", page!(site::operator::mail::show)).posted(page!(site::operator::mail::decide)),
        get("/operator/people", page!(site::operator::people::show)).posted(page!(site::operator::people::look_up)),
        get("/operator/people/erase", page!(site::operator::people::show)).posted(page!(site::operator::people::erase)),
        get("/operator/partners", page!(site::operator::partners::list)),
        get("/operator/partners/issue", page!(site::operator::partners::list))
            .posted(page!(site::operator::partners::issue)),
        get("/operator/partners/rotate", page!(site::operator::partners::list))
            .posted(page!(site::operator::partners::rotate)),
        get("/operator/partners/revoke", page!(site::operator::partners::list))
            .posted(page!(site::operator::partners::revoke)),
        get("/operator/partners/suspend", page!(site::operator::partners::list))
            .posted(page!(site::operator::partners::suspend)),
        get("/operator/partners/{partner}", page!(site::operator::partners::show)),
        get("/operator/campaigns", page!(site::operator::campaigns::list)),
        get("/operator/campaigns/{slug}", page!(site::operator::campaigns::show))
            .posted(page!(site::operator::campaigns::step)),
        get("/operator/rewards", page!(site::operator::rewards::show)),
        get("/operator/rewards/batch", page!(site::operator::rewards::show))
            .posted(page!(site::operator::rewards::make_batch)),
        get("/operator/rewards/batches/{number}", page!(site::operator::rewards::show))
            .posted(page!(site::operator::rewards::download)),
        get("/operator/rewards/settle", page!(site::operator::rewards::show))
            .posted(page!(site::operator::rewards::settle)),
        get("/operator/sign-ups", page!(site::operator::sign_in::home))
            .posted(page!(site::operator::overview::switch_sign_ups)),
    ]
    .into_iter()
}

/// Whether a path, however it is spelled, is of the operator's page: while that is off there is nothing.
pub(in crate::server) fn is_operators(path: &str) -> bool {
    const PAGE: &str = "/operator";
    let begins = path.get(..PAGE.len()).is_some_and(|start| start.eq_ignore_ascii_case(PAGE));
    begins && matches!(path.as_bytes().get(PAGE.len()), None | Some(b'/'))
}
