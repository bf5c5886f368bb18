//! Campaigns: steps, presses and sheets, held to a model that knows no SQL.

use super::*;
use unionhall::campaigns::acceptances::EndAcceptances;
use unionhall::campaigns::admin::CampaignAdmin;
use unionhall::campaigns::bids::{AddBid, BidAdded, ListBids};
use unionhall::campaigns::operator_step::StepNote;
use unionhall::campaigns::records::FindCampaignsVersion;
use unionhall::campaigns::sheet::{DueSheet, EndCount, KeepSheet, ListDueSheets, ListSheets};
use unionhall::campaigns::states::{EditCampaign, StepByDate};
use unionhall::campaigns::{Edited, Made, worker};
use unionhall::domain::campaign::CampaignState;
use unionhall::domain::campaign::bid::Bid;
use unionhall::domain::campaign::offer::{Proposal, Publication};
use unionhall::domain::campaign::participation::BadPress;
use unionhall::domain::campaign::record::CampaignRecord;
use unionhall::store::sql::{Failure, How, Sql, Value};

/// NOW is 2027-01-15.
pub(super) fn definition(slug: &str, states: &str) -> String {
    format!(
        "slug = \"{slug}\"\ncategory = \"internet\"\nstates = [{states}]\ngather_until = 2027-01-20\n\
         [text.en]\ntitle = \"Home internet\"\nsummary = \"Less.\"\n[text.es]\ntitle = \"Internet\"\nsummary = \"Menos.\"\n\
         [benchmark]\nprice = {{ cents = 6800, per = \"month\" }}\nsource = \"survey\"\nurl = \"https://survey.example\"\n\
         date = 2026-12-01\n"
    )
}

/// The first bid of each campaign.
pub(super) const BID: &str = "supplier = \"Example Fiber\"\nprice = { cents = 4800, per = \"month\" }\nterm_months = 12\nexit_fee_cents = 0\n\
    commission_cents = 2500\nvalid_until = 2028-12-31\n";

pub(super) const OFFER: &str = "bid = 1\ndecide_by = 2027-01-25\nopen_until = 2027-01-28\ncomplaints = \"help@fiber.example\"\n[text.en]\n[text.es]\n";

/// Members decide until the first of these days, and later ones until the other.
pub(super) fn publication([decide_by, open_until]: [&str; 2]) -> TakenStep {
    let proposal = Proposal::parse(&OFFER.replace("2027-01-25", decide_by).replace("2027-01-28", open_until)).unwrap();
    TakenStep::Offer(Box::new(Publication { proposal, outside_mandate: None, figures_checked: None }))
}

pub(super) fn bidding(of: &str, bid: &str, now: Timestamp) -> AddBid {
    AddBid { slug: slug(of), bid: Bid::parse(bid).unwrap(), who: "op".to_owned(), now }
}

/// How many accepted at least, and what they save together.
pub(super) fn reached(campaign: &CampaignRecord) -> Option<(u64, u64)> {
    campaign.result().map(|result| (result.accepted, result.saved()))
}

/// Small groups, so that few people make one.
pub(super) const TERMS: ReferralTerms =
    ReferralTerms { reward_per_group: 100, group_size: 2, max_groups: 2, hold_days: 30, counts_on: CountsOn::Accepted };

pub(super) fn slug(text: &str) -> CampaignSlug {
    text.parse().unwrap()
}

impl Fixture {
    pub(super) async fn make_campaign(&self, slug: &str, states: &str) -> Made {
        let text = definition(slug, states);
        self.run(MakeCampaign {
            draft: CampaignDraft::parse(&text).unwrap(),
            definition: text,
            who: "op".to_owned(),
            now: NOW,
        })
        .await
    }

    pub(super) async fn step(&self, of: &str, step: CampaignStep, now: Timestamp) -> Stepped {
        let step = match step {
            CampaignStep::Offer => {
                self.run(bidding(of, BID, now)).await;
                publication(["2027-01-25", "2027-01-28"])
            }
            CampaignStep::Activate => TakenStep::Activate(TERMS),
            step => TakenStep::Plain(step),
        };
        self.run(StepCampaign { slug: slug(of), step, who: "op".to_owned(), note: (String::new(), true), now }).await
    }

    /// A member with those answers, who is signed in.
    pub(super) async fn member(&self, email: &str, us_state: Option<UsState>, categories: &str, n: u8) -> Nonce {
        let categories = Some(CategorySet::from_slugs(categories));
        let new = NewSignUp { answers: answers(us_state, categories, None), ..self.new_sign_up(email) };
        self.enter(new, email, n, NOW).await
    }

