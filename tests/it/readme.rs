//! README.md: what it tells a newcomer to type, typed.

use crate::operator::{answer, steady, transcripts};
use crate::prelude::*;

const README: &str = include_str!("../../README.md");

const THERE: &str = "http://127.0.0.1:8080";

/// Without the codes of referral links, which are another union's.
fn without_codes(text: &str) -> String {
    let mut parts = text.split("/joinus");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, rest| format!("{text}/joinusCODE{}", &rest[12..]))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_readme_answers_as_it_says() {
    let server = Server::start();
    let here = format!("http://{}", server.address);
    let all = transcripts(README);
    assert!(all.len() >= 5, "{all:?}");
    for (command, expected) in all {
        if expected.contains("\"memberCount\":1") {
            assert_eq!(server.confirm(1).await.status, 200, "the button that the page says to press");
        }
        // One shell for all of it, as far as the key is concerned; no bar of progress, which a terminal shows apart.
        let typed = command.replace(THERE, &here).replace("target/release/unionhall", "unionhall");
        let typed = format!(
            "curl() {{ command curl -sS \"$@\"; echo; }}; KEY=$(cat key 2>/dev/null)\n{typed}\necho \"$KEY\" >key"
        );
        let answered = without_codes(&answer(&server, &typed).replace(&here, THERE));
        assert_eq!(steady(&answered), steady(&without_codes(&expected)), "{command}");
    }
}

mod once {
    use super::README;

    #[test]
    fn its_pictures_are_small() {
        for name in ["join", "operator"] {
            let file = format!("docs/pictures/{name}.png");
            assert!(README.contains(&file), "{file}");
            let picture = std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).unwrap();
            assert!(picture.starts_with(b"\x89PNG") && picture.len() < 150_000, "{file}: {} bytes", picture.len());
        }
    }
}
