//! Compares what the scanner reads with what its peers read. See the README.

use std::{collections::BTreeMap, error::Error, fs, io, path::Path, process::ExitCode};

use peers::{
    case,
    explained::Explained,
    report::{self, Why},
};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut write, mut all) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--write" => write = true,
            "--all" => all = true,
            other => return Err(format!("not an option: {other}; there are --write and --all").into()),
        }
    }
    let here = Path::new(HERE);
    let mut cases = case::own()?;
    let folder = here.join("../../../shared/corpus/dialects");
    let corpus = case::corpus(&folder)?;
    let complete = corpus.is_some();
    match corpus {
        Some(corpus) => cases.extend(corpus),
        None => println!("skipped: the corpus, ../shared/corpus/dialects, is not here"),
    }
    let explained = Explained::read(&fs::read_to_string(here.join("explained.txt"))?)?;
    let exceptions = exceptions(&here.join("../../llm-bridge/tests/data/corpus_exceptions.txt"))?;

    // A peer that panics is counted as one that gives an error.
    std::panic::set_hook(Box::new(|_| {}));
    let compared = report::compare(&cases, &explained, &exceptions);
    let _ = std::panic::take_hook();

    let text = compared.markdown();
    if write {
        report::write_between(&here.join("../../docs/peers.md"), "differential", &text)?;
    } else {
        println!("{text}");
    }
    let mut faults = 0;
    for difference in &compared.differences {
        let unknown = difference.why == Why::Unknown;
        faults += usize::from(unknown);
        if unknown || all {
            println!(
                "{}\t{}\t{}\t{}\t{:?}\n  {:?}\n  ours: {}\n  peer: {}",
                difference.peer.title(),
                difference.mode.title(),
                difference.case.dialect,
                difference.case.id,
                difference.why,
                difference.case.input,
                report::list(&difference.ours),
                difference.theirs(),
            );
        }
    }
    let unknown = faults;
    for wrong in &compared.wrong {
        println!("ours does not read it as the case says: {wrong}");
        faults += 1;
    }
    for unsteady in &compared.unsteady {
        println!("ours reads it whole, and in pieces with deltas, in two ways: {unsteady}");
        faults += 1;
    }
    let unused = if complete { explained.unused() } else { Vec::new() };
    for line in &unused {
        println!("explains no difference: {line}");
        faults += 1;
    }
    println!(
        "{} cases, {} differences, {unknown} not explained, {} own cases read wrongly, {} in two ways, {} explanations not needed",
        cases.len(),
        compared.differences.len(),
        compared.wrong.len(),
        compared.unsteady.len(),
        unused.len(),
    );
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Cases of the corpus that the scanner's own test lists as read in another way on purpose, and why.
fn exceptions(file: &Path) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let pair = |line: &str| {
        let ((id, _), (_, reason)) = (line.split_once('\t')?, line.rsplit_once('\t')?);
        Some((id.to_owned(), reason.to_owned()))
    };
    Ok(text.lines().filter_map(pair).collect())
}
