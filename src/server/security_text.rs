//! `/.well-known/security.txt`: whom to tell of a hole. Written for each reader, because it says until when it may be believed.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};

use super::Exchange;
use crate::documents::discovery;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;

pub(super) async fn show(exchange: Exchange<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let text = discovery::security_text(&exchange.snapshot.app.union, exchange.now.time);
    let text = text.ok_or_else(|| HttpError::NotFound("The union has published no contact.".to_owned()))?;
    let mut answer = Answer::json(StatusCode::OK, text);
    answer.set(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(answer)
}
