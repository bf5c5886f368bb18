//! Making a campaign by a form, and changing what was written about it: the same fields as in the file of `campaigns new`.

use hyper::Request;

use super::{HERE, missing, slug_of};
use crate::campaigns::records::FindCampaign;
use crate::campaigns::{Edited, Made};
use crate::domain::campaign::draft::{Benchmark, CampaignDraft, SourceText};
use crate::domain::campaign::mandate::Mandate;
use crate::domain::campaign::price::{Period, Price};
use crate::domain::campaign::record::{CampaignDetails, CampaignRecord};
use crate::domain::campaign::{BadFile, CampaignState};
use crate::domain::catalog::category::Category;
use crate::domain::language::Language;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::operator::form::{Form, FormField, FormMistake, FormPage, FormPart, Reads, Typed, typed_hundredths};
use crate::site::operator::session::OperatorVisit;
use crate::site::view::operator::title;
use crate::site::{PageResult, Visit};

const FORMS: [(&str, &str); 3] =
    [("flat", "an amount"), ("loan", "the APR of a loan"), ("discount", "a bill that discounts are on")];
const PERIODS: [(&str, &str); 3] = [("month", "each month"), ("year", "each year"), ("use", "each use")];

/// The form; of a campaign that was opened some of it stays as it is.
fn campaign_form(typed: Typed, state: Option<CampaignState>) -> Form {
    let is_asked = state.is_some_and(|state| state != CampaignState::Draft);
    let is_gathered = is_asked && state != Some(CampaignState::Gathering);
    let is_offered = state.is_some_and(|state| !state.gathers() && state != CampaignState::Draft);
    let categories: Vec<_> = Category::ALL.iter().map(|category| (category.slug(), category.label())).collect();
    let mut about = Vec::new();
    about.push(
        FormField::line("slug", "Slug")
            .hint("Its name in addresses, for good, such as internet-2027")
            .fixed(state.is_some()),
    );
    about.push(FormField::choice("category", "Bill", &categories).fixed(is_asked));
    let until = FormField::day("gather_until", "Gathers until").hint("Members are asked until that day has ended.");
    about.push(until.fixed(is_gathered));
    let states = FormField::line("states", "Only in these states (optional)").reads(Reads::Codes);
    let states = states;
    about.push(states.hint("Codes, such as CA, OR").fixed(is_asked));
    let units =
        FormField::number("units", "Units (optional)", Reads::Whole).hint("Lines or travelers of one household.");
    about.push(units.fixed(is_offered));
    let uses = FormField::number("uses_a_year", "Uses a year (optional)", Reads::Whole).hint("For prices of each use.");
    about.push(uses.fixed(is_offered));
    let mut parts = vec![FormPart::new("", "The campaign", "", about)];
    for language in Language::ALL {
        let (code, name) = (language.code(), language.words().site.language.to_string());
        let fields = vec![
            FormField::line(format!("text.{code}.title"), "Title").of(name.clone()).wide(),
            FormField::lines(format!("text.{code}.summary"), "Summary", 3).of(name.clone()),
        ];
        parts.push(FormPart::new("", name, "", fields));
    }
    let hint = "What a typical household pays. Bids are compared with it, so they need one.";
    parts.push(FormPart::new("benchmark", "Typical price", hint, typical_price(&typed, is_offered)));
    parts.push(mandate());
    let review = vec![
        FormField::line("reviewed.by", "Reviewed by").hint("Such as Ada Bell, counsel"),
        FormField::day("reviewed.on", "On"),
        FormField::lines("reviewed.note", "What was looked at", 3)
            .hint("It speaks of the commission, of handing over an address, and of a reward that depends on buying."),
    ];
    let hint = "Insurance, loans, card debt and medical costs are not opened without it.";
    parts.push(FormPart::new("reviewed", "Review (optional)", hint, review));
    Form::new(parts, typed, "")
}

fn typical_price(typed: &Typed, is_fixed: bool) -> Vec<FormField> {
    let form = typed.get("benchmark.form");
    let fixed = |field: FormField| field.fixed(is_fixed);
    let mut fields = vec![fixed(FormField::choice("benchmark.form", "Kind of price", &FORMS).reads(Reads::Nothing))];
    let amount =
        FormField::number("benchmark.amount", "Dollars", Reads::Dollars).hint("Of the price, the balance or the bill.");
    let amount = amount.at(if form == "loan" || form == "discount" {
        "benchmark.price.on_cents"
    } else {
        "benchmark.price.cents"
    });
    fields.push(fixed(amount));
    let per = FormField::choice("benchmark.per", "Due", &PERIODS).at("benchmark.price.per").hint("Not of a loan.");
    fields.push(fixed(if form == "loan" { per.reads(Reads::Nothing) } else { per }));
    let percent = FormField::number("benchmark.percent", "Percent (optional)", Reads::Percent)
        .hint("The APR of a loan, or the usual discount.");
    fields.push(fixed(match form {
        // The reader tells a loan by its APR: without one it would ask for a price of another form.
        "loan" => percent.at("benchmark.price.apr_basis_points").empty(""),
        "discount" => percent.at("benchmark.price.off_basis_points").empty(0),
        _ => percent.at("benchmark.price.percent"),
    }));
    let both = !typed.get("benchmark.source.es").trim().is_empty();
    let source = FormField::line("benchmark.source", "Source").wide().hint("Such as FCC urban rate survey");
    fields.push(fixed(if both { source.at("benchmark.source.en") } else { source }));
    let spanish = FormField::line("benchmark.source.es", "Source in Spanish (optional)").wide();
    fields.push(fixed(spanish.hint("Without it, Spanish pages show the one above.")));
    fields.push(fixed(
        FormField::line("benchmark.url", "Where to look it up").wide().hint("A page that begins with https://"),
    ));
    fields.push(fixed(FormField::day("benchmark.date", "As of").hint("A year old at the most.")));
    fields
}

