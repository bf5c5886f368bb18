//! What rewards must be, reckoned without tables: a naive oracle of the rules, written from them and not from the code.
//!
//! It is told everything in the order in which it happens, and looks at everybody each time. Times are milliseconds, people and
//! campaigns are numbers. In what order things happen within a millisecond nobody can tell: who leaves in it was a member in it.

use unionhall::domain::catalog::CountsOn;

const DAY: i64 = 86_400_000;

/// What a campaign promises, from when it is active.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub cents: i64,
    pub size: usize,
    pub most: usize,
    pub hold: i64,
    pub counts_on: CountsOn,
}

#[derive(Debug)]
pub(super) struct Campaign {
    pub state: &'static str,
    pub active: Option<(i64, Terms)>,
    pub cancelled_at: Option<i64>,
}

/// Somebody's part in a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub accepted_at: Option<i64>,
    pub qualified_at: Option<i64>,
    pub is_voided: bool,
    pub group: Option<usize>,
    /// How they counted before they ceased to. Meanwhile they may take part anew.
    pub before: Option<Before>,
    /// When they had accepted a campaign that was over when they left.
    left_with: Option<i64>,
    /// What the supplier said last, and since when they switched by that.
    pub status: Option<&'static str>,
    switched_at: Option<i64>,
}

/// Somebody's place in a group, when they ceased to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    pub qualified_at: i64,
    pub group: Option<usize>,
    /// The group was paid by then, so they stay in it.
    pub is_kept: bool,
}

#[derive(Debug, Default)]
pub(super) struct Person {
    pub is_member: bool,
    pub left_at: Option<i64>,
    pub joined_at: i64,
    pub has_joined: bool,
    pub is_erased: bool,
    /// How often they were erased: each time another account begins.
    pub life: usize,
    pub referrer: Option<usize>,
    /// What they were paid too much in an earlier life.
    pub owed: i64,
    pub parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub referrer: usize,
    pub campaign: usize,
    pub state: &'static str,
    pub payout: Option<usize>,
}

/// Whose money it is: a person and their life.
pub(super) type Purse = (usize, usize);

#[derive(Debug, Clone)]
pub(super) struct Payout {
    pub purse: Purse,
    pub campaign: usize,
    pub cents: i64,
    pub groups: usize,
    pub state: &'static str,
    pub batch: i64,
    /// Its file may be out.
    pub is_closed: bool,
}

impl Payout {
    pub(super) fn is_unwritten(&self) -> bool {
        self.state == "out" && !self.is_closed
    }
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub purse: Purse,
    pub campaign: Option<usize>,
    pub kind: &'static str,
    pub cents: i64,
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub campaigns: Vec<Campaign>,
    pub people: Vec<Person>,
    pub groups: Vec<Group>,
    pub payouts: Vec<Payout>,
    pub lines: Vec<Line>,
    /// Who ceased to count while they were in a group, and in which campaign; the worker has not looked yet.
    pub notes: Vec<(usize, usize)>,
    /// Until when everybody was looked at.
    looked_at: i64,
}

impl Oracle {
    pub(super) fn new(people: usize, campaigns: usize, now: i64) -> Self {
        let person = || Person { parts: vec![Part::default(); campaigns], ..Person::default() };
        Self {
            campaigns: (0..campaigns)
                .map(|_| Campaign { state: "gathering", active: None, cancelled_at: None })
                .collect(),
            people: (0..people).map(|_| person()).collect(),
            looked_at: now,
            ..Self::default()
        }
    }

    /// Time passes, and nothing else: whoever fulfils everything counts from the moment at which the last of it came true.
    pub(super) fn look(&mut self, now: i64) {
        for who in 0..self.people.len() {
            for campaign in 0..self.campaigns.len() {
                let Some(over) = self.hold_ends(who, campaign).filter(|over| *over <= now) else { continue };
                let moment = over.max(self.looked_at);
                if self.may_count(who, campaign, moment) {
                    self.people[who].parts[campaign].qualified_at = Some(moment);
                }
            }
        }
        self.looked_at = now;
    }

    /// When the hold of somebody who takes part is over.
    pub(super) fn hold_ends(&self, who: usize, campaign: usize) -> Option<i64> {
        let (active_at, terms) = self.campaigns[campaign].active?;
        let part = self.people[who].parts[campaign];
        let switched_at = part.switched_at.filter(|_| terms.counts_on == CountsOn::Switched);
        Some(part.accepted_at?.max(active_at).max(switched_at.unwrap_or(0)) + terms.hold)
    }

