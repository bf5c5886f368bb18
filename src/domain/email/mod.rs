//! Email addresses: which texts are one, which of them are the same, and whose mailbox they lead to.

mod alias;
pub mod disposable;
pub mod scope;
pub mod suggestion;

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error as _};
use unicode_normalization::UnicodeNormalization;

use self::scope::SandboxScope;
use crate::domain::json::inline_schema;
use crate::domain::partner::name::PartnerId;
use crate::domain::text::is_hidden;

/// An address mail can be sent to, as it was typed.
///
/// The grammar is RFC 5321's dot-atom local part, with UTF-8 letters as RFC 6531 allows them, and a domain of at least
/// two labels. Quoted local parts and address literals are refused: no one gets household bills there.
#[derive(Clone, PartialEq, Eq)]
pub struct EmailAddress {
    typed: String,
    at: usize,
    /// The domain as DNS knows it: one spelling, whatever script and width it was typed in.
    domain: String,
    /// Set in the sandbox alone.
    scope: Option<SandboxScope>,
}

impl std::fmt::Debug for EmailAddress {
    /// Addresses appear in no log, so not in a debug print either.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EmailAddress(…)")
    }
}

/// Why a text is not an address. The messages go to callers as they are; they never repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadEmail {
    #[error("the address is empty; send the user's own email address, such as ana@example.com")]
    Empty,
    #[error("the address is longer than {} characters; send one bare address", EmailAddress::LONGEST)]
    TooLong,
    #[error("the address has no @; an address looks like ana@example.com")]
    NoAt,
    #[error("the address is a list of two or more; send one, the user's own, like ana@example.com")]
    Several,
    #[error("the address has more than one @; send one address, like ana@example.com")]
    SecondAt,
    #[error("the address is a mailto: link; send it bare, like ana@example.com")]
    Mailto,
    #[error(
        "the address has white space or an invisible character in it or around it; send the bare address, like ana@example.com"
    )]
    Invisible,
    #[error("the address has nothing before the @; an address looks like ana@example.com")]
    NoLocalPart,
    #[error(
        "the address has more than {} bytes before the @, which no mail server has to take; check how it is spelled",
        EmailAddress::LONGEST_LOCAL_PART
    )]
    LongLocalPart,
    #[error("the address has two dots in a row (..); check how it is spelled")]
    TwoDots,
    #[error("the address begins with a dot, or has one right before the @; check how it is spelled")]
    OuterDot,
    #[error(
        "the address has a character before the @ that none may hold, such as a quote, a bracket or a comma; send the bare \
         address, like ana@example.com"
    )]
    LocalCharacter,
    #[error("the address has a letter that looks like another one before the @; type it with plain letters")]
    Lookalike,
    #[error("the address has a domain that is not a name of two or more parts, like example.com, after the @")]
    Domain,
}

impl EmailAddress {
    /// In characters, not bytes.
    pub const LONGEST: usize = 320;

    /// In bytes, as RFC 5321 counts what stands before the @; past it mail servers may refuse.
    pub const LONGEST_LOCAL_PART: usize = 64;

    /// An address that somebody sends.
    pub fn parse(text: &str) -> Result<Self, BadEmail> {
        let address = Self::parse_any_length(text)?;
        let local = address.local_part();
        // Small letters can take more room than capitals, and the address is compared in them.
        let is_long = local.len() > Self::LONGEST_LOCAL_PART
            || (!local.is_ascii() && compared(local).len() > Self::LONGEST_LOCAL_PART);
        if is_long { Err(BadEmail::LongLocalPart) } else { Ok(address) }
    }

    /// An address that somebody sends who may have been taken in while the part before the @ had no bound. A letter of another
    /// script that would be compared as one of ASCII's is refused: it would be another mailbox's name, and a stranger could
    /// speak for it.
    pub fn parse_any_length(text: &str) -> Result<Self, BadEmail> {
        let address = Self::kept(text)?;
        let folds = |c: char| !c.is_ascii() && c.to_lowercase().any(|lower| lower.is_ascii());
        if address.local_part().chars().any(folds) { Err(BadEmail::Lookalike) } else { Ok(address) }
    }

