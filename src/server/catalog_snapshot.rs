//! Every face that the catalog shows in: REST's answers, the documents, the pages, MCP. They are made from one
//! reading of it and replaced together, so that no two of them ever say different things.

use std::sync::{Arc, OnceLock};

use crate::app::App;
use crate::documents::Documents;
use crate::domain::catalog::Catalog;
use crate::http::request::host::Origins;
use crate::http::response::etag::EntityTag;
use crate::mail::mailbox::MailboxFolder;
use crate::mcp::http::McpEndpoint;
use crate::operations::ALL;
use crate::operations::dispatch::Dispatcher;
use crate::site::branding::Branding;
use crate::site::{OperatorParts, Site};

pub(super) struct CatalogSnapshot {
    pub app: Arc<App>,
    pub dispatcher: Arc<Dispatcher>,
    /// Of the answers that stay the same, one for each operation.
    pub tags: Vec<EntityTag>,
    documents: OnceLock<Documents>,
    pub site: Site,
    pub mcp: McpEndpoint,
    pub branding: Arc<Branding>,
    mcp_origins: Vec<String>,
    mailbox: Option<(MailboxFolder, String)>,
    operator: OperatorParts,
}

impl CatalogSnapshot {
    pub(super) fn new(
        app: Arc<App>,
        branding: Arc<Branding>,
        mcp_origins: Vec<String>,
        mailbox: Option<(MailboxFolder, String)>,
        operator: OperatorParts,
    ) -> Self {
        let dispatcher = Dispatcher::new(Arc::clone(&app));
        let origins = Origins::of(&app.union);
        Self {
            documents: OnceLock::new(),
            mcp: McpEndpoint::new(Arc::clone(&dispatcher), origins.clone(), mcp_origins.clone()),
            site: Site::new(Arc::clone(&app), Arc::clone(&branding), origins, mailbox.clone(), operator.clone()),
            tags: ALL.iter().map(|_| EntityTag::default()).collect(),
            dispatcher,
            app,
            branding,
            mcp_origins,
            mailbox,
            operator,
        }
    }

    /// Made when they are first asked for: a start need not wait for them.
    pub(super) fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| Documents::new(&self.app.union))
    }

    /// The same for another catalog.
    pub(super) fn with_catalog(&self, catalog: Catalog) -> Self {
        let (app, branding) = (self.app.with_catalog(catalog), Arc::clone(&self.branding));
        Self::new(app, branding, self.mcp_origins.clone(), self.mailbox.clone(), self.operator.clone())
    }
}
