//! `/operator/rewards/tax`: what each account was paid in a year, as a file. The audit log has every copy, for it holds addresses.

use hyper::Request;

use super::frame::OperatorSection;
use super::question::Question;
use super::rewards::csv_file;
use super::session::OperatorVisit;
use crate::http::request::body::SentBody;
use crate::membership::StoreError;
use crate::operator::tax::{TAX_HEADER, TaxSums, TaxYear};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Rewards;

/// Accounts of a file that is handed out here, about 1 MB; a larger one is written by the command.
const MOST_ACCOUNTS: usize = 20_000;

/// Why there is no file.
enum NoFile {
    Store(StoreError),
    TooLarge,
}

impl From<StoreError> for NoFile {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub async fn download(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let typed = field(&fields, "year").unwrap_or_default();
    let year = TaxYear::read(&typed).map_err(|why| found.refuse(&format!("The year cannot be read: {why}.")))?;
    let (file, sums) = read(&found, year).await?;
    if sums.accounts == 0 {
        return Ok(found.done("There is no file", &[format!("Nobody was paid in {}.", year.year)]));
    }
    let withheld = sums.withheld_words();
    let withheld = withheld.map(|words| format!("{words} `unionhall members find ACCOUNT` shows the address."));
    let mut says = vec![
        format!("In {}: {}.", year.year, sums.words()),
        "Each row has the member's address. Keep the file as private as a list of members.".to_owned(),
    ];
    says.extend(withheld);
    let year = year.year.to_string();
    let question = Question {
        title: &format!("Download what was paid in {year}?"),
        says: &says,
        action: "/operator/rewards/tax",
        fields: &[("year", &year)],
        button: "Download it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let act = found.who.act("rewards tax", year.clone(), visit.now.time);
    found.stored(found.operator().note(act).await)?;
    Ok(csv_file(&found, &format!("paid-{year}.csv"), file))
}

async fn read(found: &OperatorVisit<'_>, year: TaxYear) -> PageResult<(Vec<u8>, TaxSums)> {
    let (mut file, mut rows) = (format!("{TAX_HEADER}\n").into_bytes(), 0);
    let add = |row: &str| {
        rows += 1;
        file.extend_from_slice(row.as_bytes());
        file.push(b'\n');
        if rows > MOST_ACCOUNTS { Err(NoFile::TooLarge) } else { Ok(()) }
    };
    match found.operator().tax(year, add).await {
        Ok(sums) => Ok((file, sums)),
        Err(NoFile::Store(error)) => found.stored(Err(error)),
        Err(NoFile::TooLarge) => {
            let why = format!(
                "More than 20,000 accounts were paid in {0}, more than a page hands out. Write the file on the machine: `unionhall rewards tax --year {0}`",
                year.year
            );
            Err(found.refuse(&why).into())
        }
    }
}
