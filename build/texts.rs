//! Turns `languages/*.toml` into Rust: a struct for each section and a `static` for each language, so that no text is
//! parsed or allocated at run time. English defines which texts there are. Every mistake is reported, not only the first.
//!
//! Of TOML it reads what these files use: comments, `[section]`, `key = "text"` and `key = '''text'''`, each on one line and
//! without escapes. It refuses all else. A TOML crate would add six seconds of CPU to a first build.

use std::collections::{BTreeMap, BTreeSet};

/// Sections that the program looks up by key. All others become structs, their texts fields.
const LOOKED_UP: [&str; 3] = ["category", "month", "state"];

/// A language lists only the states whose name is not the English one.
const PARTIAL: &str = "state";

/// Texts by section and key.
type Texts<'f> = BTreeMap<(&'f str, &'f str), &'f str>;

/// The code for `files`, each a language code and its file's content; or what is wrong with them.
pub(crate) fn generate(files: &[(String, String)]) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    let languages: Vec<_> = files.iter().map(|(code, file)| (code.as_str(), read(code, file, &mut faults))).collect();
    let Some((_, english)) = languages.iter().find(|(code, _)| *code == "en") else {
        return Err(vec!["en: the file is missing".to_owned()]);
    };
    languages.iter().for_each(|(code, texts)| check(code, texts, english, &mut faults));
    if faults.is_empty() { Ok(code(english, &languages)) } else { Err(faults) }
}

fn read<'f>(code: &str, file: &'f str, faults: &mut Vec<String>) -> Texts<'f> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut texts = Texts::new();
    let mut section = None;
    for (number, line) in (1..).zip(file.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let heading = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let text = line.split_once(" = ").and_then(|(key, value)| Some((key, unquoted(value)?)));
        match (heading, section, text) {
            (Some(heading), ..) if is_name(heading) => section = Some(heading),
            (None, Some(section), Some((key, text))) if is_name(key) => {
                if texts.insert((section, key), text).is_some() {
                    faults.push(format!("{code}: {section}.{key} is there twice"));
                }
            }
            _ => faults.push(format!("{code}: line {number} is not a [section], key = \"text\" or key = '''text'''")),
        }
    }
    texts
}

fn unquoted(value: &str) -> Option<&str> {
    match value.strip_prefix("'''") {
        Some(rest) => rest.strip_suffix("'''").filter(|text| !text.contains("'''")),
        None => value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains(['"', '\\'])),
    }
}

fn check(code: &str, texts: &Texts<'_>, english: &Texts<'_>, faults: &mut Vec<String>) {
    let missing = english.keys().filter(|name| name.0 != PARTIAL && !texts.contains_key(name));
    faults.extend(missing.map(|(section, key)| format!("{code}: {section}.{key} is missing")));
    for (&(section, key), text) in texts {
        let mut fault = |what: String| faults.push(format!("{code}: {section}.{key} {what}"));
        if text.trim().is_empty() {
            fault("is empty".to_owned());
        }
        let Some(original) = english.get(&(section, key)) else {
            if section != PARTIAL {
                fault("is unknown: English has no such text".to_owned());
            }
            continue;
        };
        // A placeholder may be used more than once; a tag is opened and closed as often as in English.
        let placeholders = |text| between(text, '{', '}').into_iter().collect::<BTreeSet<_>>();
        if placeholders(text) != placeholders(original) {
            fault(format!("has the placeholders {:?}, English has {:?}", placeholders(text), placeholders(original)));
        }
        if between(text, '<', '>') != between(original, '<', '>') {
            let tags = |text| between(text, '<', '>');
            fault(format!("has the tags {:?}, English has {:?}", tags(text), tags(original)));
        }
        if code != "en" && text == original && text.len() > 20 && !text.starts_with('{') {
            fault("is still in English".to_owned());
        }
    }
}

/// What is between two characters, sorted.
fn between(text: &str, open: char, close: char) -> Vec<&str> {
    let mut found: Vec<_> = text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap_or(rest)).collect();
    found.sort_unstable();
    found
}