    /// Whether what the supplier says lets them count.
    pub(super) fn takes_part(&self, who: usize, campaign: usize) -> bool {
        let status = self.people[who].parts[campaign].status;
        match self.terms(campaign).counts_on {
            CountsOn::Switched => status == Some("switched"),
            CountsOn::Accepted => !matches!(status, Some("rejected" | "cancelled")),
        }
    }

    /// A supplier says what became of an order of somebody who accepted; where they switched, since when.
    pub(super) fn says(&mut self, who: usize, campaign: usize, status: &'static str, at: i64) {
        let part = &mut self.people[who].parts[campaign];
        part.status = Some(status);
        match status {
            "switched" => part.switched_at = Some(at),
            "rejected" | "cancelled" => self.stop(who, campaign),
            _ => {}
        }
        // The date may be of days ago.
        let Some(over) = self.hold_ends(who, campaign).filter(|over| *over <= self.looked_at) else { return };
        let part = self.people[who].parts[campaign];
        if status == "switched" && self.takes_part(who, campaign) && part.qualified_at.is_none() && !part.is_voided {
            self.people[who].parts[campaign].qualified_at = self.people[who].referrer.map(|_| over);
            self.recount(who, campaign);
        }
    }

    /// Whether everything but the hold is fulfilled in that moment, and they do not count yet.
    fn may_count(&self, who: usize, campaign: usize, moment: i64) -> bool {
        let part = self.people[who].parts[campaign];
        let is_member = |who: usize| self.people[who].is_member || self.people[who].left_at == Some(moment);
        let Campaign { state, cancelled_at, .. } = self.campaigns[campaign];
        part.qualified_at.is_none()
            && !part.is_voided
            && self.takes_part(who, campaign)
            && is_member(who)
            && self.people[who].referrer.is_some_and(is_member)
            && (matches!(state, "active" | "closed") || cancelled_at == Some(moment))
    }

    pub(super) fn join(&mut self, who: usize, link: Option<usize>, now: i64) {
        // A link earns for whoever is a member or may become one, and once: for a new member.
        let earns = |other: &usize| {
            let other = &self.people[*other];
            !other.is_erased && (other.is_member || !other.has_joined)
        };
        let referrer = link.filter(|other| *other != who).filter(earns);
        let person = &mut self.people[who];
        if !person.has_joined {
            person.referrer = referrer;
        }
        (person.is_member, person.has_joined, person.is_erased) = (true, true, false);
        person.joined_at = now;
        // In the millisecond in which they accepted: then they did not leave in between, as far as anybody can tell.
        for part in &mut person.parts {
            part.accepted_at = part.accepted_at.or(part.left_with.take().filter(|at| *at == now));
        }
    }

    /// Somebody accepts an offer, or passes.
    pub(super) fn press(&mut self, who: usize, campaign: usize, accepts: bool, now: i64) {
        let part = &mut self.people[who].parts[campaign];
        match (accepts, part.accepted_at) {
            (true, before) => part.accepted_at = before.or(Some(now)),
            (false, None) => {}
            (false, Some(_)) => self.cease(who, campaign),
        }
    }

    /// Somebody takes part no longer, and counts no longer.
    fn cease(&mut self, who: usize, campaign: usize) {
        let part = &mut self.people[who].parts[campaign];
        (part.accepted_at, part.status, part.switched_at) = (None, None, None);
        self.stop(who, campaign);
    }

    /// Somebody counts no longer.
    fn stop(&mut self, who: usize, campaign: usize) {
        let part = &mut self.people[who].parts[campaign];
        if part.is_voided {
            return;
        }
        let (qualified_at, group) = (part.qualified_at.take(), part.group.take());
        if let (Some(qualified_at), Some(_)) = (qualified_at, group) {
            part.before = Some(Before { qualified_at, group, is_kept: false });
            self.notes.push((who, campaign));
        }
    }