    /// Somebody joins, or comes back, and is signed in by that.
    pub(super) async fn join_at(&self, address: &str, now: Timestamp) -> Nonce {
        self.store.sign_up(self.new_sign_up(address), now).await.unwrap();
        let file = self.file_at(email(address).normalized(), now).await.unwrap();
        let sign_up = of_entry(file.sign_ups.last().unwrap());
        assert!(matches!(self.confirm_at(sign_up, now).await, Confirmation::Joined(_)));
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&now.as_millis().to_be_bytes());
        nonce[8..].copy_from_slice(&file.person.id.to_be_bytes());
        self.run(EnterByJoining(sign_up, Nonce::from_random(&nonce))).await.unwrap()
    }

    /// A member whom that code's owner is credited for, if it is given.
    pub(super) async fn member_by(&self, email: &str, n: u8, ref_code: Option<ReferralCode>) -> Nonce {
        let new = NewSignUp { ref_code, ..self.new_sign_up(email) };
        self.enter(new, email, n, NOW).await
    }

    async fn enter(&self, new: NewSignUp, email: &str, n: u8, now: Timestamp) -> Nonce {
        self.store.sign_up(new, now).await.unwrap();
        let email = EmailAddress::parse(email).unwrap();
        let file = self.file_at(email.normalized(), now).await.unwrap();
        let sign_up = of_entry(file.sign_ups.last().unwrap());
        assert!(matches!(self.confirm_at(sign_up, now).await, Confirmation::Joined(_)));
        let browser = format!("browser {} {n}", email.normalized());
        self.run(asking(&email, &browser, None, now)).await;
        let asked = self.run(TryCode(browser, now)).await.pop().unwrap();
        let nonce = Nonce::from_random(&[n; 16]);
        self.run(UseSignIn { sign_in: asked, by_code: false, session: nonce, now }).await.unwrap().session
    }

    async fn parts(&self, email: &str) -> Vec<(String, ParticipationState)> {
        let file = self.file_at(EmailAddress::parse(email).unwrap().normalized(), NOW).await;
        let parts = file.map(|file| file.participations).unwrap_or_default();
        parts.into_iter().map(|part| (part.campaign.to_string(), part.state)).collect()
    }

    pub(super) async fn campaign(&self, of: &str) -> CampaignRecord {
        self.run(FindCampaign(slug(of))).await.unwrap().campaign
    }
}

