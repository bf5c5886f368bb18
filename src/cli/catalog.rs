//! `unionhall catalog`

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

use super::print_line;
use crate::config::read_text;
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::figure::dollars;
use crate::domain::language::Language;

#[derive(Subcommand)]
pub(super) enum CatalogCommand {
    /// Read a catalog as the service would, and say what it holds or what is wrong with it.
    Check {
        /// The TOML file.
        file: PathBuf,
    },
}

pub(super) fn run(command: &CatalogCommand) -> anyhow::Result<()> {
    let CatalogCommand::Check { file } = command;
    let text = read_text(file).with_context(|| format!("cannot read the catalog {}", file.display()))?;
    let catalog = Catalog::parse(&text).with_context(|| format!("the catalog {} has a mistake", file.display()))?;
    let listed = catalog.listed();
    for (category, savings) in listed {
        print_line(&format!("{:<20}{:>10}  {}", category.slug(), dollars(*savings), category.label()))?;
    }
    let (all, counted) = (dollars(catalog.total_savings()), dollars(catalog.headline_savings()));
    print_line(&format!("{} categories, {all} a year in all for the API.", listed.len()))?;
    let left_out: Vec<_> = catalog.left_out().into_iter().map(Category::slug).collect();
    if !left_out.is_empty() {
        print_line(&format!("{counted} on pages, which leave out what overlaps: {}.", left_out.join(", ")))?;
    }
    catalog.rules(Language::English).iter().try_for_each(|rule| print_line(rule))?;
    let [run_by, cost, _] = catalog.answers(Language::English);
    [run_by, cost].iter().try_for_each(|answer| print_line(answer))?;
    if !catalog.says_counts_on() {
        print_line(
            "[referral] does not say who counts, so everyone who accepted does. Write counts_on = \"switched\" or counts_on = \"accepted\".",
        )?;
    }
    let unanswered = catalog.unanswered();
    if !unanswered.is_empty() {
        print_line(&format!("[union] has no text of your own for {}; people will ask.", unanswered.join(", ")))?;
    }
    print_line("The catalog is good.")
}
