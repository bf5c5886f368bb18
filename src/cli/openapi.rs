//! `unionhall openapi`

use super::say;
use crate::config::UnionSettings;
use crate::documents::openapi;

pub(super) fn run(settings: &UnionSettings) -> anyhow::Result<()> {
    let union = settings.facts(settings.base_url(settings.listen, "http"))?;
    say(&serde_json::to_string_pretty(&openapi::document(&union))?)
}
