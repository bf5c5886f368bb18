//! The routes of the operator's page.

use super::{Handler, Route, get};
use crate::domain::operator::Role;
use crate::site::operator::{
    account, accounts, audit, backup, campaigns, mail, outbox, overview, partners, people, person, previews, review,
    rewards, sign_in, style, tax, test_mail, void,
};

/// Those of every page below `/operator`. While the page is off none of them is there.
///
/// The roles are those that see a page, and that send its form. A route without roles is for whoever is not signed in yet.
pub(super) fn routes() -> impl Iterator<Item = Route> {
    use Role::{All, Look, Money, Support};
    [
        get("/operator", page!(overview::show)).for_roles(Look, Look),
        get("/operator/style.css", page!(style)),
        get("/operator/enter/{token}", page!(sign_in::show_link)).posted(page!(sign_in::enter)),
        get("/operator/sign-in", page!(sign_in::home)).posted(page!(sign_in::ask)),
        get("/operator/second-factor", page!(sign_in::home)).posted(page!(account::enter_code)).for_roles(Look, Look),
        get("/operator/account", page!(account::show)).posted(page!(account::change)).for_roles(Look, Look),
        get("/operator/sign-out", page!(sign_in::home)).posted(page!(sign_in::sign_out)).for_roles(Look, Look),
        get("/operator/audit", page!(audit::show)).for_roles(Look, Look),
        get("/operator/mail", page!(mail::show)).posted(page!(mail::decide)).for_roles(Look, Support),
        get("/operator/mail/outbox", page!(outbox::show)).posted(page!(outbox::retry)).for_roles(Look, Support),
        get("/operator/mail/test", page!(test_mail::show)).posted(page!(test_mail::send)).for_roles(Support, Support),
        get("/operator/mail/previews", page!(previews::list)).for_roles(Look, Look),
        get("/operator/mail/previews/{name}", page!(previews::show)).for_roles(Look, Look),
        get("/operator/mail/previews/{name}/html", page!(previews::show_html)).for_roles(Look, Look),
        get("/operator/backup", page!(backup::show)).posted(page!(backup::make)).for_roles(Look, All),
        get("/operator/people", page!(people::show)).posted(page!(people::look_up)).for_roles(Support, Support),
        get("/operator/people/erase", page!(people::show)).posted(page!(people::erase)).for_roles(Support, Support),
        get("/operator/people/export", page!(people::show)).posted(page!(person::export)).for_roles(Support, Support),
        get("/operator/people/leave", page!(people::show)).posted(page!(person::leave)).for_roles(Support, Support),
        get("/operator/people/unsuppress", page!(people::show))
            .posted(page!(person::unsuppress))
            .for_roles(Support, Support),
        get("/operator/people/retry", page!(people::show))
            .posted(page!(person::retry_mail))
            .for_roles(Support, Support),
        get("/operator/partners", page!(partners::list)).for_roles(Look, Look),
        get("/operator/partners/issue", page!(partners::show_issue))
            .posted(page!(partners::issue))
            .for_roles(Support, Support),
        get("/operator/partners/rotate", page!(partners::list))
            .posted(page!(partners::rotate))
            .for_roles(Look, Support),
        get("/operator/partners/revoke", page!(partners::list))
            .posted(page!(partners::revoke))
            .for_roles(Look, Support),
        get("/operator/partners/suspend", page!(partners::list))
            .posted(page!(partners::suspend))
            .for_roles(Look, Support),
        get("/operator/partners/withdraw", page!(partners::list))
            .posted(page!(partners::withdraw))
            .for_roles(Look, Support),
        get("/operator/partners/test-keys", page!(partners::list_test_keys)).for_roles(Look, Look),
        get("/operator/partners/{partner}", page!(partners::show)).for_roles(Look, Look),
        get("/operator/partners/{partner}/settings", page!(partners::show_settings))
            .posted(page!(partners::save_settings))
            .for_roles(Support, Support),
        get("/operator/partners/{partner}/webhooks", page!(partners::show_webhooks))
            .posted(page!(partners::change_webhooks))
            .for_roles(Support, Support),
        get("/operator/campaigns", page!(campaigns::list)).for_roles(Look, Look),
        get("/operator/campaigns/{slug}", page!(campaigns::show)).posted(page!(campaigns::step)).for_roles(Look, All),
        get("/operator/new-campaign", page!(campaigns::show_new)).posted(page!(campaigns::make)).for_roles(All, All),
        get("/operator/campaigns/{slug}/edit", page!(campaigns::show_edit))
            .posted(page!(campaigns::edit))
            .for_roles(All, All),
        get("/operator/campaigns/{slug}/bid", page!(campaigns::show_bid_form))
            .posted(page!(campaigns::record_bid))
            .for_roles(All, All),
        get("/operator/campaigns/{slug}/offer", page!(campaigns::show_offer_form))
            .posted(page!(campaigns::publish_offer))
            .for_roles(All, All),
        get("/operator/campaigns/{slug}/draft", page!(campaigns::show))
            .posted(page!(campaigns::reject_draft))
            .for_roles(Look, All),
        get("/operator/campaigns/{slug}/round", page!(campaigns::show_round_form))
            .posted(page!(campaigns::record_round))
            .for_roles(All, All),
        get("/operator/campaigns/{slug}/redact", page!(campaigns::show))
            .posted(page!(campaigns::redact_round))
            .for_roles(Look, All),
        get("/operator/campaigns/{slug}/say", page!(campaigns::show_words_form))
            .posted(page!(campaigns::say))
            .for_roles(All, All),
        get("/operator/campaigns/{slug}/negotiator", page!(campaigns::show))
            .posted(page!(campaigns::pause))
            .for_roles(Look, All),
        get("/operator/negotiator", page!(campaigns::list)).posted(page!(campaigns::pause_all)).for_roles(Look, All),
        get("/operator/campaigns/{slug}/handover", page!(campaigns::show))
            .posted(page!(campaigns::download_handover))
            .for_roles(Look, Money),
        get("/operator/campaigns/{slug}/settle", page!(campaigns::show))
            .posted(page!(campaigns::settle_orders))
            .with_file()
            .for_roles(Look, Money),
        get("/operator/rewards", page!(rewards::show)).for_roles(Look, Look),
        get("/operator/rewards/batch", page!(rewards::show)).posted(page!(rewards::make_batch)).for_roles(Look, Money),
        get("/operator/rewards/batches/{number}", page!(rewards::show))
            .posted(page!(rewards::download))
            .for_roles(Look, Money),
        get("/operator/rewards/settle", page!(rewards::show))
            .posted(page!(rewards::settle))
            .with_file()
            .for_roles(Look, Money),
        get("/operator/rewards/review", page!(review::show)).for_roles(Money, Money),
        get("/operator/rewards/accounts", page!(accounts::show)).for_roles(Money, Money),
        get("/operator/rewards/tax", page!(rewards::show)).posted(page!(tax::download)).for_roles(Look, Money),
        get("/operator/rewards/void", page!(void::show)).posted(page!(void::send)).for_roles(Money, Money),
        get("/operator/sign-ups", page!(sign_in::home))
            .posted(page!(overview::switch_sign_ups))
            .for_roles(Look, Support),
    ]
    .into_iter()
}

/// What an operator needs to see the page of a path, and to send its form.
pub(in crate::server) fn roles_of(path: &str) -> Option<(Role, Role)> {
    super::find(path)?.route.roles
}

/// Who sees each page of the operator's, and who sends its form; none where it has none.
pub fn operator_roles() -> impl Iterator<Item = (&'static str, Option<(Role, Option<Role>)>)> {
    routes().map(|route| (route.pattern, route.roles.map(|(see, act)| (see, route.post.is_some().then_some(act)))))
}

/// Whether a path, however it is spelled, is of the operator's page: while that is off there is nothing.
pub(in crate::server) fn is_operators(path: &str) -> bool {
    const PAGE: &str = "/operator";
    let begins = path.get(..PAGE.len()).is_some_and(|start| start.eq_ignore_ascii_case(PAGE));
    begins && matches!(path.as_bytes().get(PAGE.len()), None | Some(b'/'))
}
