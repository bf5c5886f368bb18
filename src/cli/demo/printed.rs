//! What a demonstration says once it is ready: links to click and lines to paste.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::folder::DemoFolder;
use super::parts::ServiceParts;
use crate::cli::files::write_private_file;
use crate::config::ServeSettings;

/// What of its history is printed at every start. The keys are nowhere else.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    /// Whose page is opened.
    pub member: String,
    /// Who uses the operator's page.
    pub operator: String,
    /// The partner whose keys these are.
    pub partner: String,
    pub live_key: String,
    pub test_key: String,
    /// The campaign that is negotiated.
    pub negotiated: String,
}

impl Told {
    const FILE: &str = "printed.json";

    pub(super) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        write_private_file(&folder.join(Self::FILE), &serde_json::to_string_pretty(self)?)
    }

    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(Self::FILE);
        let unread = || format!("cannot read {}; give a new folder with --data", path.display());
        let text = std::fs::read_to_string(&path).with_context(unread)?;
        serde_json::from_str(&text).with_context(unread)
    }
}

pub(super) async fn text(
    parts: &mut ServiceParts,
    settings: &ServeSettings,
    folder: &DemoFolder,
    told: &Told,
    receiver: &str,
) -> anyhow::Result<String> {
    let _ = (parts, settings, folder, told, receiver, folder.is_temporary());
    Ok(String::new())
}
