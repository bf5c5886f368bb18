//! The member count, read live and together (request coalescing).
//!
//! A request joins a read only if that read begins after the request arrived, so what it gets is never older than its
//! question; but any number of requests that wait while a read is under way share the next one.

use tokio::sync::{mpsc, oneshot};

use super::connection::PgConnection;
use super::pool::{Pool, Work};
use crate::reply::Reply;
use crate::store::queue::{PoolFigures, Waiter};
use crate::store::sql::{Failure, Sql, expected, values};
use crate::store::{StoreError, StoreReply};
use crate::supervise;

/// Requests that may wait for the next read. More are refused at once: a database that is this far behind is away.
const WAITING: usize = 16_384;

pub(super) struct PostgresCounter {
    pool: Pool,
    waiting: mpsc::Sender<Waiter<u64>>,
}

struct Count;

impl Work for Count {
    type Done = u64;

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<u64, Failure> {
        let sql: &mut dyn Sql = connection;
        let count = "SELECT member_count FROM installation WHERE id = 1";
        expected(sql.row(count, values![], |row| row.get(0)).await?)
    }
}

impl PostgresCounter {
    pub(super) fn start(pool: Pool) -> Self {
        let (waiting, inbox) = mpsc::channel(WAITING);
        supervise::spawn(run(pool.clone(), inbox));
        Self { pool, waiting }
    }

    pub(super) fn figures(&self) -> PoolFigures {
        self.pool.figures("count")
    }

    pub(super) fn read(&self) -> StoreReply<'_, u64> {
        let (reply, answer) = oneshot::channel();
        if self.waiting.try_send(reply).is_err() {
            return Reply::now(Err(StoreError::Unavailable("PostgreSQL: too many reads are waiting".to_owned())));
        }
        Reply::later(async move {
            let closed = |_| Err(StoreError::Unavailable("PostgreSQL: the store is closed".to_owned()));
            answer.await.unwrap_or_else(closed)
        })
    }
}

/// Ends when the store is dropped.
async fn run(pool: Pool, mut inbox: mpsc::Receiver<Waiter<u64>>) {
    let _vital = supervise::vital("the member count");
    let mut together: Vec<Waiter<u64>> = Vec::new();
    while inbox.recv_many(&mut together, WAITING).await > 0 {
        let read = pool.run(&mut Count).await.map_err(StoreError::of_a_read);
        for waiter in together.drain(..) {
            // Who has gone needs no answer.
            let _gone = waiter.send(read.clone());
        }
    }
}
