//! Settings of the server process: certificates, proxies, the log, the metrics.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;

use super::{
    BackupInterval, LimitSettings, MailBudgetSettings, MailHookSettings, MailSettings, NotifySettings,
    OperatorSettings, OutboundSettings, RetentionSettings, SecretSettings, StoreSettings, UnionSettings,
    listen_address, web_address,
};
use crate::log::{Format, Level};
use crate::store::WRITE_BATCH;

/// The heading of what stands here; the other groups bring their own.
const SERVER: &str = "The server";

/// What serving needs besides.
#[derive(Clone, Args)]
pub struct ServeSettings {
    #[command(flatten)]
    pub store: StoreSettings,

    #[command(flatten)]
    pub union: UnionSettings,

    #[command(flatten)]
    pub secret: SecretSettings,

    #[command(flatten)]
    pub mail: MailSettings,

    #[command(flatten)]
    pub limits: LimitSettings,

    #[command(flatten)]
    pub budget: MailBudgetSettings,

    #[command(flatten)]
    pub retention: RetentionSettings,

    #[command(flatten)]
    pub backup: BackupInterval,

    #[command(flatten)]
    pub mail_hooks: MailHookSettings,

    #[command(flatten)]
    pub outbound: OutboundSettings,

    #[command(flatten)]
    pub operator: OperatorSettings,

    #[command(flatten)]
    pub notify: NotifySettings,

    /// The certificate to serve HTTPS with, in PEM, the server's own first. Read again on SIGHUP, with its key.
    #[arg(long, env = "UNIONHALL_TLS_CERT", help_heading = SERVER, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key, in PEM.
    #[arg(long, env = "UNIONHALL_TLS_KEY", help_heading = SERVER, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Proxies whose X-Forwarded-For is believed: addresses or networks, with commas between them.
    ///
    /// The client is the right-most address in the header that is none of these. From other addresses the header is ignored.
    #[arg(
        long,
        env = "UNIONHALL_TRUSTED_PROXIES",
        help_heading = SERVER,
        value_name = "NETWORKS",
        value_delimiter = ',',
        value_parser = parse_network
    )]
    pub trusted_proxies: Vec<IpNet>,

    /// Origins of web pages that may use MCP here, besides our own, with commas between them. Programs need none.
    #[arg(
        long,
        env = "UNIONHALL_MCP_ORIGINS",
        help_heading = SERVER,
        value_name = "ORIGINS",
        value_delimiter = ',',
        value_parser = web_address
    )]
    pub mcp_origins: Vec<String>,

    /// Refuse to start without records. Set it after the first start: then a disk that is not mounted does not become a new, empty union.
    #[arg(long, env = "UNIONHALL_EXISTING", help_heading = SERVER)]
    pub existing: bool,

    /// What goes to the log on standard error. No level ever shows an email address, a key or a token.
    #[arg(long, env = "UNIONHALL_LOG", help_heading = SERVER, value_name = "LEVEL", default_value = "requests")]
    pub log: Level,

    /// How the log's lines are written. As `json`, everything that `serve` prints is JSON, one object a line
    /// [default: text on a terminal, json elsewhere].
    #[arg(long, env = "UNIONHALL_LOG_FORMAT", help_heading = SERVER, value_name = "FORMAT")]
    pub log_format: Option<Format>,

    /// The address of `GET /metrics`, in the text format of Prometheus. Keep it private [default: nowhere].
    #[arg(
        long,
        env = "UNIONHALL_METRICS_LISTEN",
        help_heading = SERVER,
        value_name = "ADDRESS:PORT",
        value_parser = listen_address
    )]
    pub metrics_listen: Option<SocketAddr>,

    /// Writes that may share a commit. Only for the benchmark, which measures what sharing gains by setting it to 1.
    #[arg(long, value_name = "N", hide = true, default_value_t = DEFAULT_WRITE_BATCH)]
    pub write_batch: NonZeroUsize,

    /// Requests that may be under way at once. Only for the tests, which reach it.
    #[arg(long, value_name = "N", hide = true)]
    pub in_flight: Option<NonZeroUsize>,
}

const DEFAULT_WRITE_BATCH: NonZeroUsize = NonZeroUsize::new(WRITE_BATCH).expect("a batch holds a write");

/// Reads a network as operators write it: `10.0.0.0/8`, or one address alone.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map(canonical).map_err(|_| {
        format!(
            "\"{text}\" is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/8, with commas between them"
        )
    })
}

/// IPv4 networks written the IPv6 way are IPv4 networks, as addresses are before they are compared.
fn canonical(network: IpNet) -> IpNet {
    match (network, network.addr().to_canonical()) {
        (IpNet::V6(v6), address @ IpAddr::V4(_)) if v6.prefix_len() >= 96 => {
            IpNet::new(address, v6.prefix_len() - 96).unwrap_or(network)
        }
        _ => network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_operators_write_them() {
        for (text, network) in
            [("10.0.0.0/8", "10.0.0.0/8"), (" 10.0.0.7 ", "10.0.0.7/32"), ("::ffff:10.0.0.0/104", "10.0.0.0/8")]
        {
            assert_eq!(parse_network(text).unwrap().to_string(), network);
        }
        assert!(parse_network("ten").unwrap_err().contains("write 10.0.0.7"));
    }
}
