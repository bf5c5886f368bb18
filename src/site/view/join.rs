//! The page a person joins by, and which a referral link leads to.

use askama::Template;
use serde::{Deserialize, Serialize};

use super::campaign::{CampaignCard, newest_result, open, open_cards};
use super::{Frame, days_to_confirm, rendered};
use crate::domain::answers::TypedAnswers;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::figure::{dollars, grouped};
use crate::domain::secret::proof::BITS;
use crate::domain::text::Comments;
use crate::membership::form_throttle::FormGate;

/// What was typed, which is kept, and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct JoinForm {
    pub email: String,
    pub answers: TypedAnswers,
    pub email_error: Option<String>,
    pub general_error: Option<String>,
    pub suggestion: Option<String>,
    pub campaign: Option<CampaignSlug>,
    /// Why it is shown again, if nothing is wrong with it.
    pub again: Option<ShownAgain>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownAgain {
    Asks,
    Expired,
    Changes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum InvitedBy<'a> {
    Nobody,
    Code(&'a str),
    /// What came as a code was never given to anyone.
    Unknown,
}

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage<'a> {
    page: Frame<'a>,
    form: &'a JoinForm,
    campaign: Option<&'a str>,
    campaigns: Vec<CampaignCard<'a>>,
    /// The newest result: the campaign, by slug and title, and what it reached.
    newest: Option<(&'a str, &'a str, String)>,
    code: Option<&'a str>,
    unknown_code: bool,
    /// It is one reader's, and no search engine's.
    is_private: bool,
    question: Option<&'a str>,
    /// Whether no sign-ups are taken, and there is no form.
    shut: bool,
    members: Option<String>,
    /// One bill, and what it is estimated to save: the sum of all is no household's.
    example: Option<(&'a str, String)>,
    /// Whether the figures are the sample's, which are made up.
    is_sample: bool,
    bills: Bills<'a>,
    offer: ReferralOffer,
    days: u64,
}

pub(super) struct Bills<'a> {
    pub(super) first: Vec<BillRow<'a>>,
    /// The others, below a line that opens them.
    pub(super) more: Vec<BillRow<'a>>,
    pub(super) more_open: bool,
    pub(super) chosen: Option<String>,
    /// Whether some are part of others, which are not added up.
    pub(super) overlap: bool,
}

pub(super) struct BillRow<'a> {
    pub(super) slug: &'static str,
    pub(super) label: &'a str,
    pub(super) savings: String,
    pub(super) dollars: u32,
    pub(super) offered: bool,
    pub(super) chosen: bool,
    /// The slug and the label of what it is part of.
    pub(super) part_of: Option<&'static str>,
    pub(super) whole: Option<&'a str>,
}

impl<'a> Bills<'a> {
    /// Bills that everybody sees; a phone's screen has no room for more.
    const FIRST: usize = 4;

    pub(super) fn of(page: Frame<'a>, chosen: CategorySet) -> Self {
        let catalog = &page.union.catalog;
        let is_listed = |category: Category| catalog.listed().iter().any(|(listed, _)| *listed == category);
        let row = |category: Category, dollars_a_year: Option<u32>| {
            // Together with its siblings it is one kind of bill, whether the whole is offered or not.
            let whole = category.part_of().filter(|_| dollars_a_year.is_some());
            BillRow {
                slug: category.slug(),
                label: page.words.category(category),
                savings: dollars_a_year.map_or_else(|| page.words.join.not_offered.to_string(), dollars),
                dollars: dollars_a_year.unwrap_or(0),
                offered: dollars_a_year.is_some(),
                chosen: chosen.contains(category),
                part_of: whole.map(Category::slug),
                whole: whole.filter(|whole| is_listed(*whole)).map(|whole| page.words.category(whole)),
            }
        };
        let mut rows: Vec<_> =
            catalog.listed().iter().map(|(category, savings)| row(*category, Some(*savings))).collect();
        // Those that were chosen while they were listed: whoever does not see them cannot take them back.
        rows.extend(chosen.iter().filter(|category| !is_listed(*category)).map(|category| row(category, None)));
        let overlap = rows.iter().any(|row| row.whole.is_some());
        // Parts come after what they are part of is seen; a line that would hide one or two bills is not worth its room.
        let (mut first, mut more): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.whole.is_none());
        more.splice(0..0, first.split_off(Self::FIRST.min(first.len())));
        if more.len() <= 2 {
            first.append(&mut more);
        }
        Self {
            more_open: more.iter().any(|row| row.chosen),
            first,
            more,
            chosen: (chosen != CategorySet::default()).then(|| dollars(catalog.combined_savings(chosen))),
            overlap,
        }
    }
}

pub(super) struct ReferralOffer {
    pub(super) reward: String,
    /// What it is for, and the most that one can earn.
    pub(super) when: String,
    pub(super) rules: Vec<String>,
}

