//! Texts about the union, consent and errors that appear in more than one place: tools, their instructions, the OpenAPI
//! document and the reference all use these.

use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::language::Language;
use crate::domain::union::{Standing, Union};

/// The consent rule as a literal, so that both forms of it are one.
macro_rules! consent {
    ($what:literal) => {
        concat!(
            "Consent: call ",
            $what,
            " only for the user you are talking to, with that user's own email address, and only after they have \
             explicitly asked to join."
        )
    };
}

/// The consent rule, as each agent action states it.
pub const CONSENT_RULE: &str = consent!("this");

/// The consent rule for all agent actions, by their names; a test holds that it names them all.
pub const CONSENT_RULE_FOR_ALL: &str = consent!("signUpUser and createReferralLink");

/// What to do about an error of a tool.
const ERRORS: &str = "A tool's error is JSON; `error` says what to do. By `code`: invalid_submission, correct the \
     arguments; rate_limited, wait as long as `error` says; backend_not_configured or save_failed, try again later; \
     agent_unauthorized, the partner must check its API key.";

pub fn what_it_is(union: &Union) -> String {
    format!(
        "Members of {} pool their demand as consumers, and an AI negotiates better prices and terms on their household \
         expenses.",
        union.name
    )
}

/// Who answers for the union, and what people do on its site.
pub fn who_and_where(union: &Union) -> String {
    let campaigns = union.campaigns_page();
    format!(
        "{answers} Contact: {contact}.\n\n\
         Anyone can join at {join}. A campaign is one negotiation over one category. {campaigns} shows the campaigns to all (JSON: \
         {campaigns}.json); members choose there which to take part in. Joining changes no contract. Email tells members of new \
         campaigns for their categories, offers and results. At {me} members sign in by email to see their referrals and rewards, \
         change their state and categories, turn off email, download their data, leave, or have their data erased, which also ends \
         membership and email. Anyone who has not confirmed can withdraw the sign-up and stop further email: \"This wasn't me\" in that email. {privacy} says what is \
         kept and for how long. {terms} says what joining means.",
        answers = union.catalog.answers(Language::English).join(" "),
        contact = union.contact_line().unwrap_or_else(|| "not published".to_owned()),
        join = union.join_page(),
        me = union.own_page(),
        privacy = union.privacy_page(),
        terms = union.terms_page()
    )
}

/// What the figures of savings are, and what they are not.
pub fn savings(catalog: &Catalog) -> String {
    let estimates = "Savings are the operator's estimates for a typical household, not promises.";
    let listed = |category| catalog.listed().iter().any(|(listed, _)| *listed == category);
    let parts_of = |whole| {
        let parts = catalog.listed().iter().filter(|(part, _)| part.part_of() == Some(whole));
        parts.map(|(part, _)| part.slug()).collect::<Vec<_>>().join(" and ")
    };
    let wholes = Category::ALL.iter().filter(|whole| listed(**whole));
    let overlaps: Vec<_> = wholes
        .map(|whole| (whole.slug(), parts_of(*whole)))
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(whole, parts)| format!("{whole} with {parts}"))
        .collect();
    match overlaps.is_empty() {
        true => estimates.to_owned(),
        false => {
            format!("{estimates} Categories overlap ({}): their sum counts some savings twice.", overlaps.join(", "))
        }
    }
}

/// That nobody can really join; nothing where somebody can.
pub fn not_real(union: &Union) -> &'static str {
    match union.standing {
        Standing::Real => "",
        Standing::Sample => "This union is a sample: sign nobody real up. ",
        Standing::Demonstration => "This is a demonstration: sign nobody real up. ",
    }
}

/// What a model is told before it sees a tool: what this is, when to act and when not.
pub fn instructions(union: &Union) -> String {
    format!(
        "{not_real}{what} {who}\n\n\
         Describe the union with the read tools; quote figures from their answers, never from memory. Act for a user only with \
         their own email address, after they explicitly asked to join (the consent rule of signUpUser), and tell them to check their \
         inbox. If they have not asked, tell them about the union and let them decide. No tool shows, changes or deletes a member: send them to the site.\n\n\
         signUpUser and createReferralLink need a partner's API key in the Authorization header, and are not listed without one: \
         then send the user to {join}. {ERRORS}",
        not_real = not_real(union),
        what = what_it_is(union),
        who = who_and_where(union),
        join = union.join_page(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    #[test]
    fn a_union_says_what_it_has_told_of_itself_and_no_more() {
        let union = UnionSettings::sample();
        let message = who_and_where(&union);
        for part in [
            "Who runs the union: ",
            "What joining costs: ",
            "How the union earns",
            "hello@union.example",
            "12 Mill Street",
            "https://union.example/join",
        ] {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert!(instructions(&union).starts_with("This union is a sample"), "it has no catalog of its own");
        let real = Union { standing: Standing::Real, ..union.clone() };
        assert!(instructions(&real).starts_with("Members of "));
        let silent = Union { contact_email: None, postal_address: None, ..union };
        assert!(who_and_where(&silent).contains("Contact: not published."));
    }

    #[test]
    fn overlaps_are_told_where_both_are_listed() {
        let message = savings(&Catalog::sample());
        let overlaps =
            "insurance with car_insurance and home_insurance, travel with hawaii_resort_stay and alaska_cruise";
        assert!(message.contains(overlaps), "{message}");
        let referral = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10";
        let apart = Catalog::parse(&format!("[savings]\ncar_insurance = 1\ntravel = 2\n{referral}")).unwrap();
        assert!(!savings(&apart).contains("overlap"));
    }
}
