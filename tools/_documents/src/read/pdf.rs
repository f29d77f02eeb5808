//! PDF, a page at a time.

use toolrack_web::Line;

use super::{
    MAX_LINES, Text, line_ends,
    reader::{Parsed, damaged, in_thread, parse},
    too_many_lines, without_controls,
};

/// What each begins with.
pub(super) const MARK: &[u8] = b"%PDF-";
const FORMAT: &str = "PDF";

/// The text of the pages. There are no headings in it: PDF knows of letters and their places only.
pub(super) fn read(bytes: Vec<u8>) -> Result<Text, String> {
    if !bytes.starts_with(MARK) {
        return Err("it is no PDF".to_owned());
    }
    match parse(bytes, FORMAT)? {
        Parsed::Pages(pages) => lines(&pages),
        Parsed::Office(_) => Err(damaged(FORMAT)),
    }
}

fn lines(pages: &[String]) -> Result<Text, String> {
    let (mut lines, mut ends) = (Vec::new(), 0);
    for (page, number) in pages.iter().zip(1..) {
        let page = without_controls(page);
        ends += 1 + line_ends(&page);
        if ends > MAX_LINES {
            return Err(too_many_lines());
        }
        lines.extend(page.lines().map(|line| Line::text(number, line.trim())));
        lines.push(Line::text(number, ""));
    }
    if lines.iter().all(|line| line.text.is_empty()) {
        return Err(
            "there is no text in this PDF; it may be pictures of pages, which have to be recognised first"
                .to_owned(),
        );
    }
    Ok(Text { lines, ..Text::default() })
}

/// The text of each page.
pub(super) fn parsed(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    let pages = in_thread(move || pdf_extract::extract_text_from_mem_by_pages(&bytes));
    let pages = pages.ok_or_else(|| damaged(FORMAT))?;
    pages.map_err(|error| format!("this PDF cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDF with these lines, one on each page.
    fn pdf(pages: &[&str]) -> Vec<u8> {
        let count = pages.len();
        let kids: String = (0..count).map(|page| format!("{} 0 R ", 4 + page * 2)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Count {count} /Kids [{kids}] >>"),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        ];
        for (page, text) in pages.iter().enumerate() {
            let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
            objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>", 5 + page * 2));
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        }
        let mut file = "%PDF-1.4\n".to_owned();
        let mut places = Vec::new();
        for (object, number) in objects.iter().zip(1..) {
            places.push(file.len());
            file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
        }
        let start = file.len();
        file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
        for place in places {
            file.push_str(&format!("{place:010} 00000 n \n"));
        }
        file.push_str(&format!(
            "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
            objects.len() + 1
        ));
        file.into_bytes()
    }

    fn read_here(bytes: Vec<u8>) -> Result<Text, String> {
        lines(&parsed(bytes)?)
    }

    #[test]
    fn p6_a_pdf_is_read_page_by_page() {
        let text = read_here(pdf(&["Green tea is steeped.", "Black tea boils."])).unwrap();
        let lines: Vec<_> = text
            .lines
            .iter()
            .filter(|line| !line.text.is_empty())
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(lines, [(1, "Green tea is steeped."), (2, "Black tea boils.")]);
    }

    #[test]
    fn p6_the_lines_of_all_pages_are_counted_before_they_are_made() {
        let page = "a\n".repeat(MAX_LINES / 2);
        assert!(lines(&["a".to_owned(), page.clone()]).is_ok());
        assert_eq!(lines(&[page.clone(), page]).unwrap_err(), too_many_lines());
    }

    #[test]
    fn k22_a_damaged_pdf_is_refused_or_gives_what_is_left_of_its_text() {
        let whole = pdf(&["Green tea is steeped."]);
        assert!(read_here(pdf(&[""])).unwrap_err().contains("no text"));
        assert!(read_here(b"%PDF-1.7\n".to_vec()).unwrap_err().contains("cannot be read"));
        let is_reported = |damaged: Vec<u8>| match read_here(damaged) {
            Ok(text) => text.lines.iter().all(|line| line.number == 1 && line.text.len() < 100),
            Err(fault) => fault.contains("this PDF cannot be read") || fault.contains("no text in this PDF"),
        };
        for end in (10..whole.len()).step_by(37) {
            assert!(is_reported(whole[..end].to_vec()), "cut off at {end}");
        }
        for at in (9..whole.len()).step_by(11) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x15;
            assert!(is_reported(damaged), "another byte at {at}");
        }
    }

    #[test]
    fn k12_a_program_that_cannot_launch_a_reader_reads_no_pdf() {
        let refused = read(pdf(&["Green tea."])).unwrap_err();
        assert!(refused.contains("toolrack_documents::read::launched()"), "{refused}");
    }

    /// Set for a process of this test program that is to be confined as a reader is.
    #[cfg(target_os = "linux")]
    const CONFINED: &str = "TOOLRACK_TEST_CONFINED_READER";

    #[cfg(target_os = "linux")]
    #[test]
    fn k12_a_reader_opens_no_file_and_no_socket_and_starts_no_program() {
        use std::{fs::File, net::UdpSocket, os::unix::net::UnixStream, process::Command};

        let name = "read::pdf::tests::k12_a_reader_opens_no_file_and_no_socket_and_starts_no_program";
        if std::env::var_os(CONFINED).is_none() {
            let mut confined = Command::new(std::env::current_exe().unwrap());
            let ended = confined.args(["--exact", name, "--nocapture"]).env(CONFINED, "1").output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
            return;
        }
        let file = std::env::current_exe().unwrap();
        File::open(&file).unwrap();
        let bytes = pdf(&["Green tea."]);
        toolrack_sandbox::restrict_to_computing(&crate::read::reader::LIMITS).unwrap();
        let refused = [
            File::open(&file).map(drop),
            File::create("new").map(drop),
            std::fs::read_dir("/").map(drop),
            UdpSocket::bind("127.0.0.1:0").map(drop),
            UnixStream::pair().map(drop),
            Command::new("true").spawn().map(drop),
        ];
        assert!(refused.iter().all(Result::is_err), "{refused:?}");
        let text = read_here(bytes).unwrap();
        assert!(text.lines.iter().any(|line| line.text == "Green tea."), "{text:?}");
    }
}
