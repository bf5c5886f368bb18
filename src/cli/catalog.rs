//! `unionhall catalog`

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

use super::print_line;
use crate::domain::catalog::Catalog;
use crate::domain::figure::dollars;
use crate::domain::language::Language;

#[derive(Debug, Subcommand)]
pub(super) enum CatalogCommand {
    /// Read a catalog as the service would, and say what it holds or what is wrong with it.
    Check {
        /// The TOML file.
        file: PathBuf,
    },
}

pub(super) fn run(command: &CatalogCommand) -> anyhow::Result<()> {
    let CatalogCommand::Check { file } = command;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the catalog {}", file.display()))?;
    let catalog = Catalog::parse(&text).with_context(|| format!("the catalog {} has a mistake", file.display()))?;
    let listed = catalog.listed();
    for (category, savings) in listed {
        print_line(&format!("{:<20}{:>10}  {}", category.slug(), dollars(*savings), category.label()))?;
    }
    print_line(&format!("{} categories, {} a year in all.", listed.len(), dollars(catalog.total_savings())))?;
    catalog.rules(Language::English).iter().try_for_each(|rule| print_line(rule))?;
    print_line("The catalog is good.")
}
