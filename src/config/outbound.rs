//! Private networks that webhooks may reach, besides the public internet.

use clap::Args;
use ipnet::IpNet;

use super::serve::parse_network;
use crate::outbound::GuardedClient;

/// Where webhooks may go besides the open internet.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Webhooks")]
pub struct OutboundSettings {
    /// Networks that webhooks may reach though they are private or this machine's: addresses or networks, with commas between
    /// them.
    ///
    /// Anyone who can name an endpoint can then have requests sent into them.
    #[arg(
        long,
        env = "UNIONHALL_OUTBOUND_ALLOW",
        value_name = "NETWORKS",
        value_delimiter = ',',
        value_parser = parse_network
    )]
    pub outbound_allow: Vec<IpNet>,

    /// Whether they reach this machine and nothing else.
    #[arg(skip)]
    pub only_this_machine: bool,
}

impl OutboundSettings {
    /// The client of a service that is reached at `base_url`; where that is a loopback address, loopback endpoints will do.
    pub fn client(&self, base_url: &str) -> GuardedClient {
        let client = GuardedClient::of_service_at(base_url, self.outbound_allow.clone());
        if self.only_this_machine { client.only_to_this_machine() } else { client }
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn read(flags: &[&str]) -> Result<OutboundSettings, String> {
        let command = OutboundSettings::augment_args(clap::Command::new("sample"));
        let matches = command.try_get_matches_from([&["sample"], flags].concat()).map_err(|error| error.to_string())?;
        OutboundSettings::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn networks_are_read_and_mistakes_told() {
        let read_all = read(&["--outbound-allow", "10.1.0.0/16, fd00::/8,192.168.7.7"]).unwrap().outbound_allow;
        let texts: Vec<_> = read_all.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.1.0.0/16", "fd00::/8", "192.168.7.7/32"]);
        assert!(read(&[]).unwrap().outbound_allow.is_empty());
        let message = read(&["--outbound-allow", "10.1.0.0/16,intranet"]).unwrap_err();
        assert!(message.contains("\"intranet\" is neither an address nor a network"), "{message}");
    }
}