/// Fields are not `pub`, so that the compiler names each text that nothing reads.
fn code(english: &Texts<'_>, languages: &[(&str, Texts<'_>)]) -> String {
    let sections: BTreeSet<_> = english.keys().map(|(section, _)| *section).collect();
    let structs: Vec<_> = sections.into_iter().filter(|section| !LOOKED_UP.contains(section)).collect();
    let mut code = "/// Every text of one language.\npub struct Words {\n".to_owned();
    code.extend(structs.iter().map(|section| format!("    pub(crate) {section}: {},\n", type_name(section))));
    code.extend(LOOKED_UP.map(|section| format!("    {section}: &'static [(&'static str, &'static str)],\n")));
    code += "}\n";
    for section in &structs {
        let fields = each(english, section, |key, _| format!("    pub(crate) {key}: Phrase,\n"));
        code += &format!("pub(crate) struct {} {{\n{fields}}}\n", type_name(section));
    }
    for (language, texts) in languages {
        code += &format!("pub(super) static {}: Words = Words {{\n", language.to_uppercase());
        for section in &structs {
            let fields = each(texts, section, |key, text| format!("        {key}: Phrase({text:?}),\n"));
            code += &format!("    {section}: {} {{\n{fields}    }},\n", type_name(section));
        }
        for section in LOOKED_UP {
            let rows = each(texts, section, |key, text| format!("        ({key:?}, {text:?}),\n"));
            code += &format!("    {section}: &[\n{rows}    ],\n");
        }
        code += "};\n";
    }
    code
}

fn each(texts: &Texts<'_>, section: &str, line: impl Fn(&str, &str) -> String) -> String {
    texts.iter().filter(|((of, _), _)| *of == section).map(|((_, key), text)| line(key, text)).collect()
}

/// `check_inbox` is a `CheckInboxWords`.
fn type_name(section: &str) -> String {
    let capitalized = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
    section.split('_').map(capitalized).collect::<String>() + "Words"
}

#[cfg(test)]
mod tests {
    use super::generate;

    const ENGLISH: &str = "[site]\nlead = \"<b>Join</b> {union} here.\"\n[month]\n01 = \"January\"\n";

    /// What is wrong with a Spanish file beside the English one above.
    fn faults(spanish: &str) -> Vec<String> {
        let files = [("en", ENGLISH), ("es", spanish)].map(|(code, file)| (code.to_owned(), file.to_owned()));
        generate(&files).err().unwrap_or_default()
    }

    #[test]
    fn every_mistake_is_named_with_its_language_and_key() {
        let spanish = ENGLISH.replace("here", "aquí").replace("January", "enero");
        assert_eq!(faults(&(spanish.clone() + "# By postal code.\n\n[state]\nHI = '''Hawái'''\n")), [""; 0]);
        for (from, to, fault) in [
            ("01 = \"enero\"", "", "month.01 is missing"),
            ("enero", " ", "month.01 is empty"),
            ("lead", "lede", "site.lead is missing; site.lede is unknown: English has no such text"),
            ("{union}", "{unión}", r#"site.lead has the placeholders {"unión"}, English has {"union"}"#),
            ("</b>", "<b>", r#"site.lead has the tags ["b", "b"], English has ["/b", "b"]"#),
            ("aquí", "here", "site.lead is still in English"),
            ("01 =", "01 = \"a\"\n01 =", "month.01 is there twice"),
        ] {
            let changed = spanish.replace(from, to);
            assert_eq!(faults(&changed).join("; ").replace("es: ", ""), fault);
        }
        assert_eq!(faults("").len(), 2, "all at once");
        assert_eq!(generate(&[]), Err(vec!["en: the file is missing".to_owned()]));
    }

    #[test]
    fn what_the_reader_does_not_know_is_refused() {
        for line in [
            r#"a = "b"c""#,
            r#"a = "b\n""#,
            r#"a = "b" # c"#,
            r#"a = """"#,
            r#"a = ["b"]"#,
            r#"a="b""#,
            r#"a.b = "c""#,
            r#" = "b""#,
            "a = 'b'",
            "a = '''b",
            "a = '''b'''c'''",
            "a = 1",
            "a",
            "[a.b]",
            "[[a]]",
        ] {
            let fault = faults(&format!("{ENGLISH}{line}\n")).remove(0);
            assert_eq!(fault, "es: line 5 is not a [section], key = \"text\" or key = '''text'''", "{line}");
        }
        assert!(faults("a = \"b\"")[0].starts_with("es: line 1 "), "a text outside a section");
    }

    #[test]
    fn texts_become_static_data() {
        let code = generate(&[("en".to_owned(), ENGLISH.to_owned())]).unwrap();
        for part in [
            "pub struct Words {\n    pub(crate) site: SiteWords,\n    category: ",
            "pub(crate) struct SiteWords {\n    pub(crate) lead: Phrase,\n}",
            "static EN: Words = Words {\n    site: SiteWords {\n        lead: Phrase(\"<b>Join</b> {union} here.\"),",
            "    month: &[\n        (\"01\", \"January\"),\n    ],\n    state: &[\n    ],\n};",
        ] {
            assert!(code.contains(part), "{code}");
        }
    }
}
