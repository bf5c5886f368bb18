//! SIGHUP: the catalog is read again beside running requests, and every face shows the same one.

use crate::prelude::*;

const SAVINGS: u32 = 31_000;
const REWARD: u32 = 41_000;

/// Catalogs are numbered, and each figure of one tells its number. Odd ones list categories that overlap, which descriptions
/// tell of. Replaced as an operator's tools do it: whole.
fn write_catalog(file: &Path, number: u32) {
    let overlap = if number % 2 == 1 { "insurance = 0\ncar_insurance = 0\n" } else { "" };
    let (savings, reward) = (SAVINGS + number, REWARD + number);
    let new = file.with_extension("new");
    let terms = format!("[referral]\nreward_per_group = {reward}\ngroup_size = 5\nmax_groups = 1\n");
    std::fs::write(&new, format!("[savings]\ninternet = {savings}\n{overlap}{terms}")).unwrap();
    std::fs::rename(new, file).unwrap();
}

/// The numbers of the catalogs whose figures stand in a text.
fn numbers_in(text: &str) -> BTreeSet<u32> {
    // A port may look like a figure of a catalog.
    let text: String =
        text.split("127.0.0.1:").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect();
    let figures = text.split(|c: char| !c.is_ascii_digit() && c != ',').map(|run| run.replace(',', ""));
    let number =
        |figure: u32| [SAVINGS, REWARD].into_iter().find_map(|base| figure.checked_sub(base).filter(|n| *n < 100));
    figures.filter_map(|figure| number(figure.parse().ok()?)).collect()
}

/// Everything that shows the catalog, by how it is asked for.
const FACES: [&str; 9] = [
    "/v1/negotiate-categories", "/v1/referral-program", "/openapi.json", "/docs", "/join", "listNegotiationCategories",
    "getReferralProgram", "tools/list", "signUpUser",
];

async fn ask(connection: &mut Connection, face: &str, key: &str) -> Answer {
    if face.starts_with('/') {
        return connection.send(Request::get(face), "").await;
    }
    let message = match face {
        "tools/list" => json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        tool => {
            let arguments = if tool == "signUpUser" {
                json!({ "email": "ana@example.com", "categories": { "internet": true } })
            } else {
                json!({})
            };
            tool_call(tool, arguments)
        }
    };
    let request = Request::post("/mcp").header("authorization", format!("Bearer {key}"));
    connection.send(request.header("accept", "application/json, text/event-stream"), message.to_string()).await
}

/// The number of the catalog that a face shows; stops the test where it shows two, or fails.
fn shown(face: &str, answer: &Answer) -> u32 {
    let text = std::str::from_utf8(&answer.body).unwrap();
    assert_eq!(answer.status, 200, "{face}: {text}");
    assert!(!text.contains("\"isError\":true"), "{face}: {text}");
    let numbers = numbers_in(text);
    let tells_overlap = text.contains("Categories overlap");
    assert_eq!(numbers.len(), 1, "{face} shows the catalogs {numbers:?}: {text}");
    let number = numbers.into_iter().next().unwrap();
    if matches!(face, "/openapi.json" | "/docs" | "tools/list") {
        assert_eq!(tells_overlap, number % 2 == 1, "{face} describes one catalog and shows another");
    }
    number
}

fn told(server: &Server, words: &str) -> usize {
    server.log().matches(words).count()
}

async fn hang_up(server: &Server, words: &str) {
    let before = told(server, words);
    server.signal("HUP");
    wait_for!(async || told(server, words) > before).await;
}

const READ: &str = "the catalog was read again";
const STAYS: &str = "the catalog in use stays: ";

#[tokio::test(flavor = "multi_thread")]
async fn another_catalog_is_shown_everywhere_and_a_bad_one_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    write_catalog(&file, 0);
    let server = Watched::start(&[], &["--catalog", file.to_str().unwrap(), "--mail", "hold"]);
    let failed =
        async |figure: f64| wait_for!(async || server.figures().await["unionhall_reload_failed"] == figure).await;
    failed(0.0).await;
    let (key, mut connection) = (server.key(), server.connect(Ipv4Addr::LOCALHOST).await);
    let mut shows = async |number: u32| {
        let mut tags = BTreeMap::new();
        for face in FACES {
            let answer = ask(&mut connection, face, &key).await;
            assert_eq!(shown(face, &answer), number, "{face}");
            if let Some(tag) = answer.headers.get("etag") {
                tags.insert(face, tag.to_str().unwrap().to_owned());
            }
        }
        assert_eq!(tags.len(), 4, "{tags:?}");
        tags
    };
    let first = shows(0).await;

    for (bad, why) in [
        ("[savings", "has a mistake: line 1: "),
        ("[savings]\npets = 3\n[referral]\nreward_per_group = 1\ngroup_size = 1\nmax_groups = 1\n", "pets"),
        ("", "has a mistake: "),
    ] {
        std::fs::write(&file, bad).unwrap();
        hang_up(&server, STAYS).await;
        let log = server.log();
        let line: Value = serde_json::from_str(log.lines().rfind(|line| line.contains(STAYS)).unwrap()).unwrap();
        let message = line["message"].as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()) && message.contains(why), "{message}");
        assert_eq!(line["level"], "error");
    }
    std::fs::remove_file(&file).unwrap();
    hang_up(&server, STAYS).await;
    assert!(server.log().contains("the catalog in use stays: cannot read the catalog "));
    assert_eq!(shows(0).await, first, "what was shown is still shown");
    assert_eq!(told(&server, READ), 0);
    failed(1.0).await;

    write_catalog(&file, 7);
    hang_up(&server, READ).await;
    failed(0.0).await;
    let second = shows(7).await;
    for (face, tag) in &first {
        assert_ne!(tag, &second[face], "{face}");
        let known = async |tag: &str| server.send(Request::get(*face).header("if-none-match", tag), "").await.status;
        assert_eq!((known(tag).await.as_u16(), known(&second[face]).await.as_u16()), (200, 304), "{face}");
    }
    write_catalog(&file, 0);
    hang_up(&server, READ).await;
    assert_eq!(shows(0).await, first, "the same again has its tags again");
}

