//! Which buttons the members of a demonstration press, and when.

use anyhow::{Context, bail};

use super::deals::{AUTO_LOAN, CAR_INSURANCE, GROCERIES, MOBILE, NEGOTIATED, STREAMING};
use super::people::{CIRCLES, Circle, LIVELY, chance};
use super::story::{Story, together};
use crate::campaigns::Pressed;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::participation::{Press, PressAnswers};
use crate::domain::catalog::category::Category;

/// When members can press what, in days counted from today; the operator's steps are in `deals.rs`.
struct Deal {
    slug: &'static str,
    bill: Category,
    opens: i64,
    /// The last day on which members count themselves in.
    counts_until: i64,
    offered: i64,
    /// The days between deciding and the deal's start, on which nobody can accept, and the last day to accept.
    pause: (i64, i64),
    accepts_until: i64,
}

/// A day that the history does not reach.
const NEVER: i64 = 10_000;

const DEALS: [Deal; 6] = [
    Deal {
        slug: MOBILE,
        bill: Category::MobileBills,
        opens: -147,
        counts_until: -123,
        offered: -122,
        pause: (-106, -103),
        accepts_until: -81,
    },
    Deal {
        slug: GROCERIES,
        bill: Category::Groceries,
        opens: -96,
        counts_until: -65,
        offered: -64,
        pause: (-47, -45),
        accepts_until: -2,
    },
    Deal {
        slug: STREAMING,
        bill: Category::Subscriptions,
        opens: -55,
        counts_until: -10,
        offered: -9,
        pause: (NEVER, NEVER),
        accepts_until: -1,
    },
    Deal {
        slug: NEGOTIATED,
        bill: Category::Internet,
        opens: -44,
        counts_until: -1,
        offered: NEVER,
        pause: (NEVER, NEVER),
        accepts_until: NEVER,
    },
    Deal {
        slug: CAR_INSURANCE,
        bill: Category::CarInsurance,
        opens: -20,
        counts_until: -1,
        offered: NEVER,
        pause: (NEVER, NEVER),
        accepts_until: NEVER,
    },
    Deal {
        slug: AUTO_LOAN,
        bill: Category::AutoLoan,
        opens: -112,
        counts_until: -76,
        offered: NEVER,
        pause: (NEVER, NEVER),
        accepts_until: NEVER,
    },
];

const CAR_STATES: [&str; 12] = ["AZ", "CA", "CO", "FL", "GA", "IL", "NV", "NY", "OR", "PA", "TX", "WA"];

impl Story<'_> {
    /// The buttons that members press on a day.
    pub(super) async fn presses_on(&self, day: i64) -> anyhow::Result<()> {
        let members = || self.people.iter().enumerate().filter(|(_, person)| person.session.is_some());
        for deal in &DEALS {
            let pressed = members().filter_map(|(one, _)| Some((one, self.press_of(one, deal, day)?)));
            let pressed: Vec<_> = pressed.collect();
            if pressed.is_empty() {
                continue;
            }
            let slug: CampaignSlug = deal.slug.parse()?;
            let now = |one| {
                let minutes = if circle_of(one, deal).is_some_and(|circle| circle.at_once) { 40 } else { 150 };
                self.at(day, 21 * 60 + chance(one, deal.slug, minutes))
            };
            let campaign = self.parts.operator.campaigns().demand(&slug, self.at(day, 0)).await?;
            let campaign = campaign.context("a campaign is not found")?;
            together(pressed.into_iter().map(|(one, press)| {
                let (person, now, slug, campaign) = (&self.people[one], now(one), &slug, &campaign);
                async move {
                    let session = person.session.as_ref().context("a member has no session")?;
                    let mark = campaign.offer.as_ref().map(|offer| offer.mark(person.language)).unwrap_or_default();
                    let (said, agreed) = (PressAnswers::default(), (mark, person.language));
                    match self.parts.app.campaigns.press(session, slug, press, said, agreed, now).await? {
                        Pressed::Done(_) => Ok(()),
                        other => bail!("a member cannot press {} in {slug}: {other:?}", press.name()),
                    }
                }
            }))
            .await?;
        }
        if day == -12 {
            self.report_trouble(day).await?;
        }
        Ok(())
    }

    /// A member says that it didn't work, though the supplier says that it did.
    async fn report_trouble(&self, day: i64) -> anyhow::Result<()> {
        let slug = GROCERIES.parse()?;
        for person in self.people.iter().skip(30) {
            let Some(session) = person.session.as_ref().filter(|_| person.pays(Category::Groceries)) else { continue };
            if self.parts.app.campaigns.say_trouble(session, &slug, false, self.at(day, 23 * 60)).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn press_of(&self, one: usize, deal: &Deal, day: i64) -> Option<Press> {
        let person = &self.people[one];
        let joined = person.joined?;
        let circle = circle_of(one, deal);
        let is_eager = one == LIVELY || circle.is_some();
        let likely = |what: &str, percent| chance(one, &format!("{what} {}", deal.slug), 100) < percent;
        let within = |what: &str, days| chance(one, &format!("day of {what} {}", deal.slug), days) as i64;
        let is_for = deal.slug != CAR_INSURANCE
            || person.answers.us_state.is_some_and(|state| CAR_STATES.contains(&state.code()));
        if !person.pays(deal.bill) || !is_for {
            return None;
        }
        let counts_in = (deal.opens + 1 + within("counting in", 12)).max(joined + 1);
        let is_in = (is_eager || likely("in", 82)) && counts_in <= deal.counts_until;
        if is_in && day == counts_in {
            return Some(Press::In);
        }
        let goes_out = !is_eager && likely("out", 4);
        if is_in && goes_out {
            return (day == counts_in + 3 && day <= deal.counts_until).then_some(Press::Out);
        }
        let decides = match is_in {
            true if circle.is_some_and(|circle| circle.at_once) => deal.offered + 4,
            true => deal.offered + 1 + within("deciding", 9),
            false if is_eager || likely("late", 30) => joined.max(deal.offered) + 2 + within("deciding", 4),
            false => return None,
        };
        let (paused, goes_on) = deal.pause;
        let decides = if (paused..=goes_on).contains(&decides) { goes_on + 2 } else { decides };
        if day != decides || decides > deal.accepts_until || decides <= deal.offered {
            return None;
        }
        match is_in && !is_eager {
            true if likely("nothing", 22) => None,
            true if likely("passing", 14) => Some(Press::Pass),
            _ => Some(Press::Accept),
        }
    }
}

/// The circle of somebody who joined for this deal.
fn circle_of(one: usize, deal: &Deal) -> Option<&'static Circle> {
    CIRCLES.iter().find(|circle| circle.people.contains(&one) && circle.bill == deal.bill)
}
