//! What the service says of itself, kept with the records for commands that print a link or the union's name.

use super::Union;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFacts {
    pub name: String,
    pub base_url: String,
    pub join_site: String,
    pub contact_email: Option<String>,
}

/// A fact that two starts say differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFact {
    pub what: &'static str,
    pub before: String,
    pub now: String,
}

impl ServiceFacts {
    pub fn of(union: &Union) -> Self {
        Self {
            name: union.name.clone(),
            base_url: union.base_url.clone(),
            join_site: union.join_site.clone(),
            contact_email: union.contact_email.clone(),
        }
    }

    /// Where everybody sees a campaign.
    pub fn campaign_page(&self, slug: &str) -> String {
        format!("{}/campaigns/{slug}", self.join_site)
    }

    pub fn changed_since(&self, before: &Self) -> Vec<ChangedFact> {
        let contact = |facts: &Self| facts.contact_email.clone().unwrap_or_else(|| "none".to_owned());
        let facts = |facts: &Self| {
            [
                ("name", facts.name.clone()),
                ("base URL", facts.base_url.clone()),
                ("join site", facts.join_site.clone()),
                ("contact", contact(facts)),
            ]
        };
        let both = facts(before).into_iter().zip(facts(self));
        both.filter(|((_, before), (_, now))| before != now)
            .map(|((what, before), (_, now))| ChangedFact { what, before, now })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_with_both_values() {
        let facts = ServiceFacts {
            name: "Example Union".to_owned(),
            base_url: "https://api.union.example".to_owned(),
            join_site: "https://union.example".to_owned(),
            contact_email: None,
        };
        assert_eq!(facts.changed_since(&facts), []);
        let contact_email = Some("hello@union.example".to_owned());
        let now = ServiceFacts { contact_email, name: "Other Union".to_owned(), ..facts.clone() };
        let fact = |what, before: &str, now: &str| ChangedFact { what, before: before.to_owned(), now: now.to_owned() };
        let expected = [fact("name", "Example Union", "Other Union"), fact("contact", "none", "hello@union.example")];
        assert_eq!(now.changed_since(&facts), expected);
        assert_eq!(facts.campaign_page("internet-2027"), "https://union.example/campaigns/internet-2027");
    }
}
