//! Plain text escaped for Markdown: a union's name, an operation's description, a table cell.

/// A text as Markdown that shows it as it is. What stands between backticks stays code, and an address of the web is a link.
pub(in crate::documents) fn escaped(text: &str) -> String {
    let mut markdown = String::with_capacity(text.len() + 16);
    for (n, piece) in text.split('`').enumerate() {
        if n > 0 {
            markdown.push('`');
        }
        if n % 2 == 1 {
            markdown.push_str(piece);
        } else {
            push_prose(&mut markdown, piece);
        }
    }
    markdown
}

fn push_prose(markdown: &mut String, mut text: &str) {
    while let Some(start) = text.find("http://").into_iter().chain(text.find("https://")).min() {
        let end = text[start..].find([' ', '\n', '<', '>']).map_or(text.len(), |length| start + length);
        let address = text[start..end].trim_end_matches(['.', ',', ';', ':', ')']);
        push_plain(markdown, &text[..start]);
        markdown.extend(["<", address, ">"]);
        text = &text[start + address.len()..];
    }
    push_plain(markdown, text);
}

fn push_plain(markdown: &mut String, text: &str) {
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let marks = match c {
            '\\' | '*' | '<' | '[' | ']' => true,
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            '&' => after.is_alphanumeric() || after == '#',
            _ => false,
        };
        if marks {
            markdown.push('\\');
        }
        markdown.push(c);
        before = c;
    }
}

/// A table. Cells are Markdown of one line each.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut markdown = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let cells = row.map(|cell| cell.replace('\n', " ").replace('|', "\\|"));
        markdown.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    markdown
}

/// A block of code; `label` is what it is called among its neighbours.
pub(super) fn fence(language: &str, label: &str, code: &str) -> String {
    format!("```{language} {label}\n{}\n```\n", code.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_markup_is_shown() {
        assert_eq!(
            escaped("A *b* _c_ d_e <f> [g] `h_*` & i &amp; \\"),
            "A \\*b\\* \\_c\\_ d_e \\<f> \\[g\\] `h_*` & i \\&amp; \\\\"
        );
        assert_eq!(
            escaped("At https://union.example/a_b, or (http://x/y)."),
            "At <https://union.example/a_b>, or (<http://x/y>)."
        );
        assert_eq!(table(["a", "b"], [["1|2".to_owned(), "3".to_owned()]]), "| a | b |\n|---|---|\n| 1\\|2 | 3 |\n");
    }
}
