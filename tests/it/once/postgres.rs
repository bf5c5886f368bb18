//! What only a store of many nodes has to do.

use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::store_suite::linked;
use crate::open_store::NotDone;
use crate::prelude::*;
use unionhall::domain::answers::Answers;
use unionhall::domain::mail::lane::Lane;
use unionhall::domain::referral::{CodeMaker, ReferralCode};
use unionhall::domain::sign_up::{Confirmation, DecidedHow, NamedPerson, SeenPage};
use unionhall::membership::decline::Decline;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

const WAITS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn open(database: &Database) -> OpenStore {
    OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap())
}

fn new(email: &str, ref_code: Option<ReferralCode>) -> NewSignUp {
    let email = EmailAddress::parse(email).unwrap();
    let code = CodeMaker::new(&Secret::new(&"s".repeat(32)).unwrap()).code(&email, 0);
    NewSignUp {
        person: NamedPerson { tombstone: super::tombstone(&email), email, code },
        answers: Answers::default(),
        ref_code,
        partner: None,
        lane: Lane::of(b"form"),
        proven: false,
        disposable: false,
        language: None,
        request: None,
        evidence: super::evidence(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_make_the_tables_once() {
    needs!(Postgres);
    let database = Database::make().await;
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let address = database.address();
        nodes.spawn(async move { OpenStore::new(PostgresStore::open(address, Prepare::Upgrade, 256).await.unwrap()) });
    }
    for node in nodes.join_all().await {
        assert_eq!(node.member_count().await, Ok(0));
        node.close().await.unwrap();
    }
    let row = database.client().await.query_one("SELECT count(*) FROM unionhall_schema", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), MIGRATIONS.len() as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_used_for_as_long_as_it_serves_this_version() {
    needs!(Postgres);
    let database = Database::migrated().await;
    open(&database).await.close().await.unwrap();
    let client = database.client().await;
    let known = MIGRATIONS.len();
    let next = format!(
        "INSERT INTO unionhall_schema VALUES ({}, {known}, 'x'); ALTER TABLE people ADD COLUMN new TEXT",
        known + 1
    );
    client.batch_execute(&next).await.unwrap();
    let node = open(&database).await;
    node.sign_up(new("ana@example.com", None), NOW).await.unwrap();
    node.close().await.unwrap();
    let last = format!("INSERT INTO unionhall_schema VALUES ({}, {}, 'x')", known + 2, known + 1);
    client.batch_execute(&last).await.unwrap();
    let error = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.err().unwrap().to_string();
    let told =
        format!("newer unionhall (schema {}, which serves {} and later; this one knows {known})", known + 2, known + 1);
    assert!(error.contains(&told), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_that_are_not_for_us_are_refused_unchanged() {
    needs!(Postgres);
    let database = Database::make().await;
    let client = database.client().await;
    client.batch_execute("CREATE TABLE people (name TEXT)").await.unwrap();
    let told = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.err().unwrap().to_string();
    assert!(told.contains("tables that are not ours"), "{told}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(client.query_one(tables, &[]).await.unwrap().get::<_, i64>(0), 1);

    let latin = Database::make_with("ENCODING 'LATIN1' LOCALE 'C'").await;
    let told = PostgresStore::open(latin.address(), Prepare::Upgrade, 256).await.err().unwrap().to_string();
    assert!(told.contains("LATIN1") && told.contains("UTF8"), "{told}");
}

/// Two addresses of one mailbox, confirmed on two nodes in the same moment: one earns credit for their referrer.
#[tokio::test(flavor = "multi_thread")]
async fn two_addresses_of_one_mailbox_never_both_earn_credit() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let nodes = [Arc::new(open(&database).await), Arc::new(open(&database).await)];
    let referrer = nodes[0].sign_up(new("referrer@example.com", None), NOW).await.unwrap().code;
    for n in 0..40 {
        for (node, tag) in nodes.iter().zip(["", "+x"]) {
            let signed = node.sign_up(new(&format!("twin{n}{tag}@example.com"), Some(referrer)), NOW).await.unwrap();
            assert!(signed.attributed);
        }
        let ids = 2 + n * 2..;
        let mut clicks = tokio::task::JoinSet::new();
        for (node, id) in nodes.iter().cloned().zip(ids) {
            clicks.spawn(async move { node.confirm(linked(id), SeenPage::default(), NOW).await.unwrap() });
        }
        let clicks = clicks.join_all().await;
        assert!(matches!(clicks[..], [Confirmation::Joined(_), Confirmation::Joined(_)]), "{clicks:?}");
    }
    let credited = "SELECT count(*) FROM people WHERE referrer_id IS NOT NULL";
    let row = database.client().await.query_one(credited, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 40);
    assert_eq!(nodes[1].member_count().await, Ok(80));
    for node in nodes {
        node.close().await.unwrap();
    }
}

/// Nodes that sign up the same people at once, each in its own order: everyone is there once, whoever came first.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_people_on_many_nodes_are_each_there_once() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4_usize {
        let node = Arc::new(open(&database).await);
        for i in 0..150_usize {
            let (node, who) = (Arc::clone(&node), if n % 2 == 0 { i } else { 149 - i });
            tasks.spawn(
                async move { node.sign_up(new(&format!("user{who}@example.com"), None), NOW).await.unwrap().code },
            );
        }
    }
    let codes: std::collections::HashSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(codes.len(), 150);
    let counts = "SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM sign_ups), (SELECT count(*) FROM outbox)";
    let row = database.client().await.query_one(counts, &[]).await.unwrap();
    // Each post of the form is a sign-up of its own, and of one person three wait; what made way was heard of by nobody.
    assert_eq!([row.get::<_, i64>(0), row.get(1), row.get(2)], [150, 450, 450]);
}

/// A table that is held, by a migration or by hand, fails what needs it within one time-out, not one for each that waits.
#[tokio::test(flavor = "multi_thread")]
async fn sign_ups_that_wait_for_a_held_table_fail_together_and_soon() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    let holder = database.client().await;
    holder.batch_execute("BEGIN; LOCK TABLE sign_ups IN SHARE ROW EXCLUSIVE MODE").await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..600 {
        let node = Arc::clone(&node);
        tasks.spawn(async move { node.sign_up(new(&format!("user{n}@example.com"), None), NOW).await });
    }
    for done in in_time("every sign-up to be refused", tasks.join_all()).await {
        assert!(matches!(done, Err(NotDone::Store(StoreError::Unavailable(_)))), "{done:?}");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    node.sign_up(new("ana@example.com", None), NOW).await.unwrap();
    let people = holder.query_one("SELECT count(*) FROM people", &[]).await.unwrap();
    assert_eq!(people.get::<_, i64>(0), 1, "nothing of what failed was kept");
    // What a session did is counted once it has ended.
    node.close().await.unwrap();
    drop(node);
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    wait_for!(async || holder.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    let undone = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    let undone = holder.query_one(undone, &[]).await.unwrap().get::<_, i64>(0);
    assert!((1..60).contains(&undone), "{undone} transactions waited for the table");
}

/// Every confirmation needs the counter, so none may hold it while it waits for something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_that_waits_for_a_mail_does_not_hold_the_counter() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    for name in ["ana", "ben"] {
        node.sign_up(new(&format!("{name}@example.com"), None), NOW).await.unwrap();
    }
    let holder = database.client().await;
    holder.batch_execute("BEGIN; SELECT FROM outbox WHERE sign_up_id = 1 FOR UPDATE").await.unwrap();
    let waiting = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.confirm(linked(1), SeenPage::default(), NOW).await }
    });
    let client = database.client().await;
    wait_for!(async || client.query_one(WAITS, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    assert!(matches!(node.confirm(linked(2), SeenPage::default(), NOW).await, Ok(Confirmation::Joined(_))));
    assert!(!waiting.is_finished());
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Confirmation::Joined(_))));
    assert_eq!(node.member_count().await, Ok(2));
}