pub(super) async fn a_campaign_goes_from_step_to_step_and_every_step_is_kept(fixture: &Fixture) {
    let store = &fixture.store;
    assert_eq!(fixture.make_campaign("internet-2027", "\"CA\", \"OR\"").await, Made::Done);
    assert_eq!(fixture.make_campaign("internet-2027", "").await, Made::SlugTaken);
    assert_eq!(fixture.step("nothing", CampaignStep::Open, NOW).await, Stepped::Unknown);
    let version = fixture.run(FindCampaignsVersion).await;
    let ana = fixture.member("ana@example.com", Some(UsState::CA), "internet", 1).await;
    let press =
        |session: &Nonce, what, us_state, now| store.run(pressing(session, "internet-2027", what, us_state, now));
    assert_eq!(press(&ana, Press::In, None, NOW).await, Ok(Pressed::Unknown), "nobody sees a draft");
    assert_eq!(fixture.step("internet-2027", CampaignStep::Open, NOW).await, Stepped::Done(CampaignState::Gathering));
    assert_ne!(fixture.run(FindCampaignsVersion).await, version);
    assert!(matches!(fixture.step("internet-2027", CampaignStep::Open, NOW).await, Stepped::Refused(_)));
    let (later, browser) = (NOW.plus(HOUR), "browser".to_owned());
    let email = email("ana@example.com");
    fixture.run(asking(&email, &browser, Some(slug("internet-2027")), later)).await;
    let asked = fixture.run(TryCode(browser, later)).await.pop().unwrap();
    assert!(
        fixture.run(UseSignIn { sign_in: asked, by_code: false, session: ana.clone(), now: later }).await.is_some()
    );
    assert_eq!(
        fixture.run(FindCampaignOfSignIn(asked)).await,
        Some(slug("internet-2027")),
        "also of one that was used"
    );
    let done = |state| Ok(Pressed::Done(Some(state)));
    assert_eq!(press(&ana, Press::In, None, NOW).await, done(ParticipationState::In));
    let zoe = fixture.member("zoe@example.com", None, "", 2).await;
    assert_eq!(press(&zoe, Press::In, None, NOW).await, Ok(Pressed::Refused(BadPress::StateMissing)));
    assert_eq!(press(&zoe, Press::In, Some(UsState::NY), NOW).await, Ok(Pressed::Refused(BadPress::OtherState)));
    assert_eq!(fixture.file_at("zoe@example.com".to_owned(), NOW).await.unwrap().person.answers.us_state, None);
    assert_eq!(press(&zoe, Press::In, Some(UsState::OR), NOW).await, done(ParticipationState::In));
    let file = fixture.file_at("zoe@example.com".to_owned(), NOW).await.unwrap();
    assert_eq!(file.person.answers.us_state, Some(UsState::OR), "what they named is their answer");
    assert_eq!((file.participations[0].in_at, file.participations[0].accepted_at), (Some(NOW), None));
    let nobody = Nonce::from_random(&[9; 16]);
    assert_eq!(press(&nobody, Press::In, None, NOW).await, Ok(Pressed::NotAMember));
    // The day of gathering ends everywhere in the US before it is over.
    let over = "2027-01-21T10:00:00Z".parse().unwrap();
    assert_eq!(fixture.run(StepByDate(NOW.plus(5 * DAY))).await, 0);
    assert_eq!(fixture.run(StepByDate(over)).await, 1);
    assert_eq!(fixture.run(StepByDate(over)).await, 0);
    let edited = definition("internet-2027", "\"CA\", \"OR\"").replace("Less.", "Much less.");
    let edit = |text: &str| {
        store.run(EditCampaign {
            draft: CampaignDraft::parse(text).unwrap(),
            definition: text.to_owned(),
            who: "op".to_owned(),
            now: over,
        })
    };
    assert_eq!(edit(&edited).await, Ok(Edited::Done));
    assert_eq!(edit(&edited).await, Ok(Edited::Unchanged));
    assert!(matches!(edit(&edited.replace("\"CA\"", "\"NV\"")).await, Ok(Edited::Refused(_))));
    assert_eq!(edit(&edited.replace("internet-2027", "other-2027")).await, Ok(Edited::Unknown));

    assert_eq!(fixture.step("internet-2027", CampaignStep::Offer, over).await, Stepped::Done(CampaignState::Offered));
    assert_eq!(press(&ana, Press::Accept, None, over).await, done(ParticipationState::Accepted));
    assert_eq!(press(&zoe, Press::Pass, None, over).await, done(ParticipationState::Passed));
    let decided = "2027-01-26T10:00:00Z".parse().unwrap();
    assert_eq!(press(&zoe, Press::Accept, None, decided).await, Ok(Pressed::Refused(BadPress::AcceptingOver)));
    fixture.step("internet-2027", CampaignStep::Activate, decided).await;
    assert_eq!(fixture.campaign("internet-2027").await.active_at, Some(decided));
    assert_eq!(press(&zoe, Press::Accept, None, decided).await, done(ParticipationState::Accepted), "open for longer");
    fixture.step("internet-2027", CampaignStep::Close, decided.plus(DAY)).await;
    let kept = fixture.run(FindCampaign(slug("internet-2027"))).await.unwrap();
    assert_eq!((kept.campaign.closed_at, kept.counts.accepted), (Some(decided.plus(DAY)), 2));
    let steps: Vec<_> =
        kept.history.iter().map(|step| (step.who.as_str(), step.to.name(), step.note.as_str())).collect();
    let expected = [
        ("op", "draft", ""),
        ("op", "gathering", ""),
        ("date", "negotiating", ""),
        ("op", "negotiating", "edited"),
        ("op", "offered", ""),
        ("op", "active", ""),
        ("op", "closed", ""),
    ];
    assert_eq!(steps, expected);
    let kinds: Vec<_> = kept.mailings.iter().map(|mailing| mailing.kind.as_str()).collect();
    assert_eq!(kinds, ["campaign_opened", "campaign_offer", "campaign_result"]);
}

struct Actor {
    email: String,
    session: Nonce,
    us_state: Option<UsState>,
    is_member: bool,
}

