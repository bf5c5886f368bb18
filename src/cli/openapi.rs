//! `unionhall openapi`

use super::print_json;
use crate::config::UnionSettings;
use crate::documents::openapi;

pub(super) fn run(settings: &UnionSettings) -> anyhow::Result<()> {
    let union = settings.facts(settings.base_url(settings.listen, "http"))?;
    print_json(&openapi::document(&union))
}
