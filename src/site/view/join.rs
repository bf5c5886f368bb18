//! The page a person joins by, and which a referral link leads to.

use askama::Template;

use super::{days_to_confirm, members, rendered};
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::figure::dollars;
use crate::domain::secret::proof::BITS;
use crate::domain::text::Comments;
use crate::domain::union::Union;
use crate::domain::us_state::UsState;
use crate::membership::form_brake::FormGate;

/// What was typed, which is kept, and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct JoinForm {
    pub email: String,
    pub us_state: String,
    pub chosen: CategorySet,
    pub comments: String,
    pub email_error: Option<String>,
    pub us_state_error: Option<String>,
    pub comments_error: Option<String>,
    pub general_error: Option<String>,
    /// It is shown again only because the form's brake came on meanwhile.
    pub ask_again: bool,
}

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage<'a> {
    union: &'a Union,
    form: &'a JoinForm,
    code: Option<&'a str>,
    /// What the browser is to answer, and how hard it is.
    question: Option<&'a str>,
    bits: u32,
    /// Whether no sign-ups are taken, and there is no form.
    shut: bool,
    members: Option<String>,
    rows: Vec<BillRow>,
    states: &'static [UsState],
    total: String,
    offer: Offer,
    longest_comments: usize,
    days: u64,
}

/// A line of the list of bills.
pub(super) struct BillRow {
    pub(super) slug: &'static str,
    pub(super) label: &'static str,
    pub(super) savings: String,
    pub(super) chosen: bool,
}

pub(super) fn bill_rows(catalog: &Catalog, chosen: CategorySet) -> Vec<BillRow> {
    let row = |category: Category, savings| BillRow {
        slug: category.slug(),
        label: category.label(),
        savings,
        chosen: chosen.contains(category),
    };
    let listed = catalog.listed().iter().map(|(category, savings)| row(*category, dollars(*savings)));
    // Those that were chosen while they were listed: whoever does not see them cannot take them back.
    let unlisted = chosen.iter().filter(|category| catalog.listed().iter().all(|(known, _)| known != category));
    listed.chain(unlisted.map(|category| row(category, "not offered now".to_owned()))).collect()
}

/// What a referral earns, as the pages show it.
pub(super) struct Offer {
    pub(super) reward: String,
    pub(super) group: String,
    pub(super) most: String,
    pub(super) rules: Vec<String>,
}

impl Offer {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let terms = &catalog.referral;
        let group = if terms.group_size == 1 { "person".to_owned() } else { format!("{} people", terms.group_size) };
        Self { reward: dollars(terms.reward_per_group), group, most: dollars(terms.max_reward()), rules: terms.rules() }
    }
}

impl JoinPage<'_> {
    fn has_problems(&self) -> bool {
        let form = self.form;
        [&form.general_error, &form.email_error, &form.us_state_error, &form.comments_error]
            .iter()
            .any(|error| error.is_some())
    }
}

/// The page for `/`, `/join` and `/joinus<code>`. Without a `member_count` the figure is left out.
/// What there is of a form is the `gate`'s to say.
pub fn join(union: &Union, member_count: Option<u64>, code: Option<&str>, gate: &FormGate, form: &JoinForm) -> String {
    let catalog = &union.catalog;
    rendered(&JoinPage {
        union,
        form,
        code,
        question: match gate {
            FormGate::Asks(question) => Some(question),
            FormGate::Open | FormGate::Shut => None,
        },
        shut: *gate == FormGate::Shut,
        bits: BITS,
        members: members(member_count),
        rows: bill_rows(catalog, form.chosen),
        states: UsState::ALL,
        total: dollars(catalog.total_savings()),
        offer: Offer::of(catalog),
        longest_comments: Comments::LONGEST,
        days: days_to_confirm(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::catalog::category::Category;

    fn page(form: &JoinForm) -> String {
        join(&UnionSettings::sample(), Some(1234), Some("0123456789ab"), &FormGate::Open, form)
    }

    #[test]
    fn the_form_asks_for_what_a_sign_up_holds() {
        let html = page(&JoinForm::default());
        assert!(html.contains(r#"<form class="sign-up" method="post" action="/join">"#));
        for field in ["email", "usState", "otherComments", "refCode", "website"] {
            assert_eq!(html.matches(&format!(r#"name="{field}""#)).count(), 1, "{field}");
        }
        for category in Category::ALL {
            assert!(html.contains(&format!(r#"name="{}" value="true">"#, category.slug())), "{}", category.slug());
            assert!(html.contains(category.label()));
        }
        assert_eq!(html.matches("<option ").count(), 52, "51 states and none");
        assert!(html.contains(r#"<option value="DC">District of Columbia</option>"#));
        assert!(html.contains(r#"type="hidden" name="refCode" value="0123456789ab""#));
        assert!(html.contains(r#"maxlength="1000""#));
        assert!(!html.contains("aria-invalid") && !html.contains(r#"role="alert""#));
    }

    #[test]
    fn a_category_that_is_not_offered_is_not_asked_about() {
        let text = "[savings]\ninternet = 1300\n[referral]\nreward_per_group = 1500\ngroup_size = 1\nmax_groups = 2\n";
        let union = Union { catalog: Catalog::parse(text).unwrap(), ..UnionSettings::sample() };
        let html = join(&union, None, None, &FormGate::Open, &JoinForm::default());
        assert_eq!(html.matches(r#"type="checkbox""#).count(), 1);
        for figure in ["$1,300", "$1,500", "$3,000"] {
            assert!(html.contains(figure), "{figure}");
        }
        assert!(!html.contains("refCode"), "nobody invited");
    }

    #[test]
    fn what_was_typed_is_kept_beside_what_is_wrong_with_it() {
        let mut form = JoinForm {
            email: "ana@".to_owned(),
            us_state: "CA".to_owned(),
            comments: "Two\nlines".to_owned(),
            email_error: Some("Write a whole address.".to_owned()),
            ..JoinForm::default()
        };
        form.chosen.insert(Category::Travel);
        let html = page(&form);
        assert!(html.contains(r#"value="ana@""#));
        assert!(html.contains(r#"<option value="CA" selected>California</option>"#));
        assert!(html.contains(r#"name="travel" value="true" checked>"#));
        assert_eq!(html.matches(" checked").count(), 1);
        assert!(html.contains(">\nTwo\nlines</textarea>"));
        assert!(html.contains(r##"<a href="#email">Write a whole address.</a>"##), "the summary leads to the field");
        assert!(html.contains(r#"aria-invalid="true" aria-describedby="email-hint email-error""#));
        assert_eq!(html.matches("aria-invalid").count(), 1);
        assert!(html.contains("<title>Problem: "));
    }

    #[test]
    fn a_count_that_cannot_be_read_is_left_out() {
        let with = |count| join(&UnionSettings::sample(), count, None, &FormGate::Open, &JoinForm::default());
        assert!(with(Some(1234)).contains("1,234 members"));
        assert!(with(Some(1)).contains("1 member"));
        for count in [None, Some(0)] {
            assert!(!with(count).contains("0 members") && !with(count).contains("already in"));
        }
    }
}
