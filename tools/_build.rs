//! Has the folder looked at again when a file comes or goes, and the crates of tools linked.

fn main() {
    toolrack_build::tools(".");
}
