//! `unionhall openapi`

use super::print_line;
use crate::config::UnionSettings;
use crate::documents::openapi;

pub(super) fn run(settings: &UnionSettings) -> anyhow::Result<()> {
    let union = settings.facts(settings.base_url(settings.listen, "http"))?;
    print_line(&serde_json::to_string_pretty(&openapi::document(&union))?)
}
