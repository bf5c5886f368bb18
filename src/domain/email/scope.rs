//! Whose address it is in the sandbox: the same address of two partners is two people there, and neither partner notices the other.

use crate::domain::partner::name::PartnerId;

/// The partner whose sandbox an address belongs to. Live addresses have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxScope(pub PartnerId);

/// No address has one, so no live address is taken for one of the sandbox.
const END: char = ':';

impl SandboxScope {
    /// What addresses and mailboxes are compared by begins with it.
    pub(super) fn put_before(self, compared: &str) -> String {
        format!("{}{END}{compared}", self.0)
    }

    /// The scope of an address or a mailbox as it is compared; none among live records, and none of a tombstone.
    pub fn of_compared(compared: &str) -> Option<Self> {
        let (partner, _) = compared.split_once(END)?;
        partner.parse().ok().map(|id| Self(PartnerId(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::EmailAddress;
    use super::*;
    use crate::domain::secret::mark::tombstone;

    #[test]
    fn an_address_of_two_partners_is_two_and_looks_the_same() {
        let parse = |text: &str| EmailAddress::parse(text).unwrap();
        let [one, two] = [1, 12].map(|id| parse("Ana+x@Example.com").in_sandbox_of(PartnerId(id)));
        assert_eq!((one.normalized().as_str(), one.mailbox().as_str()), ("1:ana+x@example.com", "1:ana@example.com"));
        assert_eq!((two.normalized().as_str(), two.mailbox().as_str()), ("12:ana+x@example.com", "12:ana@example.com"));
        for (address, partner) in [(&one, 1), (&two, 12)] {
            assert_eq!((address.as_typed(), address.local_part()), ("Ana+x@Example.com", "Ana+x"));
            assert_eq!(address.masked(), "A•••@E•••.com");
            for compared in [address.normalized(), address.mailbox()] {
                assert_eq!(SandboxScope::of_compared(&compared), Some(SandboxScope(PartnerId(partner))));
                assert_eq!(parse("Ana+x@Example.com").with_scope_of(&compared), *address);
            }
        }
        let live = parse("12@example.com");
        for compared in [live.normalized(), live.mailbox(), tombstone("0123456789abcdefghjkmnpqrs")] {
            assert_eq!(SandboxScope::of_compared(&compared), None, "{compared}");
            assert_eq!(live.clone().with_scope_of(&compared), live);
        }
        assert!(EmailAddress::parse("1:ana@example.com").is_err(), "nobody can type one");
    }
}