/// The mail worker may hold a person's rows for longer than one lock time-out; whoever pressed a button is not told to come back for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_decline_asks_again_for_rows_that_are_held() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    node.sign_up(new("ana@example.com", None), NOW).await.unwrap();
    let holder = database.client().await;
    holder.batch_execute("BEGIN; SELECT FROM sign_ups FOR UPDATE; SELECT FROM people FOR UPDATE").await.unwrap();
    let waiting = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.run(Decline { sign_up: linked(1), how: DecidedHow::Button, silence: None, now: NOW }).await }
    });
    // Waits of several statements: the first met the time-out, and was asked again.
    let client = database.client().await;
    let statements = "SELECT coalesce(max(query_start)::text, '') FROM pg_stat_activity
                      WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut seen = std::collections::BTreeSet::new();
    wait_for!(async || {
        seen.insert(client.query_one(statements, &[]).await.unwrap().get::<_, String>(0));
        seen.remove("");
        seen.len() >= 2 || waiting.is_finished()
    })
    .await;
    assert!(!waiting.is_finished(), "it gave up after one time-out");
    holder.batch_execute("ROLLBACK").await.unwrap();
    waiting.await.unwrap().unwrap();
}

/// Whoever gives up leaves a connection on which an answer is still to come. It is closed: the next to use it would wait for
/// that answer first, for up to five seconds.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_behind_a_question_that_was_given_up() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let proxy = Arc::new(Proxy::default());
    let node =
        OpenStore::new(PostgresStore::open(through(&proxy, &database).await, Prepare::Upgrade, 256).await.unwrap());
    for _ in 0..5 {
        node.check(true).await.unwrap();
        proxy.silence();
        let asked = proxy.unheard.load(Ordering::SeqCst);
        let heard = async || proxy.unheard.load(Ordering::SeqCst) > asked;
        tokio::select! {
            answer = node.check(true) => panic!("{answer:?}"),
            () = wait_for!(heard) => {}
        }
        let asked = proxy.unheard.load(Ordering::SeqCst);
        assert_eq!(in_time("an answer by another connection", node.check(true)).await, Ok(()));
        assert_eq!(proxy.unheard.load(Ordering::SeqCst), asked, "nothing more was asked where nobody answers");
    }
}