impl ReferralOffer {
    pub(super) fn of(page: Frame<'_>) -> Self {
        let terms = &page.union.catalog.referral;
        let (join, most) = (&page.words.join, dollars(terms.max_reward()));
        let when = match (terms.group_size, terms.hold_days) {
            (1, 0) => &join.offer_one_at_once,
            (1, _) => &join.offer_one,
            (_, 0) => &join.offer_at_once,
            (_, _) => &join.offer,
        };
        let days = terms.hold(page.language);
        Self {
            reward: dollars(terms.reward_per_group),
            when: when.put("count", grouped(terms.group_size.into())).put("days", days).put("most", most).plain(),
            rules: page.union.catalog.rules(page.language),
        }
    }
}

impl JoinPage<'_> {
    fn has_problems(&self) -> bool {
        let form = self.form;
        form.general_error.is_some() || form.email_error.is_some() || form.answers.has_mistakes()
    }

    /// Whether it is shown again to whoever filled it in: then the form comes first.
    fn is_again(&self) -> bool {
        self.has_problems() || self.form.suggestion.is_some() || self.form.again.is_some()
    }

    fn title(&self) -> &str {
        let words = &self.page.words.join;
        if self.code.is_some() { &words.title_invited } else { &words.title }.as_str()
    }

    fn note(&self) -> Option<(&str, String)> {
        let words = &self.page.words.join;
        Some(match self.form.again? {
            ShownAgain::Asks => (words.again.as_str(), words.again_text.to_string()),
            ShownAgain::Expired => (words.expired.as_str(), words.expired_text.put("days", self.days).plain()),
            ShownAgain::Changes => (words.change.as_str(), words.change_text.to_string()),
        })
    }

    /// Whether what is optional is shown at once: because something is in it, or wrong with it.
    fn more_open(&self) -> bool {
        let mut more = self.form.answers.other_than_bills();
        more.any(|(_, typed)| !typed.text.is_empty() || typed.mistake.is_some())
    }
}

/// The page for `/`, `/join` and `/joinus<code>`. Without a `member_count` the figure is left out.
/// What there is of a form is the `gate`'s to say.
pub fn join(
    page: Frame<'_>,
    member_count: Option<u64>,
    invited_by: InvitedBy<'_>,
    gate: &FormGate,
    form: &JoinForm,
    campaigns: &[CampaignRecord],
) -> String {
    let campaign = form.campaign.as_ref().and_then(|slug| open(campaigns).find(|campaign| campaign.slug() == slug));
    rendered(
        page,
        &JoinPage {
            page,
            form,
            campaign: campaign.and_then(|campaign| campaign.draft.text(page.language)).map(|text| text.title.as_str()),
            campaigns: open_cards(page, campaigns),
            newest: newest_result(page, campaigns),
            code: match invited_by {
                InvitedBy::Code(code) => Some(code),
                InvitedBy::Nobody | InvitedBy::Unknown => None,
            },
            unknown_code: invited_by == InvitedBy::Unknown,
            is_private: invited_by != InvitedBy::Nobody
                || form.again.is_some()
                || form.campaign.is_some()
                || page.path.starts_with("/join/sent/"),
            question: match gate {
                FormGate::Asks(question) => Some(question),
                FormGate::Open | FormGate::Shut => None,
            },
            shut: *gate == FormGate::Shut,
            members: page.members(member_count),
            example: page
                .union
                .catalog
                .example()
                .filter(|_| !page.union.catalog.is_sample())
                .map(|(bill, savings)| (page.words.category(bill), dollars(savings))),
            is_sample: page.union.catalog.is_sample(),
            bills: Bills::of(page, form.answers.chosen()),
            offer: ReferralOffer::of(page),
            days: days_to_confirm(),
        },
    )
}

#[derive(Template)]
#[template(path = "greeting.html")]
struct GreetingPage<'a> {
    page: Frame<'a>,
    campaigns: Vec<CampaignCard<'a>>,
    offer: ReferralOffer,
}

