//! From the route that was found to its answer: what is off or not allowed, operations, documents, pages.

use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Method, Request};

use super::routes::{self, FoundRoute, Handler};
use super::{Exchange, declared_length, rest};
use crate::domain::operator::Role;
use crate::http::request::body::{self, SentBody};
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::site::{EarlyEnd, Home, Visit, invitation};

/// Answers a request at the route that was found.
pub(super) async fn route(
    exchange: Exchange<'_>,
    found: Option<FoundRoute<'_>>,
    request: Request<SentBody<'_>>,
) -> Result<Answer, HttpError> {
    // A page that is off is answered as a path that does not exist, whatever the method. Boxed: few come here, and everybody's future
    // would have room for it.
    let is_operators = routes::is_operators(request.uri().path());
    let is_off = is_operators && !Box::pin(exchange.snapshot.site.has_operators(exchange.now)).await;
    let Some(FoundRoute { route, parameter, .. }) = found.filter(|_| !is_off) else {
        return match routes::canonical(request.method(), request.uri()).filter(|_| !is_off) {
            Some(path) => Ok(kept_by_nobody(Answer::moved(path), is_operators)),
            None => {
                let listed = "There is nothing at this path. GET / lists the operations; /docs describes them.";
                Err(HttpError::NotFound(listed.to_owned()))
            }
        };
    };
    if *request.method() == Method::OPTIONS {
        return Ok(kept_by_nobody(route.preflight(), is_operators));
    }
    let Some(handler) = route.handler(request.method()) else {
        return Err(HttpError::MethodNotAllowed { allow: route.allow() });
    };
    if !route.takes_body && declared_length(request.headers()) > body::LARGEST {
        return Err(HttpError::TooLarge);
    }
    match handler {
        Handler::Operation(operation) => rest::call(exchange, operation, parameter, request).await,
        Handler::Document(document) => Ok(document(exchange.snapshot).answer(request.headers())),
        Handler::Page(page) => exchange.show_page(page, (parameter, route.roles), request).await,
        Handler::Own(own) => own(exchange, request).await,
    }
}

/// Of the operator's page nothing is kept on the way, not even that it is there: it may be off the next time.
fn kept_by_nobody(mut answer: Answer, is_operators: bool) -> Answer {
    if is_operators {
        answer.set(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

impl<'a> Exchange<'a> {
    /// Shows a page to whoever asked for it, in the language that they read.
    pub(super) async fn show_page<'v>(
        &self,
        page: routes::PageHandler,
        (parameter, roles): (&'v str, Option<(Role, Role)>),
        request: Request<SentBody<'v>>,
    ) -> Result<Answer, HttpError>
    where
        'a: 'v,
    {
        let Self { snapshot, peer, client, now, id, path, .. } = *self;
        let home = if snapshot.app.is_sandbox() { Home::Sandbox } else { Home::Join };
        let site = &snapshot.site;
        let reader = site.reader(request.uri(), request.headers(), now.time);
        let invited_by = invitation::handed_on(request.uri());
        let visit = Visit { site, path, reader, invited_by, parameter, roles, client, peer, now, id, home };
        let mut answer = page(visit, request).await.or_else(EarlyEnd::into_answer)?;
        reader.remember(&mut answer, site.secure);
        Ok(answer)
    }
}
