//! Whether an offer may take the place of another without asking members anew: it is no worse for them in any field.

use super::offer::{Deal, Offer, ReckonedDeal};
use super::price::{Fee, FeeAmount, Price};

impl Offer {
    /// In what it is worse for somebody who accepted the other, or may be; none where acceptances stand.
    pub fn worse_than(&self, other: &Self) -> Vec<String> {
        let (Deal::Reckoned(new), Deal::Reckoned(old)) = (&self.deal, &other.deal) else {
            return vec!["the one before was not reckoned".to_owned()];
        };
        let (now, before) = (&self.terms, &other.terms);
        let mut worse = deals(new, old);
        let mut is_worse = |what: &str, is: bool| worse.extend(is.then(|| what.to_owned()));
        is_worse("members have to decide earlier", now.decide_by < before.decide_by);
        is_worse("it is open for a shorter time", now.open_until < before.open_until);
        is_worse("the supplier gets other data", now.handover != before.handover);
        is_worse("its texts are other ones", now.texts != before.texts);
        worse
    }
}

fn deals(new: &ReckonedDeal, old: &ReckonedDeal) -> Vec<String> {
    let (bid, before) = (&new.bid, &old.bid);
    let mut worse = Vec::new();
    let mut is_worse = |what: &str, is: bool| worse.extend(is.then(|| what.to_owned()));
    is_worse("it is another supplier", bid.supplier != before.supplier);
    is_worse("it is measured in another way", (new.household, &new.benchmark) != (old.household, &old.benchmark));
    is_worse("it costs more in all", new.reckoned().all_in_cents > old.reckoned().all_in_cents);
    // A price stands until the next step, so all of them are compared where one begins.
    let months = bid.steps.iter().chain(&before.steps).map(|step| step.from_month);
    let is_dearer = |month| match (new.price_in(month), old.price_in(month)) {
        (Some(new), Some(old)) => !new.is_at_most(old),
        _ => true,
    };
    is_worse("its price is higher in some month", months.into_iter().any(is_dearer));
    let is_known = |fee: &Fee| before.fees.iter().any(|old| fee.is_at_most(old));
    is_worse("it has a fee that is new or higher", !bid.fees.iter().all(is_known));
    is_worse("its term is longer", bid.term_months > before.term_months);
    is_worse("its exit fee is higher", bid.exit_fee_cents > before.exit_fee_cents);
    is_worse("the union is paid more", bid.commission_cents > before.commission_cents);
    let leaves_out = match (bid.states.is_empty(), before.states.is_empty()) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => before.states.iter().any(|state| !bid.states.contains(state)),
    };
    is_worse("it is for fewer states", leaves_out);
    is_worse("it is for new customers only", bid.new_customers_only && !before.new_customers_only);
    is_worse("it needs more members", bid.needs_members > before.needs_members);
    is_worse("it is valid for a shorter time", bid.valid_until < before.valid_until);
    worse
}

impl ReckonedDeal {
    fn price_in(&self, month: u32) -> Option<Price> {
        self.bid.steps.iter().rev().find(|step| step.from_month <= month).map(|step| step.price)
    }
}

impl Price {
    /// Whether it is of the same form, and no higher.
    fn is_at_most(self, other: Self) -> bool {
        match (self, other) {
            (Self::Flat { cents, per }, Self::Flat { cents: most, per: of }) => per == of && cents <= most,
            (Self::Loan { apr_basis_points, on_cents }, Self::Loan { apr_basis_points: most, on_cents: of }) => {
                on_cents == of && apr_basis_points <= most
            }
            (
                Self::Discount { off_basis_points, on_cents, per },
                Self::Discount { off_basis_points: least, on_cents: of, per: often },
            ) => on_cents == of && per == often && off_basis_points >= least,
            _ => false,
        }
    }
}

