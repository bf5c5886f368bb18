//! The dashboard and the alerts of `deploy/`, held to what running servers export: whatever an expression names is there.

use serde_json::Map;

use crate::machines::{fetched, shipped};
use crate::once::https;
use crate::prelude::*;

type Labels = BTreeMap<String, String>;

/// What servers on either store export after some traffic, by name.
async fn exported() -> BTreeMap<String, Vec<Labels>> {
    let mut found: BTreeMap<String, Vec<Labels>> = BTreeMap::new();
    for home in [Home::new(), Home::on_postgres(tempfile::tempdir().unwrap())] {
        let server = Watched::of(Server::start_in(home, &["--metrics-listen", "127.0.0.1:0"]));
        let key = server.key();
        server.get("/v1/stats").await.good();
        server.get("/v1/nothing").await;
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        wait_for!(async || { server.figures().await["unionhall_mail_total{outcome=\"sent\"}"] == 1.0 }).await;
        name_series(&server, &mut found).await;
    }
    let home = Home::new();
    https::certify(home.path());
    let flags = ["--metrics-listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    name_series(&Watched::of(Server::start_in(home, &flags)), &mut found).await;
    found
}

async fn name_series(server: &Watched, found: &mut BTreeMap<String, Vec<Labels>>) {
    for series in server.figures().await.into_keys() {
        let (name, labels) = series.split_once('{').unwrap_or((&series, ""));
        let labels = labels.trim_end_matches("\"}").split("\",").filter_map(|label| label.split_once("=\""));
        let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned())).collect();
        found.entry(name.to_owned()).or_default().push(labels);
    }
}

/// What Prometheus adds to every series, and the series that it makes itself.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];
const UP: &str = "up";

/// A series that an expression asks for: its name and what it wants of labels.
#[derive(Debug, PartialEq)]
struct Selector {
    name: String,
    matchers: Vec<(String, String, String)>,
    /// The function that it is given to.
    within: String,
}

#[derive(Debug, Default)]
struct Expression {
    selectors: Vec<Selector>,
    grouped: BTreeSet<String>,
}

const FUNCTIONS: &[&str] = &[
    "sum", "max", "max_over_time", "min", "count", "rate", "increase", "absent", "time", "vector",
    "histogram_quantile", "label_values",
];

/// Reads as much of PromQL as is used here, and refuses the rest.
fn read(expression: &str) -> Result<Expression, String> {
    let mut read = Expression::default();
    let (mut open, mut word_before, mut rest) = (Vec::new(), String::new(), expression);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if first.is_ascii_digit() {
            rest = &rest[rest.find(|c: char| !is_name(c) && c != '.').unwrap_or(rest.len())..];
            continue;
        }
        if length > 0 {
            let (word, after) = rest.split_at(length);
            rest = after.trim_start();
            let in_parentheses = |rest: &str| {
                rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|found| found.0.to_owned())
            };
            match word {
                "by" | "ignoring" => {
                    let labels = in_parentheses(rest).ok_or(format!("{word} names no labels"))?;
                    rest = &rest[labels.len() + 2..];
                    read.grouped.extend(labels.split(',').map(|label| label.trim().to_owned()));
                }
                "or" | "and" => {}
                _ if FUNCTIONS.contains(&word) => word_before = word.to_owned(),
                _ if rest.starts_with('(') => return Err(format!("there is no function {word}")),
                // The second of label_values is a label.
                _ if word_before == "label_values" && !word.starts_with("unionhall") => {
                    read.grouped.insert(word.to_owned());
                }
                _ => {
                    let mut matchers = Vec::new();
                    if let Some(inside) = rest.strip_prefix('{') {
                        let (inside, after) = inside.split_once('}').ok_or("a brace is open")?;
                        rest = after;
                        for matcher in inside.split("\",").map(|matcher| matcher.trim_end_matches('"')) {
                            let (label, value) = matcher.split_once('"').ok_or(format!("{matcher} is no matcher"))?;
                            let (label, operator) = label.split_at(label.find(|c| !is_name(c)).unwrap_or(label.len()));
                            if !["=", "=~"].contains(&operator) {
                                return Err(format!("{operator} is no operator"));
                            }
                            matchers.push((label.to_owned(), operator.to_owned(), value.to_owned()));
                        }
                    }
                    read.selectors.push(Selector { name: word.to_owned(), matchers, within: word_before.clone() });
                }
            }
            continue;
        }
        match first {
            '(' => open.push(')'),
            '[' => {
                let (range, after) = rest[1..].split_once(']').ok_or("a bracket is open")?;
                let span = range.strip_suffix(['m', 'h', 'd']).is_some_and(|n| n.parse::<u32>().is_ok());
                if !span && range != "$__rate_interval" {
                    return Err(format!("{range} is no time"));
                }
                rest = after;
                continue;
            }
            ')' if open.pop() == Some(')') => {}
            ' ' | ',' | '+' | '-' | '*' | '/' | '>' | '<' | '=' => {}
            other => return Err(format!("{other:?} is not understood")),
        }
        rest = &rest[1..];
    }
    if open.is_empty() { Ok(read) } else { Err("a parenthesis is open".to_owned()) }
}

