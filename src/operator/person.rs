//! What is kept about a person, in words, and erasing them: for the commands and the operator's page.

use super::{Act, Operator};
use crate::domain::api_key::Mode;
use crate::domain::campaign::acceptance::{AcceptanceEntry, SupplierReport};
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState};
use crate::domain::email::EmailAddress;
use crate::domain::figure::{counted, grouped, money};
use crate::domain::mail::budget::source_name;
use crate::domain::mail::{MailKind, WaitingMail};
use crate::domain::person::{
    Erased, KeptEvidence, Leaving, Lifted, NO_TIME, PersonDetails, PersonRecord, PersonState, SignUpEntry, Waiver,
};
use crate::domain::remedy::{Remedy, WriteRemedy};
use crate::domain::reward::ledger::{CampaignStanding, RewardStanding};
use crate::domain::reward::payout::PayoutRecord;
use crate::domain::sign_up::SignUpState;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::people::records::FindPerson;
use crate::people::{NotErased, People};
use crate::rewards;
use crate::rewards::payout::ListPayoutsOut;
use crate::store::StoreError;

pub struct ErasedPerson {
    erased: Erased,
    being_paid: Vec<PayoutRecord>,
}

impl Operator {
    /// Forms the groups of a referrer that are full by now, so that the amount due to them is known.
    pub async fn form_groups(&self, person: i64, now: Timestamp) -> Result<(), StoreError> {
        rewards::form_groups(&self.store, person, now).await
    }

    /// What is kept of somebody, by the `people` that are audited as this act: the log has that it was looked at, also where there is
    /// nobody.
    pub async fn look_up(
        &self,
        people: &People,
        act: Act,
        email: &EmailAddress,
        now: Timestamp,
    ) -> Result<Option<PersonDetails>, StoreError> {
        let file = people.look_up(email, now).await?;
        let gone = match &file {
            None => Some("nobody"),
            Some(file) if file.person.erased_at.is_some() => Some("somebody who was erased"),
            Some(_) => None,
        };
        if let Some(about) = gone {
            // Nobody's row was named, so the log does not have it yet.
            self.note(Act { about: about.to_owned(), ..act }).await?;
        }
        Ok(file)
    }

    /// Erases the person with that address through the audited `people`. The amount due to them must be up to date.
    pub async fn erase_person(
        &self,
        people: &People,
        email: &EmailAddress,
        waiver: Option<Waiver>,
        now: Timestamp,
    ) -> Result<Option<ErasedPerson>, NotErased> {
        // Before erasing, while the records still link them to their payouts.
        let found = self.store.run(FindPerson(email.normalized(), now)).await?;
        let being_paid = match found.and_then(|file| file.person.account) {
            Some(account) => self.ask(ListPayoutsOut(account)).await?,
            None => Vec::new(),
        };
        let erased = people.erase(email, waiver, now).await?;
        Ok(erased.map(|erased| ErasedPerson { erased, being_paid }))
    }
}

impl ErasedPerson {
    pub fn lines(&self, write: WriteRemedy) -> Vec<String> {
        let Self { erased, being_paid } = self;
        let was_member = match erased.was_member {
            true => "They were a member and are erased; the member count went down by one.",
            false => "They were not a member and are erased.",
        };
        let mut lines = vec![was_member.to_owned()];
        lines.push(format!(
            "Deleted: the address, {} with all answers, {} in the outbox.",
            counted(erased.sign_ups, "sign-up"),
            counted(erased.mails, "mail")
        ));
        if erased.waived_cents > 0 {
            lines.push(format!("Given up: {} of rewards.", money(erased.waived_cents)));
        }
        lines.push(format!(
            "Kept: the code {}, whether they were a member and who is credited for them, under a keyed hash of the address.",
            erased.code
        ));
        lines.extend(being_paid.iter().map(|PayoutRecord { amount_cents, external_id, batch, .. }| {
            format!("Being paid: {} as {external_id} in batch {batch}.", money(*amount_cents))
        }));
        if !being_paid.is_empty() {
            lines.push(
                "It is paid if the file was handed over. A file that is written again leaves it out. If it fails, no batch pays it again."
                    .to_owned(),
            );
        }
        let mailbox = match erased.mailbox_is_shared {
            true => "Another member gets mail in the same mailbox, so what is known about that mailbox is kept, too.",
            false => "No mail goes to that mailbox for 30 days, no matter who asks for it.",
        };
        lines.push(mailbox.to_owned());
        let again = write(&Remedy::EraseAgain, Mode::Live);
        lines.push(format!("Backups made before now still contain them: {again}."));
        lines
    }
}