fn mandate() -> FormPart {
    let dollars = |name: &str, label: &str| FormField::number(format!("mandate.{name}"), label, Reads::Dollars);
    let fields = vec![
        dollars("target_cents", "Target, dollars a year").hint("With everything."),
        dollars("walk_away_cents", "Walk away above").hint("Dollars a year. The negotiator never sees it."),
        FormField::number("mandate.longest_term_months", "Longest term, months", Reads::Whole),
        dollars("most_exit_fee_cents", "Most for leaving early").hint("In dollars; 0 for nothing."),
        dollars("most_commission_cents", "Most commission").hint("In dollars for each switch; 0 for none."),
        FormField::day("mandate.reply_by", "Suppliers reply by (optional)"),
        FormField::lines("mandate.suppliers", "Suppliers (optional)", 2)
            .reads(Reads::EachLine)
            .hint("One on each line; any, if it is empty."),
        FormField::lines("mandate.never", "What a deal must not contain (optional)", 2)
            .reads(Reads::EachLine)
            .hint("One on each line, such as automatic renewal at another price"),
    ];
    FormPart::new(
        "mandate",
        "Mandate (optional)",
        "What may be agreed to. A bid outside is published only with a reason.",
        fields,
    )
}

/// A campaign as one types it.
fn typed_of(draft: &CampaignDraft) -> Typed {
    let mut typed = Typed::default();
    typed.set("slug", draft.slug.as_str());
    typed.set("category", draft.category.slug());
    typed.set("gather_until", draft.gather_until.to_string());
    typed.set("states", Vec::from_iter(draft.states.iter().map(|state| state.code())).join(", "));
    typed.set("units", draft.household.units.to_string());
    typed.set("uses_a_year", draft.household.uses_a_year.map(|uses| uses.to_string()).unwrap_or_default());
    for (language, text) in &draft.texts {
        typed.set(format!("text.{}.title", language.code()), &text.title);
        typed.set(format!("text.{}.summary", language.code()), &text.summary);
    }
    if let Some(Benchmark { price, source, url, date }) = &draft.benchmark {
        let (form, amount, percent, per) = match *price {
            Price::Flat { cents, per } => ("flat", cents, None, Some(per)),
            Price::Loan { apr_basis_points, on_cents } => ("loan", on_cents, Some(apr_basis_points), None),
            Price::Discount { off_basis_points, on_cents, per } => {
                ("discount", on_cents, Some(off_basis_points), Some(per))
            }
        };
        typed.set("benchmark.form", form);
        typed.set("benchmark.amount", typed_hundredths(amount));
        typed.set("benchmark.percent", percent.map(|percent| typed_hundredths(percent.into())).unwrap_or_default());
        typed.set("benchmark.per", per.map_or("", Period::name));
        typed.set("benchmark.source", source.text(Language::English));
        if let SourceText::Each(_) = source {
            typed.set("benchmark.source.es", source.text(Language::Spanish));
        }
        typed.set("benchmark.url", url);
        typed.set("benchmark.date", date.to_string());
    }
    if let Some(Mandate { target_cents, walk_away_cents, rules }) = &draft.mandate {
        for (name, cents) in [
            ("target_cents", *target_cents),
            ("walk_away_cents", *walk_away_cents),
            ("most_exit_fee_cents", rules.most_exit_fee_cents),
            ("most_commission_cents", rules.most_commission_cents),
        ] {
            typed.set(format!("mandate.{name}"), typed_hundredths(cents));
        }
        typed.set("mandate.longest_term_months", rules.longest_term_months.to_string());
        typed.set("mandate.suppliers", rules.suppliers.join("\n"));
        typed.set("mandate.never", rules.never.join("\n"));
        typed.set("mandate.reply_by", rules.reply_by.map(|day| day.to_string()).unwrap_or_default());
    }
    if let Some(review) = &draft.reviewed {
        typed.set("reviewed.by", &review.by);
        typed.set("reviewed.on", review.on.to_string());
        typed.set("reviewed.note", &review.note);
    }
    typed
}

/// What was typed, read as the file is, with the text that is kept.
fn read(form: &Form) -> Result<(CampaignDraft, String), BadFile> {
    let written = serde_json::to_string_pretty(&form.sent()).unwrap_or_default();
    Ok((CampaignDraft::parse(&written)?, written))
}

