//! `/operator/rewards`: what is due, being paid and paid; making a batch, its file, and what the provider answered.

use std::io::Write;
use std::time::Duration;

use askama::Template;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};

use super::frame::{OperatorFrame, OperatorSection, render};
use super::question::Question;
use super::session::{NEEDS_TWO, OperatorVisit};
use crate::domain::csv::MOST_MISTAKES;
use crate::domain::figure::{counted, grouped, money};
use crate::domain::operator::{Role, same_person};
use crate::domain::reward::settlement::read_answer;
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::rewards::file::{MadeBatch, WrittenRows};
use crate::rewards::payout::FindBatch;
use crate::rewards::{BatchRecord, PaidWithin, WhichBatch, numbered};
use crate::site::view::operator::RewardsPart;
use crate::site::{PageResult, Visit, field, field_is};

const HERE: OperatorSection = OperatorSection::Rewards;

/// How long one request fills a batch; what is left is gone on with.
const FILL_FOR: Duration = Duration::from_secs(5);

/// Payouts of a file that is handed out here, about 2 MB; a larger one is written by the command.
const MOST_PAYOUTS: u64 = 20_000;

#[derive(Template)]
#[template(path = "operator/rewards.html")]
struct RewardsPage<'a> {
    frame: OperatorFrame<'a>,
    /// Who has to leave the first file of their own batches to another person, if one makes and another releases.
    maker: Option<String>,
    picture: String,
    read_at: Timestamp,
    batches: &'a [BatchRecord],
    has_more: bool,
}

/// Whether somebody else has to download the file of a batch for the first time.
fn is_anothers(batch: &BatchRecord, maker: Option<&String>) -> bool {
    !batch.is_written && maker.is_some_and(|maker| same_person(&batch.who, maker))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let overview = found.stored(found.access.overview(visit.now).await)?;
    let (batches, has_more) = found.stored(found.operator().rewards().open_batches().await)?;
    let page = RewardsPage {
        frame: found.frame(),
        maker: found.access.two_people.then(|| found.who.name.on_the_page()),
        picture: render(&RewardsPart::new(&overview)),
        read_at: overview.read_at,
        batches: &batches,
        has_more,
    };
    Ok(found.page(render(&page)))
}

/// Puts everything that is due into a batch, once the operator is sure. Nothing is paid by it: its file has to be handed over.
pub async fn make_batch(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    if let Some(batch) = field(&fields, "go-on").and_then(|batch| batch.parse().ok()) {
        require_going_on(&found, batch, &fields)?;
    } else {
        let mut says = vec![
            "Everything that is due goes into one batch: a payout for each member and campaign.".to_owned(),
            "Review it first: the review shows signs of fraud. A payout whose file was written cannot be taken back."
                .to_owned(),
            "Nothing is paid by this. You download the batch's file and give it to whoever pays.".to_owned(),
        ];
        says.extend(found.access.two_people.then(|| NEEDS_TWO.to_owned()));
        let question = Question {
            title: "Make a batch of what is due?",
            says: &says,
            action: "/operator/rewards/batch",
            button: "Make the batch",
            ..Question::default()
        };
        found.require_sure(&question, &fields)?;
    }
    Ok(match fill(&found).await? {
        Ok(_) => found.redirect("/operator/rewards"),
        Err(message) => *message,
    })
}

