//! The clients: each takes its steps one after the other and writes down what it asked and what it heard.

use std::time::Instant;

use crate::prelude::*;
use unionhall::domain::sign_up::SignUpId;

use super::events::{Answer, Deed, Event, Outcome, SignUp, Time, Why};
use super::plan::{Channel, PARTNERS, Step, WhichKey};
use super::wire;

/// What all clients know.
pub(super) struct World {
    pub nodes: Mutex<Vec<Option<SocketAddr>>>,
    pub records: Records,
    pub folder: PathBuf,
    pub tokens: TokenMaker,
    pub lasting: Vec<String>,
    pub history: Mutex<Vec<Event>>,
    pub over: AtomicBool,
    began: Instant,
    /// Keys that come and go, with their partner, oldest first; also those that have gone.
    passing: Mutex<Vec<(u64, String)>>,
    codes: Mutex<HashMap<u64, String>>,
    /// Forms are counted by where they come from, so each comes from elsewhere.
    forms: AtomicU32,
}

pub(super) fn partner_name(partner: u64) -> String {
    format!("Partner {partner}")
}

#[expect(clippy::disallowed_methods, reason = "a history is about real time")]
fn instant() -> Instant {
    Instant::now()
}

impl World {
    pub(super) fn new(records: Records, folder: PathBuf, lasting: Vec<String>, nodes: Vec<Option<SocketAddr>>) -> Self {
        Self {
            nodes: Mutex::new(nodes),
            tokens: TokenMaker::new(&records.secret()),
            records,
            folder,
            lasting,
            history: Mutex::default(),
            over: AtomicBool::new(false),
            began: instant(),
            passing: Mutex::default(),
            codes: Mutex::default(),
            forms: AtomicU32::new(0),
        }
    }

    pub(super) fn time(&self) -> Time {
        u64::try_from(self.began.elapsed().as_micros()).unwrap()
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.history.lock().unwrap().iter().filter(|event| event.acknowledged().is_some()).count()
    }

    fn key(&self, partner: u64, which: WhichKey) -> (u64, String) {
        let lasting = (partner, self.lasting[usize::try_from(partner).unwrap()].clone());
        let WhichKey::Passing(number) = which else { return lasting };
        // The newest few: those that work, and those that do not any more.
        let passing = self.passing.lock().unwrap();
        let newest = &passing[passing.len().saturating_sub(4)..];
        if newest.is_empty() { lasting } else { newest[usize::try_from(number % newest.len() as u64).unwrap()].clone() }
    }

    fn code(&self, who: u64) -> Option<String> {
        self.codes.lock().unwrap().get(&who).cloned()
    }

    /// What the sign-up's mail would lead to, were it sent.
    async fn newest_sign_up(&self, email: &str, partner: &str) -> Option<SignUpRef> {
        let newest = format!(
            "SELECT s.id, s.created_at FROM sign_ups s JOIN people p ON p.id = s.person_id
             WHERE p.email_normalized = '{email}' AND coalesce((SELECT name FROM partners WHERE id = s.partner_id), '') = '{partner}'
             ORDER BY s.id DESC LIMIT 1"
        );
        let records = self.records.clone();
        let rows = tokio::task::spawn_blocking(move || records.try_rows(&newest)).await.unwrap().ok()?;
        let [id, created_at] = rows.first()?.as_slice() else { return None };
        let created_at = Timestamp::from_millis(created_at.parse().ok()?);
        Some(SignUpRef { id: SignUpId(id.parse().ok()?), created_at })
    }
}

pub(super) struct Client {
    pub world: Arc<World>,
    pub number: usize,
    turn: usize,
}

fn email(who: u64) -> String {
    format!("person{who}@example.com")
}

impl Client {
    pub(super) fn new(world: Arc<World>, number: usize) -> Self {
        Self { world, number, turn: number }
    }

    /// Takes steps until the run is over.
    pub(super) async fn run(mut self, steps: impl Iterator<Item = (Duration, Step)>) {
        for (wait, step) in steps {
            tokio::time::sleep(wait).await;
            if self.world.over.load(Ordering::SeqCst) {
                return;
            }
            self.take(step).await;
        }
    }

