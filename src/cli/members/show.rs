//! `unionhall members show`: everything about a person, and why they get no mail.

use serde_json::{Value, json};

use super::{ShowPerson, address, nobody, people_of};
use crate::cli::mail::as_json as waiting_mail_json;
use crate::cli::terminal::quote;
use crate::cli::{print_line, with_live_records};
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState};
use crate::domain::figure::{counted, grouped, money};
use crate::domain::mail::budget::source_name;
use crate::domain::mail::{MailKind, WaitingMail};
use crate::domain::person::{KeptEvidence, NO_TIME, PersonFile, PersonRecord, PersonState, SignUpEntry};
use crate::domain::reward::ledger::{CampaignStanding, RewardStanding};
use crate::domain::sign_up::SignUpState;
use crate::domain::time::Timestamp;
use crate::membership::export::PersonDocument;

pub(super) fn run(task: &ShowPerson, now: Timestamp) -> anyhow::Result<()> {
    let email = address(&task.email)?;
    let found = with_live_records(&task.store, async |operator| {
        Ok(people_of(&task.store, &task.secret, &operator).await?.find(&email, now).await?)
    })?;
    let Some(file) = found else { return Err(nobody()) };
    if task.json {
        return print_line(&serde_json::to_string_pretty(&file_json(&file, now))?);
    }
    lines(&file, now).iter().try_for_each(|line| print_line(line))
}

/// Why no mail goes there now, whatever is asked for; each with what would fix it.
fn obstacles(file: &PersonFile, now: Timestamp) -> Vec<String> {
    let mut obstacles = Vec::new();
    let (person, mailbox) = (&file.person, &file.mailbox);
    if let Some(until) = mailbox.suppressed_until.filter(|until| *until > now) {
        obstacles
            .push(format!("suppressed until {until}: someone who uses the mailbox asked for no mail, or was erased"));
    }
    if let Some(since) = mailbox.complained_at {
        obstacles.push(format!("reported as spam by its owner at {since}"));
    }
    if let Some(until) = person.undeliverable_until.filter(|until| *until > now) {
        obstacles.push(format!("undeliverable until {until}: a mail server said that there is no such address"));
    }
    let stopped = mailbox.stopped.iter();
    obstacles.extend(
        stopped.map(|stop| {
            format!("gets nothing that {} asks for, since {}", source_name(&stop.partner), stop.stopped_at)
        }),
    );
    obstacles
}

fn lines(file: &PersonFile, now: Timestamp) -> Vec<String> {
    let person = &file.person;
    if let Some(at) = person.erased_at {
        let was = if person.joined_at.is_some() { "They had been a member." } else { "They had never been a member." };
        return vec![
            format!("Erased on {}, on request or because the time was up. {was}", at.day()),
            format!("The code {} is kept, in case they sign up again.", person.code),
        ];
    }
    let mut lines = vec![person.email.clone(), format!("  {}", state_words(person))];
    lines.push(format!("  code {}; credited for {}", person.code, counted(person.referred, "member")));
    if let Some(referrer) = &person.referrer {
        lines.push(format!("  {referrer} is credited for them"));
    }
    if let Some(account) = &person.account {
        lines.push(format!("  account {} in the audit log", account.as_str()));
    }
    if let Some(at) = person.answered_at {
        lines.push(format!("  changed their answers on their own page at {at}: {}", answer_words(person)));
    }
    if !person.mail_choices.wants(MailKind::AlreadyMember) {
        lines.push("  wants no mail when someone signs them up again".to_owned());
    }
    lines.extend([String::new(), "Mail".to_owned()]);
    let obstacles = obstacles(file, now);
    match obstacles.is_empty() {
        true => lines.push("  nothing keeps mail from this address".to_owned()),
        false => {
            lines.extend(obstacles.iter().map(|why| format!("  {why}")));
            lines.push("  `unionhall members unsuppress` lifts this".to_owned());
        }
    }
    if person.soft_bounces > 0 {
        lines.push(format!("  temporary bounces: {}", counted(person.soft_bounces, "time")));
    }
    if file.mailbox.shared_with > 0 {
        lines.push(format!("  the mailbox is shared with {} other address(es)", file.mailbox.shared_with));
    }
    lines.extend(file.sign_ins.iter().map(|sign_in| {
        let used = sign_in.used_at.map_or_else(|| "not used".to_owned(), |at| format!("used at {at}"));
        format!("  {}  a sign-in link was asked for and mailed, {used}", sign_in.asked_at)
    }));
    if !file.sign_ins.is_empty() {
        lines.push(
            "  a mailbox gets at most one of these a minute, 5 an hour and 10 a day; requests past that are not mailed"
                .to_owned(),
        );
    }
    let sent = &file.mailbox.record.sent;
    lines.extend(
        sent.iter().map(|(time, source)| format!("  {time}  a mail was sent, asked for by {}", source_name(source))),
    );
    if sent.is_empty() {
        lines.push("  no mail was sent there yet, as far as the records tell".to_owned());
    }
    if !file.participations.is_empty() {
        lines.extend([String::new(), "Campaigns".to_owned()]);
        lines.extend(file.participations.iter().map(participation_line));
    }
    lines.extend(reward_lines(&file.rewards));
    lines.extend([String::new(), "Sign-ups".to_owned()]);
    if file.sign_ups.is_empty() {
        lines.push("  none: only a referral link was asked for".to_owned());
    }
    for sign_up in &file.sign_ups {
        lines.extend(sign_up_lines(sign_up, file, now));
    }
    lines
}

