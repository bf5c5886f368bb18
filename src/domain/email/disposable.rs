//! Domains whose mailboxes are made to be thrown away: never refused, but a member at one of them earns no one a credit.

use std::collections::HashSet;

use crate::domain::email::EmailAddress;

const KNOWN: &str = include_str!("disposable_domains.txt");

/// The domains that are known, and those an operator adds.
#[derive(Debug, Clone)]
pub struct DisposableDomains(HashSet<String>);

/// What is wrong with a list.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {0} is not a domain; write one on each line, such as mailinator.com, and comments after #")]
pub struct BadList(usize);

impl Default for DisposableDomains {
    fn default() -> Self {
        Self(domains(KNOWN).filter_map(|(_, domain)| domain).collect())
    }
}

impl DisposableDomains {
    /// The known ones, and a list's.
    pub fn with(list: &str) -> Result<Self, BadList> {
        let mut all = Self::default();
        for (line, domain) in domains(list) {
            all.0.insert(domain.ok_or(BadList(line))?);
        }
        Ok(all)
    }

    /// Whether an address is at one of them, or at a name below one.
    pub fn holds(&self, email: &EmailAddress) -> bool {
        let mut domain = email.domain();
        loop {
            if self.0.contains(domain) {
                return true;
            }
            match domain.split_once('.') {
                Some((_, rest)) => domain = rest,
                None => return false,
            }
        }
    }
}

/// Each line that says something, with its number; none for what is no domain.
fn domains(list: &str) -> impl Iterator<Item = (usize, Option<String>)> + '_ {
    let said = (1..).zip(list.lines()).map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()));
    // What an address would be with it, so that every spelling of a domain is the same.
    let domain = |text: &str| EmailAddress::parse(&format!("a@{text}")).ok().map(|email| email.domain().to_owned());
    said.filter(|(_, text)| !text.is_empty()).map(move |(number, text)| (number, domain(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_stands_for_all_below_it_and_a_list_adds_to_what_is_known() {
        let known = DisposableDomains::default();
        assert_eq!(known.0.len(), domains(KNOWN).count(), "each once, and each a domain");
        let is = |list: &DisposableDomains, email: &str| list.holds(&EmailAddress::parse(email).unwrap());
        assert!(is(&known, "x@mailinator.com") && is(&known, "x@Any.Thing.YOPmail.com"));
        assert!(!is(&known, "x@example.com") && !is(&known, "x@notmailinator.example"));
        let more = DisposableDomains::with("# ours\n\nBÜCHER.example # for a while\n").unwrap();
        assert!(is(&more, "x@xn--bcher-kva.example") && is(&more, "x@mailinator.com"));
        assert_eq!(DisposableDomains::with("good.example\nnot a domain\n").unwrap_err(), BadList(2));
    }
}
