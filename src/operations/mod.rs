//! The union's operations: one file each, one table of all, one dispatch for every call.
//!
//! REST routes, the OpenAPI document and the descriptor are loops over [`ALL`]. To add an operation, add a file and a line
//! in the table below. This module must never know HTTP: its input and output are free of transport.

pub mod create_referral_link;
pub mod decode;
pub mod dispatch;
pub mod get_member_stats;
pub mod get_referral_program;
pub mod list_negotiation_categories;
mod mistakes;
pub mod sign_up_user;
mod spec;
pub mod wording;

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::spec::{Access, Effects, Lifetime, Method, Spec};
use crate::app::App;
use crate::domain::catalog::Catalog;
use crate::domain::email::EmailAddress;
use crate::domain::json::inline_schema;
use crate::domain::partner::idempotency::{BadIdempotencyKey, IdempotencyKey};
use crate::domain::sign_up::{Channel, ClientName, Partner, SignedUp};
use crate::domain::simulator::{LIMITED_FOR, Simulated, is_simulators};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::error::{Error, KeyProblem};
use crate::reply::Reply;

macro_rules! operations {
    ($(#[$doc:meta])* $($file:ident::$name:ident,)*) => {
        #[derive(Clone, Copy)]
        enum Position { $($name),* }

        $(#[$doc])*
        pub static ALL: &[Entry] = &[$(Entry::of::<$file::$name>(Position::$name as usize)),*];
    };
}

pub mod negotiator;
pub mod partner;

operations! {
    /// Every operation, in the contract's order.
    list_negotiation_categories::ListNegotiationCategories,
    get_referral_program::GetReferralProgram,
    get_member_stats::GetMemberStats,
    sign_up_user::SignUpUser,
    create_referral_link::CreateReferralLink,
}

/// Operations that MCP serves together, and how their server introduces itself.
#[derive(Clone, Copy)]
pub struct Toolset {
    /// The server's name among programs.
    pub name: &'static str,
    pub operations: &'static [Entry],
    /// What a model is told before it sees a tool.
    pub instructions: fn(&Union) -> String,
}

/// What `/mcp` and `unionhall mcp` serve.
pub const CONTRACT_TOOLS: Toolset = Toolset { name: "unionhall", operations: ALL, instructions: wording::instructions };

/// The bytes of a message to MCP over HTTP, at the most: far more than any call needs.
pub const LARGEST_MESSAGE: u64 = 64 << 10;

/// What the file of every operation names.
mod prelude {
    pub(super) use schemars::JsonSchema;
    pub(super) use serde::{Deserialize, Serialize};
    pub(super) use serde_json::json;

    pub(super) use crate::app::App;
    pub(super) use crate::domain::catalog::Catalog;
    pub(super) use crate::domain::json::True;
    pub(super) use crate::domain::union::Union;
    pub(super) use crate::error::Error;
    pub(super) use crate::operations::{
        Access, Caller, Effects, Example, Lifetime, Method, ObjectInput, Operation, Spec,
    };
}

/// One thing that callers can ask of the union.
pub trait Operation: 'static {
    const SPEC: Spec;

    type Input: Input;
    type Output: Serialize + JsonSchema + Send;

    /// What it does, when to use it and what comes next, for a developer or a model: paragraphs, with names between
    /// backticks. Every claim comes from the fact or the constant that it repeats.
    fn description(union: &Union) -> String;

    fn run(app: &App, caller: &Caller, input: Self::Input) -> impl Future<Output = Result<Self::Output, Error>> + Send;

    /// A request that works and its answer, for the documents. Tests hold both to their schemas.
    fn example(catalog: &Catalog) -> Example<Self::Output>;
}

/// Who calls, once the key is checked and the limit has let them pass.
pub struct Caller {
    /// Always there for an agent action.
    pub partner: Option<Partner>,
    pub now: Timestamp,
    pub channel: Channel,
    /// What the client calls itself over MCP, if it says so.
    pub client: Option<ClientName>,
    /// The `Idempotency-Key` of the request, or why it cannot be one.
    pub idempotency_key: Option<Result<IdempotencyKey, BadIdempotencyKey>>,
    /// Set where the answer is that of an earlier request with the same idempotency key.
    pub replayed: AtomicBool,
    /// For how many microseconds nothing was done but wait, because the caller asked for that.
    pub waited: AtomicU64,
    /// How often they may call, a minute.
    pub limit: u32,
}

impl Caller {
    /// The idempotency key; a malformed one was refused before.
    fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref().and_then(|key| key.as_ref().ok())
    }

    fn note_replay(&self, done: &SignedUp) {
        self.replayed.store(done.replayed.is_some(), Ordering::Relaxed);
    }

    fn note_wait(&self, waited: Duration) {
        self.waited.store(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Refuses a malformed idempotency key, together with everything else that is wrong.
    fn with_key_problem<T>(&self, input: Result<T, Error>) -> Result<T, Error> {
        let Some(Err(problem)) = &self.idempotency_key else { return input };
        let (others, mut fields) = match input {
            Ok(_) => (String::new(), Vec::new()),
            Err(Error::InvalidSubmission { what, fields }) => (format!(" {what}"), fields),
            Err(other) => return Err(other),
        };
        fields.insert(0, "Idempotency-Key".to_owned());
        Err(Error::InvalidSubmission { what: format!("{problem}.{others}"), fields })
    }

    /// The partner an agent action is done for.
    fn partner(&self) -> Result<&Partner, Error> {
        self.partner.as_ref().ok_or(Error::AgentUnauthorized(KeyProblem::Missing))
    }

    /// The address that the caller sent, as the records have it: in the sandbox among the partner's own. Two of the simulator's meet
    /// there what a partner's program must be able to take.
    fn address(&self, app: &App, email: EmailAddress) -> Result<EmailAddress, Error> {
        match Simulated::of(&email) {
            _ if !app.is_sandbox() && is_simulators(&email) => {
                let how =
                    "addresses at simulator.test work with test keys only (uh_test_…); send the user's own address.";
                Err(Error::in_field("email", how))
            }
            _ if !app.is_sandbox() => Ok(email),
            Some(Simulated::Limit) => Err(Error::RateLimited { limit: self.limit, retry_after: LIMITED_FOR }),
            // Nothing for the operator to read: nothing failed.
            Some(Simulated::Fail) => Err(Error::SaveFailed { cause: String::new() }),
            _ => Ok(email.in_sandbox_of(self.partner()?.id)),
        }
    }
}

/// What an operation takes.
pub trait Input: Sized + Send + JsonSchema {
    /// Whether there is anything to take; if not, what is sent is ignored or refused.
    const EXPECTED: bool;

    /// Whether what is sent where nothing is taken is refused.
    const REFUSED: bool = false;

    fn decode(body: &[u8]) -> Result<Self, Error>;
}

/// An input that is an object with fields.
pub trait ObjectInput: DeserializeOwned + JsonSchema + Send {
    /// Whether nothing at all counts as an object without fields.
    const MAY_BE_EMPTY: bool = false;

    /// Checks what the types of the fields cannot.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl<T: ObjectInput> Input for T {
    const EXPECTED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        let input: Self = decode::object(body)?;
        input.check()?;
        Ok(input)
    }
}

/// The input of an operation that takes none.
pub struct Nothing;

inline_schema!(Nothing, schemars::json_schema!({ "type": "object", "additionalProperties": false }));

impl Input for Nothing {
    const EXPECTED: bool = false;

    fn decode(_: &[u8]) -> Result<Self, Error> {
        Ok(Self)
    }
}

pub struct Example<T> {
    /// None where nothing is sent.
    pub request: Option<Value>,
    pub answer: T,
}

/// An operation in the table, its types behind functions.
pub struct Entry {
    pub spec: Spec,
    pub description: fn(&Union) -> String,
    /// Its place in [`ALL`].
    pub position: usize,
    pub takes_input: bool,
    /// Whether what is sent is read, to be taken or refused.
    pub reads_input: bool,
    pub input_schema: fn(&mut SchemaGenerator) -> Schema,
    pub output_schema: fn(&mut SchemaGenerator) -> Schema,
    pub example: fn(&Catalog) -> Example<Value>,
    run: Run,
}

/// What an operation answers.
pub struct OperationAnswer {
    pub json: Bytes,
    /// It is what an earlier request with the same idempotency key was answered.
    pub replayed: bool,
    /// How long nothing was done but wait, because the caller asked for that.
    pub waited: Duration,
}

type Answered<'a> = Reply<'a, Result<OperationAnswer, Error>>;

type Run = for<'a> fn(&'a App, Caller, Bytes) -> Answered<'a>;

