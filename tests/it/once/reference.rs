//! The reference, as a page and as Markdown, and how programs find it.

use crate::prelude::*;
use hyper::header::HeaderValue;
use unionhall::http::response::error::ErrorKind;

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

/// What stands between `before` and the next `after`, every time.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).map(|rest| rest.split(after).next().unwrap()).collect()
}

/// Every name of a property in a schema, behind references too.
fn names(document: &Value, schema: &Value, found: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name.clone());
        names(document, property, found);
    }
    if schema["items"].is_object() {
        names(document, &schema["items"], found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_have_every_operation_field_error_and_fact() {
    let flags = ["--contact-email", "keys@union.example", "--name", "Bill & *Busters*", "--public-per-minute", "77"];
    let server = Server::start_with(&flags);
    let (page, markdown) = (server.get("/docs").await, server.get("/docs.md").await);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(markdown.header("content-type"), "text/markdown; charset=utf-8");
    let (page, markdown) = (text(&page), text(&markdown));
    let document: Value = serde_json::from_slice(&server.get("/openapi.json").await.body).unwrap();
    for operation in ALL {
        let spec = &operation.spec;
        let section = |whole: &str, start: String| whole.split(&start).nth(1).unwrap_or_default().to_owned();
        let in_page = section(page, format!("<section id=\"{}\"", spec.id));
        let in_page = in_page.split("</section>").next().unwrap();
        let in_markdown = section(markdown, format!("<a id=\"{}\"></a>", spec.id));
        let in_markdown = in_markdown.split("<a id=").next().unwrap();
        assert!(in_page.contains(&spec.title.replace('\'', "&#39;")) && in_markdown.contains(spec.title));
        let described = &document["paths"][spec.path][spec.method.name().to_lowercase()];
        let mut fields = BTreeSet::new();
        for schema in [&described["requestBody"], &described["responses"]["200"]] {
            names(&document, &schema["content"]["application/json"]["schema"], &mut fields);
        }
        assert!(fields.contains("ok"));
        let codes = described["responses"].as_object().unwrap().values().flat_map(|response| {
            let examples = response["content"]["application/json"]["examples"].as_object();
            examples.into_iter().flatten().filter_map(|(_, example)| example["value"]["code"].as_str())
        });
        let codes: Vec<_> = codes.map(str::to_owned).collect();
        assert!(!codes.is_empty());
        for part in
            fields.iter().chain(&codes).map(String::as_str).chain([spec.path, "Errors", "urllib.request", "call_tool"])
        {
            assert!(in_page.contains(part) && in_markdown.contains(part), "{}: {part}", spec.id);
        }
        assert_eq!(in_page.contains("class=\"try\""), !operation.takes_input, "{}", spec.id);
    }
    for kind in ErrorKind::ALL {
        let example = kind.example(77);
        let meaning = kind.text().meaning.split('`').next().unwrap().trim();
        for whole in [page, markdown] {
            // It begins large there.
            assert!(whole.contains(&meaning[1..]) && whole.contains(example.status().as_str()), "{kind:?}");
        }
    }
    for part in [
        "explicitly asked to join", "Retry-After", "12 months", "Sunset", "Deprecation", "at most 1000 characters",
        "77 a minute", "RateLimit-Policy", "webhook-signature", "simulator.test", "Idempotency-Replayed",
        "claude mcp add",
    ] {
        assert!(page.contains(part) && markdown.contains(part), "{part}");
    }
    assert!(page.contains("<title>Bill &#38; *Busters* API reference</title>"));
    assert!(page.contains("mailto:keys@union.example") && markdown.contains("<keys@union.example>"));
    assert!(markdown.starts_with("# Bill & \\*Busters\\* API reference\n"));
    assert!(!page.contains("<em>Busters"), "a name is no markup");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere() {
    let server = Server::start_with(&["--contact-email", "keys@union.example"]);
    let (page, markdown) = (server.get("/docs").await, server.get("/docs.md").await);
    assert!(page.header("content-security-policy").contains("script-src 'self'; connect-src 'self';"));
    let again = Request::get("/docs").header("if-none-match", page.header("etag"));
    let again = server.send(again, "").await;
    assert_eq!(
        (again.status.as_u16(), &again.headers["content-security-policy"]),
        (304, &page.headers["content-security-policy"])
    );
    let (page, markdown) = (text(&page), text(&markdown));
    let ids = between(page, " id=\"", "\"");
    let known: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(known.len(), ids.len(), "every id is there once");
    let anchors: BTreeSet<_> = between(markdown, "<a id=\"", "\"").into_iter().collect();
    assert!(anchors.len() > 15 && anchors.is_subset(&known), "{anchors:?}");

    let mut paths = BTreeSet::new();
    let links = between(page, "href=\"", "\"").into_iter().map(|link| (&known, link));
    let outside = markdown.split("```").step_by(2);
    let in_markdown: Vec<_> =
        outside.flat_map(|prose| between(prose, "](", ")")).map(|link| (&anchors, link)).collect();
    assert!(in_markdown.len() > 30, "{in_markdown:?}");
    for (targets, link) in links.chain(in_markdown) {
        match link.strip_prefix('#') {
            Some(anchor) => assert!(targets.contains(anchor), "{link}"),
            None if link.starts_with("http") || link.starts_with("mailto:") => {}
            None => {
                paths.insert(link);
            }
        }
    }
    for path in &paths {
        assert_eq!(server.get(&format!("/{path}")).await.status, 200, "{path}");
    }
    for expected in ["docs.md", "docs.css", "style.css", "llms.txt", "openapi.json", ".well-known/security.txt"] {
        assert!(paths.contains(expected), "{expected}");
    }
    let loaded = between(page, " src=\"", "\"");
    assert_eq!(loaded, ["docs.js", "logo"]);
    for path in loaded {
        assert_eq!(server.get(&format!("/{path}")).await.status, 200, "{path}");
    }
    assert!(!page.contains("<script>") && !page.contains(" style=") && !page.contains(" onclick"));
    let outside = between(page, "<link ", ">");
    assert!(outside.iter().all(|link| !link.contains("http")), "{outside:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_the_rule_the_operations_and_where_the_rest_is() {
    let server = Server::start();
    let answer = server.get("/llms.txt").await;
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let told = text(&answer);
    assert!(told.starts_with("# Consumer Union\n\n> "), "{told}");
    for operation in ALL {
        let lines = told.lines().filter(|line| line.contains(operation.spec.id) && line.starts_with("- ")).count();
        assert_eq!(lines, 1, "{}", operation.spec.id);
    }
    let base = format!("http://{}", server.address);
    for path in ["/docs.md", "/docs", "/openapi.json", "/partner/openapi.json", "/mcp", "/join"] {
        assert!(told.contains(&format!("({base}{path})")), "{path}");
    }
    assert!(told.contains("only after they have explicitly asked to join"));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_find_what_describes_the_service() {
    let server =
        Server::start_with(&["--base-url", "https://api.union.example", "--join-site", "https://union.example"]);
    let base = "https://api.union.example";
    let browser = Request::get("/").header("accept", "text/html");
    let mut answers = vec![server.send(browser, "").await];
    for path in
        ["/", "/v1", "/openapi.json", "/docs", "/docs.md", "/llms.txt", "/server.json", "/.well-known/api-catalog"]
    {
        answers.push(server.get(path).await);
    }
    answers.push(server.send(Request::head("/.well-known/api-catalog"), "").await);
    for answer in &answers {
        let links: Vec<_> = answer.header("link").split(", ").collect();
        for expected in [
            format!("<{base}/openapi.json>; rel=\"service-desc\"; type=\"application/json\""),
            format!("<{base}/docs>; rel=\"service-doc\"; type=\"text/html\""),
            format!("<{base}/.well-known/api-catalog>; rel=\"api-catalog\"; type=\"application/linkset+json\""),
            "<https://union.example/terms>; rel=\"terms-of-service\"".to_owned(),
            "<https://union.example/privacy>; rel=\"privacy-policy\"".to_owned(),
        ] {
            assert!(links.contains(&expected.as_str()), "{expected} in {links:?}");
        }
    }
    assert_eq!(server.get("/v1/stats").await.header("link"), "", "what is asked for most stays small");

    let catalog = server.get("/.well-known/api-catalog").await;
    let kind = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";
    assert_eq!((catalog.header("content-type"), catalog.header("access-control-allow-origin")), (kind, "*"));
    let links = serde_json::from_slice::<Value>(&catalog.body).unwrap()["linkset"].clone();
    assert_eq!(
        links[0]["item"],
        json!([{ "href": format!("{base}/v1") }, { "href": format!("{base}/partner/v1") }, { "href": format!("{base}/mcp") }])
    );
    for (place, path, described) in
        [(1, "/v1", "/openapi.json"), (2, "/partner/v1", "/partner/openapi.json"), (3, "/mcp", "/server.json")]
    {
        assert_eq!(links[place]["anchor"], format!("{base}{path}"));
        assert_eq!(links[place]["service-desc"][0]["href"], format!("{base}{described}"));
        assert!(links[place]["service-doc"][0]["href"].as_str().unwrap().starts_with(&format!("{base}/docs")));
    }
    // A client that found one of these would ask for a password instead of sending its key.
    for path in [
        "oauth-authorization-server", "oauth-protected-resource", "oauth-protected-resource/mcp",
        "openid-configuration",
    ] {
        assert_eq!(server.get(&format!("/.well-known/{path}")).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_finds_a_hole_learns_whom_to_tell() {
    let server =
        Server::start_with(&["--contact-email", "keys@union.example", "--base-url", "https://api.union.example"]);
    let answer = server.get("/.well-known/security.txt").await;
    assert_eq!(answer.headers["content-type"], HeaderValue::from_static("text/plain; charset=utf-8"));
    let fields: Vec<_> = text(&answer).lines().map(|line| line.split_once(": ").unwrap()).collect();
    let of = |name: &str| fields.iter().find(|(field, _)| *field == name).unwrap().1;
    assert_eq!(of("Contact"), "mailto:keys@union.example");
    assert_eq!(of("Canonical"), "https://api.union.example/.well-known/security.txt");
    assert_eq!(of("Policy"), "https://api.union.example/docs#security");
    let expires: unionhall::domain::time::Timestamp = of("Expires").parse().unwrap();
    let now = unionhall::clock::Clock::start().now().time;
    let days = expires.since(now).as_secs() / 86_400;
    assert!((80..=90).contains(&days), "{days}");
    let silent = Server::start();
    silent.get("/.well-known/security.txt").await.refused(404, Value::Null);
}
