//! `/card.png`: the picture that a shared link shows in chats (Open Graph). The operator's own, or one of ours, which shows no
//! name and no figure and so is true of every union.

use hyper::Request;
use hyper::header::{CACHE_CONTROL, HeaderValue};

use super::branding::Branding;
use super::{PageResult, Visit};
use crate::domain::language::Language;
use crate::http::request::body::SentBody;
use crate::http::response::etag::Document;

/// Chats keep it for everybody; who asks again an hour later sees a new one.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// One picture for each language.
pub struct Cards([Document; Language::ALL.len()]);

impl Cards {
    pub(super) fn new(branding: &Branding) -> Self {
        let document = |language| {
            let picture = branding.card.clone().unwrap_or_else(|| default_picture(language).into());
            Document::new("image/png", picture).with(CACHE_CONTROL, CACHED)
        };
        Self(Language::ALL.map(document))
    }
}

fn default_picture(language: Language) -> &'static [u8] {
    match language {
        Language::English => include_bytes!("../../templates/card/en.png"),
        Language::Spanish => include_bytes!("../../templates/card/es.png"),
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    // By its address alone, not by cookie or browser: shared caches keep it for everybody.
    let language = visit.reader.asked().unwrap_or_default();
    Ok(visit.site.cards.0[language as usize].answer(request.headers()))
}
