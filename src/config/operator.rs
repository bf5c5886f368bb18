//! Settings of the operator's page: the second factor, two people, and headers in which a proxy names who is signed in.

use clap::Args;
use hyper::header::HeaderName;
use ipnet::IpNet;

use super::serve::parse_network;
use crate::domain::operator::Role;

#[derive(Clone, Args)]
#[command(next_help_heading = "The operator's page")]
pub struct OperatorSettings {
    /// Ask every operator who signs in by a link for a second factor: a code of an app on their phone. Who has none sets it up first.
    ///
    /// A proxy that signs operators in asks for what it wants itself.
    #[arg(long, env = "UNIONHALL_REQUIRE_SECOND_FACTOR")]
    pub require_second_factor: bool,

    /// Two people for what cannot be taken back: one makes a batch of rewards, a hand-over or a draft of an offer, and another downloads its
    /// file or publishes it.
    ///
    /// Commands follow it, too: the service keeps it with the records. An operator and a user of the machine with the same name are one person.
    #[arg(long, env = "UNIONHALL_TWO_PEOPLE")]
    pub two_people: bool,

    /// A header in which a proxy that signs people in names the operator, such as X-Operator [default: none].
    ///
    /// Its value is believed only from UNIONHALL_OPERATOR_HEADER_FROM, and only for names that `unionhall operator add` added, unless
    /// UNIONHALL_OPERATOR_GROUPS is set. The proxy has to remove the header from what others send.
    #[arg(
        long,
        env = "UNIONHALL_OPERATOR_HEADER",
        value_name = "NAME",
        value_parser = header_name,
        requires = "operator_header_from"
    )]
    pub operator_header: Option<HeaderName>,

    /// Who may send UNIONHALL_OPERATOR_HEADER: addresses or networks, with commas between them. X-Forwarded-For does not count.
    #[arg(
        long,
        env = "UNIONHALL_OPERATOR_HEADER_FROM",
        value_name = "NETWORKS",
        value_delimiter = ',',
        value_parser = believed_network,
        requires = "operator_header"
    )]
    pub operator_header_from: Vec<IpNet>,

    /// The header in which that proxy names the groups of whoever is signed in, with commas between them, such as X-Groups [default: none].
    ///
    /// The proxy has to remove it from what others send, too.
    #[arg(
        long,
        env = "UNIONHALL_OPERATOR_GROUPS_HEADER",
        value_name = "NAME",
        value_parser = header_name,
        requires_all = ["operator_header", "operator_groups"]
    )]
    pub operator_groups_header: Option<HeaderName>,

    /// Which role each group has: `union-desk=support,union-finance=money,union-leads=all`. Roles are look, support, money and all.
    ///
    /// Then the proxy alone says who may do what: nobody has to be added, and who is in none of these groups is refused.
    #[arg(
        long,
        env = "UNIONHALL_OPERATOR_GROUPS",
        value_name = "GROUP=ROLE",
        value_delimiter = ',',
        value_parser = group,
        requires = "operator_groups_header"
    )]
    pub operator_groups: Vec<(String, Role)>,
}

/// Headers that mean something else: believing one of these would let in whoever can set it.
const TAKEN: &[&str] = &[
    "authorization",
    "cookie",
    "host",
    "origin",
    "referer",
    "forwarded",
    "x-forwarded-for",
    "x-request-id",
    "user-agent",
];

/// Everybody's network is nobody's proxy: whoever wrote the header would be an operator.
fn believed_network(text: &str) -> Result<IpNet, String> {
    match parse_network(text)? {
        network if network.prefix_len() == 0 => Err(format!(
            "{network} is every address, so anyone could name themselves; write the addresses of the proxy"
        )),
        network => Ok(network),
    }
}

pub fn role(text: &str) -> Result<Role, String> {
    let known = || Vec::from_iter(Role::ALL.map(Role::name)).join(", ");
    Role::from_name(text.trim()).ok_or_else(|| format!("\"{text}\" is not a role; write one of {}", known()))
}

fn group(text: &str) -> Result<(String, Role), String> {
    match text.rsplit_once('=').map(|(name, of)| (name.trim(), of)) {
        Some((name, of)) if !name.is_empty() => Ok((name.to_owned(), role(of)?)),
        _ => Err(format!("\"{text}\" is not a group with its role; write one such as union-desk=support")),
    }
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text.trim().parse().map_err(|_| {
        format!("\"{text}\" is not the name of a header; write letters, digits and -, such as X-Operator")
    })?;
    match TAKEN.contains(&name.as_str()) {
        true => Err(format!("{name} means something else; choose a header of its own, such as X-Operator")),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_everybody_names_the_operator() {
        for everybody in ["0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", " 10.0.0.0/0"] {
            assert!(believed_network(everybody).unwrap_err().contains("anyone could name themselves"), "{everybody}");
        }
        for proxy in ["10.0.0.7", "10.0.0.0/8", "::1"] {
            assert!(believed_network(proxy).is_ok(), "{proxy}");
        }
    }

    #[test]
    fn a_group_has_a_role() {
        assert_eq!(group("union-desk=support"), Ok(("union-desk".to_owned(), Role::Support)));
        assert_eq!(group(" cn=desk,ou=x = all ").map(|(name, _)| name), Ok("cn=desk,ou=x".to_owned()));
        assert!(group("desk=root").unwrap_err().contains("one of look, support, money, all"));
        for bad in ["", "desk", "=all", " =all"] {
            assert!(group(bad).unwrap_err().contains("union-desk=support"), "{bad}");
        }
    }

    #[test]
    fn a_header_has_a_name_of_its_own() {
        assert_eq!(header_name("X-Operator").unwrap(), "x-operator");
        for bad in ["", "x operator", "x:y", "Cookie", "X-Forwarded-For"] {
            assert!(header_name(bad).unwrap_err().contains("such as X-Operator"), "{bad}");
        }
    }
}
