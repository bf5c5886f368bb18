//! The routes of the operator's page.

use super::{Handler, Route, get};
use crate::site::operator::{
    accounts, audit, backup, campaigns, mail, outbox, overview, partners, people, person, previews, review, rewards,
    sign_in, style, tax, test_mail, void,
};

/// Those of every page below `/operator`. While the page is off none of them is there.
pub(super) fn routes() -> impl Iterator<Item = Route> {
    [
        get("/operator", page!(overview::show)),
        get("/operator/style.css", page!(style)),
        get("/operator/enter/{token}", page!(sign_in::show_link)).posted(page!(sign_in::enter)),
        get("/operator/sign-out", page!(sign_in::home)).posted(page!(sign_in::sign_out)),
        get("/operator/audit", page!(audit::show)),
        get("/operator/mail", page!(mail::show)).posted(page!(mail::decide)),
        get("/operator/mail/outbox", page!(outbox::show)).posted(page!(outbox::retry)),
        get("/operator/mail/test", page!(test_mail::show)).posted(page!(test_mail::send)),
        get("/operator/mail/previews", page!(previews::list)),
        get("/operator/mail/previews/{name}", page!(previews::show)),
        get("/operator/mail/previews/{name}/html", page!(previews::show_html)),
        get("/operator/backup", page!(backup::show)).posted(page!(backup::make)),
        get("/operator/people", page!(people::show)).posted(page!(people::look_up)),
        get("/operator/people/erase", page!(people::show)).posted(page!(people::erase)),
        get("/operator/people/export", page!(people::show)).posted(page!(person::export)),
        get("/operator/people/leave", page!(people::show)).posted(page!(person::leave)),
        get("/operator/people/unsuppress", page!(people::show)).posted(page!(person::unsuppress)),
        get("/operator/people/retry", page!(people::show)).posted(page!(person::retry_mail)),
        get("/operator/partners", page!(partners::list)),
        get("/operator/partners/issue", page!(partners::show_issue)).posted(page!(partners::issue)),
        get("/operator/partners/rotate", page!(partners::list)).posted(page!(partners::rotate)),
        get("/operator/partners/revoke", page!(partners::list)).posted(page!(partners::revoke)),
        get("/operator/partners/suspend", page!(partners::list)).posted(page!(partners::suspend)),
        get("/operator/partners/withdraw", page!(partners::list)).posted(page!(partners::withdraw)),
        get("/operator/partners/test-keys", page!(partners::list_test_keys)),
        get("/operator/partners/{partner}", page!(partners::show)),
        get("/operator/partners/{partner}/settings", page!(partners::show_settings))
            .posted(page!(partners::save_settings)),
        get("/operator/partners/{partner}/webhooks", page!(partners::show_webhooks))
            .posted(page!(partners::change_webhooks)),
        get("/operator/campaigns", page!(campaigns::list)),
        get("/operator/campaigns/{slug}", page!(campaigns::show)).posted(page!(campaigns::step)),
        get("/operator/new-campaign", page!(campaigns::show_new)).posted(page!(campaigns::make)),
        get("/operator/campaigns/{slug}/edit", page!(campaigns::show_edit)).posted(page!(campaigns::edit)),
        get("/operator/campaigns/{slug}/bid", page!(campaigns::show_bid_form)).posted(page!(campaigns::record_bid)),
        get("/operator/campaigns/{slug}/offer", page!(campaigns::show_offer_form))
            .posted(page!(campaigns::publish_offer)),
        get("/operator/campaigns/{slug}/draft", page!(campaigns::show)).posted(page!(campaigns::reject_draft)),
        get("/operator/campaigns/{slug}/round", page!(campaigns::show_round_form))
            .posted(page!(campaigns::record_round)),
        get("/operator/campaigns/{slug}/redact", page!(campaigns::show)).posted(page!(campaigns::redact_round)),
        get("/operator/campaigns/{slug}/say", page!(campaigns::show_words_form)).posted(page!(campaigns::say)),
        get("/operator/campaigns/{slug}/negotiator", page!(campaigns::show)).posted(page!(campaigns::pause)),
        get("/operator/negotiator", page!(campaigns::list)).posted(page!(campaigns::pause_all)),
        get("/operator/campaigns/{slug}/handover", page!(campaigns::show)).posted(page!(campaigns::download_handover)),
        get("/operator/campaigns/{slug}/settle", page!(campaigns::show))
            .posted(page!(campaigns::settle_orders))
            .with_file(),
        get("/operator/rewards", page!(rewards::show)),
        get("/operator/rewards/batch", page!(rewards::show)).posted(page!(rewards::make_batch)),
        get("/operator/rewards/batches/{number}", page!(rewards::show)).posted(page!(rewards::download)),
        get("/operator/rewards/settle", page!(rewards::show)).posted(page!(rewards::settle)).with_file(),
        get("/operator/rewards/review", page!(review::show)),
        get("/operator/rewards/accounts", page!(accounts::show)),
        get("/operator/rewards/tax", page!(rewards::show)).posted(page!(tax::download)),
        get("/operator/rewards/void", page!(void::show)).posted(page!(void::send)),
        get("/operator/sign-ups", page!(sign_in::home)).posted(page!(overview::switch_sign_ups)),
    ]
    .into_iter()
}

/// Whether a path, however it is spelled, is of the operator's page: while that is off there is nothing.
pub(in crate::server) fn is_operators(path: &str) -> bool {
    const PAGE: &str = "/operator";
    let begins = path.get(..PAGE.len()).is_some_and(|start| start.eq_ignore_ascii_case(PAGE));
    begins && matches!(path.as_bytes().get(PAGE.len()), None | Some(b'/'))
}
