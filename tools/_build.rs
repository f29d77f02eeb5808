//! Has the folder looked at again when a file comes or goes.

fn main() {
    println!("cargo::rerun-if-changed=.");
}