/// The outcome of ending a membership; none if nobody has the address.
pub fn left(leaving: &Leaving) -> Option<Vec<String>> {
    match leaving {
        Leaving::Unknown => None,
        Leaving::NotAMember(state) => {
            Some(vec![format!("They are not a member ({}); nothing was changed.", state.name())])
        }
        Leaving::Left { withdrawn } => {
            let mut lines = vec!["They are no longer a member, and the member count went down by one.".to_owned()];
            if *withdrawn > 0 {
                lines.push(format!("{withdrawn} of their sign-ups were waiting to be confirmed and have lapsed."));
            }
            lines.push("They keep their referral code. To come back, they sign up again.".to_owned());
            Some(lines)
        }
    }
}

/// The outcome of letting mail reach somebody again.
pub fn lifted(lifted: Lifted) -> Vec<String> {
    let Lifted { suppression, complaint, undeliverable, partners } = lifted;
    let was = [
        (suppression, "Someone who uses that mailbox had asked for no mail, or was erased; that is lifted."),
        (complaint, "Its owner had reported our mail as spam; that is lifted."),
        (undeliverable, "Mail to it had bounced; that is cleared."),
        (partners, "Mail that some partners ask for was stopped; that is lifted."),
    ];
    let mut lines: Vec<_> = was.into_iter().filter(|(was, _)| *was).map(|(_, what)| what.to_owned()).collect();
    lines.push(match lines.is_empty() {
        true => "Nothing kept mail from that address.".to_owned(),
        false => "Mail that was dropped in the meantime is not sent: the person has to sign up again.".to_owned(),
    });
    lines
}

/// Why no mail goes to this person now, no matter what is requested, each with a fix.
pub fn obstacles(file: &PersonDetails, now: Timestamp) -> Vec<String> {
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

/// What is kept about a person, one line each. Headings are not indented; the lines under them are.
pub fn lines(file: &PersonDetails, now: Timestamp, write: WriteRemedy) -> Vec<String> {
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
            lines.push(format!("  {}", write(&Remedy::Unsuppress, Mode::Live)));
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
        format!("  {}  a sign-in link was asked for, and its mail went to the outbox; {used}", sign_in.asked_at)
    }));
    if !file.sign_ins.is_empty() {
        lines.push(
            "  a mailbox gets at most one of these a minute, 5 an hour and 10 a day; requests past that are not mailed"
                .to_owned(),
        );
    }
    lines.extend(sent_lines(file));
    if !file.participations.is_empty() {
        lines.extend([String::new(), "Campaigns".to_owned()]);
        for entry in &file.participations {
            lines.push(participation_line(entry));
            lines.extend(entry.acceptances.iter().map(acceptance_line));
        }
    }
    lines.extend(reward_lines(&file.rewards));
    lines.extend([String::new(), "Sign-ups".to_owned()]);
    if file.sign_ups.is_empty() {
        lines.push("  none: only a referral link was asked for".to_owned());
    }
    for sign_up in &file.sign_ups {
        lines.extend(sign_up_lines(sign_up, file, now, write));
    }
    lines
}

/// The last mails of sign-ups that left for the mailbox. Of older ones their sign-ups know.
fn sent_lines(file: &PersonDetails) -> Vec<String> {
    let handed = |time: &Timestamp, source: &str| {
        format!("  {time}  a mail was handed to the mail server, asked for by {}", source_name(source))
    };
    let sent = file.mailbox.record.sent.iter().skip(usize::from(file.mailbox.is_on_its_way));
    let mut lines: Vec<_> = sent.map(|(time, source)| handed(time, source)).collect();
    if lines.is_empty() {
        let of_sign_ups = file.sign_ups.iter().rev();
        lines = of_sign_ups.filter_map(|one| Some(handed(&one.evidence.mailed_at?, &one.source))).collect();
    }
    if lines.is_empty() {
        lines.push("  no mail of a sign-up has left, as far as the records tell".to_owned());
    }
    lines
}

