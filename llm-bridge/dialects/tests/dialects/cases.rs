//! Cases of the shared collections, and cuts that are the same in every run.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder of shared material; says so where it is missing.
pub fn shared(path: &str) -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    let found = above.map(|folder| folder.join("shared").join(path)).find(|found| found.exists());
    if found.is_some() {
        return found;
    }
    skipped(&format!("../shared/{path} is not here"));
    None
}

/// Says what is left out; in CI nothing may be.
pub fn skipped(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!ci, "{why}");
    println!("skipped: {why}");
}

/// The lines of every file of a shared folder.
pub fn lines(path: &str) -> Vec<Value> {
    let Some(folder) = shared(path) else { return Vec::new() };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A small generator of numbers that are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).unwrap()
    }

    pub fn cuts(&mut self, text: &str) -> Vec<usize> {
        let count = self.roll(12);
        (0..count).map(|_| self.roll(text.len() + 1)).collect()
    }
}
