//! A store as the service uses it: sign-ups and confirmations share commits where the engine can.

use std::ops::Deref;

use crate::prelude::*;
use unionhall::domain::sign_up::{Confirmation, Refused, SeenPage, SignedUp};
use unionhall::membership::confirm::Confirm;
use unionhall::membership::sign_up::SignUp;
use unionhall::store::{Batches, Engine, StoreReply};

#[derive(Clone)]
pub(crate) struct OpenStore {
    store: Store,
    sign_ups: Arc<Batches<SignUp>>,
    confirmations: Arc<Batches<Confirm>>,
}

/// Why a unit did nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotDone {
    Refused(Refused),
    Store(StoreError),
}

/// What a unit did, or why it did not.
pub(crate) async fn done<T: Unpin>(reply: StoreReply<'_, Result<T, Refused>>) -> Result<T, NotDone> {
    reply.await.map_err(NotDone::Store)?.map_err(NotDone::Refused)
}

impl OpenStore {
    pub(crate) fn new(engine: impl Engine + 'static) -> Self {
        let store = Store::new(Arc::new(engine));
        Self { sign_ups: Arc::new(store.batches()), confirmations: Arc::new(store.batches()), store }
    }

    pub(crate) async fn sign_up(&self, new: NewSignUp, now: Timestamp) -> Result<SignedUp, NotDone> {
        done(self.sign_ups.run(SignUp { new, now })).await
    }

    pub(crate) fn confirm(&self, sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation> {
        self.confirmations.run(Confirm { sign_up, seen, now })
    }
}

impl Deref for OpenStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
