//! Has the program find the dynamic libraries that it links with the feature `dynamic-linking`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dynamic-linking")]
    toolrack_build::dynamic_linking();
}