pub async fn show_new(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    Ok(new_page(&found, &campaign_form(Typed::default(), None)))
}

pub async fn make(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (now, mut form) = (visit.now.time, campaign_form(Typed::of(&fields), None));
    let (draft, written) =
        match read(&form).and_then(|read| read.0.check_days(CampaignState::Draft, now).map(|()| read)) {
            Ok(read) => read,
            Err(bad) => {
                form.mark(bad);
                return Ok(new_page(&found, &form));
            }
        };
    let slug = draft.slug.clone();
    let act = found.who.act("campaigns new", slug.to_string(), now);
    let who = act.who.clone();
    let admin = found.operator().audited(act).campaigns();
    let wrong = match found.stored(admin.make(draft, written, &who, now).await)? {
        Made::Done => {
            let says = format!("The draft {slug} is ready. Nobody sees it until you open it.");
            return Ok(found.done_at(&format!("/operator/campaigns/{slug}"), "Made", &[says]));
        }
        Made::SlugTaken => format!("slug: there is already a campaign {slug}; choose another"),
        Made::TooMany => format!("there are {} campaigns already, which is the most", CampaignRecord::MOST),
    };
    form.mark(BadFile(vec![wrong]));
    Ok(new_page(&found, &form))
}

fn new_page(found: &OperatorVisit<'_>, form: &Form) -> Answer {
    let says =
        ["It becomes a draft, which nobody sees until you open it. Until then everything can be changed.".to_owned()];
    let page = FormPage {
        frame: found.frame(),
        title: "A new campaign",
        back: (HERE.path(), HERE.name()),
        says: &says,
        form,
        action: "/operator/new-campaign",
        hidden: &[],
        button: "Make the draft",
    };
    page.answer(found)
}

pub async fn show_edit(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let file = changeable(&found).await?;
    let form = campaign_form(typed_of(&file.campaign.draft), Some(file.campaign.state));
    Ok(edit_page(&found, &file, &form))
}

/// Changes what was written, unless somebody else changed it meanwhile.
pub async fn edit(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let file = changeable(&found).await?;
    let (now, campaign) = (visit.now.time, &file.campaign);
    let (slug, state) = (campaign.slug(), campaign.state);
    let (mut typed, kept) = (Typed::of(&fields), typed_of(&campaign.draft));
    // What cannot be changed is as it was, whatever was sent.
    for name in campaign_form(Typed::default(), Some(state)).fixed() {
        typed.set(name, kept.get(name));
    }
    let seen = typed.get("seen").to_owned();
    let mut form = campaign_form(typed, Some(state));
    if seen != file.history.len().to_string() {
        let text = "It was changed meanwhile. This is what you typed. Look at the campaign, and save it again if it is still right.";
        form.mistakes.push(FormMistake { text: text.to_owned(), input: None });
        return Ok(edit_page(&found, &file, &form));
    }
    let read = read(&form).and_then(|read| {
        campaign.draft.edit_to(&read.0, state)?;
        read.0.check_days(state, now).map(|()| read)
    });
    let (draft, written) = match read {
        Ok(read) => read,
        Err(bad) => {
            form.mark(bad);
            return Ok(edit_page(&found, &file, &form));
        }
    };
    let act = found.who.act("campaigns edit", slug.to_string(), now);
    let who = act.who.clone();
    let admin = found.operator().audited(act).campaigns();
    let says = match found.stored(admin.edit(draft, written, &who, now).await)? {
        Edited::Done if campaign.was_public() => "The pages show it within two seconds.".to_owned(),
        Edited::Done => format!("The draft {slug} is changed."),
        Edited::Unchanged => format!("It says the same as before; nothing of {slug} was changed."),
        Edited::Refused(bad) => {
            form.mark(bad);
            return Ok(edit_page(&found, &file, &form));
        }
        Edited::Unknown => return Ok(missing(&found)),
    };
    Ok(found.done_at(&format!("/operator/campaigns/{slug}"), "Saved", &[says]))
}

/// The campaign, if anything of it can still be changed.
async fn changeable(found: &OperatorVisit<'_>) -> PageResult<CampaignDetails> {
    let slug = slug_of(found)?;
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(found))?;
    match file.campaign.state {
        state @ (CampaignState::Closed | CampaignState::Cancelled) => {
            Err(found.refuse(&format!("{slug} is {}, and nothing of it changes anymore.", state.name())).into())
        }
        _ => Ok(file),
    }
}

fn edit_page(found: &OperatorVisit<'_>, file: &CampaignDetails, form: &Form) -> Answer {
    let here = format!("/operator/campaigns/{}", file.campaign.slug());
    let says: &[_] = match file.campaign.state {
        CampaignState::Draft => &["Nobody sees it until you open it.".to_owned()],
        _ => &["Members see its texts. What they counted on stays as it is.".to_owned()],
    };
    let page = FormPage {
        frame: found.frame(),
        title: "Change the campaign",
        back: (&here, title(&file.campaign)),
        says,
        form,
        action: &format!("{here}/edit"),
        hidden: &[("seen", &file.history.len().to_string())],
        button: "Save it",
    };
    page.answer(found)
}
