//! Where the service is reached: its public address, the proxies before it, the addresses it listens on.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;

use crate::cli::findings::{self, CATALOG, Finding, Grade, MAIL, TrialSettings};
use crate::cli::serve::{bind, unusable};
use crate::config::ServeSettings;
use crate::domain::union::Union;
use crate::http::connection::probe;
use crate::http::request::host::{is_local, of_url};

/// How long a name may take to be found.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long whoever listens on our address may take to say who it is.
pub(super) const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(5);

/// The catalog of a union whose own could not be read is judged by nobody. `mail_waits`: mail about a campaign does, for a postal
/// address.
pub(super) async fn examine(
    settings: &ServeSettings,
    union: Option<&Union>,
    (has_catalog, silent_pages): (bool, Vec<&'static str>),
    mail_waits: bool,
) -> Vec<Finding> {
    let mut found = vec![proxies(settings, union)];
    if let Some(union) = union {
        let trial = TrialSettings { silent_pages, ..TrialSettings::default() };
        let mut judged = findings::public_address(union, &trial);
        judged.retain(|finding| finding.check != MAIL && (has_catalog || finding.check != CATALOG));
        found.extend(judged);
        found.push(match union.postal_address {
            None if mail_waits => Finding::warn(
                "postal address",
                "none is set, and mail about campaigns waits, because it must name one",
                "give it in UNIONHALL_POSTAL_ADDRESS and start the service again",
            ),
            None if !is_local(union) => Finding::warn(
                "postal address",
                "none is set, and the law of some countries requires one in mails and on pages",
                "give it in UNIONHALL_POSTAL_ADDRESS",
            ),
            None => Finding::ok("postal address", "none, which is fine on this machine"),
            Some(_) => Finding::ok("postal address", "given"),
        });
        found.push(name(&union.base_url).await);
    }
    found
}

fn proxies(settings: &ServeSettings, union: Option<&Union>) -> Finding {
    const CHECK: &str = "proxies";
    let trusted = &settings.trusted_proxies;
    if let Some(everyone) = trusted.iter().find(|network| network.prefix_len() == 0) {
        let message = format!("{everyone} is trusted: anyone can forge the address that limits count by");
        return Finding::fail(CHECK, message, "name only your own proxies in UNIONHALL_TRUSTED_PROXIES");
    }
    let https = union.is_some_and(|union| union.base_url.starts_with("https://"));
    if https && trusted.is_empty() && settings.tls_cert.is_none() {
        return Finding::warn(
            CHECK,
            "the base address is https://, and there is neither a certificate here nor a proxy that is trusted: all \
             callers would share one limit",
            "name the proxy in UNIONHALL_TRUSTED_PROXIES, or give UNIONHALL_TLS_CERT and UNIONHALL_TLS_KEY",
        );
    }
    let names: Vec<_> = trusted.iter().map(IpNet::to_string).collect();
    Finding::ok(CHECK, if names.is_empty() { "none is trusted".to_owned() } else { names.join(", ") })
}

/// Whether the host of the base address is found. What it leads to cannot be told from inside.
async fn name(base_url: &str) -> Finding {
    const CHECK: &str = "host";
    let host = of_url(base_url);
    let (name, _) = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).unwrap_or((host, ""));
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.parse::<IpAddr>().is_ok() {
        return Finding::ok(CHECK, format!("{name} is an address"));
    }
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
    if found.is_ok_and(|found| found.is_ok_and(|mut addresses| addresses.next().is_some())) {
        return Finding::ok(CHECK, format!("{name} is found"));
    }
    let message = format!("the name {name} of the base address is not found");
    Finding::warn(CHECK, message, "add it to the DNS, or correct UNIONHALL_BASE_URL")
}

/// The addresses that the service listens on: free, or its own already.
pub(super) async fn listeners(settings: &ServeSettings) -> Vec<Finding> {
    let tls = settings.tls_cert.is_some();
    let is_service = |answer: &str| answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"ok\":true}");
    let mut found = vec![
        listener("listen", settings.union.listen, "--listen or UNIONHALL_LISTEN", tls, "/healthz", is_service).await,
    ];
    if let Some(address) = settings.metrics_listen {
        let is_metrics = |answer: &str| answer.contains("\nunionhall_");
        let flag = "--metrics-listen or UNIONHALL_METRICS_LISTEN";
        found.push(listener("metrics", address, flag, false, "/metrics", is_metrics).await);
    }
    found
}

async fn listener(
    check: &'static str,
    address: SocketAddr,
    flag: &str,
    tls: bool,
    path: &'static str,
    is_ours: impl Fn(&str) -> bool,
) -> Finding {
    let error = match bind(address) {
        Ok(_) => return Finding::ok(check, format!("{address} is free")),
        Err(error) => error,
    };
    // On a thread of its own, for it may talk without end.
    let asked = tokio::task::spawn_blocking(move || probe::ask(address, tls, path));
    match tokio::time::timeout(NEIGHBOUR_TIMEOUT, asked).await {
        Ok(Ok(Ok(answer))) if is_ours(&answer) => Finding::ok(check, format!("the service runs on {address}")),
        _ => Finding::of_error(check, Grade::Fail, &unusable(address, flag, &error))
            .or_fix(format!("choose another with {flag}")),
    }
}