/// 49 of 50 got an error, and with that person asked for once a second sign-ups fell from 136 a second to two.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_fails_its_own_sign_up_alone() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    node.sign_up(new("held@example.com", None), NOW).await.unwrap();
    let holder = database.client().await;
    holder.batch_execute("BEGIN; SELECT FROM people FOR UPDATE").await.unwrap();
    // If the others waited with the one who is known to be held up, they would never be done before it; on a busy machine they
    // may be late at times.
    let mut round = 0;
    wait_for!(async || {
        round += 1;
        let held = tokio::spawn({
            let node = Arc::clone(&node);
            async move { node.sign_up(new("held@example.com", None), NOW).await }
        });
        let others: Vec<_> =
            (0..49).map(|n| node.sign_up(new(&format!("p{n}.{round}@example.com"), None), NOW)).collect();
        for other in others {
            other.await.unwrap();
        }
        let are_first = !held.is_finished();
        let refused = held.await.unwrap().unwrap_err();
        assert!(
            matches!(&refused, NotDone::Store(StoreError::Unavailable(why)) if why.contains("lock")),
            "{refused:?}"
        );
        round > 1 && are_first
    })
    .await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    node.sign_up(new("held@example.com", None), NOW).await.unwrap();
}

/// The counter's row held while 24 confirm: sign-ups fell from 73 a second to one, and the count could not be read.
#[tokio::test(flavor = "multi_thread")]
async fn confirmations_that_wait_leave_sign_ups_and_the_count_alone() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    for n in 0..24 {
        node.sign_up(new(&format!("p{n}@example.com"), None), NOW).await.unwrap();
    }
    let holder = database.client().await;
    holder.batch_execute("BEGIN; SELECT FROM installation FOR UPDATE").await.unwrap();
    let client = database.client().await;
    // As long as nothing waits with them, some are still waiting when the others are done; on a busy machine not each time.
    let mut round = 0;
    let left_alone = async || {
        round += 1;
        let waiting: Vec<_> = (1..=24)
            .map(|id| {
                let node = Arc::clone(&node);
                tokio::spawn(async move { node.confirm(linked(id), SeenPage::default(), NOW).await })
            })
            .collect();
        wait_for!(async || client.query_one(WAITS, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
        for n in 0..10 {
            node.sign_up(new(&format!("q{n}.{round}@example.com"), None), NOW).await.unwrap();
            assert_eq!(node.member_count().await, Ok(0));
        }
        let are_waiting = waiting.iter().any(|confirming| !confirming.is_finished());
        for confirming in waiting {
            assert!(matches!(confirming.await.unwrap(), Err(StoreError::Unavailable(_))));
        }
        are_waiting
    };
    wait_for!(left_alone).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(matches!(node.confirm(linked(1), SeenPage::default(), NOW).await, Ok(Confirmation::Joined(_))));
}

/// Confirmations that come at once share commits, whatever else they are.
#[tokio::test(flavor = "multi_thread")]
async fn confirmations_at_once_share_commits() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = open(&database).await;
    together((0..200).map(|n| node.sign_up(new(&format!("p{n}@example.com"), None), NOW))).await;
    let commits = || {
        let writer = node.figures().writer;
        (writer.batches.iter().sum::<u64>(), writer.jobs)
    };
    let before = commits();
    let asked: Vec<_> = (1..=200).map(|id| node.confirm(linked(id), SeenPage::default(), NOW)).collect();
    assert!(together(asked.into_iter()).await.iter().all(|done| matches!(done, Ok(Confirmation::Joined(_)))));
    let after = commits();
    assert_eq!(after.1 - before.1, 200);
    assert!(after.0 - before.0 <= 20, "{} batches for 200 confirmations", after.0 - before.0);
    assert_eq!(node.member_count().await, Ok(200));
    node.close().await.unwrap();
}