/// Any presses and steps, in any order: what is answered and what is kept is what a model says that knows nothing of the code.
pub(super) async fn campaigns_follow_a_naive_model(fixture: &Fixture) {
    let marker = AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap());
    for case in 0..25_u64 {
        let mut pick = picker(case * 7919 + 17);
        let (some, all) = (format!("some-{case}"), format!("all-{case}"));
        fixture.make_campaign(&some, "\"CA\", \"OR\"").await;
        fixture.make_campaign(&all, "").await;
        let mut people = Vec::new();
        for (n, us_state) in [Some(UsState::CA), Some(UsState::NY), None, None].into_iter().enumerate() {
            let email = format!("p{n}-{case}@example.com");
            let session = fixture.member(&email, us_state, "internet", (case * 4 + n as u64) as u8 + 1).await;
            people.push(Actor { email, session, us_state, is_member: true });
        }
        // Slug, state, parts by person.
        let mut model: [(&str, &str, [Option<&str>; 4]); 2] = [(&some, "draft", [None; 4]), (&all, "draft", [None; 4])];
        let (mut now, mut told) = (NOW, Vec::new());
        for _ in 0..60 {
            let (which, who) = (pick(2), pick(4));
            let (name, state, parts) = model[which];
            match pick(12) {
                0..=6 => {
                    let what = Press::ALL[pick(4)];
                    let named = [None, Some(UsState::OR), Some(UsState::TX)][pick(3)];
                    told.push(format!("{now}: {who} presses {} at {name}, naming {named:?}", what.name()));
                    let done = fixture.run(pressing(&people[who].session, name, what, named, now)).await;
                    let us_state = people[who].us_state.or(named);
                    let fits = which == 1 || us_state.is_some_and(|state| ["CA", "OR"].contains(&state.code()));
                    let day = |text: &str| now < text.parse().unwrap();
                    let open = match state {
                        "offered" => day("2027-01-26T10:00:00Z"),
                        "active" => day("2027-01-29T10:00:00Z"),
                        _ => false,
                    };
                    let before = parts[who];
                    let expected = if !people[who].is_member {
                        Err("member")
                    } else if state == "draft" || state == "hidden" {
                        Err("unknown")
                    } else if state == "closed" || state == "cancelled" {
                        Err("refused")
                    } else if state == "gathering" || state == "negotiating" {
                        match what {
                            Press::In if fits => Ok(Some("in")),
                            Press::Out => Ok(before.map(|_| "out")),
                            _ => Err("refused"),
                        }
                    } else {
                        match what {
                            Press::Accept if before == Some("accepted") || open && fits => Ok(Some("accepted")),
                            Press::Pass if matches!(before, Some("in" | "accepted")) => Ok(Some("passed")),
                            Press::Pass => Ok(before),
                            _ => Err("refused"),
                        }
                    };
                    let got = match done {
                        Pressed::Done(state) => Ok(state.map(ParticipationState::name)),
                        Pressed::Refused(_) => Err("refused"),
                        Pressed::Unknown => Err("unknown"),
                        Pressed::NotAMember => Err("member"),
                    };
                    assert_eq!(got, expected, "case {case}: {told:#?}");
                    if let Ok(after) = expected {
                        model[which].2[who] = after;
                        if matches!(what, Press::In | Press::Accept) {
                            people[who].us_state = us_state;
                        }
                    }
                }
                7..=9 => {
                    let steps = [
                        (CampaignStep::Open, &["draft"][..], "gathering"),
                        (CampaignStep::Negotiate, &["gathering"], "negotiating"),
                        (CampaignStep::Offer, &["gathering", "negotiating"], "offered"),
                        (CampaignStep::Activate, &["offered"], "active"),
                        (CampaignStep::Close, &["active"], "closed"),
                        (
                            CampaignStep::Cancel,
                            &["draft", "gathering", "negotiating", "offered", "active"],
                            "cancelled",
                        ),
                    ];
                    // Cancelling ends the story: rarely.
                    let (step, from, to) = steps[if pick(30) == 0 { 5 } else { pick(5) }];
                    told.push(format!("{now}: {step:?} {name}"));
                    let done = fixture.step(name, step, now).await;
                    let right = from.contains(&state);
                    assert_eq!(matches!(done, Stepped::Done(_)), right, "case {case}: {told:#?}");
                    if right {
                        if to == "cancelled" && state == "offered" {
                            // Its deal never starts.
                            while fixture.run(EndAcceptances(now)).await {}
                            let accepted = model[which].2.iter_mut().filter(|part| **part == Some("accepted"));
                            accepted.for_each(|part| *part = Some("in"));
                        }
                        // Nobody ever saw it.
                        model[which].1 = if to == "cancelled" && state == "draft" { "hidden" } else { to };
                    }
                }
                10 => {
                    now = now.plus(DAY * pick(3) as u32);
                    told.push(format!("{now}: the days act"));
                    fixture.run(StepByDate(now)).await;
                    let is_over = now >= "2027-01-21T10:00:00Z".parse().unwrap();
                    for (_, state, _) in &mut model {
                        if *state == "gathering" && is_over {
                            *state = "negotiating";
                        }
                    }
                }
                _ if pick(3) == 0 && people[who].is_member => {
                    let (email, account) = (
                        EmailAddress::parse(&people[who].email).unwrap(),
                        AccountId::from_random(&[(case * 4 + who as u64) as u8; 10]),
                    );
                    let erases = pick(2) == 0;
                    told.push(format!("{now}: {who} leaves, and is erased: {erases}"));
                    let email_normalized = email.normalized();
                    if erases {
                        let marks = marker.marks(&email);
                        let _erased = fixture.run(Erase { email_normalized, marks, account, waiver: None, now }).await;
                    } else {
                        let _left = fixture.run(Leave { email_normalized, account, now }).await;
                    }
                    people[who].is_member = false;
                    for (_, state, parts) in &mut model {
                        parts[who] = match parts[who] {
                            Some("in") if !["closed", "cancelled"].contains(state) => Some("out"),
                            Some("accepted") if !["closed", "cancelled"].contains(state) => Some("passed"),
                            other => other,
                        };
                    }
                }
                _ => {}
            }
        }
        for (name, state, parts) in model {
            let kept = fixture.campaign(name).await;
            let is_hidden = state == "hidden";
            let expected = (if is_hidden { "cancelled" } else { state }, state != "draft" && !is_hidden);
            assert_eq!((kept.state.name(), kept.was_public()), expected, "case {case}: {told:#?}");
            for (who, part) in parts.iter().enumerate() {
                let of = fixture.parts(&people[who].email).await;
                let of = of.iter().find(|(slug, _)| slug == name).map(|(_, state)| state.name());
                // Whoever was erased is found by nobody; the rows stay, at the tombstone.
                if fixture.file_at(people[who].email.clone(), now).await.is_some() {
                    assert_eq!(of, *part, "case {case}, {who} at {name}: {told:#?}");
                }
            }
        }
    }
}