    pub(super) async fn take(&mut self, step: Step) {
        match step {
            Step::SignUp { who, channel: Channel::Form, us_state, categories, comments, referred_by, .. } => {
                self.fill_in(who, us_state, categories, comments, referred_by).await;
            }
            Step::SignUp { who, channel, partner, key, us_state, categories, comments, referred_by } => {
                let (partner, key) = self.world.key(partner, key);
                let sent = SignUp {
                    email: typed(who, channel),
                    partner: partner_name(partner),
                    key: Some(key[3..11].to_owned()),
                    us_state: us_state.map(str::to_owned),
                    categories,
                    comments,
                    ref_code: referred_by.and_then(|referrer| self.world.code(referrer)),
                };
                let (request, body) = wire::call(channel, "signUpUser", "/v1/invite", Some(&key), &arguments(&sent));
                let talk = self.talk(Ipv4Addr::LOCALHOST, request, body, |reply| wire::understood(channel, reply));
                self.record(Deed::SignUp(sent), Some(who), talk).await;
            }
            Step::Link { who, channel, partner, key } => {
                let (_, key) = self.world.key(partner, key);
                let asked = json!({ "email": typed(who, channel) });
                let (request, body) =
                    wire::call(channel, "createReferralLink", "/v1/referral-link", Some(&key), &asked);
                let talk = self.talk(Ipv4Addr::LOCALHOST, request, body, |reply| wire::understood(channel, reply));
                self.record(Deed::Link { email: typed(who, channel), key: key[3..11].to_owned() }, Some(who), talk)
                    .await;
            }
            Step::Stats { channel } => {
                let (request, body) = wire::call(channel, "getMemberStats", "/v1/stats", None, &json!({}));
                let talk = self.talk(Ipv4Addr::LOCALHOST, request, body, |reply| wire::understood(channel, reply));
                self.record(Deed::Stats, None, talk).await;
            }
            Step::Confirm { who, partner, looks } => self.confirm(who, partner, looks).await,
            Step::Decline { who, partner } => {
                let partner = partner.map(partner_name).unwrap_or_default();
                let Some(sign_up) = self.world.newest_sign_up(&email(who), &partner).await else { return };
                let path = format!("/not-me/{}", self.world.tokens.token(Purpose::Decline, sign_up));
                // As of somebody who ticks that they want to be left in peace.
                let quiet = "do=withdraw&mailbox=silence".to_owned();
                let talk = self.press(path, quiet);
                self.record(Deed::Decline { sign_up: sign_up.id.0, email: email(who) }, None, talk).await;
            }
            Step::Issue { partner } => {
                let name = partner_name(partner % PARTNERS);
                let outcome = self.operate(Deed::Issue, &["keys", "issue", &name]).await;
                if let Some(key) = outcome {
                    self.world.passing.lock().unwrap().push((partner, key));
                }
            }
            Step::Revoke(number) => {
                let (_, key) = self.world.key(0, WhichKey::Passing(number));
                if !self.world.lasting.contains(&key) {
                    let id = key[3..11].to_owned();
                    self.operate(Deed::Revoke { key: id.clone() }, &["keys", "revoke", &id]).await;
                }
            }
            Step::Pause => drop(self.operate(Deed::Pause, &["signups", "pause"]).await),
            Step::Resume => {
                // An operator whose command failed gives it again: the run is about more than a pause.
                for _ in 0..40 {
                    if self.operate(Deed::Resume, &["signups", "resume"]).await.is_some() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn fill_in(
        &mut self,
        who: u64,
        us_state: Option<&str>,
        categories: Option<String>,
        comments: Option<String>,
        referred_by: Option<u64>,
    ) {
        let ref_code = referred_by.and_then(|referrer| self.world.code(referrer));
        let sent = SignUp {
            email: email(who),
            partner: String::new(),
            key: None,
            us_state: us_state.map(str::to_owned),
            categories,
            comments,
            ref_code,
        };
        let [_, a, b, c] = (self.world.forms.fetch_add(1, Ordering::Relaxed) + 0x1_0000).to_be_bytes();
        let request = wire::post("/join").header("content-type", "application/x-www-form-urlencoded");
        let body = filled_in(&sent);
        let talk = self.talk(Ipv4Addr::new(127, a, b, c), request, body, wire::understood_form);
        self.record(Deed::SignUp(sent), None, talk).await;
    }

    async fn confirm(&mut self, who: u64, partner: Option<u64>, looks: bool) {
        let partner = partner.map(partner_name).unwrap_or_default();
        let Some(sign_up) = self.world.newest_sign_up(&email(who), &partner).await else { return };
        let path = format!("/confirm/{}", self.world.tokens.token(Purpose::Confirm, sign_up));
        let mut body = String::new();
        if looks {
            // Looking changes nothing, so it is no part of the history.
            let page =
                wire::exchange(Ipv4Addr::LOCALHOST, self.node(), hyper::Request::get(&path), String::new()).await;
            body = page.ok().and_then(|page| wire::seen(&page)).map(|seen| format!("seen={seen}")).unwrap_or_default();
        }
        let talk = self.press(path, body);
        self.record(Deed::Confirm { sign_up: sign_up.id.0, email: email(who) }, None, talk).await;
    }

    fn node(&mut self) -> Option<SocketAddr> {
        self.turn += 1;
        let nodes = self.world.nodes.lock().unwrap();
        nodes[self.turn % nodes.len()]
    }

    fn press(&mut self, path: String, body: String) -> impl Future<Output = Outcome> + use<> {
        let node = self.node();
        async move {
            wire::press(node, &path, body)
                .await
                .map_or_else(|outcome| outcome, |reply| wire::understood_decision(&reply))
        }
    }

    fn talk<F: FnOnce(&wire::Reply) -> Outcome>(
        &mut self,
        from: Ipv4Addr,
        request: hyper::http::request::Builder,
        body: String,
        understood: F,
    ) -> impl Future<Output = Outcome> + use<F> {
        let node = self.node();
        async move {
            match wire::exchange(from, node, request, body).await {
                Ok(reply) => understood(&reply),
                Err(outcome) => outcome,
            }
        }
    }

    /// Does it, and writes down what came of it.
    async fn record(&self, deed: Deed, who: Option<u64>, talk: impl Future<Output = Outcome>) -> Outcome {
        let invoked = self.world.time();
        let outcome = talk.await;
        let completed = self.world.time();
        if let (Some(who), Outcome::Acknowledged(Answer { code: Some(code), .. })) = (who, &outcome) {
            self.world.codes.lock().unwrap().insert(who, code.clone());
        }
        let event = Event { client: self.number, invoked, completed, deed, outcome: outcome.clone() };
        self.world.history.lock().unwrap().push(event);
        if matches!(outcome, Outcome::Refused(Why::Unreachable)) {
            // Nobody hammers on a closed channel.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        outcome
    }

    /// A command of the operator's; gives what it printed if it succeeded. One that failed may have done it all the same.
    async fn operate(&mut self, deed: Deed, arguments: &[&str]) -> Option<String> {
        let mut command = unionhall(&self.world.folder);
        command.envs(self.world.records.settings()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut printed = None;
        let talk = async {
            let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
            if !output.status.success() {
                return Outcome::Unknown(String::from_utf8_lossy(&output.stderr).into_owned());
            }
            printed = Some(String::from_utf8_lossy(&output.stdout).trim().to_owned());
            Outcome::Acknowledged(Answer::default())
        };
        self.record(deed, None, talk).await;
        printed
    }
}

/// Addresses differ in case by channel, and are the same all the same.
fn typed(who: u64, channel: Channel) -> String {
    if channel == Channel::Mcp { format!("Person{who}@Example.COM") } else { email(who) }
}

fn arguments(sent: &SignUp) -> Value {
    let mut body = json!({ "email": sent.email });
    let mut add = |name: &str, value: Option<Value>| value.into_iter().for_each(|value| body[name] = value);
    add("usState", sent.us_state.as_deref().map(Value::from));
    add("categories", sent.categories.as_ref().map(|_| chosen(sent).map(|slug| (slug, true)).collect()));
    add("otherComments", sent.comments.as_deref().map(Value::from));
    add("refCode", sent.ref_code.as_deref().map(Value::from));
    body
}

/// The form as a browser sends it: every field, and the boxes that are ticked.
fn filled_in(sent: &SignUp) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("email", &sent.email).append_pair("usState", &text(&sent.us_state));
    for slug in chosen(sent) {
        form.append_pair(slug, "true");
    }
    form.append_pair("otherComments", &text(&sent.comments)).append_pair("refCode", &text(&sent.ref_code));
    form.finish()
}

fn chosen(sent: &SignUp) -> impl Iterator<Item = &str> {
    sent.categories.iter().flat_map(|slugs| slugs.split(',')).filter(|slug| !slug.is_empty())
}
