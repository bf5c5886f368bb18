//! A demonstration's history while it is told: who is there by then, and the moments of its days.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::parts::ServiceParts;
use super::people::Person;
use super::post::Post;
use crate::clock::Clock;
use crate::config::ServeSettings;
use crate::domain::api_key::ApiKey;
use crate::domain::time::{DAY, Timestamp};
use crate::operations::dispatch::Dispatcher;
use crate::operator::{Act, AuditedOperator};

/// Who runs the union.
pub(super) const ANA: &str = "ana";

pub(super) struct Story<'a> {
    pub parts: &'a mut ServiceParts,
    pub dispatcher: Arc<Dispatcher>,
    pub clock: Clock,
    pub people: Vec<Person>,
    /// Of the partners that there are so far.
    pub keys: Vec<ApiKey>,
    pub post: &'a Post,
    pub settings: &'a ServeSettings,
    /// When today began.
    pub today: Timestamp,
}

impl Story<'_> {
    /// A moment of a day, both counted from the beginning of today.
    pub(super) fn at(&self, day: i64, minute: u64) -> Timestamp {
        let days = DAY.saturating_mul(u32::try_from(day.unsigned_abs()).unwrap_or(0));
        let midnight = if day < 0 { self.today.minus(days) } else { self.today.plus(days) };
        midnight.plus(Duration::from_secs(minute * 60))
    }

    /// The operator does something, which the audit log says.
    pub(super) fn by_ana(&self, command: &'static str, about: String, at: Timestamp) -> AuditedOperator {
        self.parts.operator.audited(Act { who: ANA.to_owned(), command, about, at, change: None })
    }
}

/// Does all of it at once, so that writes share a commit. What each did, in their order.
pub(super) async fn together<T>(
    all: impl IntoIterator<Item = impl Future<Output = anyhow::Result<T>>>,
) -> anyhow::Result<Vec<T>> {
    let mut running: Vec<_> = all.into_iter().map(|one| (Box::pin(one), None)).collect();
    poll_fn(|context| {
        for (one, done) in running.iter_mut().filter(|(_, done)| done.is_none()) {
            match one.as_mut().poll(context) {
                Poll::Ready(Ok(value)) => *done = Some(value),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        let is_done = running.iter().all(|(_, done)| done.is_some());
        if is_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(running.into_iter().filter_map(|(_, done)| done).collect())
}