/// What anybody could see at a moment: the last sheet, which pages, feeds and the negotiator show.
async fn seen(store: &Store, of: &str) -> Option<(Timestamp, unionhall::domain::campaign::demand::DemandSheet)> {
    store.run(FindCampaign(slug(of))).await.unwrap().unwrap().campaign.sheet
}

/// Somebody sees every sheet there ever is, and knows who pressed or answered what when, but not what a person said. Were two sheets
/// ever one person apart, the difference would be that person's. They never are, and no named cell is of fewer than twenty.
pub(super) async fn no_sequence_of_sheets_tells_a_persons_state_or_answer(fixture: &Fixture) {
    let store = &fixture.store;
    let states = [Some(UsState::CA), Some(UsState::CA), Some(UsState::OR), None];
    fixture.make_campaign("all", "").await;
    fixture.step("all", CampaignStep::Open, NOW).await;
    let mut people = Vec::new();
    for n in 0..60_u8 {
        let (us_state, bills) =
            (states[n as usize % 4], ["internet,mortgage", "internet,mortgage", "mobile_bills"][n as usize % 3]);
        people.push(fixture.member(&format!("p{n}@example.com"), us_state, bills, n + 1).await);
    }
    let mut pick = picker(4711);
    let (mut now, mut last) = (NOW, seen(store, "all").await);
    // Who is in, now and when the last sheet was taken.
    let (mut is_in, mut was_in) = (HashSet::new(), HashSet::new());
    let (mut sheets, mut named, mut same_day) = (0, 0, 0);
    for round in 0..400 {
        now = now.plus(Duration::from_secs(1 + pick(7200) as u64));
        let who = pick(people.len());
        // In turns they come, and a few come and go.
        let what = if (round / 100) % 2 == 0 || pick(2) > 0 { Press::In } else { Press::Out };
        fixture.run(pressing(&people[who], "all", what, None, now)).await;
        if what == Press::In {
            is_in.insert(who)
        } else {
            is_in.remove(&who)
        };
        // A step asks for a sheet, whenever it comes.
        let step_taken = round % 3 == 0;
        if step_taken {
            store.run(AskForCount("all")).await.unwrap();
        }
        worker::work(&**store as &Store, || now).await.unwrap();
        let shown = seen(store, "all").await;
        if shown != last {
            let (taken_at, sheet) = shown.clone().unwrap();
            let differ = is_in.symmetric_difference(&was_in).count();
            assert!(differ >= 5, "{round}: {differ} people between two sheets");
            let day = |time: Timestamp| time.as_millis() / 86_400_000;
            let is_new_day = last.is_none_or(|(before, _)| day(before) < day(taken_at));
            assert!(is_new_day || step_taken, "{round}: two sheets a day");
            same_day += usize::from(!is_new_day);
            let counts = [sheet.members_in, sheet.accepted, sheet.in_other_states, sheet.in_other_categories];
            let cells = sheet.by_state.iter().chain(&sheet.by_category).map(|cell| cell.members);
            assert!(counts.into_iter().chain(cells.clone()).all(|count| count % 5 == 0), "{sheet:?}");
            assert!(cells.chain([sheet.in_other_states]).all(|count| count == 0 || count >= 20), "{sheet:?}");
            let in_named: u64 = sheet.by_state.iter().map(|cell| cell.members).sum();
            assert!(in_named + sheet.in_other_states <= sheet.members_in, "{sheet:?}");
            named += sheet.by_state.len() + sheet.by_category.len();
            (last, sheets) = (shown, sheets + 1);
            was_in.clone_from(&is_in);
        }
    }
    assert!(sheets >= 5 && named >= 5 && same_day >= 5, "{sheets} {named} {same_day}");
}

