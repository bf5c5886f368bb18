//! `unionhall health`: whether the service of these settings answers, for a container's health check.

use anyhow::{Context, bail};

use super::print_line;
use crate::config::ServeSettings;
use crate::http::connection::probe;

pub(super) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    let address = settings.union.listen;
    let answer = probe::ask(address, settings.tls_cert.is_some(), "/healthz").with_context(|| {
        format!("the service does not answer at {address}, the address of --listen or UNIONHALL_LISTEN")
    })?;
    match answer.lines().next().unwrap_or_default() {
        status if status.starts_with("HTTP/1.1 200 ") => print_line(&format!("The service answers at {address}.")),
        status => bail!("what listens at {address} answers /healthz with \"{}\"", status.escape_debug()),
    }
}
