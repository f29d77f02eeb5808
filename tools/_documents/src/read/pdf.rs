//! PDF, a page at a time.

use std::{
    io::{self, Read, Write},
    process::{Command, ExitCode, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::{MAX_BYTES, Text, without_controls};
use crate::document::Line;

/// A file that takes longer is given up.
const TIME: Duration = Duration::from_secs(60);
/// Objects lie inside one another as deep as a file likes.
const STACK: usize = 64 * 1024 * 1024;
/// What reading may take of memory, in bytes.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 2 << 30;
/// More text is no document, in bytes.
const MAX_TEXT: u64 = 256 << 20;
/// What this program is started with to read a PDF for itself.
const READ_PDF: &str = "__toolrack_read_pdf";

/// Whether this program reads a PDF where it is started so.
static IS_READER: AtomicBool = AtomicBool::new(false);

/// Reads a PDF from the standard input where the program was started for that: then `main` ends with this code. It has to be called at
/// the beginning of `main`. A program that does not call it reads PDFs in itself, and there is no telling what a file does to the
/// library that reads it: one that draws itself within itself ends the program.
pub(super) fn launched() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != READ_PDF) {
        IS_READER.store(true, Ordering::Relaxed);
        return None;
    }
    let read = || -> io::Result<()> {
        bound_resources();
        let mut bytes = Vec::new();
        io::stdin().take(MAX_BYTES).read_to_end(&mut bytes)?;
        let pages = in_thread(bytes, None);
        serde_json::to_writer(io::stdout().lock(), &pages)?;
        io::stdout().flush()
    };
    Some(if read().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where they cannot be bounded, the time that is waited for the program is.
fn bound_resources() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::resource::{Resource, setrlimit};

        let _ = setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY);
        let _ = setrlimit(Resource::RLIMIT_CPU, TIME.as_secs(), TIME.as_secs());
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    }
}

/// The text of the pages. There are no headings in it: PDF knows of letters and their places only.
pub(super) fn read(bytes: Vec<u8>) -> Result<Text, String> {
    if !bytes.starts_with(b"%PDF-") {
        return Err("it is no PDF".to_owned());
    }
    let pages = pages(bytes)?;
    let mut lines = Vec::new();
    for (page, number) in pages.iter().zip(1..) {
        let page = without_controls(page);
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

fn pages(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    match IS_READER.load(Ordering::Relaxed) {
        true => in_process(bytes),
        false => in_thread(bytes, Some(TIME)),
    }
}

/// In a process of its own, which may come to a bad end, and comes to one when its time is over.
fn in_process(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    let fault = |error: io::Error| format!("no program can be started to read this PDF: {error}");
    // Also when the file was replaced by a newer one.
    let program = match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().map_err(fault)?,
    };
    let started = Command::new(program)
        .arg(READ_PDF)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = started.map_err(fault)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Who is at its end before it has read all has said why.
        let _ = input.map(|mut input| input.write_all(&bytes));
    });
    thread::spawn(move || {
        let mut told = Vec::new();
        let read = output.map(|output| output.take(MAX_TEXT).read_to_end(&mut told));
        let _ = sender.send(read.and_then(Result::ok).map(|_| told));
    });
    let told = receiver.recv_timeout(TIME);
    let (_, _) = (child.kill(), child.wait());
    let told = told.map_err(|_| too_long())?.ok_or_else(damaged)?;
    serde_json::from_slice(&told).map_err(|_| damaged())?
}

/// In a thread of its own: the library panics at files that are no good, and may not come to an end.
fn in_thread(bytes: Vec<u8>, time: Option<Duration>) -> Result<Vec<String>, String> {
    let (sender, receiver) = mpsc::channel();
    let reading = thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(move || {
        let _ = sender.send(pdf_extract::extract_text_from_mem_by_pages(&bytes));
    });
    reading.map_err(|error| error.to_string())?;
    let pages = match time {
        Some(time) => receiver.recv_timeout(time),
        None => receiver.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
    };
    match pages {
        Ok(pages) => pages.map_err(|error| format!("this PDF cannot be read: {error}")),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(too_long()),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(damaged()),
    }
}

fn too_long() -> String {
    format!("this PDF was not read in {} s", TIME.as_secs())
}

fn damaged() -> String {
    "this PDF cannot be read: it is damaged, or written in a way that is not understood".to_owned()
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

    #[test]
    fn p6_a_pdf_is_read_page_by_page() {
        let text = read(pdf(&["Green tea is steeped.", "Black tea boils."])).unwrap();
        let lines: Vec<_> = text
            .lines
            .iter()
            .filter(|line| !line.text.is_empty())
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(lines, [(1, "Green tea is steeped."), (2, "Black tea boils.")]);
    }

    #[test]
    fn p6_a_damaged_pdf_is_refused() {
        let whole = pdf(&["Green tea is steeped."]);
        assert!(read(pdf(&[""])).unwrap_err().contains("no text"));
        assert!(read(b"%PDF-1.7\n".to_vec()).unwrap_err().contains("cannot be read"));
        for end in (10..whole.len()).step_by(37) {
            let _ = read(whole[..end].to_vec());
        }
        for at in (9..whole.len()).step_by(11) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x15;
            let _ = read(damaged);
        }
    }
}
