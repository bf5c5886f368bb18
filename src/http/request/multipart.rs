//! A form with a file (multipart/form-data, RFC 7578), as browsers send it. Its body was read before, within a limit.

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// Parts of a form that are read.
const MOST_PARTS: usize = 32;

/// The longest header of a part.
const LONGEST_HEADER: usize = 4 << 10;

/// The longest boundary (RFC 2046).
const LONGEST_BOUNDARY: usize = 70;

/// A field of a form. Names of files are whatever their sender likes, so nothing but their length is of use.
#[derive(Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub name: &'a str,
    /// The name of the file, if it is one; empty where none was chosen.
    pub filename: Option<&'a [u8]>,
    pub content: &'a [u8],
}

/// Why a form cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadForm {
    NoBoundary,
    NoEnd,
    BadHeader,
    TooManyParts,
}

impl BadForm {
    /// As the end of a sentence about the form.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoBoundary => "it does not say what stands between its parts",
            Self::NoEnd => "it did not arrive whole",
            Self::BadHeader => "one of its parts has no name, or a header that is too long or not allowed",
            Self::TooManyParts => "it has more than 32 parts",
        }
    }
}

/// What stands between the parts of the body; none where it is another kind of form.
pub fn boundary(headers: &HeaderMap) -> Option<Result<&[u8], BadForm>> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let value = types.next()?.as_bytes();
    let (kind, parameters) = split_once(value, b";").unwrap_or((value, b""));
    if !kind.trim_ascii().eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    let is_good = |boundary: &&[u8]| {
        (1..=LONGEST_BOUNDARY).contains(&boundary.len()) && boundary.iter().all(|byte| (b' '..=b'~').contains(byte))
    };
    let found = parameter(parameters, b"boundary").ok().flatten().filter(is_good);
    Some(found.filter(|_| types.next().is_none()).ok_or(BadForm::NoBoundary))
}

/// The parts of a form, in their order.
pub fn parts<'a>(boundary: &[u8], body: &'a [u8]) -> Result<Vec<Part<'a>>, BadForm> {
    let between = [b"\r\n--", boundary].concat();
    // The first one may have no line before it.
    let first = if body.starts_with(&between[2..]) { Some(&body[between.len() - 2..]) } else { None };
    let first = first.and_then(after_boundary).or_else(|| Some(until(body, &between)?.1));
    let mut next = first.ok_or(BadForm::NoEnd)?;
    let mut parts = Vec::new();
    while let After::Part(rest) = next {
        if parts.len() == MOST_PARTS {
            return Err(BadForm::TooManyParts);
        }
        let (header, rest) = header(rest)?;
        let (content, after) = until(rest, &between).ok_or(BadForm::NoEnd)?;
        let (name, filename) = read_header(header)?;
        parts.push(Part { name, filename, content });
        next = after;
    }
    Ok(parts)
}

/// What comes after a boundary.
enum After<'a> {
    Part(&'a [u8]),
    End,
}

fn after_boundary(rest: &[u8]) -> Option<After<'_>> {
    if rest.starts_with(b"--") {
        return Some(After::End);
    }
    let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    rest[padding..].strip_prefix(b"\r\n").map(After::Part)
}

/// What stands before the next boundary, and what comes after it. A line that only begins like one is no boundary.
fn until<'a>(body: &'a [u8], between: &[u8]) -> Option<(&'a [u8], After<'a>)> {
    let mut from = 0;
    loop {
        let at = from + find(&body[from..], between)?;
        match after_boundary(&body[at + between.len()..]) {
            Some(after) => return Some((&body[..at], after)),
            None => from = at + 2,
        }
    }
}

/// The header of a part, and what comes after it.
fn header(rest: &[u8]) -> Result<(&[u8], &[u8]), BadForm> {
    let most = rest.len().min(LONGEST_HEADER);
    let end = find(&rest[..most], b"\r\n\r\n");
    let missing = if most < LONGEST_HEADER { BadForm::NoEnd } else { BadForm::BadHeader };
    let end = end.ok_or(missing)?;
    Ok((&rest[..end], &rest[end + 4..]))
}

/// The name of a part, and that of its file.
fn read_header(header: &[u8]) -> Result<(&str, Option<&[u8]>), BadForm> {
    let mut found = None;
    let mut rest = Some(header);
    while let Some(line) = rest {
        let (line, more) = split_once(line, b"\r\n").map_or((line, None), |(line, more)| (line, Some(more)));
        rest = more;
        let (name, value) = split_once(line, b":").ok_or(BadForm::BadHeader)?;
        if name.eq_ignore_ascii_case(b"content-disposition") {
            let (kind, parameters) = split_once(value, b";").unwrap_or((value, b""));
            if !kind.trim_ascii().eq_ignore_ascii_case(b"form-data") || found.is_some() {
                return Err(BadForm::BadHeader);
            }
            let name = parameter(parameters, b"name")?.ok_or(BadForm::BadHeader)?;
            let name = std::str::from_utf8(name).map_err(|_| BadForm::BadHeader)?;
            found = Some((name, parameter(parameters, b"filename")?));
        } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
            // Nobody sends that anymore, and we would not decode it.
            let is_plain = |plain: &&[u8]| value.trim_ascii().eq_ignore_ascii_case(plain);
            let plain: [&[u8]; 3] = [b"7bit", b"8bit", b"binary"];
            plain.iter().find(|plain| is_plain(plain)).ok_or(BadForm::BadHeader)?;
        }
    }
    found.ok_or(BadForm::BadHeader)
}

