//! What a person answers when they sign up, or on their own page since: as it is stored, as a field of a form, and in words.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::catalog::category::{Category, CategorySet};
use super::language::{Phrase, Words};
use super::text::{Comments, quote};
use super::us_state::UsState;

/// A type of answer.
trait Answer: Sized {
    /// Whether it is free text.
    const IS_FREE_TEXT: bool = false;

    /// As it is stored.
    fn text(&self) -> Cow<'_, str>;

    /// From what is stored; none if that is no longer an answer.
    fn from_stored(text: String) -> Option<Self>;

    /// From what was typed, or what is wrong with it.
    fn from_form(text: &str, words: &Words) -> Result<Option<Self>, String>;

    fn shown(&self, _words: &Words) -> String {
        self.text().into_owned()
    }

    /// In an export: null if nothing was said.
    fn json(answer: Option<&Self>) -> Value {
        answer.map(Self::text).filter(|text| !text.is_empty()).map(Cow::into_owned).into()
    }
}

/// The answers, one line each: the column, the type, the field of the form, and the label.
macro_rules! answers {
    ($($(#[$schema:meta])* $name:ident: $kind:ty, $field:literal, $section:ident.$label:ident;)*) => {
        /// What a person answers; none where they left it out. In a sign-up that repeats a pending one, none keeps the earlier answer.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct Answers {
            $(#[serde(serialize_with = "in_json")] $(#[$schema])* pub $name: Option<$kind>,)*
        }

        impl Answers {
            /// The columns.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// As they are stored, in the order of their names.
            pub fn texts(&self) -> [Option<Cow<'_, str>>; Self::NAMES.len()] {
                [$(self.$name.as_ref().map(Answer::text)),*]
            }

            /// From what is stored under each name.
            pub fn from_texts<E>(stored: impl Fn(&'static str) -> Result<Option<String>, E>) -> Result<Self, E> {
                Ok(Self { $($name: stored(stringify!($name))?.and_then(Answer::from_stored)),* })
            }

            /// The labels of all answers, in a reader's language.
            pub fn labels(words: &Words) -> [&Phrase; Self::NAMES.len()] {
                [$(&words.$section.$label),*]
            }

            /// Those that say something, in a reader's language.
            pub fn shown<'w>(&self, words: &'w Words) -> impl Iterator<Item = ShownAnswer<'w>> {
                let all = [$(ShownAnswer {
                    name: stringify!($name),
                    label: &words.$section.$label,
                    text: self.$name.as_ref().map(|answer| answer.shown(words)).unwrap_or_default(),
                    is_free_text: <$kind>::IS_FREE_TEXT,
                }),*];
                all.into_iter().filter(|answer| !answer.text.is_empty())
            }

            /// Those that say something, for an operator. Free text is in quotes, so that it cannot forge a line.
            pub fn quoted(&self) -> Vec<String> {
                let all = self.texts().into_iter().zip([$(<$kind>::IS_FREE_TEXT),*]);
                let said = all.filter_map(|(text, own)| Some((text.filter(|text| !text.is_empty())?, own)));
                said.map(|(text, own)| if own { quote(&text) } else { text.replace(',', ", ") }).collect()
            }
        }

        /// The fields of a form that ask for the answers, as they were filled in.
        #[derive(Debug, Clone, Default)]
        pub struct TypedAnswers {
            $(pub $name: TypedAnswer,)*
        }

        impl TypedAnswers {
            const FIELDS: &[&str] = &[$($field),*];

            fn all(&self) -> [&TypedAnswer; Answers::NAMES.len()] {
                [$(&self.$name),*]
            }

            fn all_mut(&mut self) -> [&mut TypedAnswer; Answers::NAMES.len()] {
                [$(&mut self.$name),*]
            }

            /// The same types as the API's, so that a form can bring nothing that a partner could not; or the form again, with
            /// each mistake at its field.
            pub fn check(&self, words: &Words) -> Result<Answers, Box<Self>> {
                let mut checked = self.clone();
                let answers = Answers {
                    $($name: Answer::from_form(&self.$name.text, words).unwrap_or_else(|mistake| {
                        checked.$name.mistake = Some(mistake);
                        None
                    })),*
                };
                if checked.has_mistakes() { Err(Box::new(checked)) } else { Ok(answers) }
            }
        }
    };
}

answers! {
    #[schemars(with = "Option<UsState>")]
    us_state: UsState, "usState", confirm.state;
    #[schemars(with = "Vec<String>")]
    categories: CategorySet, "categories", confirm.bills;
    #[schemars(with = "Option<String>")]
    comments: Comments, "otherComments", confirm.comments;
}

impl Answers {
    /// The answer that pages ask for and show as a list of its own.
    pub const BILLS: &str = "categories";

    pub fn chosen(&self) -> CategorySet {
        self.categories.unwrap_or_default()
    }
}

impl TypedAnswers {
    /// Takes a field of a form, if it is part of an answer.
    pub fn take(&mut self, name: &str, value: &str) {
        if let Some(category) = Category::from_slug(name).filter(|_| value == "true") {
            let mut chosen = self.chosen();
            chosen.insert(category);
            self.categories.text = chosen.to_string();
        } else if let Some(place) = Self::FIELDS.iter().position(|field| *field == name && name != Answers::BILLS) {
            // Browsers send line breaks as two characters; limits are meant for what was typed.
            *self.all_mut()[place] = TypedAnswer { text: value.replace("\r\n", "\n"), is_sent: true, mistake: None };
        }
    }

    /// As fields of another form, which brings this one back.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let bills = self.chosen().iter().map(|category| (category.slug(), "true".to_owned())).collect::<Vec<_>>();
        let sent = self.other_than_bills().filter(|(_, typed)| typed.is_sent);
        bills.into_iter().chain(sent.map(|(field, typed)| (field, typed.text.clone()))).collect()
    }

    /// Notes what did not arrive, which would be lost where the form replaces all answers.
    pub fn require_whole(&mut self, words: &Words) {
        for (typed, name) in self.all_mut().into_iter().zip(Answers::NAMES) {
            if !typed.is_sent && *name != Answers::BILLS {
                typed.mistake = Some(words.mistake.not_whole.to_string());
            }
        }
    }

    /// The others, with their fields.
    pub fn other_than_bills(&self) -> impl Iterator<Item = (&'static str, &TypedAnswer)> {
        Self::FIELDS.iter().copied().zip(self.all()).filter(|(field, _)| *field != Answers::BILLS)
    }

    pub fn has_mistakes(&self) -> bool {
        self.all().iter().any(|typed| typed.mistake.is_some())
    }

    pub fn chosen(&self) -> CategorySet {
        CategorySet::from_slugs(&self.categories.text)
    }
}

