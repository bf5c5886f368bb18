//! What somebody may have meant by a mistyped address: they are asked, and we never correct it ourselves.

use super::EmailAddress;

/// Where most people of the union's country get their mail: the hosts that are worth guessing at.
const GUESSED: &str = "\
    gmail.com yahoo.com hotmail.com outlook.com icloud.com aol.com comcast.net live.com msn.com verizon.net \
    sbcglobal.net att.net bellsouth.net cox.net charter.net earthlink.net optonline.net frontier.com \
    protonmail.com proton.me";

/// Hosts that are near to those and right.
const RIGHT: &str = "\
    fastmail.com zoho.com mail.com ymail.com rocketmail.com me.com mac.com gmx.com gmx.net gmx.us hey.com \
    pm.me tutanota.com googlemail.com yahoo.es yahoo.ca yahoo.co.uk yahoo.com.mx yahoo.com.br hotmail.es \
    hotmail.co.uk hotmail.fr outlook.es live.co.uk gmail.co hotmail.cl outlook.cl hotmail.it hotmail.de \
    outlook.fr outlook.de";

fn guessed() -> impl Iterator<Item = &'static str> {
    GUESSED.split(' ')
}

fn known() -> impl Iterator<Item = &'static str> {
    guessed().chain(RIGHT.split(' '))
}

/// Another address that was probably meant; none if the one that was typed looks right, or no guess is a good one.
pub fn suggestion(typed: &str) -> Option<String> {
    // No one typed that by hand.
    if typed.len() > EmailAddress::LONGEST {
        return None;
    }
    let bare = bare(typed);
    let (local, domain) = match bare.split_once('@') {
        Some((local, domain)) => (local, corrected(domain)?),
        None => without_at(&bare)?,
    };
    let meant = format!("{local}@{domain}");
    // A capital letter is no mistake.
    (!meant.eq_ignore_ascii_case(typed) && EmailAddress::parse(&meant).is_ok()).then_some(meant)
}

/// Without what surrounds an address that was copied, and white space within.
fn bare(typed: &str) -> String {
    let inner = match (typed.rfind('<'), typed.rfind('>')) {
        (Some(open), Some(close)) if open < close => &typed[open + 1..close],
        _ => typed,
    };
    let inner = inner.trim().trim_start_matches("mailto:");
    inner.chars().filter(|c| !super::is_invisible(*c) && !matches!(c, '<' | '>' | '"' | '(' | ')')).collect()
}

/// A domain as it was probably meant: the same where it looks right.
fn corrected(domain: &str) -> Option<String> {
    if domain.contains('@') {
        return None;
    }
    let domain = domain.to_lowercase().replace([',', ';'], ".");
    let mut domain = domain.trim_matches(['.', '-', '_']).to_owned();
    while domain.contains("..") {
        domain = domain.replace("..", ".");
    }
    if domain.is_empty() || known().any(|host| host == domain) {
        return (!domain.is_empty()).then_some(domain);
    }
    let Some((name, last)) = domain.rsplit_once('.') else {
        // Half of a host: the one that is called so, or begins so, or is nearly called so; else the commonest end.
        let called = |host: &&str| host.split('.').next().is_some_and(|name| name == domain);
        let host = known().find(called).or_else(|| nearest(&format!("{domain}.com")));
        return Some(host.map_or_else(|| format!("{domain}.com"), str::to_owned));
    };
    if let Some(host) = nearest(&domain) {
        return Some(host.to_owned());
    }
    match last {
        "con" | "cmo" | "ocm" | "comm" | "vom" | "xom" | "cpm" | "coom" => Some(format!("{name}.com")),
        "nte" | "ent" | "ner" | "nett" => Some(format!("{name}.net")),
        "ogr" | "orgg" | "rog" => Some(format!("{name}.org")),
        _ => Some(domain),
    }
}

/// A name that runs into a host: `kimgmail.com`, `kim.gmail.com`.
fn without_at(text: &str) -> Option<(&str, String)> {
    let lower = text.to_lowercase();
    let host = guessed().find(|host| lower.ends_with(*host) && lower.len() == text.len())?;
    let local = text[..text.len() - host.len()].trim_end_matches(['.', '-', '_', '#', '2']);
    (!local.is_empty()).then(|| (local, host.to_owned()))
}

/// The host that is one slip of the fingers away, or two where it is long; none where more than one is as near.
fn nearest(domain: &str) -> Option<&'static str> {
    let near = |host: &&str| strsim::osa_distance(domain, host) <= if host.len() >= 10 { 2 } else { 1 };
    let mut hosts = guessed().filter(near);
    let found = hosts.next()?;
    hosts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_fingers_are_asked_about() {
        for (typed, meant) in [
            ("kim@gmial.com", "kim@gmail.com"),
            ("kim@gmai.com", "kim@gmail.com"),
            ("kim@gmail.con", "kim@gmail.com"),
            ("kim@gmail.cm", "kim@gmail.com"),
            ("Kim.Lee+x@GMIAL.com", "Kim.Lee+x@gmail.com"),
            ("kim@yaho.com", "kim@yahoo.com"),
            ("kim@hotmial.com", "kim@hotmail.com"),
            ("kim@outlok.com", "kim@outlook.com"),
            ("kim@iclould.com", "kim@icloud.com"),
            ("kim@comcats.net", "kim@comcast.net"),
            ("kim@sbcgloabl.net", "kim@sbcglobal.net"),
            ("kim@union.con", "kim@union.com"),
            ("kim@gmail", "kim@gmail.com"),
            ("kim@gmal", "kim@gmail.com"),
            ("kim@comcast", "kim@comcast.net"),
            ("kim@example", "kim@example.com"),
            ("kim@gmail..com", "kim@gmail.com"),
            ("kim@gmail,com", "kim@gmail.com"),
            ("kim@gmail.com.", "kim@gmail.com"),
            ("kim @ gmail.com", "kim@gmail.com"),
            ("kimgmail.com", "kim@gmail.com"),
            ("Kim Lee <kim@example.com>", "kim@example.com"),
            ("mailto:kim@example.com", "kim@example.com"),
        ] {
            assert_eq!(suggestion(typed).as_deref(), Some(meant), "{typed}");
        }
    }

    #[test]
    fn what_looks_right_or_cannot_be_guessed_is_left_alone() {
        for typed in [
            "kim@gmail.com",
            "kim@GMAIL.com",
            "kim@ymail.com",
            "kim@mail.com",
            "kim@gmx.net",
            "kim@example.com",
            "kim@acme.org",
            "kim@cox.net",
            "kim@me.com",
            "kim@yahoo.es",
            "kim@bücher.example",
            "kim@Example.com",
            "kim@hotmail.cl",
            "用户@例子.广告",
        ] {
            assert_eq!(suggestion(typed), None, "{typed}");
        }
        let hopeless = ["", "@", "kim", "kim@", "@gmail.com", "a@b@gmail.com", "gmail.com", "kim@@", "<>"];
        for typed in hopeless.into_iter().chain([&*"é".repeat(400)]) {
            assert_eq!(suggestion(typed), None, "{typed}");
        }
    }
}