/// Nodes that confirm the same sign-ups at once, each in its own order and some with others of the same mailbox: each makes a
/// member once, and none waits for another that waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_confirmations_on_many_nodes_count_once() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(open(&database).await);
    }
    let referrer = nodes[0].sign_up(new("referrer@example.com", None), NOW).await.unwrap().code;
    let email = |n: i64| format!("p{}{}@example.com", n / 2, if n % 2 == 0 { "" } else { "+x" });
    let signed = (0..300).map(|n| nodes[0].sign_up(new(&email(n), Some(referrer)), NOW));
    assert!(together(signed).await.iter().all(Result::is_ok));
    let asked = nodes.iter().enumerate().flat_map(|(node, store)| {
        (0..300).map(move |n| {
            let id = 2 + if node == 1 { 299 - n } else { (n * 7 * (node as i64 + 1)) % 300 };
            async move { (id, store.confirm(linked(id), SeenPage::default(), NOW).await.unwrap()) }
        })
    });
    let answers = together(asked).await;
    let joined: Vec<_> = answers.iter().filter(|(_, done)| matches!(done, Confirmation::Joined(_))).collect();
    let once: std::collections::HashSet<_> = joined.iter().map(|(id, _)| id).collect();
    assert_eq!((joined.len(), once.len()), (300, 300), "each of them once");
    assert!(answers.iter().all(|(_, done)| matches!(done, Confirmation::Joined(_) | Confirmation::AlreadyMember)));
    for node in nodes {
        assert_eq!(node.member_count().await, Ok(300));
        node.close().await.unwrap();
    }
    let sums = "SELECT (SELECT count(*) FROM people WHERE state = 'member'), (SELECT count(*) FROM people WHERE referrer_id IS NOT NULL),
                           (SELECT sum(confirmed)::bigint FROM source_days), (SELECT sum(sign_ups_confirmed)::bigint FROM source_days)";
    let row = database.client().await.query_one(sums, &[]).await.unwrap();
    let sums = [row.get::<_, i64>(0), row.get(1), row.get(2), row.get(3)];
    assert_eq!(sums, [300, 150, 300, 300], "of each mailbox one is credited");
}

