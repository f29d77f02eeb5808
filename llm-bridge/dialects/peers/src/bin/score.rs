//! Compares the calls that the scanner finds with those that its peers find. See the README.

use std::{error::Error, path::Path, process::ExitCode};

use peers::{case, score::score};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut differences = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--differences" => differences = true,
            other => return Err(format!("there is no option `{other}`; there is --differences").into()),
        }
    }
    let mut cases = case::own()?;
    match case::corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus/dialects"))? {
        Some(corpus) => cases.extend(corpus),
        None if std::env::var("CI").is_ok_and(|value| value == "true") => {
            return Err("the corpus, ../shared/corpus/dialects, is not here".into());
        }
        None => println!("skipped: the corpus, ../shared/corpus/dialects, is not here"),
    }
    // A peer that panics is counted as one that gives an error.
    std::panic::set_hook(Box::new(|_| {}));
    let score = score(&cases);
    let _ = std::panic::take_hook();
    println!("{}", score.markdown());
    if differences {
        for (peer, mode, case) in &score.differences {
            println!("{}\t{}\t{}\t{}\t{:?}", peer.title(), mode.title(), case.dialect, case.id, case.input);
        }
    }
    for fault in &score.faults {
        println!("ours finds other calls than expected, or other calls in pieces: {fault}");
    }
    println!("{} cases, {} differences, {} faults", cases.len(), score.differences.len(), score.faults.len());
    Ok(if score.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
