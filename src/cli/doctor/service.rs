//! What the service that runs here says of itself, at `/readyz`: only it knows whether its mail goes and its Redis answers.

use serde_json::Value;

use crate::cli::findings::Finding;
use crate::config::ServeSettings;
use crate::domain::health::{Health, MailState, Scope, sign_ups_word};
use crate::http::connection::probe;
use crate::operator::findings::of_health;

const SERVICE: &str = "service";

/// What a look from here did not find, as `known` has that; nothing where no service runs here.
pub(super) async fn ask(settings: &ServeSettings, is_public: bool, known: &[Finding]) -> Vec<Finding> {
    let (address, tls) = (settings.union.listen, settings.tls_cert.is_some());
    let asked = tokio::task::spawn_blocking(move || probe::ask(address, tls, "/readyz"));
    let answer = tokio::time::timeout(super::address::NEIGHBOUR_TIMEOUT, asked).await;
    let Ok(Ok(Ok(answer))) = answer else { return Vec::new() };
    let says = |what: &str| format!("the service on {address} says that {what}");
    if answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"ok\":false") {
        return vec![Finding::fail(SERVICE, says("it is not ready: sign-ups fail"), "see why in its log")];
    }
    let Some((health, words)) = read(&answer) else { return Vec::new() };
    let is_news = |one: &Finding| known.iter().all(|known| known.message != one.message);
    let said = of_health(&health, is_public).into_iter().filter(is_news);
    let mut found: Vec<_> = said.map(|one| Finding { message: says(&one.message), ..one }).collect();
    found.push(Finding::ok(SERVICE, says(&format!("it is ready: {words}"))));
    found
}

/// What `/readyz` answered, and its words.
fn read(answer: &str) -> Option<(Health, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok().filter(|_| head.starts_with("HTTP/1.1 200 "))?;
    let word = |name: &str| body[name].as_str();
    let (mail, limits, sign_ups) = (word("mail")?, word("limits")?, word("signUps")?);
    let health = Health {
        not_ready: None,
        are_sign_ups_paused: Some(sign_ups == sign_ups_word(true)),
        mail: MailState::from_name(mail)?,
        limits: Scope::from_name(limits)?,
    };
    Some((health, format!("mail {mail}, limits {limits}, sign-ups {sign_ups}")))
}
