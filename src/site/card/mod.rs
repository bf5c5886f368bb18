//! `/card.png`: the picture that a shared link shows in chats (Open Graph), with the union's name, members and savings.

mod canvas;
mod face;
mod picture;
mod setting;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::sync::Mutex;

use self::picture::Card;
use super::Visit;
use super::view::Frame;
use crate::domain::figure::dollars;
use crate::domain::language::Language;
use crate::domain::time::Tick;
use crate::domain::union::theme::Color;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;

/// How long a picture is shown before it is drawn anew: drawing takes some tens of milliseconds of a core, and anyone may ask.
const FRESH_FOR: Duration = Duration::from_secs(60);

/// Chats ask once for a link; who asks again an hour later sees the newer figure.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// The pictures that were drawn last, one for each language. Whoever asks while one is drawn waits for it.
#[derive(Debug, Default)]
pub struct CardPicture([Arc<Mutex<Option<Drawn>>>; Language::ALL.len()]);

/// A picture, and when it was drawn.
type Drawn = (Tick, Bytes);

pub async fn show(visit: Visit<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    // By its address alone: caches keep it for everybody.
    let language = visit.reader.asked().unwrap_or_default();
    let mut kept = Arc::clone(&visit.site.card.0[language as usize]).lock_owned().await;
    let fresh = kept.as_ref().filter(|(drawn_at, _)| visit.now.tick.since(*drawn_at) < FRESH_FOR);
    let picture = match fresh {
        Some((_, picture)) => picture.clone(),
        None => {
            let frame = Frame::new(&visit.site.app.union, language, visit.path);
            let figures = figures(frame, visit.member_count().await);
            let (name, headline) = (frame.union.name.clone(), frame.words.join.card_headline.to_string());
            let (deep, sun, now) = (frame.union.theme.main.0, frame.union.theme.highlight.0, visit.now.tick);
            // The place in line is the drawing's, not the caller's: whoever hangs up leaves it to be finished and kept, and
            // nobody has a second one drawn meanwhile.
            let draw = move || {
                let (name, headline, on_deep) = (&*name, &*headline, Color::PALE.0);
                let drawn = picture::card(&Card { name, headline, figures: &figures, deep, sun, on_deep });
                kept.insert((now, drawn.into())).1.clone()
            };
            tokio::task::spawn_blocking(draw).await.map_err(|_| HttpError::Internal)?
        }
    };
    let mut answer = Answer::json(StatusCode::OK, picture);
    answer.set(CONTENT_TYPE, HeaderValue::from_static("image/png"));
    answer.set(CACHE_CONTROL, CACHED);
    Ok(answer)
}

/// What stands at its foot, large, with a line below each.
fn figures(frame: Frame<'_>, member_count: Option<u64>) -> Vec<(String, String)> {
    let say = &frame.words.join;
    let mut figures = vec![(dollars(frame.union.catalog.headline_savings()), say.card_savings.to_string())];
    figures.extend(frame.members(member_count).map(|members| (members, say.card_members.to_string())));
    figures
}