    /// An address that was taken before.
    pub fn kept(text: &str) -> Result<Self, BadEmail> {
        if text.is_empty() {
            return Err(BadEmail::Empty);
        }
        // A character is at most four bytes, so most texts need no count.
        if text.len() > Self::LONGEST && text.chars().count() > Self::LONGEST {
            return Err(BadEmail::TooLong);
        }
        if text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("mailto:")) {
            return Err(BadEmail::Mailto);
        }
        let between = |c: char| c.is_whitespace() || [',', ';', '/', '|', '<'].contains(&c);
        if text.split(between).filter(|piece| piece.trim_matches('@').contains('@')).count() > 1 {
            return Err(BadEmail::Several);
        }
        if text.chars().any(is_invisible) {
            return Err(BadEmail::Invisible);
        }
        let (local, domain) = text.split_once('@').ok_or(BadEmail::NoAt)?;
        if domain.contains('@') {
            return Err(BadEmail::SecondAt);
        }
        if local.is_empty() {
            return Err(BadEmail::NoLocalPart);
        }
        if text.contains("..") {
            return Err(BadEmail::TwoDots);
        }
        if local.starts_with('.') || local.ends_with('.') {
            return Err(BadEmail::OuterDot);
        }
        if !local.chars().all(|c| c == '.' || is_atext(c)) {
            return Err(BadEmail::LocalCharacter);
        }
        if !domain.contains('.') || !domain.split('.').all(is_label) {
            return Err(BadEmail::Domain);
        }
        let domain = one_spelling(domain).ok_or(BadEmail::Domain)?;
        Ok(Self { typed: text.to_owned(), at: local.len(), domain, scope: None })
    }

    /// The same address among those of a partner's sandbox.
    #[must_use]
    pub fn in_sandbox_of(self, partner: PartnerId) -> Self {
        Self { scope: Some(SandboxScope(partner)), ..self }
    }

    /// The same in the sandbox that it was kept in; `compared` is its normalized form or its mailbox, as kept.
    #[must_use]
    pub fn with_scope_of(self, compared: &str) -> Self {
        Self { scope: SandboxScope::of_compared(compared), ..self }
    }

    /// Whose sandbox it belongs to; none of a live address.
    pub fn scope(&self) -> Option<SandboxScope> {
        self.scope
    }

    /// The address as typed: where mail goes.
    pub fn as_typed(&self) -> &str {
        &self.typed
    }

    /// The domain as DNS knows it.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// What stands before the @, as typed.
    pub fn local_part(&self) -> &str {
        &self.typed[..self.at]
    }

    /// The domain as mail servers of any age take it: as typed, unless it was typed in another script.
    pub fn deliverable_domain(&self) -> &str {
        let typed = &self.typed[self.at + 1..];
        if typed.is_ascii() { typed } else { &self.domain }
    }

    /// The address as it is shown on a page that others might see: `a•••@e•••.com`.
    pub fn masked(&self) -> String {
        let first = |text: &str| text.chars().next().map(String::from).unwrap_or_default();
        let domain = &self.typed[self.at + 1..];
        let (name, last) = domain.rsplit_once('.').unwrap_or((domain, ""));
        format!("{}•••@{}•••.{last}", first(&self.typed), first(name))
    }

    /// The form in which two addresses are compared: letters of any case are the same, an accent is whether it was typed with its
    /// letter or after it (NFC and NFD), and so are the spellings of one domain.
    pub fn normalized(&self) -> String {
        self.scoped(format!("{}@{}", compared(self.local_part()), self.domain))
    }

    /// The mailbox that the address leads to, so that two spellings of it share mail caps and cannot refer each other.
    pub fn mailbox(&self) -> String {
        self.scoped(alias::mailbox(&compared(self.local_part()), &self.domain))
    }

    fn scoped(&self, compared: String) -> String {
        match self.scope {
            None => compared,
            Some(scope) => scope.put_before(&compared),
        }
    }
}

/// What stands before the @, in the form in which it is compared.
fn compared(local: &str) -> String {
    let lower = local.to_lowercase();
    if lower.is_ascii() { lower } else { lower.nfc().collect() }
}

/// The one spelling of a domain, if it can be one.
fn one_spelling(domain: &str) -> Option<String> {
    let lower = domain.to_ascii_lowercase();
    if domain.is_ascii() && !lower.contains("xn--") {
        return Some(lower);
    }
    let spelled = idna::domain_to_ascii(domain).ok()?;
    (spelled.contains('.') && spelled.split('.').all(is_label)).then_some(spelled)
}

/// Characters that a reader of the address would not see, or would see as a break in it.
fn is_invisible(c: char) -> bool {
    c.is_whitespace() || is_hidden(c)
}

fn is_atext(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '-')
}

impl<'de> Deserialize<'de> for EmailAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::domain::text::read(deserializer, "an email address in a string")?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

