//! PDF, a page at a time.

use std::{
    io::{self, Read, Write},
    process::{Command, ExitCode, Stdio},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use toolrack_sandbox::{Limits, restrict_to_computing};
use toolrack_web::Line;

use super::{MAX_BYTES, MAX_LINES, Text, line_ends, too_many_lines, without_controls};

/// A file that takes longer is given up.
const TIME: Duration = Duration::from_secs(60);
/// What reading may take.
const LIMITS: Limits = Limits { time: TIME, memory: 2 << 30, processes: 1, disk: 0, output: MAX_TEXT };
/// Objects lie inside one another as deep as a file likes.
const STACK: usize = 64 * 1024 * 1024;
/// More text is no document, in bytes.
const MAX_TEXT: u64 = 256 << 20;
/// What this program is started with to read a PDF for itself.
const READ_PDF: &str = "__toolrack_read_pdf";

/// Whether this program reads a PDF where it is started so.
static IS_READER: AtomicBool = AtomicBool::new(false);

/// Reads a PDF from the standard input where the program was started for that: then `main` ends with this code. It has to be called at
/// the beginning of `main`. A program that does not call it reads no PDFs: there is no telling what a file does to the library that reads
/// it. One that draws itself within itself ends the program, and one that never ends cannot be stopped but with the program.
pub(super) fn launched() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != READ_PDF) {
        IS_READER.store(true, Ordering::Relaxed);
        return None;
    }
    let read = || -> io::Result<()> {
        // Where the kernel has not all of it, the time that is waited for this process is bounded all the same.
        let unconfined = restrict_to_computing(&LIMITS).err().map(|fault| fault.to_string());
        let mut bytes = Vec::new();
        io::stdin().take(MAX_BYTES).read_to_end(&mut bytes)?;
        serde_json::to_writer(io::stdout().lock(), &(unconfined, parsed(bytes)))?;
        io::stdout().flush()
    };
    Some(if read().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The text of the pages. There are no headings in it: PDF knows of letters and their places only.
pub(super) fn read(bytes: Vec<u8>) -> Result<Text, String> {
    if !bytes.starts_with(b"%PDF-") {
        return Err("it is no PDF".to_owned());
    }
    lines(&pages(bytes)?)
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

fn pages(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    if !IS_READER.load(Ordering::Relaxed) {
        return Err(
            "this program reads no PDFs; its `main` has to begin with llm_bridge::cli::main or toolrack_documents::read::launched()"
                .to_owned(),
        );
    }
    let fault = |error: io::Error| format!("no program can be started to read this PDF: {error}");
    // Also when the file was replaced by a newer one.
    let program = match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().map_err(fault)?,
    };
    let mut reader = Command::new(program);
    let output = answer(reader.arg(READ_PDF).env_clear(), bytes, TIME).map_err(fault)?;
    let (unconfined, pages): (Option<String>, _) =
        serde_json::from_slice(&output.ok_or_else(too_long)?).map_err(|_| damaged())?;
    if let Some(fault) = unconfined {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| tracing::warn!(fault, "pdf_reader_unconfined"));
    }
    pages
}

/// What a program answers to an input; `None` where it has not answered in time. Whatever it does, it has ended when this returns.
fn answer(program: &mut Command, input: Vec<u8>, time: Duration) -> io::Result<Option<Vec<u8>>> {
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (sender, receiver) = mpsc::channel();
    let writing = thread::spawn(move || {
        // Who is at its end before it has read all has said why.
        let _ = stdin.map(|mut stdin| stdin.write_all(&input));
    });
    let reading = thread::spawn(move || {
        let mut output = Vec::new();
        let read = stdout.map(|stdout| stdout.take(MAX_TEXT).read_to_end(&mut output));
        let _ = sender.send(read.and_then(Result::ok).map(|_| output));
    });
    let output = receiver.recv_timeout(time);
    let (_, _) = (child.kill(), child.wait());
    // Its pipes are closed, so both come to their end.
    let (_, _) = (writing.join(), reading.join());
    Ok(output.map(Option::unwrap_or_default).ok())
}

/// The text of each page, in a thread: the library panics at files that are no good, and needs room.
fn parsed(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    let parse = move || pdf_extract::extract_text_from_mem_by_pages(&bytes);
    let parsing = thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(parse);
    let pages = parsing.map_err(|error| error.to_string())?.join().map_err(|_| damaged())?;
    pages.map_err(|error| format!("this PDF cannot be read: {error}"))
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
        use std::{fs::File, net::UdpSocket, os::unix::net::UnixStream};

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
        restrict_to_computing(&LIMITS).unwrap();
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

    #[cfg(unix)]
    #[test]
    fn k12_of_the_text_of_a_reader_so_much_is_taken_and_no_more() {
        let endless = answer(Command::new("cat").arg("/dev/zero"), Vec::new(), TIME).unwrap().unwrap();
        assert_eq!(u64::try_from(endless.len()), Ok(MAX_TEXT));
    }

    #[cfg(unix)]
    #[test]
    fn k12_a_reader_that_hangs_has_ended_when_it_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut hanging = Command::new("sh");
        hanging.args(["-c", "echo $$ > \"$0\"; exec sleep 600"]).arg(&file);
        // More than a pipe holds, so that whoever writes it waits too.
        let output = answer(&mut hanging, vec![b'x'; 1 << 20], Duration::from_millis(500)).unwrap();
        assert_eq!(output, None);
        let process = std::fs::read_to_string(&file).unwrap();
        let is_there =
            Command::new("kill").args(["-0", process.trim()]).stderr(Stdio::null()).status().unwrap();
        assert!(!is_there.success(), "process {process} is still there");
        let output = answer(Command::new("cat").env_clear(), b"text".to_vec(), TIME).unwrap();
        assert_eq!(output.as_deref(), Some(&b"text"[..]));
    }
}