fn participation_line(entry: &ParticipationEntry) -> String {
    let ParticipationEntry { campaign, state, in_at, accepted_at, changed_at } = entry;
    let earlier = match state {
        ParticipationState::In => None,
        ParticipationState::Accepted => in_at.map(|at| format!(", in at {at}")),
        ParticipationState::Out => in_at.map(|at| format!(", was in since {at}")),
        ParticipationState::Passed => accepted_at.map(|at| format!(", had accepted at {at}")),
    };
    format!("  {campaign}: {} since {changed_at}{}", state.name(), earlier.unwrap_or_default())
}

/// What they earned by those whom they referred; nothing where that is nothing.
fn reward_lines(rewards: &RewardStanding) -> Vec<String> {
    if *rewards == RewardStanding::default() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "Rewards".to_owned()];
    lines.extend(rewards.campaigns.iter().map(|standing| {
        let CampaignStanding { campaign, on_hold, on_hold_until, waiting, groups, capped, .. } = standing;
        let until = on_hold_until.map_or_else(String::new, |until| format!(" (the first until {until})"));
        let groups = counted((*groups).into(), "group");
        let capped = match standing.has_uncounted_capped() {
            true => format!("more than {}", grouped(RewardStanding::MOST_COUNTED.into())),
            false => grouped((*capped).into()),
        };
        format!("  {campaign}: {groups} rewarded, {capped} capped, {waiting} waiting for a full group, {on_hold} on hold{until}")
    }));
    let RewardStanding { due_cents, out_cents, paid_cents, .. } = rewards;
    let (out, paid) = (money(*out_cents), money(*paid_cents));
    lines.push(match due_cents {
        ..0 => format!(
            "  {} more was paid, or is being paid, than was earned; it is deducted from later rewards; being paid {out}, paid {paid}",
            money(-due_cents)
        ),
        _ => format!("  due {}, being paid {out}, paid {paid}", money(*due_cents)),
    });
    lines
}

fn answer_words(person: &PersonRecord) -> String {
    let mut answers: Vec<_> = person.us_state.iter().map(|state| state.code().to_owned()).collect();
    answers.extend(person.categories.iter().map(|category| category.slug().to_owned()));
    if !person.comments.is_empty() {
        answers.push(quote(&person.comments));
    }
    if answers.is_empty() { "none".to_owned() } else { answers.join(", ") }
}

fn state_words(person: &PersonRecord) -> String {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "?".to_owned(), |time| time.to_string());
    match person.state {
        PersonState::Invited => format!("invited: known since {}, not a member", person.created_at),
        PersonState::Member => {
            let source = person.source.as_deref().map_or("the form", source_name);
            format!("member since {}, through {source}", time(person.joined_at))
        }
        PersonState::Left if person.joined_at == Some(NO_TIME) => {
            "was a member, was erased, and was signed up again since".to_owned()
        }
        PersonState::Left => format!("left at {}, joined at {}", time(person.left_at), time(person.joined_at)),
    }
}