impl Entry {
    const fn of<O: Operation>(position: usize) -> Self {
        Self {
            spec: O::SPEC,
            description: O::description,
            position,
            takes_input: O::Input::EXPECTED,
            reads_input: O::Input::EXPECTED || O::Input::REFUSED,
            input_schema: |generator| generator.subschema_for::<O::Input>(),
            output_schema: |generator| generator.subschema_for::<O::Output>(),
            example: |catalog| {
                let Example { request, answer } = O::example(catalog);
                // By way of text, as `run` writes it: the compiler makes no second serializer of each output.
                let answer = serde_json::to_vec(&answer).and_then(|json| serde_json::from_slice(&json));
                Example { request, answer: answer.unwrap_or_default() }
            },
            run: run::<O>,
        }
    }
}

fn run<O: Operation>(app: &App, caller: Caller, body: Bytes) -> Answered<'_> {
    Reply::later(async move {
        let input = caller.with_key_problem(O::Input::decode(&body))?;
        // What is slow from here on does not hold it.
        drop(body);
        let output = O::run(app, &caller, input).await?;
        // Every output is made of names, numbers and texts, which always have a JSON form.
        let json = serde_json::to_vec(&output).map_err(Error::unread)?;
        Ok(OperationAnswer {
            json: json.into(),
            replayed: caller.replayed.load(Ordering::Relaxed),
            waited: Duration::from_micros(caller.waited.load(Ordering::Relaxed)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::wording::{CONSENT_RULE, CONSENT_RULE_FOR_ALL};
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::union::Standing;

    #[test]
    fn the_contracts_operations_in_its_order() {
        let table: Vec<_> = ALL.iter().map(|op| (op.spec.id, op.spec.method.name(), op.spec.path)).collect();
        assert_eq!(
            table,
            [
                ("listNegotiationCategories", "GET", "/v1/negotiate-categories"),
                ("getReferralProgram", "GET", "/v1/referral-program"),
                ("getMemberStats", "GET", "/v1/stats"),
                ("signUpUser", "POST", "/v1/invite"),
                ("createReferralLink", "POST", "/v1/referral-link"),
            ]
        );
        for (position, op) in ALL.iter().enumerate() {
            assert_eq!(op.position, position);
            assert_eq!(op.takes_input, op.spec.access == Access::Agent, "{}", op.spec.id);
        }
    }

    #[test]
    fn descriptions_are_short_keep_the_consent_rule_and_name_what_there_is() {
        let names: Vec<_> = ALL.iter().map(|op| op.spec.id).collect();
        // A sample says one thing more: that it is one.
        let union = Union { standing: Standing::Real, ..UnionSettings::sample() };
        let mut texts = vec![CONSENT_RULE_FOR_ALL.to_owned()];
        for op in ALL {
            let description = (op.description)(&union);
            let length = description.chars().count();
            assert!(length < 1200, "{}: {length} characters", op.spec.id);
            let acts = op.spec.access == Access::Agent;
            assert_eq!(description.contains(CONSENT_RULE), op.spec.effects.sends_mail(), "{}", op.spec.id);
            let points_to_it = description.contains("consent rule of signUpUser holds");
            assert_eq!(points_to_it, acts && !op.spec.effects.sends_mail(), "{}", op.spec.id);
            assert_eq!(CONSENT_RULE_FOR_ALL.contains(op.spec.id), acts, "{}", op.spec.id);
            texts.push(description);
        }
        // Whatever looks like a tool's name is one.
        let verbs = ["get", "list", "create", "sign"];
        for word in texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric())) {
            let like_a_tool = verbs
                .iter()
                .any(|verb| word.strip_prefix(verb).is_some_and(|rest| rest.starts_with(char::is_uppercase)));
            assert!(!like_a_tool || names.contains(&word), "there is no {word}");
        }
    }
}