impl Fee {
    /// Whether it is the same fee, and no higher.
    fn is_at_most(&self, other: &Self) -> bool {
        let is_same = self.name == other.name && self.per == other.per;
        is_same
            && match (self.amount, other.amount) {
                (FeeAmount::Cents(cents), FeeAmount::Cents(most)) => cents <= most,
                (FeeAmount::BasisPoints(part), FeeAmount::BasisPoints(most)) => part <= most,
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::super::acceptance::Handover;
    use super::super::tests::offer;
    use super::*;

    fn changed(change: impl FnOnce(&mut Offer)) -> Offer {
        let mut offer = offer();
        change(&mut offer);
        offer
    }

    fn bid(change: impl FnOnce(&mut ReckonedDeal)) -> Offer {
        changed(|offer| {
            let Deal::Reckoned(deal) = &mut offer.deal else { panic!() };
            change(deal);
        })
    }

    fn cheaper(deal: &mut ReckonedDeal) {
        deal.bid.steps.iter_mut().for_each(|step| step.price = lower(step.price));
    }

    fn lower(price: Price) -> Price {
        let Price::Flat { cents, per } = price else { panic!() };
        Price::Flat { cents: cents - 100, per }
    }

    #[test]
    fn what_is_better_or_the_same_lets_acceptances_stand() {
        let old = offer();
        assert_eq!(old.worse_than(&old), [""; 0]);
        assert_eq!(bid(cheaper).worse_than(&old), [""; 0]);
        assert_eq!(bid(|deal| deal.bid.fees.clear()).worse_than(&old), [""; 0], "a fee fewer");
        assert_eq!(
            changed(|offer| offer.terms.complaints = "https://fiber.example".to_owned()).worse_than(&old),
            [""; 0]
        );
    }

    #[test]
    fn whatever_is_worse_is_named() {
        let old = bid(|deal| deal.bid.states = Vec::new());
        let fee = |cents| Fee {
            name: "setup".to_owned(),
            amount: FeeAmount::Cents(cents),
            per: super::super::price::FeePeriod::Once,
        };
        for (new, why) in [
            (bid(|deal| deal.bid.supplier = "Other".to_owned()), "another supplier"),
            (bid(|deal| deal.bid.fees.push(fee(1))), "a fee that is new"),
            (bid(|deal| deal.bid.term_months += 1), "term is longer"),
            (bid(|deal| deal.bid.exit_fee_cents += 1), "exit fee"),
            (bid(|deal| deal.bid.commission_cents += 1), "the union is paid more"),
            (bid(|deal| deal.bid.new_customers_only = true), "new customers only"),
            (bid(|deal| deal.bid.needs_members = Some(5)), "needs more members"),
            (bid(|deal| deal.bid.valid_until = "2027-03-16".parse().unwrap()), "valid for a shorter time"),
            (changed(|offer| offer.terms.decide_by = "2027-03-14".parse().unwrap()), "decide earlier"),
            (changed(|offer| offer.terms.handover = Some(Handover::Address)), "other data"),
            (changed(|offer| offer.terms.texts[0].1.details = Some("more".to_owned())), "texts"),
        ] {
            let worse = new.worse_than(&old);
            assert!(worse.iter().any(|worse| worse.contains(why)), "{why}: {worse:?}");
            // What is cheaper besides is no better for it.
            let Deal::Reckoned(_) = &new.deal else { panic!() };
            let mut both = new.clone();
            let Deal::Reckoned(deal) = &mut both.deal else { panic!() };
            cheaper(deal);
            assert!(both.worse_than(&old).iter().any(|worse| worse.contains(why)), "{why}");
        }
        let dearer_later = bid(|deal| {
            cheaper(deal);
            let first = deal.bid.steps[0];
            let Price::Flat { cents, per } = first.price else { panic!() };
            deal.bid.steps.push(super::super::price::PriceStep {
                from_month: 13,
                price: Price::Flat { cents: cents + 5000, per },
            });
        });
        assert_eq!(dearer_later.worse_than(&old), ["its price is higher in some month"], "after the term");
    }
}