/// Asks for a count as a step does, any number of times.
struct AskForCount(&'static str);

impl Unit for AskForCount {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let ask = "UPDATE campaigns SET count_due = (SELECT max(id) FROM campaign_history) WHERE slug = $1";
        sql.execute(ask, &[Value::from(self.0)]).await.map(|_| ())
    }
}

/// Members of a campaign, who are in.
async fn members_in(fixture: &Fixture, of: &str, count: u8) -> Vec<Nonce> {
    let mut people = Vec::new();
    for n in 0..count {
        let person = fixture.member(&format!("p{n}@example.com"), Some(UsState::CA), "internet", n + 1).await;
        fixture.run(pressing(&person, of, Press::In, None, NOW)).await;
        people.push(person);
    }
    people
}

/// A zero is never shown for members who were not counted yet; nor is a new figure for the moves of fewer than five.
pub(super) async fn each_step_counts_its_members_after_changes_of_five(fixture: &Fixture) {
    let store: &Store = &fixture.store;
    fixture.make_campaign("all", "").await;
    fixture.step("all", CampaignStep::Open, NOW).await;
    let shown = async || {
        let campaign = fixture.campaign("all").await;
        (campaign.is_counting, campaign.counted_in(), campaign.counted_accepted())
    };
    assert_eq!(shown().await, (false, Some(0), Some(0)));
    let people = members_in(fixture, "all", 30).await;
    assert_eq!(shown().await, (true, None, None), "nobody has counted the thirty");
    let at = |second: u32| NOW.plus(Duration::from_secs(second.into()));
    let work = async |second| worker::work(store, || at(second)).await.unwrap();
    let press = async |who: std::ops::Range<usize>, what, second| {
        for person in &people[who] {
            let done = fixture.run(pressing(person, "all", what, None, at(second))).await;
            assert!(matches!(done, Pressed::Done(_)), "{done:?}");
        }
    };
    work(1).await;
    assert_eq!(shown().await, (false, Some(30), Some(0)));
    // The day has its sheet. A step whose count would tell of four takes none, and pages do not wait for one.
    press(0..4, Press::Out, 2).await;
    fixture.step("all", CampaignStep::Negotiate, at(3)).await;
    assert_eq!(shown().await, (true, Some(30), None), "an older figure stands, an older zero does not");
    let version = store.run(FindCampaignsVersion).await.unwrap();
    work(4).await;
    assert_eq!(shown().await, (false, Some(30), Some(0)));
    assert_ne!(store.run(FindCampaignsVersion).await.unwrap(), version, "pages look again");
    // With a fifth another sheet of the day is taken, not before the next step.
    press(4..5, Press::Out, 5).await;
    work(6).await;
    assert_eq!(shown().await, (false, Some(30), Some(0)));
    fixture.step("all", CampaignStep::Offer, at(7)).await;
    work(8).await;
    assert_eq!(shown().await, (false, Some(25), Some(0)));
    press(5..17, Press::Accept, 9).await;
    fixture.step("all", CampaignStep::Activate, at(10)).await;
    assert_eq!(shown().await, (true, Some(25), None));
    work(11).await;
    assert_eq!(shown().await, (false, Some(25), Some(10)));
    press(17..25, Press::Accept, 12).await;
    let admin = CampaignAdmin::new(store.clone()).counting_for(Duration::ZERO);
    let note = || StepNote { who: "op", note: "", mails: true };
    let close = TakenStep::Plain(CampaignStep::Close);
    let done = admin.take_step(&slug("all"), close, note(), at(13)).await.unwrap().unwrap();
    assert_eq!(reached(&done.after), None);
    let said = done.words(true, at(13), |_, _| String::new());
    assert_eq!(said[0], "all is closed. Its members are still being counted.");
    let waits = async || {
        let mailings = store.run(FindCampaign(slug("all"))).await.unwrap().unwrap().mailings;
        mailings.last().map(|mailing| mailing.waits_for_count)
    };
    assert_eq!(waits().await, Some(true), "no mail tells an old result");
    work(15).await;
    assert_eq!((waits().await, reached(&fixture.campaign("all").await)), (Some(false), Some((20, 4800))));
    // What was kept, the newest first.
    let kept = store.run(ListSheets(slug("all"))).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|sheet| (sheet.demand.members_in, sheet.demand.accepted)).collect();
    assert_eq!(kept, [(25, 20), (25, 10), (25, 0), (30, 0)]);
    assert!(store.run(ListSheets(slug("none"))).await.unwrap().is_empty());
}