    /// The worker, or whoever makes a batch, looks at those who ceased to count: at the first of them.
    pub(super) fn end_next(&mut self) {
        let (who, campaign) = self.notes.remove(0);
        let part = &mut self.people[who].parts[campaign];
        let Some(before) = &mut part.before else { return };
        let group = before.group.map(|group| &self.groups[group]);
        let is_out = |group: &Group| group.payout.is_some_and(|payout| self.payouts[payout].is_closed);
        if group.is_some_and(|group| is_out(group) || !matches!(group.state, "accrued" | "capped")) {
            before.is_kept = true;
            return;
        }
        let group = before.group;
        part.before = None;
        self.recount(who, campaign);
        if let Some(group) = group {
            self.open(group);
        }
    }

    pub(super) fn end_noted(&mut self) {
        while !self.notes.is_empty() {
            self.end_next();
        }
    }

    /// Somebody who counts anew was not looked at while they were kept in a group: what is known of their referrer now decides.
    fn recount(&mut self, who: usize, campaign: usize) {
        let part = self.people[who].parts[campaign];
        let (Some(at), Some(referrer)) = (part.qualified_at, self.people[who].referrer) else { return };
        let referrer = &self.people[referrer];
        let at = at.max(referrer.joined_at);
        let was_member = !referrer.is_erased && (referrer.is_member || referrer.left_at.is_some_and(|left| left >= at));
        let is_over = self.campaigns[campaign].cancelled_at.is_some_and(|over| over < at);
        self.people[who].parts[campaign].qualified_at = Some(at).filter(|_| was_member && !is_over);
    }

    pub(super) fn leave(&mut self, who: usize, now: i64) {
        if std::mem::take(&mut self.people[who].is_member) {
            self.people[who].left_at = Some(now);
        }
        for campaign in 0..self.campaigns.len() {
            let is_over = matches!(self.campaigns[campaign].state, "closed" | "cancelled");
            let part = &mut self.people[who].parts[campaign];
            part.left_with = part.accepted_at.filter(|_| is_over).or(part.left_with);
            self.cease(who, campaign);
        }
    }

    /// Whether that is done: not while money is due, unless it is given up.
    pub(super) fn erase(&mut self, who: usize, waives: bool) -> bool {
        let due = self.due_with_unwritten(self.purse(who));
        if due > 0 {
            if !waives {
                return false;
            }
            self.recall(who);
            self.book(who, None, "reversal", -due);
            for group in self.unpaid(who) {
                self.groups[group].state = "waived";
            }
        }
        self.people[who].owed += due.min(0).abs();
        self.leave(who, self.looked_at);
        self.people[who].left_at = None;
        for part in &mut self.people[who].parts {
            part.left_with = None;
            // What is kept of them is kept to the day.
            if let Some(before) = &mut part.before {
                before.qualified_at -= before.qualified_at % DAY;
            }
        }
        for group in self.groups.iter_mut().filter(|group| group.referrer == who) {
            if group.state != "capped" {
                group.payout = None;
            }
            if group.state == "accrued" {
                group.state = "settled";
            }
        }
        self.people[who].life += 1;
        self.people[who].is_erased = true;
        true
    }

    /// What a void does: the state of the group, and what the referrer loses. None: nobody is credited, or they were voided before.
    pub(super) fn void(&mut self, who: usize, campaign: usize) -> Option<(Option<&'static str>, i64)> {
        let part = self.people[who].parts[campaign];
        if part.is_voided || self.people[who].referrer.is_none() {
            return None;
        }
        let part = &mut self.people[who].parts[campaign];
        part.is_voided = true;
        let before = part.before.take().and_then(|before| before.group);
        let Some(group) = part.group.take().or(before) else { return Some((None, 0)) };
        let (state, cents) = self.open(group);
        Some((Some(state), cents))
    }

    /// A group opens: its state then, and what its referrer loses.
    fn open(&mut self, group: usize) -> (&'static str, i64) {
        let Group { referrer, campaign, .. } = self.groups[group];
        self.recall(referrer);
        let (before, is_paid) = (self.groups[group].state, self.groups[group].payout.is_some());
        let after = match before {
            "accrued" if is_paid => "reversed",
            "accrued" | "capped" => "dissolved",
            other => return (other, 0),
        };
        self.groups[group].state = after;
        for who in 0..self.people.len() {
            let part = &mut self.people[who].parts[campaign];
            if part.group == Some(group) {
                part.group = None;
            }
            match &mut part.before {
                Some(Before { group: of, is_kept: false, .. }) if *of == Some(group) => *of = None,
                Some(Before { group: of, is_kept: true, .. }) if *of == Some(group) => {
                    part.before = None;
                    self.recount(who, campaign);
                }
                _ => {}
            }
        }
        if before == "capped" {
            return (after, 0);
        }
        let cents = self.terms(campaign).cents;
        self.book(referrer, Some(campaign), "reversal", -cents);
        if after == "dissolved" {
            self.move_up(referrer);
        }
        (after, cents)
    }

