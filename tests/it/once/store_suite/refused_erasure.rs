//! An erasure that is refused in the moment after it was written down.

use std::path::PathBuf;

use unionhall::domain::person::Waiver;
use unionhall::domain::secret::mark::AddressMarker;
use unionhall::membership::erasures::ErasureLog;
use unionhall::membership::people::{NotErased, People};
use unionhall::store::sql::{Job, JobReply};
use unionhall::store::{Act, Engine, StoreFigures, StoreReply};

use super::*;

/// A store where a reward is booked before each write.
#[derive(Debug)]
struct EarningMeanwhile(SqliteStore, PathBuf);

impl Engine for EarningMeanwhile {
    fn read_job(&self, job: Box<dyn Job>) -> JobReply<'_> {
        self.0.read_job(job)
    }

    fn write_job(&self, job: Box<dyn Job>) -> JobReply<'_> {
        Records::Sqlite { data: self.1.clone() }.execute(
            "INSERT INTO reward_ledger (account, kind, amount_cents, at, who, why) VALUES ('ana', 'accrual', 1, 1, 'rules', '')",
        );
        self.0.write_job(job)
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        Engine::member_count(&self.0)
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp> {
        Engine::sign_up(&self.0, new, now)
    }

    fn confirm(&self, sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation> {
        Engine::confirm(&self.0, sign_up, seen, now)
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        Engine::database_bytes(&self.0)
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        Engine::check(&self.0, for_room)
    }

    fn figures(&self) -> StoreReply<'_, StoreFigures> {
        Engine::figures(&self.0)
    }

    fn close(&self) -> StoreReply<'_, ()> {
        Engine::close(&self.0)
    }

    fn audited(self: Arc<Self>, _: Act) -> Arc<dyn Store> {
        self
    }
}

#[test]
fn an_erasure_that_is_refused_is_taken_back_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        let fixture = Fixture::on_sqlite(folder.path()).await;
        fixture.join("ana@example.com").await;
        fixture.records.execute("UPDATE people SET account = 'ana'");
        let log = ErasureLog::beside(folder.path());
        let marker = AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap());
        let people = |store| People::new(store, marker.clone(), log.clone());
        let email = EmailAddress::parse("ana@example.com").unwrap();
        let earning =
            EarningMeanwhile(SqliteStore::open(&folder.path().join("unionhall.db")).unwrap(), folder.path().to_owned());
        let earning: Arc<dyn Store> = Arc::new(earning);
        let refused = people(Arc::clone(&earning)).erase(&email, None, NOW).await;
        assert!(matches!(refused, Err(NotErased::RewardsDue(due)) if due.cents == 1), "{refused:?}");
        let lines = std::fs::read_to_string(log.path()).unwrap();
        assert!(lines.lines().count() == 2 && lines.ends_with(" refused\n"), "{lines}");
        assert_eq!(log.all().unwrap(), []);
        let waived = people(Arc::clone(&fixture.store)).erase(&email, Some(Waiver::of_all("op")), NOW).await.unwrap();
        assert!(waived.is_some_and(|erased| erased.is_whole));
        assert_eq!(log.all().unwrap().len(), 1);
        earning.close().await.unwrap();
        fixture.store.close().await.unwrap();
    });
}