/// The same for confirmations; and whoever pressed the button is a member once their rows are free.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_holds_up_its_own_confirmation_alone() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    node.sign_up(new("held@example.com", None), NOW).await.unwrap();
    let client = database.client().await;
    let held: i64 = client.query_one("SELECT max(id) FROM sign_ups", &[]).await.unwrap().get(0);
    let holder = database.client().await;
    holder.batch_execute(&format!("BEGIN; SELECT FROM sign_ups WHERE id = {held} FOR UPDATE")).await.unwrap();
    let (mut round, mut others_first) = (0, 0);
    wait_for!(async || {
        let signed = (0..49).map(|n| node.sign_up(new(&format!("p{n}.{round}@example.com"), None), NOW));
        assert!(together(signed).await.iter().all(Result::is_ok));
        let last: i64 = client.query_one("SELECT max(id) FROM sign_ups", &[]).await.unwrap().get(0);
        let waiting = tokio::spawn({
            let node = Arc::clone(&node);
            async move { node.confirm(linked(held), SeenPage::default(), NOW).await }
        });
        let others: Vec<_> = (last - 48..=last).map(|id| node.confirm(linked(id), SeenPage::default(), NOW)).collect();
        assert!(together(others.into_iter()).await.iter().all(|done| matches!(done, Ok(Confirmation::Joined(_)))));
        // The others do not wait with the one that is held up; on a busy machine they may be late at times.
        others_first += u32::from(!waiting.is_finished());
        let refused = waiting.await.unwrap().unwrap_err();
        assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("lock")), "{refused:?}");
        round += 1;
        others_first >= 2 && round >= 4
    })
    .await;
    let waiting = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.confirm(linked(held), SeenPage::default(), NOW).await }
    });
    let waits = async || client.query_one(WAITS, &[]).await.unwrap().get::<_, i64>(0) == 1;
    wait_for!(waits).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Confirmation::Joined(_))));
    assert_eq!(node.member_count().await, Ok(round * 49 + 1));
}

/// The database ends a batch that is about to count its members: nobody is told that it is done, and nothing of it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_confirmations_that_is_ended_leaves_nothing() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let node = Arc::new(open(&database).await);
    let signed = (1..=20).map(|n| node.sign_up(new(&format!("p{n}@example.com"), None), NOW));
    assert!(together(signed).await.iter().all(Result::is_ok));
    let holder = database.client().await;
    holder.batch_execute("BEGIN; SELECT FROM installation FOR UPDATE").await.unwrap();
    let confirm = || {
        let asked: Vec<_> = (1..=20).map(|id| node.confirm(linked(id), SeenPage::default(), NOW)).collect();
        together(asked.into_iter())
    };
    let end = async {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let client = database.client().await;
        wait_for!(async || { client.query_one(end, &[]).await.unwrap().get::<_, i64>(0) == 1 }).await;
    };
    let (answers, ()) = tokio::join!(confirm(), end);
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::Unknown(_) | StoreError::Unavailable(_))), "{answer:?}");
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    let left = "SELECT (SELECT count(*) FROM sign_ups WHERE state <> 'pending'), (SELECT count(*) FROM people WHERE state = 'member'),
                           (SELECT count(*) FROM outbox) - 20, (SELECT count(*) FROM source_days WHERE confirmed > 0)";
    let row = holder.query_one(left, &[]).await.unwrap();
    assert_eq!([row.get::<_, i64>(0), row.get(1), row.get(2), row.get(3)], [0; 4]);
    assert!(confirm().await.iter().all(|done| matches!(done, Ok(Confirmation::Joined(_)))), "asking again is safe");
    assert_eq!(node.member_count().await, Ok(20));
}

