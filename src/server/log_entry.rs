//! The log line of a request, and its count in the metrics.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::HttpService;
use super::routes::{self, FoundRoute};
use crate::clock::Moment;
use crate::http::request::id::RequestId;
use crate::log::RequestLine;
use crate::operations::dispatch::CallTrace;

/// The status in the log of a request whose caller went away before the answer; its work may have been done.
pub(super) const HUNG_UP: u16 = 499;

/// What a request leaves behind, in the log and in the metrics, written when it is over, however it ends.
pub(super) struct LogEntry<'a> {
    pub service: &'a HttpService,
    /// What partners try out there is no figure of the union's: alerts on failures would ring for a simulated one.
    pub in_sandbox: bool,
    pub now: Moment,
    pub method: &'static str,
    pub found: Option<FoundRoute<'a>>,
    pub status: u16,
    /// Refused because the operator takes no sign-ups.
    pub by_pause: bool,
    pub id: &'a RequestId,
    pub trace: CallTrace,
}

impl Drop for LogEntry<'_> {
    fn drop(&mut self) {
        let (log, watched) = (&self.service.app.log, &self.service.watched);
        let is_logged = log.requests() || self.trace.refusal.is_some();
        if !is_logged && watched.is_none() {
            return;
        }
        let took = self.service.clock.tick().as_micros().saturating_sub(self.now.tick.as_micros());
        let took = Duration::from_micros(took);
        if let Some(watched) = watched
            && !self.in_sandbox
        {
            // Whoever asked to wait, and perhaps hung up meanwhile, saw no slow answer.
            let busy = if self.trace.may_wait { Duration::ZERO } else { took.saturating_sub(self.trace.waited) };
            watched.requests.count(self.found.map_or(routes::ROUTES.len(), |found| found.place), self.status, busy);
            if self.by_pause {
                watched.paused.fetch_add(1, Ordering::Relaxed);
            }
        }
        log.request(&RequestLine {
            at: self.now.time,
            method: self.method,
            route: self.found.map_or(routes::NONE, |found| found.route.name()),
            status: self.status,
            took,
            request_id: self.id.as_str(),
            key: self.trace.key,
            refusal: self.trace.refusal.as_ref().map(|refusal| (refusal.code.name(), &refusal.fields[..])),
            is_fault: !self.in_sandbox && !self.by_pause,
        });
    }
}
