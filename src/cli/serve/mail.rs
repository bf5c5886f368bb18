//! The way that mail takes from a node: sent by its worker, written to a folder, left to another node, or not at all.

use std::sync::Arc;

use lettre::message::Mailbox;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cli::files;
use crate::clock::Clock;
use crate::config::{MailTransport, ServeSettings};
use crate::domain::catalog::Catalog;
use crate::domain::mail::budget::MailBudget;
use crate::domain::secret::Secret;
use crate::domain::secret::token::TokenMaker;
use crate::domain::union::{Sender, Union};
use crate::log::Log;
use crate::mail::compose::Composer;
use crate::mail::mailbox::MailboxFolder;
use crate::mail::worker::Outbox;
use crate::mail::{Delivery, MailNotifier, Transport};
use crate::partners::worker::ContactMail;
use crate::store::Store;
use crate::{campaigns, lease_queue, random, supervise};

/// The way that mail takes from here.
pub(super) struct Post {
    pub delivery: Delivery,
    /// What the worker sends with; none where it sends nothing.
    sending: Option<Sending>,
    /// Where a development server keeps its mail.
    pub folder: Option<MailboxFolder>,
}

struct Sending {
    transport: Arc<dyn Transport>,
    notifier: Arc<MailNotifier>,
    from: Mailbox,
    bounces: Option<String>,
    budget: MailBudget,
    node: String,
    /// Two workers of one name would take each other's mail.
    _sole_sender: std::fs::File,
}

impl Post {
    pub(super) fn open(settings: &ServeSettings, mail: &MailTransport, sender: &Sender) -> anyhow::Result<Self> {
        let folder = MailboxFolder::new(settings.store.data.join("mailbox"));
        let transport: Arc<dyn Transport> = match mail {
            MailTransport::Mailbox => Arc::new(folder.clone()),
            MailTransport::Smtp(smtp) => Arc::clone(smtp) as _,
            MailTransport::Hold => return Ok(Self { delivery: Delivery::Held, sending: None, folder: None }),
            MailTransport::None => return Ok(Self { delivery: Delivery::Off, sending: None, folder: None }),
        };
        // Nothing else has made it where the records are elsewhere.
        files::make_private_folder(&settings.store.data)?;
        let sole_sender = files::lock_alone(&settings.store.data.join("sending"))?;
        let node = files::node_name(&settings.store.data)?;
        let notifier = Arc::new(MailNotifier::default());
        Ok(Self {
            delivery: Delivery::Sent(Arc::clone(&notifier)),
            sending: Some(Sending {
                transport,
                notifier,
                from: Mailbox::new(sender.name.clone(), sender.address.parse()?),
                bounces: settings.mail.mail_bounces.clone(),
                budget: settings.budget.budget(),
                node,
                _sole_sender: sole_sender,
            }),
            folder: matches!(mail, MailTransport::Mailbox).then_some(folder),
        })
    }

    /// The same after a restart where this is the one process that sends; elsewhere of this process alone.
    pub(super) fn worker_name(&self) -> anyhow::Result<String> {
        match &self.sending {
            Some(sending) => Ok(sending.node.clone()),
            None => Ok(format!("process {:x}", u64::from_be_bytes(random::bytes()?))),
        }
    }

    /// What writes every mail, where mail leaves from here.
    pub(super) fn composer(
        &self,
        secret: &Secret,
        union: &Arc<Union>,
        catalog: &watch::Receiver<Catalog>,
    ) -> Option<Composer> {
        let Sending { from, bounces, .. } = self.sending.as_ref()?;
        let (union, catalog, tokens) = (Arc::clone(union), catalog.clone(), TokenMaker::new(secret));
        Some(Composer { union, catalog, from: from.clone(), bounces: bounces.clone(), tokens })
    }

    /// What mail leaves by, where it leaves from here.
    pub(super) fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.sending.as_ref().map(|sending| Arc::clone(&sending.transport))
    }

    /// How the contacts of partners are written to.
    pub(super) fn contact_mail(&self, composer: Composer) -> Option<ContactMail> {
        Some(ContactMail { composer, transport: self.transport()? })
    }

    /// Lets the worker begin, where there is mail for it to send.
    pub(super) fn start(
        &self,
        store: &Store,
        composer: Composer,
        clock: Clock,
        log: &Log,
        stop: watch::Receiver<bool>,
    ) -> Option<JoinHandle<()>> {
        let sending = self.sending.as_ref()?;
        let outbox = Outbox {
            lease_campaign_mail: campaigns::outbox::lease,
            store: store.clone(),
            transport: Arc::clone(&sending.transport),
            composer,
            notifier: Arc::clone(&sending.notifier),
            log: log.clone(),
            budget: Some(sending.budget),
            name: sending.node.clone(),
            renew_every: Outbox::RENEW_EVERY,
        };
        Some(supervise::spawn_vital("the outbox", lease_queue::run(Arc::new(outbox), clock, stop)))
    }
}
