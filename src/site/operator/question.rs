//! Questions: what is hard to undo is asked about on a page of its own, and done once the operator is sure of this very question.

use askama::Template;
use hyper::StatusCode;
use ring::digest;

use super::frame::{OperatorFrame, render};
use super::session::OperatorVisit;
use crate::campaigns::operator_step::read_reason;
use crate::domain::base32;
use crate::site::{PageResult, field, field_is};

/// What an operator is asked before something is done that is not easily undone.
#[derive(Clone, Copy, Default)]
pub(in crate::site) struct Question<'a> {
    pub title: &'a str,
    /// What it is about, under headings.
    pub facts: &'a [(String, Vec<(String, String)>)],
    pub says: &'a [String],
    /// What the operator has to sign.
    pub reasons: &'a [AskedReason],
    /// Whether the form that led here can be opened again, as it was sent.
    pub can_change: bool,
    pub action: &'a str,
    /// Hidden fields, which the form sends again.
    pub fields: &'a [(&'a str, &'a str)],
    /// Whether one of them may be as long as a file. Its route takes a file.
    pub has_file: bool,
    /// What else may not change until it is answered; it is not shown.
    pub about: &'a str,
    pub button: &'a str,
}

/// What is done only if the operator says why.
pub(in crate::site) struct AskedReason {
    pub name: &'static str,
    /// Above the points; neither may be there.
    pub heading: &'static str,
    pub label: &'static str,
    /// Who reads it.
    pub hint: &'static str,
    pub points: Vec<String>,
}

impl Question<'_> {
    /// Differs where anything differs that it was asked about.
    fn mark(&self) -> String {
        let Self { title, facts, says, reasons, can_change: _, action, fields, has_file: _, about, button: _ } = *self;
        let mut context = digest::Context::new(&digest::SHA256);
        // Each with its length: no two lists of texts are the same bytes. Browsers send the ends of lines their own way.
        let mut add = |text: &str| {
            let text = text.replace("\r\n", "\n");
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        };
        [title, action, about].into_iter().for_each(&mut add);
        add(&facts.len().to_string());
        for (heading, facts) in facts {
            add(heading);
            add(&facts.len().to_string());
            facts.iter().for_each(|(name, fact)| [name, fact].into_iter().for_each(|text| add(text)));
        }
        add(&reasons.len().to_string());
        for lines in reasons.iter().map(|reason| reason.points.as_slice()).chain([says]) {
            add(&lines.len().to_string());
            lines.iter().for_each(|line| add(line));
        }
        fields.iter().for_each(|(name, value)| [name, value].into_iter().for_each(|text| add(text)));
        base32::encode::<26>(context.finish().as_ref()).into_iter().map(char::from).collect()
    }
}

pub(in crate::site) fn is_sure(fields: &[u8]) -> bool {
    field_is(fields, "sure", "yes")
}

/// Asks before something is done that is not easily undone. The form sends the same fields again, and that the operator is sure.
#[derive(Template)]
#[template(path = "operator/confirm.html")]
struct QuestionPage<'a> {
    frame: OperatorFrame<'a>,
    question: &'a Question<'a>,
    reasons: Vec<TypedReason<'a>>,
    /// Whether one of them is missing.
    is_unsigned: bool,
    /// Whether it is asked again, because what it is about has changed.
    is_changed: bool,
    /// Names what it is about.
    asked: &'a str,
    back: &'a str,
}

struct TypedReason<'a> {
    asked: &'a AskedReason,
    typed: String,
    problem: Option<String>,
}

impl OperatorVisit<'_> {
    /// Goes on where the operator is sure of this very question, as it is now, and has given each reason that it asks for. Else it is asked,
    /// which ends the visit: what they read may no longer be so.
    pub(in crate::site) fn require_sure(&self, question: &Question<'_>, sent: &[u8]) -> PageResult<()> {
        let (is_sure, mark) = (is_sure(sent), question.mark());
        let is_this = is_sure && field_is(sent, "asked", &mark);
        let reasons = question.reasons.iter().map(|asked| {
            let typed = field(sent, asked.name).unwrap_or_default();
            let problem = read_reason(&typed).err().filter(|_| is_this);
            TypedReason { asked, typed, problem }
        });
        let reasons: Vec<_> = reasons.collect();
        let is_unsigned = reasons.iter().any(|reason| reason.problem.is_some());
        if is_this && !is_unsigned {
            return Ok(());
        }
        let page = QuestionPage {
            frame: self.frame(),
            question,
            reasons,
            is_unsigned,
            is_changed: is_sure && !is_this,
            asked: &mark,
            back: self.frame().section.path(),
        };
        let status = if is_unsigned { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Err(self.page_with(status, render(&page)).into())
    }
}