impl From<&Answers> for TypedAnswers {
    fn from(answers: &Answers) -> Self {
        let mut typed = Self::default();
        for (typed, text) in typed.all_mut().into_iter().zip(answers.texts()) {
            typed.text = text.unwrap_or_default().into_owned();
        }
        typed
    }
}

/// An answer as a form has it.
#[derive(Debug, Clone, Default)]
pub struct TypedAnswer {
    pub text: String,
    /// Whether its field arrived.
    pub is_sent: bool,
    pub mistake: Option<String>,
}

/// An answer as a page shows it.
pub struct ShownAnswer<'w> {
    pub name: &'static str,
    pub label: &'w Phrase,
    pub text: String,
    pub is_free_text: bool,
}

fn in_json<A: Answer, S: Serializer>(answer: &Option<A>, serializer: S) -> Result<S::Ok, S::Error> {
    A::json(answer.as_ref()).serialize(serializer)
}

impl Answer for UsState {
    fn text(&self) -> Cow<'_, str> {
        self.code().into()
    }

    fn from_stored(text: String) -> Option<Self> {
        Self::from_code(&text)
    }

    fn from_form(text: &str, words: &Words) -> Result<Option<Self>, String> {
        match text {
            "" => Ok(None),
            code => Self::from_code(code).map(Some).ok_or_else(|| words.mistake.state.to_string()),
        }
    }

    fn shown(&self, words: &Words) -> String {
        words.state(*self).to_owned()
    }
}

impl Answer for CategorySet {
    fn text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }

    fn from_stored(text: String) -> Option<Self> {
        Some(Self::from_slugs(&text))
    }

    fn from_form(text: &str, _: &Words) -> Result<Option<Self>, String> {
        Ok(Some(Self::from_slugs(text)))
    }

    fn shown(&self, words: &Words) -> String {
        self.iter().map(|category| words.category(category)).collect::<Vec<_>>().join(", ")
    }

    fn json(answer: Option<&Self>) -> Value {
        answer.into_iter().flat_map(|chosen| chosen.iter()).map(Category::slug).collect()
    }
}

impl Answer for Comments {
    const IS_FREE_TEXT: bool = true;

    fn text(&self) -> Cow<'_, str> {
        self.as_str().into()
    }

    fn from_stored(text: String) -> Option<Self> {
        Some(Self::kept(text))
    }

    fn from_form(text: &str, words: &Words) -> Result<Option<Self>, String> {
        let shorten = |_| words.mistake.comments.put("most", Self::LONGEST).plain();
        Self::new(text.trim().into()).map(Some).map_err(shorten)
    }
}