fn participation_line(entry: &ParticipationEntry) -> String {
    let ParticipationEntry { campaign, state, in_at, accepted_at, changed_at, acceptances: _ } = entry;
    let earlier = match state {
        ParticipationState::In => None,
        ParticipationState::Accepted => in_at.map(|at| format!(", in at {at}")),
        ParticipationState::Out => in_at.map(|at| format!(", was in since {at}")),
        ParticipationState::Passed => accepted_at.map(|at| format!(", had accepted at {at}")),
    };
    format!("  {campaign}: {} since {changed_at}{}", state.name(), earlier.unwrap_or_default())
}

/// What they agreed to, how far the supplier knows of it, and what the two say of it.
fn acceptance_line(entry: &AcceptanceEntry) -> String {
    let AcceptanceEntry { reference, handover, handed_over_at, ended_at, ended_why, withdrawn_at, .. } = entry;
    let mut line = format!("    {reference}: agreed to hand over the {}", handover.name());
    let at = |what: &str, at: &Option<Timestamp>| at.map(|at| format!(", {what} at {at}")).unwrap_or_default();
    line += &at("handed over", handed_over_at);
    if let (Some(ended), Some(why)) = (ended_at, ended_why) {
        line += &format!(", ended at {ended} ({})", why.name());
    }
    line += &at("the supplier told so", withdrawn_at);
    if let Some(SupplierReport { status, on }) = entry.report {
        line += &format!("; the supplier says {} on {on}", status.name());
    }
    line += &at("the member says it didn't work", &entry.trouble_at);
    line
}

/// What they earned by referring others; empty if nothing.
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
    let answers = person.answers.quoted();
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

fn sign_up_lines(sign_up: &SignUpEntry, file: &PersonDetails, now: Timestamp, write: WriteRemedy) -> Vec<String> {
    let key = sign_up.key.as_deref().map_or_else(String::new, |key| format!(" with key {key}"));
    let decided = match (sign_up.state, sign_up.decided_at) {
        (SignUpState::Pending, _) => format!("pending until {}", sign_up.expires_at),
        (state, Some(at)) => format!("{} at {at}", state.name()),
        (state, None) => state.name().to_owned(),
    };
    let mut lines = vec![format!("  {}  by {}{key}: {decided}", sign_up.created_at, source_name(&sign_up.source))];
    let mut answers = sign_up.answers.quoted();
    if let Some(referrer) = &sign_up.referrer {
        answers.push(format!("referred by {referrer}"));
    }
    if sign_up.disposable {
        answers.push("a disposable address".to_owned());
    }
    if !answers.is_empty() {
        lines.push(format!("      {}", answers.join(", ")));
    }
    lines.extend(evidence_words(sign_up).map(|words| format!("      {words}")));
    lines.extend(mail_words(sign_up, file, now, write).map(|words| format!("      {words}")));
    lines
}

/// How they were asked and how they decided, where that was kept.
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

/// What happened to a sign-up's mail, where the records tell.
fn mail_words(sign_up: &SignUpEntry, file: &PersonDetails, now: Timestamp, write: WriteRemedy) -> Option<String> {
    if let Some(mail) = &sign_up.mail {
        return Some(waiting_words(mail, sign_up, file, now, write));
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
        None => "no mail of it has left, and none waits: it was refused, or other mail to this mailbox came first"
            .to_owned(),
    })
}

fn waiting_words(
    mail: &WaitingMail,
    sign_up: &SignUpEntry,
    file: &PersonDetails,
    now: Timestamp,
    write: WriteRemedy,
) -> String {
    let id = mail.id.0;
    let cause = mail.last_error.as_deref().map_or_else(String::new, |cause| format!(": {cause}"));
    let tries = counted(mail.attempts.into(), "attempt");
    if mail.given_up_at.is_some() {
        let retry = write(&Remedy::RetryMail(mail.id), Mode::Live);
        return format!("mail {id} was given up after {tries}{cause}; {retry}");
    }
    if let Some(since) = mail.held_at {
        return format!(
            "mail {id} is held since {since}: its source has used up its mail of the day, its key was revoked, its partner was \
             suspended, or the records were restored; {}",
            write(&Remedy::ReleaseMail(mail.id), Mode::Live)
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
