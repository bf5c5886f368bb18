//! What `campaigns offer` reads, and a negotiator proposes: the deal, beside the price that it is measured by.

use serde::{Serialize, Serializer};

use super::LastDay;
use super::file::{BadFile, FileReader, text_for};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub supplier: String,
    /// Whole dollars a year, against the benchmark.
    pub annual_saving: u32,
    pub term_months: u32,
    /// Members decide until then.
    pub decide_by: LastDay,
    /// Later members may accept until then, once the campaign is active.
    pub open_until: Option<LastDay>,
    /// Where people complain about the supplier.
    pub complaints: String,
    pub benchmark: Benchmark,
    /// In every language there is.
    #[serde(rename = "text", serialize_with = "by_language")]
    pub texts: Vec<(Language, OfferText)>,
}

fn by_language<S: Serializer>(texts: &[(Language, OfferText)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(texts.iter().map(|(language, text)| (language, text)))
}

/// What the price is compared with, and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Benchmark {
    pub price: String,
    pub source: String,
    pub date: LastDay,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferText {
    pub price: String,
    pub exit_fee: String,
    /// Whatever else belongs to the deal.
    pub details: Option<String>,
    /// What a member does to get the deal, or waits for.
    pub how: Option<String>,
    /// The benchmark's price, where this language writes it in another way.
    pub benchmark_price: Option<String>,
}

impl Offer {
    pub fn parse(text: &str) -> Result<Self, BadFile> {
        Self::read(FileReader::new(text)?)
    }

    /// Reads what [`Self::parse`] took before, perhaps of another version.
    pub fn kept(text: &str) -> Option<Self> {
        Self::read(FileReader::kept(text).ok()?).ok()
    }

    fn read(mut file: FileReader) -> Result<Self, BadFile> {
        let supplier = file.text("supplier", 100, "Example Fiber");
        let annual_saving = file.whole("annual_saving", 1, 1_000_000);
        let term_months = file.whole("term_months", 1, 600);
        let decide_by = file.day("decide_by");
        let open_until = file.optional_day("open_until");
        let complaints = file.parsed("complaints", COMPLAINTS, complaint_address);
        let benchmark = file.table("benchmark", "price, source and date", |benchmark| {
            let price = benchmark.text("price", 100, "$68 a month");
            let source = benchmark.text("source", 200, "FCC urban rate survey");
            let date = benchmark.day("date");
            Some(Benchmark { price: price?, source: source?, date: date? })
        });
        let texts = file.texts("price and exit_fee", |text| {
            let price = text.text("price", 100, "$48 a month");
            let exit_fee = text.text("exit_fee", 200, "None");
            let details = text.optional_text("details", 2000);
            let how = text.optional_text("how", 1000);
            let benchmark_price = text.optional_text("benchmark_price", 100);
            Some(OfferText { price: price?, exit_fee: exit_fee?, details, how, benchmark_price })
        });
        if let (Some(decide_by), Some(open_until)) = (decide_by, open_until)
            && open_until <= decide_by
        {
            file.wrong("open_until", "it must be later than decide_by, or left out");
        }
        file.finish(|| {
            Some(Self {
                supplier: supplier?,
                annual_saving: annual_saving?,
                term_months: term_months?,
                decide_by: decide_by?,
                open_until,
                complaints: complaints?,
                benchmark: benchmark?,
                texts: texts?,
            })
        })
    }

    pub fn text(&self, language: Language) -> Option<&OfferText> {
        text_for(&self.texts, language)
    }

    /// The price that the offer is compared with, for a reader.
    pub fn benchmark_price(&self, language: Language) -> &str {
        self.text(language).and_then(|text| text.benchmark_price.as_deref()).unwrap_or(&self.benchmark.price)
    }

    /// Whether members can still decide, and by a price that was seen, for an offer that is about to be published.
    pub fn check_days(&self, now: Timestamp) -> Result<(), BadFile> {
        let mut mistakes = Vec::new();
        if self.decide_by.is_over(now) {
            mistakes
                .push(format!("decide_by: {} is over; write a day on which members can still decide", self.decide_by));
        }
        let seen = self.benchmark.date;
        if Timestamp::from_millis(seen.number() * 86_400_000) > now {
            mistakes.push(format!("benchmark.date: {seen} lies ahead; write the day on which that price was seen"));
        }
        if mistakes.is_empty() { Ok(()) } else { Err(BadFile(mistakes)) }
    }

    /// The last day on which somebody may accept.
    pub fn last_day(&self) -> LastDay {
        self.open_until.unwrap_or(self.decide_by)
    }
}

const COMPLAINTS: &str = "an email address, or a web address that begins with https://, of at most 320 characters";

fn complaint_address(text: &str) -> Option<String> {
    let is_address =
        EmailAddress::parse(text).is_ok() || text.starts_with("https://") && !text.contains(char::is_whitespace);
    is_address.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::OFFER as GOOD;
    use super::*;

    #[test]
    fn a_good_file_is_read() {
        let offer = Offer::parse(GOOD).unwrap();
        assert_eq!((offer.annual_saving, offer.last_day()), (240, offer.decide_by));
        assert_eq!(offer.text(Language::English).unwrap().price, "$48 a month");
        let open = GOOD.replace("term_months = 12", "term_months = 12\nopen_until = 2027-06-30");
        assert_eq!(Offer::parse(&open).unwrap().last_day().to_string(), "2027-06-30");
        let quoted = GOOD.replace("2027-03-15", "\"2027-03-15\"");
        assert_eq!(Offer::parse(&quoted).unwrap(), offer);
    }

    #[test]
    fn a_language_may_write_the_benchmark_in_its_own_way_and_say_how_to_get_the_deal() {
        let more = "$48 al mes\"\nbenchmark_price = \"$68 al mes\"";
        let offer = Offer::parse(&GOOD.replace("$48 al mes\"", more)).unwrap();
        let prices = Language::ALL.map(|language| offer.benchmark_price(language));
        assert_eq!(prices, ["$68 a month", "$68 al mes"]);
        let how = Language::ALL.map(|language| offer.text(language).unwrap().how.as_deref().unwrap_or_default());
        assert_eq!(how, ["Example Fiber emails you a code.", "Example Fiber te manda un código por correo."]);
        let BadFile(mistakes) = Offer::parse(&GOOD.replace("Example Fiber emails", &"a".repeat(1000))).unwrap_err();
        assert_eq!(mistakes, ["text.en.how: write a text of 1 to 1000 characters"]);
    }

    /// A day that is none stops TOML's parser, and must not hide the rest.
    #[test]
    fn a_day_that_is_none_is_one_mistake_of_many() {
        let bad = GOOD.replace("2027-03-15", "2027-02-30").replace("2026-12-01", "2026-13-1").replace("240", "0");
        let BadFile(mistakes) = Offer::parse(&bad).unwrap_err();
        let day = "write a day, such as 2027-01-31";
        let expected = [
            "annual_saving: write a whole number from 1 to 1000000".to_owned(),
            format!("decide_by: {day}"),
            format!("benchmark.date: {day}"),
        ];
        assert_eq!(mistakes, expected);
        for other in ["decide_by = 2027-03-15x", "decide_by = 12-", "decide_by = 1-1-1", "decide_by = -2027-01-01"] {
            assert!(Offer::parse(&GOOD.replace("decide_by = 2027-03-15", other)).is_err(), "{other}");
        }
    }

    #[test]
    fn an_offer_is_published_while_members_can_decide() {
        let offer = Offer::parse(GOOD).unwrap();
        assert_eq!(offer.check_days("2027-03-16T09:59:59Z".parse().unwrap()), Ok(()));
        let mistakes = |now: &str| offer.check_days(now.parse().unwrap()).unwrap_err().0;
        assert!(mistakes("2027-03-16T10:00:00Z")[0].starts_with("decide_by: 2027-03-15 is over"));
        assert!(mistakes("2026-11-30T23:59:59Z")[0].starts_with("benchmark.date: 2026-12-01 lies ahead"));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let bad = GOOD
            .replace("240", "0")
            .replace("help@fiber.example", "call us")
            .replace("term_months = 12", "open_until = 2027-03-15")
            .replace("exit_fee = \"None\"", "exit_fe = \"None\"")
            .replace(", date = 2026-12-01", "");
        let BadFile(mistakes) = Offer::parse(&bad).unwrap_err();
        for expected in [
            "annual_saving: write a whole number from 1 to 1000000",
            "term_months: it is missing",
            "complaints: write an email address, or a web address",
            "open_until: it must be later than decide_by",
            "benchmark.date: it is missing",
            "text.en.exit_fee: it is missing",
            "text.en.exit_fe: there is no such field; did you mean exit_fee?",
        ] {
            assert!(mistakes.iter().any(|mistake| mistake.starts_with(expected)), "{expected}: {mistakes:#?}");
        }
        assert_eq!(mistakes.len(), 7, "{mistakes:#?}");
    }
}
