//! `unionhall openapi`

use super::say;
use crate::config::UnionSettings;
use crate::transport::openapi::{Facts, document};

pub(super) fn run(settings: &UnionSettings) -> anyhow::Result<()> {
    let catalog = settings.catalog()?;
    let facts = Facts {
        name: &settings.name,
        base_url: &settings.base_url(settings.listen, "http"),
        contact_email: settings.contact_email.as_deref(),
        catalog: &catalog,
        public_per_minute: settings.public_per_minute,
        key_per_minute: settings.key_per_minute,
    };
    say(&serde_json::to_string_pretty(&document(&facts))?)
}
