//! Settings of the operator's page: a header in which a proxy names who is signed in.

use clap::Args;
use hyper::header::HeaderName;
use ipnet::IpNet;

use super::serve::parse_network;

#[derive(Clone, Args)]
#[command(next_help_heading = "The operator's page")]
pub struct OperatorSettings {
    /// A header in which a proxy that signs people in names the operator, such as X-Operator [default: none].
    ///
    /// Its value is believed only from UNIONHALL_OPERATOR_HEADER_FROM, and only for names that `unionhall operator add` added. The
    /// proxy has to remove the header from what others send.
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
    fn a_header_has_a_name_of_its_own() {
        assert_eq!(header_name("X-Operator").unwrap(), "x-operator");
        for bad in ["", "x operator", "x:y", "Cookie", "X-Forwarded-For"] {
            assert!(header_name(bad).unwrap_err().contains("such as X-Operator"), "{bad}");
        }
    }
}