    /// What is in a batch whose file was not written is due again.
    fn recall(&mut self, who: usize) {
        let purse = self.purse(who);
        for payout in 0..self.payouts.len() {
            if self.payouts[payout].purse == purse && self.payouts[payout].is_unwritten() {
                self.fail(payout);
            }
        }
    }

    /// A payout fails: what it paid for is due again. Whoever ceased to count meanwhile is looked at.
    fn fail(&mut self, payout: usize) {
        self.payouts[payout].state = "failed";
        let Payout { purse, campaign, cents, .. } = self.payouts[payout];
        self.lines.push(Line { purse, campaign: Some(campaign), kind: "payout_failed", cents });
        for group in 0..self.groups.len() {
            if self.groups[group].payout != Some(payout) {
                continue;
            }
            self.groups[group].payout = None;
            // It was never paid.
            if self.groups[group].state == "reversed" {
                self.groups[group].state = "dissolved";
            }
            for who in 0..self.people.len() {
                let before = self.people[who].parts[campaign].before;
                if before.is_some_and(|before| before.is_kept && before.group == Some(group)) {
                    self.notes.push((who, campaign));
                }
            }
        }
    }

    /// A place that is free goes to the oldest group that may have it.
    fn move_up(&mut self, referrer: usize) {
        while let Some(next) = (0..self.groups.len()).find(|next| {
            let next = &self.groups[*next];
            next.referrer == referrer && next.state == "capped" && self.has_room(referrer, next.campaign)
        }) {
            self.accrue(next);
        }
    }

    /// The next group of a referrer, over all campaigns that which was full first; false if there is none.
    pub(super) fn form_group(&mut self, referrer: usize) -> bool {
        if self.people[referrer].is_erased {
            return false;
        }
        let full = (0..self.campaigns.len()).filter_map(|campaign| {
            let size = self.campaigns[campaign].active?.1.size;
            let waiting = self.waiting(referrer, campaign);
            let last = *waiting.get(size - 1)?;
            Some((self.people[last].parts[campaign].qualified_at, campaign, waiting[..size].to_vec()))
        });
        let Some((_, campaign, members)) = full.min() else { return false };
        let group = self.groups.len();
        self.groups.push(Group { referrer, campaign, state: "capped", payout: None });
        for member in members {
            self.people[member].parts[campaign].group = Some(group);
        }
        if self.has_room(referrer, campaign) {
            self.accrue(group);
        }
        true
    }

    /// Who counts for a referrer and is in no group, in the order of groups.
    pub(super) fn waiting(&self, referrer: usize, campaign: usize) -> Vec<usize> {
        let waits = |who: &usize| {
            let part = self.people[*who].parts[campaign];
            self.people[*who].referrer == Some(referrer)
                && part.qualified_at.is_some()
                && part.before.is_none()
                && !part.is_voided
                && part.group.is_none()
        };
        let mut waiting: Vec<_> = (0..self.people.len()).filter(waits).collect();
        waiting.sort_by_key(|who| (self.people[*who].parts[campaign].qualified_at, *who));
        waiting
    }

    /// Everything is looked at, and all groups are formed.
    pub(super) fn work(&mut self) {
        self.end_noted();
        for referrer in 0..self.people.len() {
            while self.form_group(referrer) {}
        }
    }

    /// Whether another group of a campaign may be rewarded: over all campaigns no more than its terms allow, in number and in sum.
    /// What was paid keeps its place, whatever became of it.
    fn has_room(&self, referrer: usize, campaign: usize) -> bool {
        let places = self.groups.iter().filter(|group| {
            group.referrer == referrer && matches!(group.state, "accrued" | "reversed" | "waived" | "settled")
        });
        let (mut count, mut cents) = (0, 0);
        for place in places {
            (count, cents) = (count + 1, cents + self.terms(place.campaign).cents);
        }
        let terms = self.terms(campaign);
        count < terms.most && cents + terms.cents <= terms.cents * terms.most as i64
    }