/// Of 123 refused sign-ups 37 had been kept, and all were told that nothing was changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_told_as_one() {
    needs!(Postgres);
    let database = Database::migrated().await;
    open(&database).await.close().await.unwrap();
    let proxy = Arc::new(Proxy::default());
    let node =
        OpenStore::new(PostgresStore::open(through(&proxy, &database).await, Prepare::Upgrade, 256).await.unwrap());
    node.sign_up(new("ana@example.com", None), NOW).await.unwrap();
    node.member_count().await.unwrap();

    proxy.cut.store(true, Ordering::SeqCst);
    let lost = node.sign_up(new("ben@example.com", None), NOW).await.unwrap_err();
    assert!(matches!(lost, NotDone::Store(StoreError::Unknown(_))), "{lost:?}");
    let read = node.member_count().await.unwrap_err();
    assert!(matches!(read, StoreError::Unavailable(_)), "a question changes nothing: {read:?}");
    proxy.cut.store(false, Ordering::SeqCst);
    let kept = "SELECT count(*) FROM people WHERE email_normalized = 'ben@example.com'";
    let client = database.client().await;
    let kept = async || client.query_one(kept, &[]).await.unwrap().get::<_, i64>(0) == 1;
    wait_for!(kept).await;
    // Asking again is safe.
    node.sign_up(new("ben@example.com", None), NOW).await.unwrap();
    // Once before, so that nothing but the transaction itself is asked.
    assert_eq!(node.confirm(linked(999), SeenPage::default(), NOW).await, Ok(Confirmation::Unknown));
    proxy.cut.store(true, Ordering::SeqCst);
    let away = node.confirm(linked(1), SeenPage::default(), NOW).await.unwrap_err();
    assert!(matches!(away, StoreError::Unavailable(_)), "it was not asked to commit: {away:?}");
    proxy.cut.store(false, Ordering::SeqCst);
    assert_eq!(node.member_count().await, Ok(0));
    proxy.cut_commits.store(true, Ordering::SeqCst);
    let lost = node.confirm(linked(1), SeenPage::default(), NOW).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unknown(_)), "{lost:?}");
    proxy.cut_commits.store(false, Ordering::SeqCst);
    proxy.cut.store(false, Ordering::SeqCst);
    wait_for!(async || node.member_count().await == Ok(1)).await;
    assert_eq!(node.confirm(linked(1), SeenPage::default(), NOW).await, Ok(Confirmation::AlreadyMember));
    drop(client);
}

/// Stands between a node and PostgreSQL, and withholds answers.
#[derive(Default)]
struct Proxy {
    /// Connections break in place of the next answer.
    cut: AtomicBool,
    /// The same from the next commit on.
    cut_commits: AtomicBool,
    /// How often it was told to be silent.
    silenced: AtomicU32,
    /// Questions on connections that get no more answers.
    unheard: AtomicU32,
}

impl Proxy {
    /// Connections that are open now stay open, and get no more answers.
    fn silence(&self) {
        self.silenced.fetch_add(1, Ordering::SeqCst);
    }

    async fn pass_on(&self, client: TcpStream, server: &str) {
        let mine = self.silenced.load(Ordering::SeqCst);
        let server = TcpStream::connect(server).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let asking = async {
            let mut bytes = vec![0; 8192];
            while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
                if self.cut_commits.load(Ordering::SeqCst) && bytes[..length].windows(6).any(|word| word == b"COMMIT") {
                    self.cut.store(true, Ordering::SeqCst);
                }
                // But for the word that ends a session.
                if self.silenced.load(Ordering::SeqCst) != mine && bytes[0] != b'X' {
                    self.unheard.fetch_add(1, Ordering::SeqCst);
                }
                if to_server.write_all(&bytes[..length]).await.is_err() {
                    break;
                }
            }
        };
        let answering = self.answer(&mut from_server, &mut to_client, mine);
        // Whichever side ends first.
        tokio::select! {
            () = asking => return,
            () = answering => {}
        }
        // The server does all that it was asked before it finds the end; it is only not heard.
        let mut bytes = vec![0; 8192];
        while let Ok(length @ 1..) = from_client.try_read(&mut bytes) {
            let _gone = to_server.write_all(&bytes[..length]).await;
        }
        let _gone = to_server.shutdown().await;
        while let Ok(1..) = from_server.read(&mut bytes).await {}
    }

    async fn answer(&self, from_server: &mut OwnedReadHalf, to_client: &mut OwnedWriteHalf, mine: u32) {
        let mut bytes = vec![0; 8192];
        while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
            if self.silenced.load(Ordering::SeqCst) != mine {
                std::future::pending::<()>().await;
            }
            if self.cut.load(Ordering::SeqCst) {
                break;
            }
            if to_client.write_all(&bytes[..length]).await.is_err() {
                break;
            }
        }
    }
}

