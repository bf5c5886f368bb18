//! A form with a file, read into the fields that every other form has.

use form_urlencoded::Serializer;

use crate::http::request::multipart::{Part, parts};

/// The largest file that a page takes.
pub(in crate::site) const LARGEST_FILE: usize = 1 << 20;

/// The largest body of such a form: the file again as a field, with the ends of lines as browsers write them and each character escaped.
pub(super) const FILE_FORM_BYTES: u64 = 4 << 20;

pub(super) const TOO_LARGE: &str =
    "The file is larger than 1 MiB, the most that a page takes. The command that the page names takes larger ones.";

/// The fields of a form, a file as the text in it; or what is wrong. A file that was not chosen is not among them.
pub(super) fn fields(boundary: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
    let parts = parts(boundary, body)
        .map_err(|bad| format!("The form cannot be read, because {}. Send it again.", bad.why()))?;
    let is_chosen = |part: &&Part<'_>| part.filename.is_none_or(|name| !name.is_empty() || !part.content.is_empty());
    let chosen: Vec<_> = parts.iter().filter(is_chosen).collect();
    if chosen.iter().filter(|part| part.filename.is_some()).count() > 1 {
        return Err("More than one file was sent. Choose one.".to_owned());
    }
    let mut fields = Serializer::new(String::new());
    for part in chosen {
        fields.append_pair(part.name, &text(part)?);
    }
    Ok(fields.finish().into_bytes())
}

/// What a part says, with the ends of lines as one writes them here.
fn text(part: &Part<'_>) -> Result<String, String> {
    if part.content.len() > 2 * LARGEST_FILE {
        return Err(TOO_LARGE.to_owned());
    }
    let whose = if part.filename.is_some() { "The file" } else { "A field of the form" };
    let line = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    let read = std::str::from_utf8(part.content).map_err(|error| error.valid_up_to());
    let read = read.and_then(|text| text.find('\0').map_or(Ok(text), Err));
    let text = read.map_err(|at| {
        let line = line(&part.content[..at]);
        format!("{whose} is not text in UTF-8: line {line} has other bytes. Save it as CSV in UTF-8, and send that.")
    })?;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if text.len() > LARGEST_FILE { Err(TOO_LARGE.to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::field;

    fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        for (name, filename, content) in parts {
            let file = filename.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
            let header = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            body.extend([header.as_bytes(), content, b"\r\n"].concat());
        }
        body.extend(b"--B--\r\n");
        fields(b"B", &body)
    }

    #[test]
    fn a_file_is_a_field_and_one_that_was_not_chosen_is_none() {
        let read = form(&[("token", None, b"t"), ("file", Some("a.csv"), b"\xef\xbb\xbfa,b\r\nc&d=\re\n")]).unwrap();
        assert_eq!(field(&read, "file").as_deref(), Some("\u{feff}a,b\nc&d=\ne\n"));
        let read = form(&[("token", None, b"t"), ("file", Some(""), b"")]).unwrap();
        assert_eq!((field(&read, "token").as_deref(), field(&read, "file")), (Some("t"), None));
        let read = form(&[("file", Some("empty.csv"), b"")]).unwrap();
        assert_eq!(field(&read, "file").as_deref(), Some(""));
    }

    #[test]
    fn what_is_no_text_or_too_much_of_it_is_refused_with_its_reason() {
        let file = |content: &[u8]| form(&[("file", Some("a.csv"), content)]);
        let utf16: Vec<_> = "a,b\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(file(&utf16).unwrap_err().contains("not text in UTF-8: line 1 "));
        assert!(file(b"a,b\nJos\xe9,c\n").unwrap_err().contains("line 2 has other bytes"));
        assert!(file(&vec![b'a'; LARGEST_FILE]).is_ok());
        assert_eq!(file(&vec![b'a'; LARGEST_FILE + 1]), Err(TOO_LARGE.to_owned()));
        assert_eq!(file(&b"\r\n".repeat(LARGEST_FILE)).map(|read| read.len()), Ok("file=".len() + 3 * LARGEST_FILE));
        let two = form(&[("file", Some("a"), b"x"), ("other", Some("b"), b"y")]);
        assert!(two.unwrap_err().contains("Choose one."));
        assert!(fields(b"B", b"--B\r\n").unwrap_err().contains("because it did not arrive whole"));
    }
}
