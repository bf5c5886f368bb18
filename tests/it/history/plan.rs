//! What the clients do and what befalls the service, from a seed alone: the same seed plans the same run.
//!
//! What comes of a plan is the machine's doing, so a replay meets the same steps and faults and not the same instants.

use crate::prelude::*;
use unionhall::domain::catalog::category::{Category, CategorySet};
use unionhall::domain::us_state::UsState;

/// People whom every client knows, so that clients meet over them.
const SHARED: u64 = 24;

pub(super) const PARTNERS: u64 = 2;

/// SplitMix64: small, and the same everywhere for ever.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    /// A stream of its own for each part of a run.
    pub(super) fn new(seed: u64, part: u64) -> Self {
        let mut rng = Self(seed ^ part.wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Rest,
    Mcp,
    Form,
}

/// With which key of its partner: the one that stays, or one of those that come and go, by a number to choose it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhichKey {
    Lasting,
    Passing(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    SignUp {
        who: u64,
        channel: Channel,
        partner: u64,
        key: WhichKey,
        us_state: Option<&'static str>,
        categories: Option<String>,
        comments: Option<String>,
        /// By whom they were referred, if that person has a code by then.
        referred_by: Option<u64>,
    },
    Link {
        who: u64,
        channel: Channel,
        partner: u64,
        key: WhichKey,
    },
    /// Follows the newest mail about this partner's sign-up; none is the form's. `looks` opens the page first.
    Confirm {
        who: u64,
        partner: Option<u64>,
        looks: bool,
    },
    Decline {
        who: u64,
        partner: Option<u64>,
    },
    Stats {
        channel: Channel,
    },
    Issue {
        partner: u64,
    },
    /// Ends one of the passing keys, by a number to choose it with.
    Revoke(u64),
    Pause,
    Resume,
}

/// A client's steps, each with how long it waits before it; they never end.
pub(super) struct Steps {
    rng: Rng,
    client: u64,
    made: u64,
    /// Whom it brought in itself, newest last.
    own: Vec<u64>,
}

impl Steps {
    pub(super) fn of_client(seed: u64, client: u64) -> Self {
        Self { rng: Rng::new(seed, 1000 + client), client, made: 0, own: Vec::new() }
    }

    fn new_person(&mut self) -> u64 {
        let who = 1_000_000 * (self.client + 1) + self.made;
        self.own.push(who);
        who
    }

    fn somebody(&mut self) -> u64 {
        let recent = &self.own[self.own.len().saturating_sub(6)..];
        if recent.is_empty() || self.rng.percent(40) { self.rng.below(SHARED) } else { self.rng.pick(recent) }
    }

    fn partner_or_form(&mut self) -> Option<u64> {
        if self.rng.percent(25) { None } else { Some(self.rng.below(PARTNERS)) }
    }

    fn key(&mut self) -> WhichKey {
        if self.rng.percent(30) { WhichKey::Passing(self.rng.next()) } else { WhichKey::Lasting }
    }

    fn sign_up(&mut self, who: u64) -> Step {
        let channel = match self.rng.below(10) {
            0..5 => Channel::Rest,
            5..8 => Channel::Mcp,
            _ => Channel::Form,
        };
        let (partner, key) = (self.rng.below(PARTNERS), self.key());
        let us_state = self.rng.percent(40).then(|| self.rng.pick(UsState::ALL).code());
        let categories = self.rng.percent(50).then(|| {
            let mut chosen = CategorySet::default();
            (0..self.rng.below(4)).for_each(|_| chosen.insert(self.rng.pick(Category::ALL)));
            chosen.to_string()
        });
        // No two are the same, so that the records tell whose they are.
        let comments = self.rng.percent(50).then(|| match self.rng.percent(10) {
            true => String::new(),
            false => format!("comment {} of client {}", self.made, self.client),
        });
        let referred_by = self.rng.percent(35).then(|| self.rng.below(SHARED));
        Step::SignUp { who, channel, partner, key, us_state, categories, comments, referred_by }
    }
}

impl Iterator for Steps {
    type Item = (Duration, Step);

    fn next(&mut self) -> Option<Self::Item> {
        self.made += 1;
        let wait = self.rng.millis(1, 30);
        let step = match self.rng.below(100) {
            0..25 => {
                let who = self.new_person();
                self.sign_up(who)
            }
            25..50 => {
                let who = self.somebody();
                self.sign_up(who)
            }
            50..60 => {
                let who = self.somebody();
                let channel = if self.rng.percent(50) { Channel::Rest } else { Channel::Mcp };
                Step::Link { who, channel, partner: self.rng.below(PARTNERS), key: self.key() }
            }
            60..80 => {
                Step::Confirm { who: self.somebody(), partner: self.partner_or_form(), looks: self.rng.percent(40) }
            }
            80..88 => Step::Decline { who: self.somebody(), partner: self.partner_or_form() },
            _ => Step::Stats { channel: if self.rng.percent(50) { Channel::Rest } else { Channel::Mcp } },
        };
        Some((wait, step))
    }
}

/// What the operator does, by turns: keys come and go, and sign-ups are paused for longer than a pause takes to be seen.
pub(super) fn operator(seed: u64) -> impl Iterator<Item = (Duration, Step)> {
    let mut rng = Rng::new(seed, 1);
    let mut made = 0_u64;
    std::iter::from_fn(move || {
        made += 1;
        let short = rng.millis(50, 300);
        Some(match made % 8 {
            1 | 2 => (short, Step::Issue { partner: rng.below(PARTNERS) }),
            3 => (rng.millis(200, 900), Step::Revoke(rng.next())),
            4 => (rng.millis(400, 1200), Step::Pause),
            5 => (rng.millis(2200, 2700), Step::Resume),
            6 => (short, Step::Issue { partner: rng.below(PARTNERS) }),
            7 => (rng.millis(300, 1500), Step::Revoke(rng.next())),
            _ => (rng.millis(500, 2500), Step::Issue { partner: rng.below(PARTNERS) }),
        })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Fault {
    NodeKilled,
    /// The process stands still (SIGSTOP).
    NodeFrozen,
    DiskFull,
    /// The calendar's clock of the nodes is moved.
    ClockMoved,
    /// Ended without warning, as by a power cut.
    PostgresKilled,
    /// Stopped as an operator stops it, with everybody's connection.
    PostgresStopped,
    RedisKilled,
}

/// Faults that befall the service together, one after the other, and are mended together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// How long all is well before.
    pub calm: Duration,
    pub faults: Vec<Fault>,
    pub lasts: Duration,
    /// Numbers to choose a node, a clock or a size with.
    pub choice: u64,
}

/// All troubles of a run, without end. Each kind comes once before any comes again; where there are none, nothing happens.
pub(super) fn troubles(seed: u64, kinds: &[Fault]) -> impl Iterator<Item = Trouble> {
    let mut rng = Rng::new(seed, 2);
    let kinds = kinds.to_vec();
    let mut left = Vec::new();
    std::iter::from_fn(move || {
        if kinds.is_empty() {
            let (calm, lasts) = (Duration::from_millis(200), Duration::ZERO);
            return Some(Trouble { calm, faults: Vec::new(), lasts, choice: 0 });
        }
        if left.is_empty() {
            left.clone_from(&kinds);
        }
        let first = left.swap_remove(usize::try_from(rng.below(left.len() as u64)).unwrap());
        let mut faults = vec![first];
        let other = rng.pick(&kinds);
        // What is away already cannot be taken away.
        let takes_postgres = |fault| matches!(fault, Fault::PostgresKilled | Fault::PostgresStopped);
        if rng.percent(30) && other != first && !(takes_postgres(first) && takes_postgres(other)) {
            faults.push(other);
        }
        Some(Trouble { calm: rng.millis(300, 1200), faults, lasts: rng.millis(80, 600), choice: rng.next() })
    })
}

mod once {
    use super::*;

    #[test]
    fn a_seed_plans_the_same_run_every_time_and_another_seed_another() {
        let steps = |seed| Steps::of_client(seed, 3).take(200).collect::<Vec<_>>();
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
        assert_ne!(steps(7), Steps::of_client(7, 4).take(200).collect::<Vec<_>>());
        let kinds = [Fault::NodeKilled, Fault::NodeFrozen, Fault::DiskFull, Fault::ClockMoved];
        let faults = |seed| troubles(seed, &kinds).take(40).collect::<Vec<_>>();
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
        let first: Vec<_> = faults(7)[..4].iter().map(|trouble| trouble.faults[0]).collect();
        assert!(kinds.iter().all(|kind| first.contains(kind)), "each kind once before any again: {first:?}");
        assert_eq!(operator(7).take(50).collect::<Vec<_>>(), operator(7).take(50).collect::<Vec<_>>());
    }
}