/// The database's address by way of the proxy.
async fn through(proxy: &Arc<Proxy>, database: &Database) -> Address {
    let url = database.url();
    let (before, rest) = url.split_once('@').unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (proxy, server) = (Arc::clone(proxy), host.to_owned());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (proxy, server) = (Arc::clone(&proxy), server.clone());
            tokio::spawn(async move { proxy.pass_on(client, &server).await });
        }
    });
    Address::parse(&format!("{before}@127.0.0.1:{port}/{path}")).unwrap()
}

/// A migration may take its time, and who waits for it too.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_waits_for_another_that_makes_the_tables() {
    needs!(Postgres);
    let database = Database::make().await;
    let other = database.client().await;
    other.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1970168929)").await.unwrap();
    let address = database.address();
    let waiting = tokio::spawn(async move { PostgresStore::open(address, Prepare::Upgrade, 256).await.map(|_| ()) });
    // Longer than any unit of work is given, as the database counts it.
    let client = database.client().await;
    let waited = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'
                  AND clock_timestamp() - query_start > interval '5.5 seconds'";
    let waited = async || client.query_one(waited, &[]).await.unwrap().get::<_, i64>(0) == 1;
    wait_for!(async || waiting.is_finished() || waited().await).await;
    assert!(!waiting.is_finished());
    drop(client);
    other.batch_execute("ROLLBACK").await.unwrap();
    waiting.await.unwrap().unwrap();
    // Once they are there nobody needs the lock.
    other.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1970168929)").await.unwrap();
    open(&database).await.close().await.unwrap();
}

/// Records that were just moved are claimed by the first node, and a slow disk lets the others wait for its commit. Before, one
/// that waited 0.3 seconds did not come up.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_wait_for_the_one_that_claims_the_database() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let other = database.client().await;
    other.batch_execute("UPDATE unionhall_schema SET identity = NULL").await.unwrap();
    other.batch_execute("BEGIN; SELECT 1 FROM unionhall_schema FOR UPDATE").await.unwrap();
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let address = database.address();
        nodes.spawn(async move { PostgresStore::open(address, Prepare::Upgrade, 256).await.map(|_| ()) });
    }
    let client = database.client().await;
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND clock_timestamp() - backend_start > interval '2 seconds'";
    let waiting = async || client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0;
    let mut ended = None;
    wait_for!(async || {
        ended = nodes.try_join_next();
        ended.is_some() || waiting().await
    })
    .await;
    assert!(ended.is_none(), "{ended:?}");
    drop(client);
    other.batch_execute("ROLLBACK").await.unwrap();
    for node in nodes.join_all().await {
        node.unwrap();
    }
}

/// Somebody who reads a table for a while, such as a dump, ends no start.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_asks_again_for_tables_that_are_held() {
    needs!(Postgres);
    let database = Database::make().await;
    let open = |migrations| PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, migrations);
    OpenStore::new(open(&MIGRATIONS[..1]).await.unwrap()).close().await.unwrap();
    let (other, client) = (database.client().await, database.client().await);
    other.batch_execute("BEGIN; LOCK TABLE installation, outbox, sign_ups, people IN ACCESS SHARE MODE").await.unwrap();
    let starting = tokio::spawn(open(MIGRATIONS));
    let waits =
        "SELECT xact_start::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
    let mut transactions = std::collections::HashSet::new();
    wait_for!(async || {
        transactions.extend(client.query(waits, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0)));
        starting.is_finished() || transactions.len() == 2
    })
    .await;
    assert!(!starting.is_finished());
    drop(client);
    other.batch_execute("ROLLBACK").await.unwrap();
    OpenStore::new(starting.await.unwrap().unwrap()).close().await.unwrap();
}
