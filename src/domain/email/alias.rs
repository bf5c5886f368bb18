//! Which spellings of an address lead to one mailbox, by what the large providers document: for the caps of mail and for
//! credit, never for where mail goes.

/// What a provider makes of an address. A `+tag` is folded everywhere.
struct Provider {
    /// The first is the one that stands for all, where they share their mailboxes.
    domains: &'static [&'static str],
    /// Whether a name is the same person's at each of the domains.
    shared: bool,
    /// Characters of a name that do not count.
    ignored: &'static [char],
    /// Two that are the same.
    alike: Option<(char, char)>,
    /// What begins a tag, besides `+`.
    tag: Option<char>,
    /// Whether `anything@name.domain` is `name@domain`.
    subdomains: bool,
}

impl Provider {
    /// One that folds nothing more than a `+tag`.
    const PLAIN: Self = Self { domains: &[], shared: false, ignored: &[], alike: None, tag: None, subdomains: false };
}

/// Each below the address at which the provider documents it.
const PROVIDERS: &[Provider] = &[
    // https://support.google.com/mail/answer/7436150
    Provider { domains: &["gmail.com", "googlemail.com"], shared: true, ignored: &['.'], ..Provider::PLAIN },
    // https://proton.me/support/addresses-and-aliases
    Provider {
        domains: &["proton.me", "protonmail.com", "pm.me", "protonmail.ch"],
        shared: true,
        ignored: &['.', '-', '_'],
        ..Provider::PLAIN
    },
    // https://support.apple.com/en-us/102527
    Provider { domains: &["icloud.com", "me.com", "mac.com"], shared: true, ..Provider::PLAIN },
    // https://yandex.com/support/mail/en/web/preferences/aliases
    Provider {
        domains: &[
            "yandex.ru",
            "ya.ru",
            "yandex.com",
            "yandex.by",
            "yandex.kz",
            "yandex.ua",
            "yandex.com.tr",
            "narod.ru",
        ],
        shared: true,
        alike: Some(('.', '-')),
        ..Provider::PLAIN
    },
    // https://help.yahoo.com/kb/SLN3523.html
    Provider {
        // The name before the hyphen is one that its owner chose for this; account names have none in them.
        domains: &[
            "yahoo.com",
            "yahoo.co.uk",
            "yahoo.ca",
            "yahoo.com.au",
            "yahoo.com.br",
            "yahoo.com.mx",
            "yahoo.de",
            "yahoo.es",
            "yahoo.fr",
            "yahoo.in",
            "yahoo.it",
            "ymail.com",
            "rocketmail.com",
        ],
        tag: Some('-'),
        ..Provider::PLAIN
    },
    // https://www.fastmail.help/hc/en-us/articles/360060591053
    Provider {
        domains: &["fastmail.com", "fastmail.fm", "fastmail.net", "fastmail.org", "sent.com", "messagingengine.com"],
        subdomains: true,
        ..Provider::PLAIN
    },
];

/// The mailbox of a name at a domain, both in small letters. Folding never leaves nothing: where it would, the name stays.
pub(super) fn mailbox(name: &str, domain: &str) -> String {
    let found = PROVIDERS.iter().find_map(|provider| {
        provider.domains.iter().find_map(|known| match domain.strip_suffix(known) {
            Some("") => Some((provider, *known, None)),
            Some(below) if provider.subdomains => {
                let user = below.strip_suffix('.').filter(|user| !user.contains('.'))?;
                Some((provider, *known, Some(user)))
            }
            _ => None,
        })
    });
    let Some((provider, known, user)) = found else { return format!("{}@{domain}", untagged(name, None)) };
    let base = untagged(user.unwrap_or(name), provider.tag);
    let mut counted = base.replace(provider.ignored, "");
    if let Some((one, other)) = provider.alike {
        counted = counted.replace(one, other.encode_utf8(&mut [0; 4]));
    }
    let counted = if counted.is_empty() { base } else { &counted };
    format!("{counted}@{}", if provider.shared { provider.domains[0] } else { known })
}

/// The name without its tag: "+news" is all tag, and "kim.+news" has no name that ends in a dot.
fn untagged(name: &str, tag: Option<char>) -> &str {
    let base = name.split_once(['+', tag.unwrap_or('+')]).map_or(name, |(base, _)| base).trim_end_matches('.');
    if base.is_empty() { name } else { base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_mailbox_are_one() {
        for (name, domain, expected) in [
            ("ana+bills", "example.com", "ana@example.com"),
            ("a.n-a", "example.com", "a.n-a@example.com"),
            ("a.n.a+x+y", "googlemail.com", "ana@gmail.com"),
            ("a.n_a-b+x", "pm.me", "anab@proton.me"),
            ("ana", "protonmail.com", "ana@proton.me"),
            ("a.na+x", "me.com", "a.na@icloud.com"),
            ("a-n.a+x", "ya.ru", "a-n-a@yandex.ru"),
            ("ana", "yandex.com", "ana@yandex.ru"),
            ("ana-shop+x", "yahoo.com", "ana@yahoo.com"),
            ("ana-shop", "yahoo.de", "ana@yahoo.de"),
            ("ana", "ymail.com", "ana@ymail.com"),
            ("shop", "ana.fastmail.com", "ana@fastmail.com"),
            ("shop+x", "ana.fastmail.fm", "ana@fastmail.fm"),
            ("shop", "a.na.fastmail.com", "shop@a.na.fastmail.com"),
            ("ana", "notfastmail.com", "ana@notfastmail.com"),
            ("ana-b", "notyahoo.com", "ana-b@notyahoo.com"),
            ("+tag", "example.com", "+tag@example.com"),
            ("-tag", "yahoo.com", "-tag@yahoo.com"),
            ("-.-", "proton.me", "-.-@proton.me"),
            ("ana.+tag", "example.com", "ana@example.com"),
        ] {
            assert_eq!(mailbox(name, domain), expected, "{name}@{domain}");
            let (name, domain) = expected.split_once('@').unwrap();
            assert_eq!(mailbox(name, domain), expected, "folding again changes nothing");
        }
    }

    #[test]
    fn no_domain_has_two_rules() {
        let mut seen = std::collections::HashSet::new();
        assert!(PROVIDERS.iter().flat_map(|provider| provider.domains).all(|domain| seen.insert(domain)));
    }
}