/// What an expression, and the words that show what it finds, name and nobody exports.
fn check(expression: &str, shown: &[&str], exported: &BTreeMap<String, Vec<Labels>>) -> Result<(), String> {
    let read = read(expression)?;
    let none = Vec::new();
    let mut known: BTreeSet<&str> = OF_PROMETHEUS.into();
    for Selector { name, matchers, within } in &read.selectors {
        let series = if name == UP { &none } else { exported.get(name).ok_or(format!("nobody exports {name}"))? };
        let labels: BTreeSet<_> = series.iter().flat_map(|labels| labels.keys().map(String::as_str)).collect();
        for (label, operator, value) in matchers {
            if OF_PROMETHEUS.contains(&label.as_str()) {
                continue;
            }
            if !labels.contains(label.as_str()) {
                return Err(format!("{name} has no label {label}"));
            }
            if operator == "=" && !series.iter().any(|labels| labels.get(label) == Some(value)) {
                return Err(format!("{name} has no {label} {value}"));
            }
        }
        let counts = ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end));
        if ["rate", "increase"].contains(&within.as_str()) != counts {
            return Err(format!("{name} within {within}: counters are for rate and increase, and nothing else is"));
        }
        known.extend(labels);
    }
    let grouped = read.grouped.iter().map(String::as_str);
    match grouped.chain(shown.iter().copied()).find(|label| !known.contains(label)) {
        Some(unknown) => Err(format!("nothing in it has a label {unknown}")),
        None => Ok(()),
    }
}

/// The words between `{{` and `}}`, without what stands before the name and after it.
fn placeholders<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let inside = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap().trim());
    inside.filter_map(|word| word.strip_prefix(before)?.split_whitespace().next()).collect()
}

/// As much of YAML as the alerts are written in: mappings and lists by their indentation, one scalar a line, plain or between
/// single quotes.
fn yaml(text: &str) -> Result<Value, String> {
    let significant = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines: Vec<_> = text.lines().filter(significant).map(str::to_owned).collect();
    if let Some(odd) = lines.iter().find(|line| line.contains('\t') || line.ends_with(' ')) {
        return Err(format!("a tab or a space at the end: {odd:?}"));
    }
    lines.reverse();
    let value = block(&mut lines, 0)?;
    lines.pop().map_or(Ok(value), |rest| Err(format!("wrongly indented: {rest:?}")))
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The value that stands at this indentation; lines wait in reverse.
fn block(lines: &mut Vec<String>, indent: usize) -> Result<Value, String> {
    let here = |lines: &Vec<String>| lines.last().is_some_and(|line| depth(line) == indent);
    if !here(lines) {
        return Err(format!("nothing stands at {indent} before {:?}", lines.last()));
    }
    if lines.last().is_some_and(|line| line.trim_start().starts_with("- ")) {
        let mut list = Vec::new();
        while here(lines) && lines.last().is_some_and(|line| line.trim_start().starts_with("- ")) {
            // What follows the dash is the first line of a block that begins there.
            let line = lines.pop().unwrap();
            lines.push(format!("{}{}", " ".repeat(indent + 2), &line[indent + 2..]));
            list.push(block(lines, indent + 2)?);
        }
        return Ok(list.into());
    }
    let mut map = Map::new();
    while here(lines) {
        let line = lines.pop().unwrap();
        let (key, value) = line.trim_start().split_once(':').ok_or(format!("no key: {line:?}"))?;
        let value = match value.strip_prefix(' ') {
            None if value.is_empty() => block(lines, lines.last().map_or(0, |next| depth(next)).max(indent + 1))?,
            None => return Err(format!("no space after the colon: {line:?}")),
            Some(scalar) => Value::from(plain(scalar).ok_or(format!("not a scalar: {line:?}"))?),
        };
        if !key.bytes().all(|byte| byte.is_ascii_lowercase()) || map.insert(key.to_owned(), value).is_some() {
            return Err(format!("a key that is odd or there twice: {line:?}"));
        }
    }
    Ok(map.into())
}

fn plain(scalar: &str) -> Option<String> {
    if let Some(quoted) = scalar.strip_prefix('\'') {
        let inside = quoted.strip_suffix('\'')?.replace("''", "\0");
        return (!inside.contains('\'')).then(|| inside.replace('\0', "'"));
    }
    scalar.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| scalar.to_owned())
}

