//! An erasure that is refused in the moment after it was written down.

use unionhall::people::NotErased;
use unionhall::store::sql::{How, Job, JobReply};
use unionhall::store::{Engine, StoreFigures, StoreReply};

use super::*;

/// A store where a reward is booked before each write.
struct EarningMeanwhile(SqliteStore, PathBuf);

impl Engine for EarningMeanwhile {
    fn run(&self, how: How, job: Box<dyn Job>) -> JobReply<'_> {
        if !how.only_reads() {
            Records::Sqlite { data: self.1.clone() }.execute(
                "INSERT INTO reward_ledger (account, kind, amount_cents, at, who, why) VALUES ('ana', 'accrual', 1, 1, 'rules', '')",
            );
        }
        self.0.run(how, job)
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.0.member_count()
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        self.0.database_bytes()
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        self.0.check(for_room)
    }

    fn figures(&self) -> StoreFigures {
        self.0.figures()
    }

    fn close(&self) -> StoreReply<'_, ()> {
        self.0.close()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_is_refused_is_taken_back_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::on_sqlite(folder.path()).await;
    fixture.join("ana@example.com").await;
    fixture.records.execute("UPDATE people SET account = 'ana'");
    let log = ErasureLog::beside(folder.path());
    let marker = AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap());
    let people = |store| People::new(store, marker.clone(), log.clone());
    let email = EmailAddress::parse("ana@example.com").unwrap();
    let earning =
        EarningMeanwhile(SqliteStore::open(&folder.path().join("unionhall.db")).unwrap(), folder.path().to_owned());
    let earning = Store::new(Arc::new(earning));
    let refused = people(earning.clone()).erase(&email, None, NOW).await;
    assert!(matches!(refused, Err(NotErased::RewardsDue(due)) if due.cents == 1), "{refused:?}");
    let lines = std::fs::read_to_string(log.path()).unwrap();
    assert!(lines.lines().count() == 2 && lines.ends_with(" refused\n"), "{lines}");
    assert_eq!(log.all().unwrap(), []);
    let waived = people(Store::clone(&fixture.store)).erase(&email, Some(Waiver::of_all("op")), NOW).await.unwrap();
    assert!(waived.is_some_and(|erased| erased.is_whole));
    assert_eq!(log.all().unwrap().len(), 1);
    earning.close().await.unwrap();
    fixture.store.close().await.unwrap();
}
