//! Which kinds of mail a person wants. Each can be switched off; mail about campaigns goes only to those whose notice named it, or who
//! switched it on.

use super::MailKind;

/// The kinds that a person can switch, as they are set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailChoices([bool; Self::KINDS.len()]);

impl MailChoices {
    pub const KINDS: [MailKind; 4] =
        [MailKind::AlreadyMember, MailKind::CampaignOpened, MailKind::CampaignOffer, MailKind::CampaignResult];

    /// Whether they want mail of that kind; what cannot be switched off is wanted.
    pub fn wants(&self, kind: MailKind) -> bool {
        Self::KINDS.iter().position(|known| *known == kind).is_none_or(|at| self.0[at])
    }

    /// The names of the kinds that they want none of.
    pub fn unwanted(&self) -> impl Iterator<Item = &'static str> {
        Self::KINDS.into_iter().filter(|kind| !self.wants(*kind)).map(MailKind::name)
    }
}

/// What a person chose, as it is kept: names of kinds, separated by commas. A name that a newer program wrote stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptChoices {
    pub unwanted: String,
    /// Campaign mail that they switched on.
    pub wanted: String,
}

impl KeptChoices {
    /// What goes by it; `is_told` if the notice that they joined under names campaign mail.
    pub fn read(&self, is_told: bool) -> MailChoices {
        let has = |names: &str, kind: MailKind| names.split(',').any(|name| name == kind.name());
        MailChoices(MailChoices::KINDS.map(|kind| {
            let goes_by_default = is_told || kind.campaign().is_none();
            !has(&self.unwanted, kind) && (goes_by_default || has(&self.wanted, kind))
        }))
    }

    pub fn choose(&mut self, kind: MailKind, wants: bool) {
        set(&mut self.unwanted, kind, !wants);
        set(&mut self.wanted, kind, wants && kind.campaign().is_some());
    }
}

fn set(names: &mut String, kind: MailKind, is_there: bool) {
    let others = names.split(',').filter(|name| !name.is_empty() && *name != kind.name());
    *names = others.chain(is_there.then_some(kind.name())).collect::<Vec<_>>().join(",");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaign_mail_goes_to_those_whose_notice_named_it_or_who_switched_it_on() {
        let mut kept = KeptChoices::default();
        let names = |choices: MailChoices| choices.unwanted().collect::<Vec<_>>();
        assert_eq!(names(kept.read(true)), Vec::<&str>::new());
        assert_eq!(names(kept.read(false)), ["campaign_opened", "campaign_offer", "campaign_result"]);
        kept.choose(MailKind::CampaignOffer, true);
        assert_eq!(names(kept.read(false)), ["campaign_opened", "campaign_result"]);
        kept.choose(MailKind::CampaignOffer, false);
        kept.choose(MailKind::AlreadyMember, false);
        assert_eq!(names(kept.read(true)), ["already_member", "campaign_offer"]);
        assert!(kept.read(true).wants(MailKind::SignIn) && kept.read(false).wants(MailKind::Confirm));
        kept.choose(MailKind::AlreadyMember, true);
        kept.choose(MailKind::AlreadyMember, true);
        assert_eq!(kept, KeptChoices { unwanted: "campaign_offer".to_owned(), wanted: String::new() });
    }

    #[test]
    fn what_a_newer_program_wrote_stays() {
        let mut kept = KeptChoices { unwanted: "later,already_member".to_owned(), wanted: "later".to_owned() };
        kept.choose(MailKind::AlreadyMember, true);
        kept.choose(MailKind::CampaignOpened, true);
        assert_eq!((kept.unwanted.as_str(), kept.wanted.as_str()), ("later", "later,campaign_opened"));
    }
}
