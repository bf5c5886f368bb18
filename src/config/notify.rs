//! Where findings are told, for unions without monitoring.

use anyhow::Context;
use clap::Args;

use super::Concealed;
use crate::domain::email::EmailAddress;
use crate::domain::webhook::url::EndpointUrl;

#[derive(Clone, Args)]
#[command(next_help_heading = "Findings")]
pub struct NotifySettings {
    /// Where to send what begins to need attention, and what no longer does: a web address, for a signed webhook, or an email
    /// address [default: nowhere].
    ///
    /// Only what lasts for five minutes is sent, in six messages an hour at the most. `unionhall notify test` tries it out, `unionhall
    /// notify secret` prints what the webhook is signed with.
    #[arg(long, env = "UNIONHALL_NOTIFY", value_name = "URL|ADDRESS", hide_env_values = true)]
    pub notify: Option<Concealed>,
}

#[derive(Clone)]
pub enum NotifyTarget {
    Url(EndpointUrl),
    Address(EmailAddress),
}

impl std::fmt::Display for NotifyTarget {
    /// Without the path of a web address, which may hold a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url.authority()),
            Self::Address(address) => f.write_str(address.as_typed()),
        }
    }
}

impl NotifySettings {
    pub fn target(&self) -> anyhow::Result<Option<NotifyTarget>> {
        const WRONG: &str = "--notify or UNIONHALL_NOTIFY is neither a web address nor an email address";
        let Some(text) = self.notify.as_ref().map(|notify| notify.reveal().trim()) else { return Ok(None) };
        Ok(Some(match text.contains("://") {
            true => NotifyTarget::Url(EndpointUrl::parse(text).context(WRONG)?),
            false => NotifyTarget::Address(EmailAddress::parse(text).context(WRONG)?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_web_address_or_an_email_address_and_shows_no_path() {
        let target = |text: &str| NotifySettings { notify: Some(text.to_owned().into()) }.target();
        let shown = |text| target(text).unwrap().unwrap().to_string();
        assert_eq!(shown("https://hooks.example/T0/secret"), "hooks.example");
        assert_eq!(shown(" ops@union.example\n"), "ops@union.example");
        for bad in ["", "ops", "http://hooks.example/", "https://kim:pw@hooks.example/", "ftp://x.example"] {
            let told = format!("{:#}", target(bad).err().unwrap());
            assert!(told.starts_with("--notify or UNIONHALL_NOTIFY is neither") && !told.contains("pw@"), "{told}");
        }
    }
}