#[test]
fn what_has_a_mistake_is_refused() {
    for bad in [
        "a:\n\tb: c", "a: 'b", "a: b: c", "a: {b}", "a:b", "a", "a: b\na: c", "a: b\n   c: d", "a:\n- b: c", "a:\n",
        "a: b ",
    ] {
        assert!(yaml(bad).is_err(), "{bad:?}: {:?}", yaml(bad));
    }
    let good = yaml("# c\na:\n  - b: 'it''s: {x}'\n    d: 5m\n  - b: e\n").unwrap();
    assert_eq!(good, serde_json::json!({ "a": [{ "b": "it's: {x}", "d": "5m" }, { "b": "e" }] }));

    let labels =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Labels>();
    let there = BTreeMap::from([
        ("unionhall_mail_total".to_owned(), vec![labels(&[("outcome", "sent")])]),
        ("unionhall_members".to_owned(), vec![Labels::new()]),
    ]);
    let good = "sum by (outcome, job) (rate(unionhall_mail_total{job=\"$job\",outcome=\"sent\"}[5m])) / 2.5 > 0";
    assert_eq!(check(good, &["outcome", "instance"], &there), Ok(()));
    for (bad, why) in [
        ("sum(unionhall_member)", "nobody exports unionhall_member"),
        ("sum(rate(unionhall_mail_total{kind=\"sent\"}[5m]))", "has no label kind"),
        ("sum(rate(unionhall_mail_total{outcome=\"send\"}[5m]))", "has no outcome send"),
        ("sum by (kind) (rate(unionhall_mail_total[5m]))", "a label kind"),
        ("sum(unionhall_members", "is open"),
        ("sum(unionhall_members))", "not understood"),
        ("rate(unionhall_members[5m])", "counters are for rate"),
        ("sum(unionhall_mail_total)", "counters are for rate"),
        ("sum(rate(unionhall_mail_total[5x]))", "is no time"),
        ("avrg(unionhall_members)", "no function avrg"),
    ] {
        let told = check(bad, &[], &there).unwrap_err();
        assert!(told.contains(why), "{bad}: {told}");
    }
}

fn promtool(arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = fetched("prometheus", "promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_accepts_the_metrics() {
    needs!(Promtool);
    let (server, key) = Watched::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(promtool(&["check", "metrics"], &server.page().await), (true, String::new()));
    assert!(!promtool(&["check", "metrics"], "# TYPE requests counter\nrequests 1\n").0, "it would tell");
}

/// The alerts over an evening that is played to them: which of them ring, and which do not.
#[test]
fn promtool_accepts_the_alerts_and_they_ring_when_they_should() {
    needs!(Promtool);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rules = file("alerts.yml", &shipped("prometheus/alerts.yml"));
    let (accepted, said) = promtool(&["check", "rules", &rules], "");
    assert!(accepted && said.contains("SUCCESS"), "{said}");
    let evening = file("evening.yml", include_str!("evening.yml"));
    let (as_expected, said) = promtool(&["test", "rules", &evening], "");
    assert!(as_expected, "{said}");
    let restart = file("restart.yml", include_str!("restart.yml"));
    let (as_expected, said) = promtool(&["test", "rules", &restart], "");
    assert!(as_expected, "a restart: {said}");
    let other = include_str!("evening.yml").replace("alertname: UnionhallNotReady", "alertname: UnionhallSlow");
    assert!(!promtool(&["test", "rules", &file("other.yml", &other)], "").0, "it would tell");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_and_the_alerts_name_what_is_exported() {
    needs!(Postgres, Redis);
    let dashboard: Value = serde_json::from_str(&shipped("grafana/unionhall.json")).unwrap();
    let alerts = yaml(&shipped("prometheus/alerts.yml")).unwrap();
    let exported = exported().await;
    let good = |place: &str, expression: &str, shown: &[&str]| {
        check(expression, shown, &exported).unwrap_or_else(|why| panic!("{place}: {why}: {expression}"));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    let mut asked = 0;
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = text(&panel["title"]);
        assert!(ids.insert(panel["id"].as_u64().unwrap()) && !title.is_empty());
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = text(&target["legendFormat"]);
            good(&title, target["expr"].as_str().unwrap(), &placeholders(&legend, ""));
            asked += 1;
        }
    }
    assert!(asked > 30, "{asked}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            good(&text(&variable["name"]), variable["query"]["query"].as_str().unwrap(), &[]);
        }
    }

    let readme = shipped("README.md").replace('`', "");
    let table = readme.split("## 3 a.m.").nth(1).unwrap().split("\n## ").next().unwrap();
    let seen: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    let mut names = BTreeSet::new();
    for rule in alerts["groups"][0]["rules"].as_array().unwrap() {
        let (name, notes) = (text(&rule["alert"]), &rule["annotations"]);
        assert!(names.insert(name.clone()) && name.starts_with("Unionhall"), "{name}");
        assert!(["page", "ticket"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{name}");
        let summary = text(&notes["summary"]);
        assert!(!summary.is_empty(), "{name}");
        good(&name, rule["expr"].as_str().unwrap(), &placeholders(&summary, "$labels."));
        let runbook = text(&notes["runbook"]);
        let line = runbook.strip_prefix("deploy/README.md#3-am: ").unwrap_or_else(|| panic!("{name}: {runbook}"));
        assert!(seen.iter().any(|cell| cell.contains(line)), "{name}: no line says {line}: {seen:#?}");
    }
    assert!(names.len() >= 9, "{names:?}");
}