/// Asks whether to go on with a batch that is not whole.
fn require_going_on(found: &OperatorVisit<'_>, batch: i64, fields: &[u8]) -> PageResult<()> {
    let says = [format!("Batch {batch} is not whole yet: there is much to put into it.")];
    let question = Question {
        title: "Go on with the batch?",
        says: &says,
        action: "/operator/rewards/batch",
        fields: &[("go-on", &batch.to_string())],
        about: "",
        button: "Go on",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

/// Makes a batch, or goes on with the oldest whose file was never written; what there is to say, if none is there to be downloaded.
async fn fill(found: &OperatorVisit<'_>) -> PageResult<Result<i64, Box<Answer>>> {
    let now = found.visit.now.time;
    let nothing = found.who.act("rewards batch new", "no payout is left, so no file was written".to_owned(), now);
    let who = nothing.who.clone();
    let rewards = found.operator().audited(nothing).rewards();
    let batch = match found.stored(rewards.make_batch_within(FILL_FOR, &who, now).await)? {
        MadeBatch::NothingDue => {
            let says = ["Nothing is due that a batch could pay.".to_owned()];
            return Ok(Err(Box::new(found.done("No batch was made", &says))));
        }
        MadeBatch::Unfinished(batch) => {
            // Nobody was asked that yet, so it ends here.
            require_going_on(found, batch, &[])?;
            batch
        }
        MadeBatch::Whole(batch) => batch,
    };
    let made = found.stored(rewards.ask(FindBatch(WhichBatch::Numbered(batch))).await)?;
    if made.is_some_and(|made| made.payouts > 0) {
        return Ok(Ok(batch));
    }
    // Everything went to what had been paid too much. Nobody is to go on with it.
    found.stored(rewards.note_written(batch, now).await)?;
    let says = [format!("All of batch {batch} made up for what had been paid too much. There is nobody to pay.")];
    Ok(Err(Box::new(found.done("Nobody is to be paid", &says))))
}

/// The file of a batch, for whoever pays. The audit log has every copy, for it holds addresses.
pub async fn download(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let batch = batch_of(&found).await?;
    require_download(&found, &batch, &fields).await?;
    if !batch.is_written {
        match fill(&found).await? {
            Ok(made) if made == batch.id => {}
            Ok(made) => {
                return Ok(found.refuse(&format!("The file of batch {made} comes first: it was never written.")));
            }
            Err(message) => return Ok(*message),
        }
        // What became due since is in it, too.
        require_download(&found, &batch_of(&found).await?, &fields).await?;
    }
    hand_out(&found, batch.id).await
}

/// The batch that the page is about, as it is now.
async fn batch_of(found: &OperatorVisit<'_>) -> PageResult<BatchRecord> {
    let id = found.visit.parameter.parse::<i64>().ok().filter(|id| *id > 0);
    let batch = match id {
        Some(id) => found.stored(found.operator().ask(FindBatch(WhichBatch::Numbered(id))).await)?,
        None => None,
    };
    let says = ["There is no batch of that number.".to_owned()];
    Ok(batch.ok_or_else(|| found.message(StatusCode::NOT_FOUND, "No such batch", &says))?)
}

/// Whether the file may be handed out here, and the operator is sure.
async fn require_download(found: &OperatorVisit<'_>, batch: &BatchRecord, fields: &[u8]) -> PageResult<()> {
    if batch.out == 0 {
        return Err(found.refuse(&format!("Every payout of batch {} is settled.", batch.id)).into());
    }
    if batch.out > MOST_PAYOUTS {
        let why = format!(
            "Batch {} has {}, more than a page hands out. Write its file on the machine: `unionhall rewards batch new payouts.csv`",
            batch.id,
            counted(batch.out, "payout")
        );
        return Err(found.refuse(&why).into());
    }
    let id = batch.id;
    let written = write(found, id, &mut std::io::sink()).await?;
    let first = match batch.is_written {
        true => {
            "The file was written before. Each payout has its external_id of then: make sure that nothing is paid twice."
        }
        false => {
            "From now on nothing is taken out of the batch anymore, neither by a void nor by somebody who is erased."
        }
    };
    let has = format!(
        "The file has {}, each with the member's address. Keep it as private as a list of members.",
        written.words()
    );
    let says = Vec::from_iter([has, first.to_owned()].into_iter().chain(not_in_file(&written)));
    let (title, action) = (format!("Download the file of batch {id}?"), format!("/operator/rewards/batches/{id}"));
    let question = Question {
        title: &title,
        says: &says,
        action: &action,
        fields: &[],
        about: "",
        button: "Download it",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

/// Writes the file of a batch.
async fn write(found: &OperatorVisit<'_>, id: i64, out: &mut impl Write) -> PageResult<WrittenRows> {
    let written = found.stored(found.operator().rewards().write_file(id, out, None).await)?;
    Ok(written.map_err(|error| found.refuse(&format!("The file could not be put together: {error}.")))?)
}

/// What the file of a batch lacks.
fn not_in_file(written: &WrittenRows) -> Vec<String> {
    let withheld =
        written.withheld_words().map(|words| format!("{words} `unionhall members find ACCOUNT` shows the address."));
    written.left_out_words().into_iter().chain(withheld).collect()
}

async fn hand_out(found: &OperatorVisit<'_>, id: i64) -> PageResult {
    let (rewards, now) = (found.operator().rewards(), found.visit.now.time);
    if !found.stored(rewards.close_batch(id, &found.who.name.on_the_page(), now).await)? {
        return Ok(found.needs_another(&format!("You made batch {id}")));
    }
    let mut file = Vec::new();
    let written = write(found, id, &mut file).await?;
    let act = found.who.act("rewards batch new", format!("batch {id}, {}", written.words()), now);
    found.stored(found.operator().audited(act).rewards().note_written(id, now).await)?;
    if written.rows == 0 {
        let can = if written.withheld.is_empty() { "is left to be paid" } else { "can be in a file" };
        let mut says = vec![format!("No payout of batch {id} {can}.")];
        says.extend(not_in_file(&written));
        return Ok(found.done("There is no file", &says));
    }
    Ok(csv_file(found, &format!("payouts-{id}.csv"), file))
}

/// A file to download, under a name of our own.
pub(super) fn csv_file(found: &OperatorVisit<'_>, name: &str, file: Vec<u8>) -> Answer {
    let mut answer = found.page(String::new());
    answer.set_body(file);
    answer.set(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    let name = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    answer.set(CONTENT_DISPOSITION, name.unwrap_or(HeaderValue::from_static("attachment")));
    answer
}

/// Records what the provider answered, once it was looked through and the operator is sure.
pub async fn settle(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take_with_file(visit, request, HERE).await?;
    let now = visit.now.time;
    let text = found.file_or_pasted(&fields, "the provider's file")?;
    let is_earlier = field_is(&fields, "paid-earlier", "yes");
    let answer = read_answer(&text);
    if answer.lines.is_empty() {
        return Ok(refuse_answer(&found, &answer.mistakes));
    }
    let within = PaidWithin { now, may_be_earlier: is_earlier, allow: "check the box" };
    let checked = found.stored(found.operator().rewards().check_answer(answer, within).await)?;
    if !checked.mistakes.is_empty() {
        return Ok(refuse_answer(&found, &checked.mistakes));
    }
    let mut says = vec![format!(
        "The answer has {}: {}.",
        counted(checked.settlements.len() as u64, "payout"),
        checked.outcomes()
    )];
    if !checked.came_back.is_empty() {
        says.push(format!("Recorded as paid before, and failed now: {}.", checked.came_back.join(", ")));
    }
    says.push("What failed is due again, and the next batch has it under another external_id.".to_owned());
    let earlier = if is_earlier { "yes" } else { "" };
    let question = Question {
        title: "Record the provider's answer?",
        says: &says,
        action: "/operator/rewards/settle",
        fields: &[("answer", &text), ("paid-earlier", earlier)],
        has_file: true,
        about: "",
        button: "Record it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let act = found.who.act("rewards batch settle", checked.outcomes(), now);
    let who = act.who.clone();
    let rewards = found.operator().audited(act).rewards();
    let settled = found.stored(rewards.settle(&checked.settlements, &who, now).await)?;
    Ok(found.done("Recorded", &checked.words("The answer", &settled)))
}

pub(super) fn refuse_answer(found: &OperatorVisit<'_>, mistakes: &[(usize, String)]) -> Answer {
    let mut says = vec![match mistakes.len() > MOST_MISTAKES {
        true => format!(
            "Nothing was recorded, because of more than {0} mistakes. These are {0} of them:",
            grouped(MOST_MISTAKES as u64)
        ),
        false => "Nothing was recorded, because of these lines:".to_owned(),
    }];
    says.extend(numbered(mistakes).into_iter().take(MOST_MISTAKES));
    found.message(StatusCode::BAD_REQUEST, "Nothing was recorded", &says)
}