/// Whoever has seen a catalog never sees an older one, on whichever face they look.
#[tokio::test(flavor = "multi_thread")]
async fn requests_beside_fifty_reloads_see_one_catalog_each_and_never_an_older_one() {
    const RELOADS: u32 = 50;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    write_catalog(&file, 0);
    let often = ["--public-per-minute", "1000000", "--key-per-minute", "1000000", "--mail", "hold"];
    let server = Server::start_with(&[&["--catalog", file.to_str().unwrap()], &often[..]].concat());
    let (key, done, newest) = (server.key(), AtomicBool::new(false), AtomicU32::new(0));
    let look = async |from: u8| {
        let mut connection = server.connect(Ipv4Addr::new(127, 0, 0, from)).await;
        // Lists of tools have a limit of their own.
        let snapshot = FACES.into_iter().filter(|face| *face != "tools/list").cycle().skip(usize::from(from));
        let mut answers = 0_u32;
        for face in snapshot {
            if done.load(Ordering::SeqCst) {
                break;
            }
            let before = newest.load(Ordering::SeqCst);
            let number = shown(face, &ask(&mut connection, face, &key).await);
            assert!(number >= before, "{face} shows {number} after {before} was seen");
            newest.fetch_max(number, Ordering::SeqCst);
            answers += 1;
        }
        answers
    };
    let reload = async {
        for number in 1..=RELOADS {
            write_catalog(&file, number);
            hang_up(&server, READ).await;
            newest.fetch_max(number, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
    };
    let (a, b, c, ()) = tokio::join!(look(1), look(2), look(3), reload);
    assert!([a, b, c].iter().all(|answers| *answers > RELOADS), "{a} {b} {c}");
    assert_eq!(told(&server, READ), RELOADS as usize);
    assert_eq!(told(&server, "\"level\":\"error\""), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anything_to_read_again_the_signal_ends_nothing() {
    let server = Server::start();
    hang_up(&server, "there is neither a certificate nor a catalog to read again").await;
    server.get("/v1/referral-program").await.good();
}

/// What the union says of itself is in the same words on pages, in the reference, in mails and in what assistants are told; and
/// what it does not say is not made up.
#[tokio::test(flavor = "multi_thread")]
async fn who_runs_it_and_what_it_costs_is_told_everywhere_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    let write = |run_by: &str, funding: &str| {
        let terms = "[savings]\ninternet = 300\n[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 1\n";
        let text = |name: &str, text: &str| format!("[union.{name}]\nen = \"{text}\"\nes = \"ES {text}\"\n");
        let funding = if funding.is_empty() { String::new() } else { text("funding", funding) };
        let texts = [text("run_by", run_by), text("cost", "Five dollars a year."), funding].concat();
        std::fs::write(&file, format!("{terms}{texts}")).unwrap();
    };
    write("Ana and Ben & Sons.", "");
    let (server, key) = Server::with_key(&["--catalog", file.to_str().unwrap()]);
    let letter = |n: usize| {
        let files = std::fs::read_dir(server.data().join("mailbox")).into_iter().flatten();
        let mut letters: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        letters.retain(|file| file.extension().is_some_and(|end| end == "json"));
        letters.sort();
        letters.get(n).map(|file| std::fs::read_to_string(file).unwrap())
    };
    let reads = async |n: usize, wanted: [&str; 3]| {
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
        let request = Request::post("/mcp").header("accept", "application/json, text/event-stream");
        let told = server.send(request, initialize.to_string()).await;
        server.post("/v1/invite", &key, json!({ "email": format!("ana{n}@example.com") }).to_string()).await.good();
        wait_for!(async || letter(n).is_some()).await;
        let mut seen = vec![("mcp", told.text()), ("mail", letter(n).unwrap())];
        for path in ["/about", "/terms", "/docs", "/docs.md", "/openapi.json", "/llms.txt"] {
            let answer = server.get(path).await;
            seen.push((path, answer.text()));
        }
        for (face, text) in seen {
            let text = text.replace("&#38;", "&").replace("&amp;", "&");
            for sentence in wanted {
                assert!(text.contains(sentence), "{face} does not say {sentence}: {text}");
            }
        }
    };
    let cost = "What joining costs: Five dollars a year.";
    let unpublished = "The union has not published how it earns and pays rewards.";
    reads(0, ["Who runs the union: Ana and Ben & Sons.", cost, unpublished]).await;
    let spanish = server.send(Request::get("/join").header("accept-language", "es"), "").await;
    holds(&spanish.text(), &["Quién la dirige</dt><dd>ES Ana and Ben", "no ha publicado cómo obtiene dinero"]);
    write("Cleo.", "Suppliers pay it.");
    hang_up(&server, READ).await;
    let funding = "How the union earns and pays rewards: Suppliers pay it.";
    reads(1, ["Who runs the union: Cleo.", cost, funding]).await;
}