pub(super) async fn a_step_waits_for_its_count_and_needs_no_worker(fixture: &Fixture) {
    let store: &Store = &fixture.store;
    fixture.make_campaign("all", "").await;
    fixture.step("all", CampaignStep::Open, NOW).await;
    let people = members_in(fixture, "all", 12).await;
    let admin = CampaignAdmin::new(store.clone());
    let at = |second: u32| NOW.plus(Duration::from_secs(second.into()));
    let take = async |step, second| {
        let note = StepNote { who: "op", note: "", mails: true };
        admin.take_step(&slug("all"), step, note, at(second)).await.unwrap().unwrap().after
    };
    fixture.run(bidding("all", BID, NOW)).await;
    let offered = take(publication(["2027-01-25", "2027-01-28"]), 1).await;
    assert_eq!((offered.is_counting, offered.counted_in()), (false, Some(10)));
    // Reading is no counting.
    for person in &people[..7] {
        fixture.run(pressing(person, "all", Press::Accept, None, at(2))).await;
    }
    let read = admin.demand(&slug("all"), at(90_000)).await.unwrap().unwrap();
    assert_eq!(read.sheet, offered.sheet);
    take(TakenStep::Activate(TERMS), 3).await;
    let closed = take(TakenStep::Plain(CampaignStep::Close), 4).await;
    assert_eq!((closed.is_counting, reached(&closed)), (false, Some((5, 1200))));
}

/// Two nodes count the same, or a step is taken meanwhile: a sheet that is old already is not kept.
pub(super) async fn a_count_that_was_overtaken_is_not_kept(fixture: &Fixture) {
    let store: &Store = &fixture.store;
    fixture.make_campaign("all", "").await;
    fixture.step("all", CampaignStep::Open, NOW).await;
    members_in(fixture, "all", 6).await;
    let due = async || store.run(ListDueSheets(NOW)).await.unwrap().pop();
    let keep = async |due: DueSheet| {
        let sheet = unionhall::domain::campaign::demand::DemandSheet { members_in: 5, ..Default::default() };
        store.run(KeepSheet { due, sheet, now: NOW }).await.unwrap()
    };
    let daily = due().await.unwrap();
    assert_eq!((daily.step, daily.last, daily.is_enough), (None, None, true));
    fixture.step("all", CampaignStep::Negotiate, NOW).await;
    assert!(!keep(daily).await, "a step was taken");
    let negotiated = due().await.unwrap();
    assert!(negotiated.step.is_some());
    fixture.step("all", CampaignStep::Offer, NOW).await;
    assert!(!keep(negotiated).await, "and another");
    store.run(EndCount(negotiated)).await.unwrap();
    let offered = due().await.unwrap();
    assert_eq!(offered.step, negotiated.step.map(|step| step + 1), "what the later step asked for stands");
    assert!(keep(offered).await);
    assert!(!keep(offered).await, "another node was first");
    assert_eq!(due().await, None);
}

pub(super) async fn a_sheet_follows_people_whose_part_differs_and_names_no_state_of_few(fixture: &Fixture) {
    let store = &fixture.store;
    for slug in ["all", "west"] {
        fixture.make_campaign(slug, if slug == "all" { "" } else { "\"CA\", \"WY\"" }).await;
        fixture.step(slug, CampaignStep::Open, NOW).await;
    }
    let mut people = Vec::new();
    for n in 0..30_u8 {
        let us_state = if n < 25 { UsState::CA } else { UsState::WY };
        people.push(fixture.member(&format!("p{n}@example.com"), Some(us_state), "internet", n + 1).await);
    }
    let at = |day: u32, hour: u32| NOW.plus(DAY * day + HOUR * hour);
    let press = async |who: usize, what, now| {
        for slug in ["all", "west"] {
            let done = fixture.run(pressing(&people[who], slug, what, None, now)).await;
            assert!(matches!(done, Pressed::Done(_)), "{who}: {done:?}");
        }
    };
    let sheets = async |now| {
        worker::work(&**store as &Store, || now).await.unwrap();
        let [all, west] = [seen(store, "all").await, seen(store, "west").await].map(Option::unwrap);
        assert_eq!(all, west, "where only two states may be in, the rest would be one of them");
        all
    };
    for who in 0..25 {
        press(who, Press::In, NOW).await;
    }
    let first = sheets(at(0, 1)).await;
    // Five press out and in again, again and again, and others come and go: all are as they were.
    for day in 1..4 {
        for who in 0..5 {
            press(who, Press::Out, at(day, 0)).await;
            press(who, Press::In, at(day, 1)).await;
        }
        for who in 25..30 {
            press(who, Press::In, at(day, 0)).await;
            press(who, Press::Out, at(day, 1)).await;
        }
        assert_eq!(sheets(at(day, 2)).await, first, "day {day}");
    }
    // So are those who leave the union and come back.
    let address = |n: u8| format!("p{n}@example.com");
    for n in 0..5_u8 {
        let (email_normalized, account) = (address(n), AccountId::from_random(&[n; 10]));
        let left = fixture.run(Leave { email_normalized, account, now: at(4, 0) }).await;
        assert!(matches!(left, unionhall::domain::person::Leaving::Left { .. }), "{left:?}");
    }
    for n in 0..5_u8 {
        let categories = Some(CategorySet::from_slugs("internet"));
        let new =
            NewSignUp { answers: answers(Some(UsState::CA), categories, None), ..fixture.new_sign_up(&address(n)) };
        people[n as usize] = fixture.enter(new, &address(n), n + 100, at(4, 1)).await;
        for slug in ["all", "west"] {
            fixture.run(pressing(&people[n as usize], slug, Press::In, None, at(4, 1))).await;
        }
    }
    assert_eq!(sheets(at(4, 2)).await, first, "those who came back");
    // Four invented members are in, and then one who is real: Wyoming is not named, and no difference is Wyoming's.
    for person in &people[25..] {
        fixture.run(pressing(person, "all", Press::In, None, at(5, 0))).await;
        fixture.run(pressing(person, "west", Press::In, None, at(5, 0))).await;
    }
    let (taken_at, sheet) = sheets(at(5, 1)).await;
    assert!(taken_at > first.0, "five more are in");
    assert_eq!((sheet.members_in, sheet.by_state, sheet.in_other_states), (30, Vec::new(), 30));
}