/// A parameter of a header. A quotation mark in a quoted value is written as %22, or by some programs with a backslash.
fn parameter<'a>(mut rest: &'a [u8], wanted: &[u8]) -> Result<Option<&'a [u8]>, BadForm> {
    let mut found = None;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(found);
        }
        let (name, value) = split_once(rest, b"=").ok_or(BadForm::BadHeader)?;
        let (value, after) = match value.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quote_end(quoted).ok_or(BadForm::BadHeader)?;
                (&quoted[..end], quoted[end + 1..].trim_ascii_start())
            }
            None => {
                let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
                (value[..end].trim_ascii_end(), &value[end..])
            }
        };
        if name.trim_ascii().eq_ignore_ascii_case(wanted) {
            if found.is_some() {
                return Err(BadForm::BadHeader);
            }
            found = Some(value);
        }
        rest = match after.strip_prefix(b";") {
            Some(more) => more,
            None if after.is_empty() => after,
            None => return Err(BadForm::BadHeader),
        };
    }
}

fn quote_end(quoted: &[u8]) -> Option<usize> {
    (0..quoted.len()).find(|at| quoted[*at] == b'"' && (*at == 0 || quoted[at - 1] != b'\\'))
}

fn split_once<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = find(text, at)?;
    Some((&text[..place], &text[place + at.len()..]))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn boundary_of(content_type: &[u8]) -> Option<Result<Vec<u8>, BadForm>> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_bytes(content_type).unwrap());
        boundary(&headers).map(|found| found.map(<[u8]>::to_vec))
    }

    #[test]
    fn the_boundary_is_what_the_header_names() {
        for (text, expected) in [
            (&b"multipart/form-data; boundary=----WebKitFormBoundaryAB12"[..], &b"----WebKitFormBoundaryAB12"[..]),
            (b"Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", b"a b"),
            (b"multipart/form-data;boundary=x ", b"x"),
        ] {
            assert_eq!(boundary_of(text), Some(Ok(expected.to_vec())));
        }
        for text in [
            &b"multipart/form-data"[..],
            b"multipart/form-data; boundary=",
            b"multipart/form-data; boundary=\"a",
            b"multipart/form-data; boundary=a; boundary=b",
            b"multipart/form-data; boundary=\xc3\xa9",
            &[&b"multipart/form-data; boundary="[..], &[b'a'; 71]].concat(),
        ] {
            assert_eq!(boundary_of(text), Some(Err(BadForm::NoBoundary)), "{}", text.escape_ascii());
        }
        assert_eq!(boundary_of(b"application/x-www-form-urlencoded"), None);
        assert_eq!(boundary(&HeaderMap::new()), None);
    }

    const FORM: &str = "--B\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nabc\r\n\
        --B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a;\u{202e}\\\"b.csv\"\r\nContent-Type: text/csv\r\n\r\n\
        one,two\r\n--Bx\r\n\r\n--B \r\nContent-Disposition: form-data; name=empty; filename=\"\"\r\n\r\n\r\n--B--\r\n";

    #[test]
    fn a_form_is_read_as_browsers_send_it() {
        let part = |name, filename: Option<&'static str>, content: &'static str| Part {
            name,
            filename: filename.map(str::as_bytes),
            content: content.as_bytes(),
        };
        let expected = [
            part("token", None, "abc"),
            part("file", Some("a;\u{202e}\\\"b.csv"), "one,two\r\n--Bx\r\n"),
            part("empty", Some(""), ""),
        ];
        assert_eq!(parts(b"B", FORM.as_bytes()).unwrap(), expected);
        let before = format!("this is ignored\r\n{FORM}and this");
        assert_eq!(parts(b"B", before.as_bytes()).unwrap(), expected);
        assert_eq!(parts(b"B", b"--B--\r\n"), Ok(vec![]));
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let end = FORM.len() - "--\r\n".len();
        for length in 0..=end {
            assert!(parts(b"B", &FORM.as_bytes()[..length]).is_err(), "{length}");
        }
        assert_eq!(parts(b"other", FORM.as_bytes()), Err(BadForm::NoEnd));
        let with = |header: &str| {
            parts(b"B", format!("--B\r\n{header}\r\n\r\nx\r\n--B--").as_bytes()).map(|parts| parts.len())
        };
        assert_eq!(with("content-disposition:form-data;name=a"), Ok(1));
        let disposition = "Content-Disposition: form-data; name=\"a\"";
        assert_eq!(with(&format!("{disposition}\r\nContent-Transfer-Encoding: 8BIT")), Ok(1));
        for header in [
            "Content-Type: text/csv",
            "Content-Disposition: form-data",
            "Content-Disposition: form-data; filename=\"a\"",
            "Content-Disposition: attachment; name=\"a\"",
            "Content-Disposition: form-data; name=\"a",
            "Content-Disposition: form-data; name=\"a\"b",
            "Content-Disposition: form-data; name=a; name=b",
            "no colon",
            &format!("{disposition}\r\n{disposition}"),
            &format!("{disposition}\r\nContent-Transfer-Encoding: base64"),
            &format!("{disposition}; filename=\"{}\"", "x".repeat(LONGEST_HEADER)),
        ] {
            assert_eq!(with(header), Err(BadForm::BadHeader), "{header}");
        }
        // The boundary in the content ends it, and what comes after it is no part.
        let broken = format!("--B\r\n{disposition}\r\n\r\nx\r\n--B\r\ny,z\r\n\r\n\r\n--B--");
        assert_eq!(parts(b"B", broken.as_bytes()), Err(BadForm::BadHeader));
        let many = format!("--B\r\n{disposition}\r\n\r\nx\r\n").repeat(MOST_PARTS + 1) + "--B--";
        assert_eq!(parts(b"B", many.as_bytes()), Err(BadForm::TooManyParts));
    }
}
