//! Each answer of a sign-up in every place that has it: one that is forgotten somewhere would be lost without an error.

use hyper::Request;
use serde_json::{Map, Value, json};
use unionhall::domain::answers::Answers;

use crate::own_page::{Browser, start};
use crate::pages::{form, page};
use crate::server::{Server, block_on};

/// An answer with two values: the first for a sign-up, the second for the own page.
struct Question {
    column: &'static str,
    /// The field of the API; none where only the form asks.
    field: Option<&'static str>,
    /// In an export.
    exported: &'static str,
    values: [Given; 2],
}

struct Given {
    sent: Value,
    form: (&'static str, &'static str),
    stored: &'static str,
    shown: &'static str,
    exported: Value,
}

/// An answer that is one text everywhere but on pages.
fn text(
    column: &'static str,
    field: Option<&'static str>,
    form: &'static str,
    exported: &'static str,
    values: [[&'static str; 2]; 2],
) -> Question {
    let values = values.map(|[stored, shown]| Given {
        sent: stored.into(),
        form: (form, stored),
        stored,
        shown,
        exported: stored.into(),
    });
    Question { column, field, exported, values }
}

fn questions() -> Vec<Question> {
    let bill = |slug: &'static str, shown: &'static str| Given {
        sent: json!({ slug: true }),
        form: (slug, "true"),
        stored: slug,
        shown,
        exported: json!([slug]),
    };
    let bills = [bill("internet", "Home Internet"), bill("groceries", "Groceries")];
    vec![
        text("us_state", Some("usState"), "usState", "usState", [["CA", "California"], ["NY", "New York"]]),
        Question { column: "categories", field: Some("categories"), exported: "categories", values: bills },
        text(
            "comments",
            Some("otherComments"),
            "otherComments",
            "comments",
            [["my words", "my words"], ["other words", "other words"]],
        ),
    ]
}

/// What one of the values says, in the order of the questions; none where a channel does not ask.
fn of<T>(questions: &[&Question], value: usize, part: fn(&Given) -> T) -> Vec<T> {
    questions.iter().map(|question| part(&question.values[value])).collect()
}

fn columns(questions: &[&Question], before: &str) -> String {
    questions.iter().map(|question| format!("{before}{}", question.column)).collect::<Vec<_>>().join(", ")
}

async fn export(browser: &mut Browser<'_>) -> Value {
    serde_json::from_slice(&browser.get("/me/export").await.body).unwrap()
}

fn exported(export: &Value, questions: &[&Question]) -> Vec<Value> {
    questions.iter().map(|question| export[question.exported].clone()).collect()
}

#[test]
fn every_answer_is_asked_here() {
    let asked: Vec<_> = questions().iter().map(|question| question.column).collect();
    assert_eq!(asked, Answers::NAMES, "add a line to `questions` for a new answer");
}

#[test]
fn an_answer_arrives_by_every_channel_and_stays_until_its_person_is_erased() {
    block_on(async {
        let (server, key) = start();
        let questions = questions();
        for (n, channel) in (1..).zip(["rest", "mcp", "form"]) {
            goes_through_everything(&server, &key, channel, n, &questions).await;
        }
    });
}

async fn goes_through_everything(server: &Server, key: &str, channel: &str, n: u8, questions: &[Question]) {
    let asked: Vec<_> = questions.iter().filter(|question| channel == "form" || question.field.is_some()).collect();
    let all: Vec<_> = questions.iter().collect();
    let email = format!("{channel}@example.com");
    let newest = |what: &str| {
        server.rows(&format!("SELECT {what} FROM sign_ups WHERE id = (SELECT max(id) FROM sign_ups)")).remove(0)
    };
    let invite = async |value: Option<usize>| {
        let sent = |value: usize| {
            asked.iter().map(move |question| (question.field.unwrap().to_owned(), question.values[value].sent.clone()))
        };
        let mut body: Map<_, _> = value.into_iter().flat_map(sent).collect();
        body.insert("email".to_owned(), email.as_str().into());
        if channel == "mcp" {
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "signUpUser", "arguments": body } });
            let request = Request::post("/mcp").header("authorization", format!("Bearer {key}"));
            let answer = server.send(request, call.to_string()).await;
            assert!(String::from_utf8_lossy(&answer.body).contains("inviteLink"), "{answer:?}");
        } else {
            server.post("/v1/invite", key, Value::from(body).to_string()).await.good();
        }
    };
    let join_by_form = async |value: Option<usize>| {
        let mut fields = vec![("email", email.as_str())];
        fields.extend(value.into_iter().flat_map(|value| of(&asked, value, |given| given.form)));
        page(&server.submit(Request::post("/join"), form(&fields)).await, 200, "Check your inbox");
    };
    let confirm = async || {
        let sign_up = server.number("SELECT max(id) FROM sign_ups");
        let shown = page(&server.get(&server.confirm_path(sign_up)).await, 200, "");
        page(&server.confirm(sign_up).await, 200, "Welcome");
        shown
    };

    if channel == "form" {
        join_by_form(Some(0)).await;
    } else {
        invite(Some(0)).await;
        invite(None).await;
    }
    assert_eq!(newest(&columns(&asked, "")), of(&asked, 0, |given| given.stored), "by {channel}");
    let shown = confirm().await;
    for part in of(&asked, 0, |given| given.shown) {
        assert!(shown.contains(part), "the confirm page lacks {part}: {shown}");
    }

    let mut browser = Browser::new(server, n);
    browser.sign_in(&email).await;
    let document = export(&mut browser).await;
    assert_eq!(exported(&document["answers"], &asked), of(&asked, 0, |given| given.exported.clone()));
    assert_eq!(exported(&document["signUps"][0], &asked), of(&asked, 0, |given| given.exported.clone()));
    let html = page(&browser.get("/me").await, 200, "");
    let evidence = html.split("id=\"joined\"").nth(1).unwrap();
    for part in of(&asked, 0, |given| given.shown) {
        assert!(evidence.contains(part), "what they joined with lacks {part}: {evidence}");
    }

    // The form as the page shows it, sent back as it is.
    let own = columns(&all, "own_");
    let stored = || server.rows(&format!("SELECT {own} FROM people WHERE email_normalized = '{email}'")).remove(0);
    let kept = format!("SELECT count(*) FROM people WHERE coalesce({own}, NULL) IS NOT NULL");
    let (texts, boxes) = browser.shown_answers().await;
    let saved = browser.post_all("/me/answers", &[texts, boxes].concat()).await;
    assert_eq!(saved.header("location"), "/me?done=answers");
    let document = export(&mut browser).await;
    assert_eq!(exported(&document["answers"], &asked), of(&asked, 0, |given| given.exported.clone()), "unchanged");
    let changed = browser.change_answers(&of(&all, 1, |given| given.form)).await;
    assert_eq!(changed.header("location"), "/me?done=answers");
    assert_eq!(stored(), of(&all, 1, |given| given.stored));
    let document = export(&mut browser).await;
    assert_eq!(exported(&document["answers"], &all), of(&all, 1, |given| given.exported.clone()));
    let told = server.run(&["members", "show", &email]);
    for part in of(&all, 1, |given| given.stored) {
        assert!(told.contains(part), "`members show` lacks {part}: {told}");
    }

    // A field that does not arrive must not clear its answer.
    for question in &all {
        let (name, _) = question.values[1].form;
        let mut fields = browser.filled_in(&of(&all, 0, |given| given.form)).await;
        fields.retain(|(field, _)| field != name && field != question.values[0].form.0);
        if question.column != Answers::BILLS {
            let refused = browser.post_all("/me/answers", &fields).await;
            page(&browser.follow(refused).await, 200, "arrived incomplete");
        }
    }

    // They leave and come back without a word: what they said last counts.
    browser.act("/me/leave", &[]).await;
    if channel == "form" {
        join_by_form(None).await;
    } else {
        invite(None).await;
    }
    let shown = confirm().await;
    for part in of(&all, 1, |given| given.shown) {
        assert!(shown.contains(part), "the confirm page of somebody who comes back lacks {part}: {shown}");
    }
    assert_eq!(newest(&columns(&all, "")), of(&all, 1, |given| given.stored), "back by {channel}");
    assert_eq!(server.number(&kept), 0);
    let document = export(&mut browser).await;
    assert_eq!(exported(&document["answers"], &all), of(&all, 1, |given| given.exported.clone()));

    browser.change_answers(&of(&all, 0, |given| given.form)).await;
    let erased = browser.act("/me/erase", &[]).await;
    assert_eq!(erased.header("location"), "/me/erased");
    assert_eq!(server.number(&kept), 0);
}