fn sign_up_lines(sign_up: &SignUpEntry, file: &PersonFile, now: Timestamp) -> Vec<String> {
    let key = sign_up.key.as_deref().map_or_else(String::new, |key| format!(" with key {key}"));
    let decided = match (sign_up.state, sign_up.decided_at) {
        (SignUpState::Pending, _) => format!("pending until {}", sign_up.expires_at),
        (state, Some(at)) => format!("{} at {at}", state.name()),
        (state, None) => state.name().to_owned(),
    };
    let mut lines = vec![format!("  {}  by {}{key}: {decided}", sign_up.created_at, source_name(&sign_up.source))];
    let mut answers: Vec<_> = sign_up.us_state.iter().map(|state| state.code().to_owned()).collect();
    answers.extend(sign_up.categories.iter().map(|category| category.slug().to_owned()));
    if let Some(referrer) = &sign_up.referrer {
        answers.push(format!("referred by {referrer}"));
    }
    if sign_up.disposable {
        answers.push("a disposable address".to_owned());
    }
    if !sign_up.comments.is_empty() {
        answers.push(quote(&sign_up.comments));
    }
    if !answers.is_empty() {
        lines.push(format!("      {}", answers.join(", ")));
    }
    lines.extend(evidence_words(sign_up).map(|words| format!("      {words}")));
    lines.extend(mail_words(sign_up, file, now).map(|words| format!("      {words}")));
    lines
}

/// How they came to be asked, and how they decided, as far as it was kept.
fn evidence_words(sign_up: &SignUpEntry) -> Option<String> {
    let KeptEvidence { channel, client, notice, mailed_at, decided_how, .. } = &sign_up.evidence;
    let mut words = Vec::new();
    words.extend(channel.map(|channel| format!("by {}", channel.name())));
    words.extend(client.as_ref().map(|client| format!("client {} (self-asserted)", quote(client))));
    words.extend(notice.as_ref().map(|notice| format!("notice {}", notice.hash)));
    words.extend(mailed_at.map(|at| format!("mailed at {at}")));
    words.extend(decided_how.as_ref().map(|how| format!("decided by {how}")));
    (!words.is_empty()).then(|| format!("evidence: {}", words.join(", ")))
}

/// What became of a sign-up's mail, as far as the records tell.
fn mail_words(sign_up: &SignUpEntry, file: &PersonFile, now: Timestamp) -> Option<String> {
    if let Some(mail) = &sign_up.mail {
        return Some(waiting_words(mail, sign_up, file, now));
    }
    if sign_up.state != SignUpState::Pending {
        return None;
    }
    Some(match sign_up.evidence.mailed_at {
        Some(at) => format!("its mail was sent at {at}"),
        None if file.person.state == PersonState::Member
            && !file.person.mail_choices.wants(MailKind::AlreadyMember) =>
        {
            "they turned off this kind of mail".to_owned()
        }
        None if !obstacles(file, now).is_empty() => "its mail was dropped, for the reason above".to_owned(),
        None => "no mail waits for it: it was sent, or other mail to this mailbox came first".to_owned(),
    })
}

fn waiting_words(mail: &WaitingMail, sign_up: &SignUpEntry, file: &PersonFile, now: Timestamp) -> String {
    let id = mail.id.0;
    let cause = mail.last_error.as_deref().map_or_else(String::new, |cause| format!(": {cause}"));
    let tries = counted(mail.attempts.into(), "attempt");
    if mail.given_up_at.is_some() {
        return format!("mail {id} was given up after {tries}{cause}; `unionhall mail retry {id}` tries again");
    }
    if let Some(since) = mail.held_at {
        return format!(
            "mail {id} is held since {since}: its source has used up its mail of the day, its key was revoked, its partner was \
             suspended, or the records were restored; `unionhall mail retry {id}` lets it go"
        );
    }
    if mail.attempts > 0 {
        return format!("mail {id} waits after {tries}{cause}; next at {}", mail.send_after);
    }
    let allowed = file.mailbox.record.next_allowed(&sign_up.source, now);
    match allowed.max(mail.send_after) {
        at if at > now => {
            format!("mail {id} waits until {at}: the mailbox has reached its limit (one every ten minutes, four a day)")
        }
        _ => format!("mail {id} is due now; check that the service is running and that its mail is not `hold`"),
    }
}

/// A sign-up of somebody's, with what the operator alone sees: its numbers, and the address that was typed.
pub(super) fn sign_up_json(sign_up: &SignUpEntry) -> Value {
    let mut document = json!(sign_up);
    document["id"] = sign_up.id.0.into();
    document["email"] = sign_up.email.as_str().into();
    document["waitingMail"] = sign_up.mail.as_ref().map(waiting_mail_json).into();
    document
}

/// The person's own document, their row of `members export`, and what the operator alone sees.
fn file_json(file: &PersonFile, now: Timestamp) -> Value {
    let mut document = json!(PersonDocument::of(file));
    document["mail"]["obstacles"] = obstacles(file, now).into();
    document["signUps"] = file.sign_ups.iter().map(sign_up_json).collect();
    document["erasedAt"] = json!(file.person.erased_at);
    if let (Value::Object(document), Value::Object(row)) = (&mut document, super::export::as_json(&file.person)) {
        document.extend(row);
    }
    document
}
