//! The join form: from what a browser sent to what a person says when they sign up, or back to the person with each mistake
//! beside its field.

use super::sentence;
use super::view::JoinForm;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::email::EmailAddress;
use crate::domain::referral::ReferralCode;
use crate::domain::text::Comments;
use crate::domain::us_state::UsState;
use crate::membership::Application;

/// The join form as it was sent.
#[derive(Debug, Default)]
pub(super) struct SentForm {
    email: String,
    /// None where the form did not arrive whole.
    pub us_state: Option<String>,
    pub chosen: CategorySet,
    comments: String,
    pub ref_code: String,
    /// What people cannot see and leave empty.
    pub website: String,
    /// The question that the form asked while its brake was on, and what the browser answered.
    pub question: Option<String>,
    pub answer: String,
}

impl SentForm {
    pub(super) fn read(body: &[u8]) -> Self {
        let mut sent = Self::default();
        for (name, value) in form_urlencoded::parse(body) {
            match &*name {
                "email" => sent.email = value.trim().to_owned(),
                "usState" => sent.us_state = Some(value.into_owned()),
                // Browsers send line breaks as two characters; the limit is meant for what was typed.
                "otherComments" => sent.comments = value.replace("\r\n", "\n"),
                "refCode" => sent.ref_code = value.into_owned(),
                "website" => sent.website = value.into_owned(),
                "question" => sent.question = Some(value.into_owned()),
                "answer" => sent.answer = value.into_owned(),
                slug => {
                    if let Some(category) = Category::from_slug(slug).filter(|_| value == "true") {
                        sent.chosen.insert(category);
                    }
                }
            }
        }
        sent
    }

    /// What was typed, to be shown again.
    pub(super) fn form(&self) -> JoinForm {
        JoinForm {
            email: self.email.clone(),
            us_state: self.us_state.clone().unwrap_or_default(),
            chosen: self.chosen,
            comments: self.comments.clone(),
            ..JoinForm::default()
        }
    }

    pub(super) fn us_state(&self) -> Result<Option<UsState>, String> {
        match self.us_state.as_deref().unwrap_or_default() {
            "" => Ok(None),
            code => UsState::from_code(code).map(Some).ok_or_else(|| sentence("choose a state from the list")),
        }
    }

    pub(super) fn comments(&self) -> Result<Comments, String> {
        Comments::new(self.typed_comments().into()).map_err(|why| sentence(&why.to_string()))
    }

    pub(super) fn typed_comments(&self) -> &str {
        self.comments.trim()
    }

    /// The same types as the API's, so that a form can bring nothing that a partner could not; or the form again, with
    /// each mistake beside its field.
    pub(super) fn check(&self) -> Result<Application, Box<JoinForm>> {
        let email = EmailAddress::parse(&self.email);
        let (us_state, comments) = (self.us_state(), self.comments());
        match (email, us_state, comments) {
            (Ok(email), Ok(us_state), Ok(comments)) => Ok(Application {
                email,
                us_state,
                // An empty field of the form is an answer too: whoever sends it again has seen it.
                categories: Some(self.chosen),
                comments: Some(comments),
                ref_code: ReferralCode::from_pasted(&self.ref_code),
            }),
            (email, us_state, comments) => Err(Box::new(JoinForm {
                email_error: email.err().map(|why| sentence(&why.to_string())),
                us_state_error: us_state.err(),
                comments_error: comments.err(),
                ..self.form()
            })),
        }
    }
}