    fn accrue(&mut self, group: usize) {
        let Group { referrer, campaign, .. } = self.groups[group];
        self.groups[group].state = "accrued";
        self.book(referrer, Some(campaign), "accrual", self.terms(campaign).cents);
        let owed = std::mem::take(&mut self.people[referrer].owed);
        if owed > 0 {
            self.book(referrer, None, "reversal", -owed);
        }
    }

    /// Everybody who is due something is paid all of it, a payout a campaign. What was paid too much before is taken off the first.
    pub(super) fn pay(&mut self, batch: i64) {
        for who in 0..self.people.len() {
            let due = self.due(self.purse(who));
            if due <= 0 {
                continue;
            }
            let unpaid = self.unpaid(who);
            let worth =
                |groups: &[usize]| -> i64 { groups.iter().map(|g| self.terms(self.groups[*g].campaign).cents).sum() };
            let mut too_much = worth(&unpaid) - due;
            for campaign in 0..self.campaigns.len() {
                let of: Vec<_> = unpaid.iter().copied().filter(|g| self.groups[*g].campaign == campaign).collect();
                if of.is_empty() {
                    continue;
                }
                let earned = of.len() as i64 * self.terms(campaign).cents;
                let kept_back = too_much.clamp(0, earned);
                too_much -= kept_back;
                let payout = self.payout(batch, who, campaign, (earned - kept_back, of.len()));
                for group in of {
                    self.groups[group].payout = Some(payout);
                }
            }
            // A payout failed whose group is reversed, and others were netted against it meanwhile.
            if too_much < 0 {
                let failed = |payout: &&Payout| payout.purse == self.purse(who) && payout.state == "failed";
                let campaign = self.payouts.iter().rfind(failed).expect("nothing else is due without a group").campaign;
                self.payout(batch, who, campaign, (-too_much, 0));
            }
        }
    }

    /// The file of a batch is written from here on.
    pub(super) fn close(&mut self, batch: i64) {
        self.payouts.iter_mut().filter(|payout| payout.batch == batch).for_each(|payout| payout.is_closed = true);
    }

    fn payout(&mut self, batch: i64, who: usize, campaign: usize, (cents, groups): (i64, usize)) -> usize {
        let state = if cents > 0 { "out" } else { "netted" };
        self.payouts.push(Payout { purse: self.purse(who), campaign, cents, groups, state, batch, is_closed: false });
        if cents > 0 {
            self.book(who, Some(campaign), "payout", -cents);
        }
        self.payouts.len() - 1
    }

    /// The provider answers; false where that changes nothing.
    pub(super) fn settle(&mut self, payout: usize, is_paid: bool) -> bool {
        let Payout { purse, state, .. } = self.payouts[payout];
        match (state, is_paid) {
            ("out", true) => self.payouts[payout].state = "paid",
            ("out" | "paid", false) => {
                self.fail(payout);
                if self.purse(purse.0) == purse {
                    self.move_up(purse.0);
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn purse(&self, who: usize) -> Purse {
        (who, self.people[who].life)
    }

    pub(super) fn due(&self, purse: Purse) -> i64 {
        self.lines.iter().filter(|line| line.purse == purse).map(|line| line.cents).sum()
    }

    /// What is in a batch whose file was not written is due, too.
    pub(super) fn due_with_unwritten(&self, purse: Purse) -> i64 {
        self.due(purse) + self.unwritten(purse)
    }

    pub(super) fn unwritten(&self, purse: Purse) -> i64 {
        let of = self.payouts.iter().filter(|payout| payout.purse == purse && payout.is_unwritten());
        of.map(|payout| payout.cents).sum()
    }

    /// The payouts of a purse in that state, in cents.
    pub(super) fn paid(&self, purse: Purse, state: &str) -> i64 {
        let of = self.payouts.iter().filter(|payout| payout.purse == purse && payout.state == state);
        of.map(|payout| payout.cents).sum()
    }

    fn unpaid(&self, who: usize) -> Vec<usize> {
        let is_unpaid = |group: &Group| group.referrer == who && group.state == "accrued" && group.payout.is_none();
        (0..self.groups.len()).filter(|group| is_unpaid(&self.groups[*group])).collect()
    }

    fn terms(&self, campaign: usize) -> Terms {
        self.campaigns[campaign].active.expect("it has groups").1
    }

    fn book(&mut self, who: usize, campaign: Option<usize>, kind: &'static str, cents: i64) {
        self.lines.push(Line { purse: self.purse(who), campaign, kind, cents });
    }
}