pub(super) async fn bids_are_numbered_and_the_offer_is_made_of_one(fixture: &Fixture) {
    fixture.make_campaign("all", "\"CA\", \"OR\"").await;
    let add = async |bid: &str| fixture.run(bidding("all", bid, NOW)).await;
    assert_eq!(add(BID).await, BidAdded::NotNow(CampaignState::Draft));
    assert_eq!(fixture.run(bidding("none", BID, NOW)).await, BidAdded::Unknown);
    fixture.step("all", CampaignStep::Open, NOW).await;
    let needing = BID.replacen("supplier", "needs_members = 3\nsupplier", 1);
    let other = BID.replace("Example Fiber", "Other Net").replace("4800", "5200");
    for (number, bid) in [(1, BID), (2, other.as_str()), (3, needing.as_str())] {
        assert_eq!(add(bid).await, BidAdded::Done(number));
    }
    let elsewhere = BID.replacen("supplier", "states = [\"NY\"]\nsupplier", 1);
    let BidAdded::Refused(wrong) = add(&elsewhere).await else { panic!("it is taken") };
    assert_eq!(wrong.0, ["states: the campaign is not for NY"]);
    let bids = fixture.run(ListBids(slug("all"))).await;
    let kept: Vec<_> = bids.iter().map(|bid| (bid.number, bid.bid.supplier.as_str(), bid.is_superseded)).collect();
    assert_eq!(kept, [(1, "Example Fiber", true), (2, "Other Net", false), (3, "Example Fiber", false)]);

    let publish = async |bid: u32| {
        let TakenStep::Offer(mut publication) = publication(["2027-01-25", "2027-01-28"]) else { unreachable!() };
        publication.proposal.bid = Some(bid);
        let (step, note) = (TakenStep::Offer(publication), ("said".to_owned(), true));
        fixture.run(StepCampaign { slug: slug("all"), step, who: "op".to_owned(), note, now: NOW }).await
    };
    assert!(matches!(publish(1).await, Stepped::NotPublished(_)), "superseded");
    assert!(matches!(publish(9).await, Stepped::NotPublished(_)), "unknown");
    assert_eq!(publish(3).await, Stepped::Done(CampaignState::Offered));
    assert_eq!(add(BID).await, BidAdded::Done(4), "it can be improved until the deal starts");
    let offer = fixture.run(FindCampaign(slug("all"))).await.unwrap().campaign.offer.unwrap();
    assert_eq!((offer.supplier(), offer.saving()), ("Example Fiber", 240));

    // It does not become active before enough have accepted.
    let activate = async || fixture.step("all", CampaignStep::Activate, NOW).await;
    let mut people = Vec::new();
    for n in 0..3 {
        people.push(fixture.member(&format!("p{n}@example.com"), Some(UsState::CA), "internet", n).await);
    }
    for (accepted, person) in (0..).zip(&people) {
        assert_eq!(activate().await, Stepped::TooFewAccepted { needs: 3, accepted });
        fixture.run(pressing(person, "all", Press::Accept, None, NOW)).await;
    }
    assert_eq!(activate().await, Stepped::Done(CampaignState::Active));
}