/// The same page for a member who is signed in.
pub fn greeting(page: Frame<'_>, campaigns: &[CampaignRecord]) -> String {
    rendered(page, &GreetingPage { page, campaigns: open_cards(page, campaigns), offer: ReferralOffer::of(page) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::catalog::Catalog;
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;
    use crate::domain::union::Union;

    fn of(union: &Union, count: Option<u64>, invited_by: InvitedBy<'_>, form: &JoinForm) -> String {
        let page = Frame::new(union, Language::English, "/join", Timestamp::from_millis(0));
        join(page, count, invited_by, &FormGate::Open, form, &[])
    }

    fn page(form: &JoinForm) -> String {
        of(&UnionSettings::sample(), Some(1234), InvitedBy::Code("0123456789ab"), form)
    }

    #[test]
    fn the_form_asks_for_what_a_sign_up_holds() {
        let html = page(&JoinForm::default());
        assert!(html.contains(r#"<form class="sign-up" method="post" action="/join">"#));
        for field in ["email", "usState", "otherComments", "refCode", "website"] {
            assert_eq!(html.matches(&format!(r#"name="{field}""#)).count(), 1, "{field}");
        }
        for category in Category::ALL {
            assert_eq!(html.matches(&format!(r#"name="{}" value="true""#, category.slug())).count(), 1);
            assert!(html.contains(category.label()));
        }
        assert_eq!(html.matches("<option ").count(), 52, "51 states and none");
        assert!(html.contains(r#"<option value="DC">District of Columbia</option>"#));
        assert!(html.contains(r#"type="hidden" name="refCode" value="0123456789ab""#));
        assert!(html.contains(r#"maxlength="1000""#));
        assert!(!html.contains("aria-invalid") && !html.contains(r#"role="alert""#));
        assert!(html.contains("You've been invited"));
        assert!(html.contains("yearly figures are made up") && !html.contains("<dd>$300"), "the sample's");
    }

    #[test]
    fn a_code_that_is_nobodys_is_told() {
        let html = of(&UnionSettings::sample(), None, InvitedBy::Unknown, &JoinForm::default());
        assert!(html.contains("We don't recognize this invitation link"));
        assert!(!html.contains("You've been invited") && !html.contains("refCode") && html.contains("noindex"));
        let plain = of(&UnionSettings::sample(), None, InvitedBy::Nobody, &JoinForm::default());
        assert!(!plain.contains("We don't recognize this invitation") && !plain.contains("noindex"));
    }

    #[test]
    fn a_category_that_is_not_offered_is_not_asked_about() {
        let text = "[savings]\ninternet = 1300\n[referral]\nreward_per_group = 1500\ngroup_size = 1\nmax_groups = 2\n";
        let union = Union { catalog: Catalog::parse(text).unwrap(), ..UnionSettings::sample() };
        let html = of(&union, None, InvitedBy::Nobody, &JoinForm::default());
        assert_eq!(html.matches(r#"type="checkbox""#).count(), 1);
        for figure in ["$1,300", "$1,500", "$3,000"] {
            assert!(html.contains(figure), "{figure}");
        }
        assert!(html.contains("estimates for a year") && !html.contains("made up") && !html.contains("made-up"));
        assert!(!html.contains("refCode"), "nobody invited");
        assert!(!html.contains("more kinds of bills"));
    }

    #[test]
    fn what_contains_another_is_not_added_up() {
        let text = "[savings]\ninsurance = 500\ncar_insurance = 300\ninternet = 200\n\
                    [referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 2\n";
        let union = Union { catalog: Catalog::parse(text).unwrap(), ..UnionSettings::sample() };
        let mut answers = TypedAnswers::default();
        ["insurance", "car_insurance"].iter().for_each(|slug| answers.take(slug, "true"));
        let html = of(&union, None, InvitedBy::Nobody, &JoinForm { answers, ..JoinForm::default() });
        assert!(html.contains(r#"<dt>estimated yearly savings on Home Internet, for example</dt><dd>$200</dd>"#));
        assert!(html.contains(r#"<output id="chosen-total">$500</output>"#), "and neither is what was ticked");
        assert!(html.contains("(part of Insurance)") && html.contains(r#"data-part-of="insurance""#));
    }

    #[test]
    fn what_was_typed_is_kept_beside_what_is_wrong_with_it() {
        let mut answers = TypedAnswers::default();
        for (name, value) in [("usState", "CA"), ("alaska_cruise", "true"), ("otherComments", "Two\r\nlines")] {
            answers.take(name, value);
        }
        let form = JoinForm {
            email: "ana@".to_owned(),
            answers,
            email_error: Some("Write a whole address.".to_owned()),
            ..JoinForm::default()
        };
        let html = page(&form);
        assert!(html.contains(r#"value="ana@""#));
        assert!(html.contains(r#"<option value="CA" selected>California</option>"#));
        assert!(html.contains(r#"name="alaska_cruise" value="true""#));
        assert_eq!(html.matches(" checked").count(), 1);
        // The rules of rewards stand below the form.
        let in_form = html.split("</form>").next().unwrap();
        assert_eq!(
            in_form.matches("<details").count(),
            in_form.matches(" open>").count(),
            "nothing that was filled in is hidden"
        );
        assert!(html.contains(">\nTwo\nlines</textarea>"));
        assert_eq!(html.matches("Write a whole address.").count(), 1, "beside its field, and nowhere else");
        assert!(html.contains(r#"aria-invalid="true" aria-describedby="email-hint email-error" autofocus"#));
        assert_eq!(html.matches("aria-invalid").count(), 1);
        assert!(html.contains("<title>Problem: "));
    }

    #[test]
    fn few_members_and_a_count_that_cannot_be_read_are_left_out() {
        let with = |count| of(&UnionSettings::sample(), count, InvitedBy::Nobody, &JoinForm::default());
        assert!(with(Some(1234)).contains("1,234 members") && with(Some(100)).contains("100 members"));
        for count in [None, Some(0), Some(1), Some(99)] {
            assert!(!with(count).contains("already in"), "{count:?}");
        }
        let proud = Union { show_members_from: 1, ..UnionSettings::sample() };
        let html = |count| of(&proud, Some(count), InvitedBy::Nobody, &JoinForm::default());
        assert!(html(1).contains("1 member<") && !html(0).contains("already in"), "nobody is no figure");
    }
}