inline_schema!(EmailAddress, json_schema!({ "type": "string", "format": "email", "maxLength": Self::LONGEST }));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_and_unusual_addresses_are_accepted() {
        for good in [
            "ana@example.com",
            "Ana.Maria+bills@mail.example.co.uk",
            "!#$%&'*+-/=?^_`{|}~@example.com",
            "jürgen@bücher.example",
            "用户@例子.广告",
            "a@b.c",
            "1@2.3",
            "x@xn--bcher-kva.example",
            &format!("{}@example.com", "a".repeat(64)),
            &format!("{}@example.com", "ü".repeat(32)),
            &format!("{}@{}example.com", "ü".repeat(32), "ab.".repeat(92)),
        ] {
            assert_eq!(EmailAddress::parse(good).map(|e| e.as_typed().to_owned()).as_deref(), Ok(good));
        }
    }

    #[test]
    fn an_accent_is_the_same_however_it_was_typed() {
        let composed = EmailAddress::parse("J\u{fc}rgen@example.com").unwrap();
        let decomposed = EmailAddress::parse("ju\u{308}rgen@example.com").unwrap();
        assert_eq!(composed.normalized(), decomposed.normalized());
        assert_eq!(composed.mailbox(), decomposed.mailbox());
        assert_ne!(composed.normalized(), EmailAddress::parse("jurgen@example.com").unwrap().normalized());
        assert_eq!(decomposed.as_typed(), "ju\u{308}rgen@example.com", "mail goes where it was typed");
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        use BadEmail::*;
        for (bad, reason) in [
            ("", Empty),
            ("ana", NoAt),
            ("ana@b@example.com", SecondAt),
            ("ana@example.com, ben@example.com", Several),
            ("ana@example.com;ben@example.com", Several),
            ("ana@example.com <ben@example.com>", Several),
            ("ana@example.com\nben@example.com", Several),
            ("MailTo:ana@example.com", Mailto),
            ("@example.com", NoLocalPart),
            ("ana @example.com", Invisible),
            (" ana@example.com", Invisible),
            ("ana@example.com\n", Invisible),
            ("ana\r\nBcc: x@example.com", Invisible),
            ("a\u{0}na@example.com", Invisible),
            ("a\u{7f}na@example.com", Invisible),
            ("a\u{200b}na@example.com", Invisible),
            ("ana\u{a0}@example.com", Invisible),
            (".ana@example.com", OuterDot),
            ("ana.@example.com", OuterDot),
            ("a..na@example.com", TwoDots),
            ("\"ana\"@example.com", LocalCharacter),
            ("a,b@example.com", LocalCharacter),
            ("<ana@example.com>", LocalCharacter),
            ("ana(x)@example.com", LocalCharacter),
            ("ana@example", Domain),
            ("ana@", Domain),
            ("ana@.com", Domain),
            ("ana@example.", Domain),
            ("ana@example..com", TwoDots),
            ("ana@-example.com", Domain),
            ("ana@example-.com", Domain),
            ("ana@exa_mple.com", Domain),
            ("ana@[127.0.0.1]", Domain),
            ("ana@xn--a.example", Domain),
            (&format!("{}@example.com", "a".repeat(309)), TooLong),
        ] {
            assert_eq!(EmailAddress::parse(bad).unwrap_err(), reason, "{bad:?}");
        }
    }

    #[test]
    fn what_stands_before_the_at_has_64_bytes_at_the_most() {
        let parse = |local: &str| EmailAddress::parse(&format!("{local}@example.com"));
        for (long, longest) in [("a".repeat(65), 64), ("ü".repeat(33), 32), ("🙂".repeat(17), 16)] {
            assert_eq!(parse(&long), Err(BadEmail::LongLocalPart), "{long}");
            assert!(parse(&long.chars().take(longest).collect::<String>()).is_ok(), "{long}");
            let address = format!("{long}@example.com");
            let kept = [EmailAddress::kept(&address), EmailAddress::parse_any_length(&address)];
            assert!(kept.iter().all(Result::is_ok), "what was taken before can be read, and its owner can sign in");
        }
        // Its small letter has three bytes, where the capital has two.
        assert_eq!(parse(&"\u{23a}".repeat(32)), Err(BadEmail::LongLocalPart));
        assert!(parse(&"\u{23a}".repeat(21)).is_ok());
    }

    #[test]
    fn a_masked_address_is_known_to_its_owner_alone() {
        assert_eq!(EmailAddress::parse("ana.maria@mail.example.com").unwrap().masked(), "a•••@m•••.com");
        assert_eq!(EmailAddress::parse("é@b.c").unwrap().masked(), "é•••@b•••.c");
    }

    /// Its owner's name with the sign of a kelvin for the k blocked mike@example.com for thirty days.
    #[test]
    fn no_letter_stands_for_another() {
        for lookalike in ["mi\u{212a}e@example.com", "\u{130}da@example.com"] {
            assert_eq!(EmailAddress::parse(lookalike), Err(BadEmail::Lookalike), "{lookalike}");
            assert!(EmailAddress::kept(lookalike).is_ok(), "what was taken before can be read");
        }
        assert!(EmailAddress::parse("jürgen.straße@example.com").is_ok());
    }

    #[test]
    fn addresses_compare_by_letters_and_mailboxes_by_owner() {
        let parse = |text: &str| EmailAddress::parse(text).unwrap();
        assert_eq!(parse("ANA@Example.COM").normalized(), "ana@example.com");
        assert_ne!(parse("ana+x@example.com").normalized(), parse("ana@example.com").normalized());
        for (typed, mailbox) in [
            ("Ana+bills@Example.com", "ana@example.com"),
            ("ana@exａmple.com", "ana@example.com"),
            ("ana@BÜCHER.example", "ana@xn--bcher-kva.example"),
            ("ana@xn--bcher-kva.example", "ana@xn--bcher-kva.example"),
            ("ana@ｇmail.com", "ana@gmail.com"),
        ] {
            assert_eq!(parse(typed).mailbox(), mailbox);
        }
    }
}
