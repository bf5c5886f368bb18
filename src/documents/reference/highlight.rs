//! Code with its comments and texts marked: enough for an eye to find its way, without a grammar for each language.

/// A piece of code as HTML.
pub(super) fn html(code: &str, language: &str) -> String {
    let comment = match language {
        "bash" | "python" | "sh" => Some("#"),
        "ts" | "go" => Some("//"),
        _ => None,
    };
    let quotes: &[char] = match language {
        "bash" | "sh" | "python" => &['"', '\''],
        "ts" | "go" => &['"', '\'', '`'],
        "json" => &['"'],
        _ => &[],
    };
    let mut html = String::with_capacity(code.len() * 2);
    let mut rest = code;
    let mut before = '\n';
    while let Some(c) = rest.chars().next() {
        let length = match comment {
            // In a shell and elsewhere a mark inside a word is no comment, nor is the one in an address.
            Some(mark) if rest.starts_with(mark) && before.is_whitespace() => {
                let length = rest.find('\n').unwrap_or(rest.len());
                push(&mut html, Some("c"), &rest[..length]);
                length
            }
            _ if quotes.contains(&c) => {
                let length = text_length(rest, c);
                push(&mut html, Some("s"), &rest[..length]);
                length
            }
            _ => {
                push(&mut html, None, &rest[..c.len_utf8()]);
                c.len_utf8()
            }
        };
        before = rest[..length].chars().next_back().unwrap_or(before);
        rest = &rest[length..];
    }
    html
}

/// How long the text is that begins with a quote, with both of them; the rest of the code where it never ends.
fn text_length(code: &str, quote: char) -> usize {
    let thrice: String = [quote; 3].iter().collect();
    if code.starts_with(&thrice) {
        return code[3..].find(&thrice).map_or(code.len(), |end| end + 6);
    }
    let mut escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    code.len()
}

fn push(html: &mut String, class: Option<&str>, code: &str) {
    if let Some(class) = class {
        html.extend(["<span class=\"", class, "\">"]);
    }
    for c in code.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            _ => html.push(c),
        }
    }
    if class.is_some() {
        html.push_str("</span>");
    }
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn comments_and_texts_are_marked_and_nothing_is_markup() {
        assert_eq!(html("a <b> # c", "bash"), "a &lt;b&gt; <span class=\"c\"># c</span>");
        assert_eq!(
            html("x = \"a\\\"b\" # \"c\"", "python"),
            "x = <span class=\"s\">\"a\\\"b\"</span> <span class=\"c\"># \"c\"</span>"
        );
        assert_eq!(
            html("f(`a\n//b`) // c", "ts"),
            "f(<span class=\"s\">`a\n//b`</span>) <span class=\"c\">// c</span>"
        );
        assert_eq!(html("\"\"\"a \"b\" c\"\"\" d", "python"), "<span class=\"s\">\"\"\"a \"b\" c\"\"\"</span> d");
        assert_eq!(html("it's & so", "text"), "it's &amp; so");
        assert_eq!(html("https://x \"open", "bash"), "https://x <span class=\"s\">\"open</span>");
    }
}
