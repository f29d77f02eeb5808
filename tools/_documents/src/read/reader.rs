//! Reads documents of formats that are written in many ways, each in a process of its own.

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

use serde::{Deserialize, Serialize};
use toolrack_sandbox::{Limits, restrict_to_computing};

use super::{MAX_BYTES, office, pdf};

/// A file that takes longer is given up.
const TIME: Duration = Duration::from_secs(60);
/// What reading may take.
pub(super) const LIMITS: Limits =
    Limits { time: TIME, memory: 2 << 30, processes: 1, disk: 0, output: MAX_TEXT };
/// Objects lie inside one another as deep as a file likes.
const STACK: usize = 64 * 1024 * 1024;
/// More text is no document, in bytes.
const MAX_TEXT: u64 = 256 << 20;
/// What this program is started with to read a file for itself.
const READ: &str = "__toolrack_read_document";

/// Whether this program reads files where it is started so.
static IS_READER: AtomicBool = AtomicBool::new(false);

/// What a reader finds.
#[derive(Serialize, Deserialize)]
pub(super) enum Parsed {
    /// The pages of a PDF.
    Pages(Vec<String>),
    Office(office::Contents),
}

/// Reads a file from the standard input where the program was started for that: then `main` ends with this code. It has to be called at
/// the beginning of `main`. A program that does not call it reads no such files: there is no telling what one does to the library that
/// reads it. One that draws itself within itself ends the program, and one that never ends cannot be stopped but with the program.
pub(super) fn launched() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != READ) {
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

/// What is in a file, by its beginning.
fn parsed(bytes: Vec<u8>) -> Result<Parsed, String> {
    match bytes.starts_with(pdf::MARK) {
        true => pdf::parsed(bytes).map(Parsed::Pages),
        false => in_thread(move || office::parsed(bytes))
            .unwrap_or_else(|| Err(damaged("document")))
            .map(Parsed::Office),
    }
}

/// What another process finds in a file of a format.
pub(super) fn parse(bytes: Vec<u8>, format: &str) -> Result<Parsed, String> {
    if !IS_READER.load(Ordering::Relaxed) {
        return Err(
            "this program reads no PDFs or office documents; its `main` has to begin with llm_bridge::cli::main or toolrack_documents::read::launched()"
                .to_owned(),
        );
    }
    let fault = |error: io::Error| format!("no program can be started to read this {format}: {error}");
    // Also when the file was replaced by a newer one.
    let program = match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().map_err(fault)?,
    };
    let mut reader = Command::new(program);
    let output = answer(reader.arg(READ).env_clear(), bytes, TIME).map_err(fault)?;
    let late = || format!("this {format} was not read in {} s", TIME.as_secs());
    let (unconfined, parsed): (Option<String>, _) =
        serde_json::from_slice(&output.ok_or_else(late)?).map_err(|_| damaged(format))?;
    if let Some(fault) = unconfined {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| tracing::warn!(fault, "document_reader_unconfined"));
    }
    parsed
}

pub(super) fn damaged(format: &str) -> String {
    format!("this {format} cannot be read: it is damaged, or written in a way that is not understood")
}

/// Works in a thread: libraries panic at files that are no good, and need room. `None` where one did.
pub(super) fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let working = thread::Builder::new().name("reader".to_owned()).stack_size(STACK).spawn(work);
    working.ok()?.join().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

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
