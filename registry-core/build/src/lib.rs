//! For the build script of a crate with `registry_core::discover!()`:
//!
//! ```no_run
//! // In `main` of `build.rs`:
//! toolrack_build::tools("tools");
//! ```
//!
//! A crate of tools for other programs has a key `links` in its manifest besides, which can be its own name. By that Cargo tells the build scripts of
//! those who depend on it that it has tools.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What a crate of tools tells the crates that depend on it: `DEP_LINKS_TOOLRACK_TOOLS` in their build scripts.
const KEY: &str = "toolrack_tools";

/// Builds the crate again when a file in that folder comes, goes or changes, and has `discover!()` link the crates of tools that this
/// one depends on. The folder is below the crate's root, `.` for the root itself.
pub fn tools(folder: &str) {
    for line in lines(
        folder,
        env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    ) {
        println!("{line}");
    }
}

/// Has the programs of this package find the dynamic libraries that they link: those that Cargo builds, and Rust's own. For a program that
/// depends on a crate of the type `dylib`, such as `toolrack-dylib`.
///
/// The programs run only where they were built. Where Rust has no dynamic library of its own, the linker says so.
pub fn dynamic_linking() {
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    // A copy: the toolchain may be in a folder that only its owner may read, and a sandbox starts the program as somebody else.
    if let Err(error) = copy_rust_libraries(&out) {
        println!("cargo::warning=the program will not find Rust's dynamic library: {error}");
    }
    // Cargo puts a program beside `deps`, and who keeps a program keeps its libraries beside it.
    for folder in ["$ORIGIN".as_ref(), "$ORIGIN/deps".as_ref(), out.as_path()] {
        // Commas separate arguments behind `-Wl`, and may be in the name of a folder.
        for argument in ["-Xlinker", "-rpath", "-Xlinker", &folder.to_string_lossy()] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// Copies the dynamic libraries of the toolchain that builds.
fn copy_rust_libraries(to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(rustc);
    rustc.args(["--print", "target-libdir"]);
    if let Some(target) = env::var_os("TARGET") {
        rustc.arg("--target").arg(target);
    }
    let folder = String::from_utf8(rustc.output()?.stdout)?;
    for entry in fs::read_dir(folder.trim())? {
        let file = entry?.path();
        let is_library = file.extension().is_some_and(|extension| extension == env::consts::DLL_EXTENSION);
        if let Some(name) = file.file_name().filter(|_| is_library) {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

/// What Cargo is told.
fn lines(folder: &str, variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let end = format!("_{}", KEY.to_ascii_uppercase());
    let (mut crates, mut package, mut links) = (Vec::new(), String::new(), false);
    for (name, value) in variables {
        match name.as_str() {
            "CARGO_PKG_NAME" => package = value.replace('-', "_"),
            "CARGO_MANIFEST_LINKS" => links = true,
            name if name.starts_with("DEP_") && name.ends_with(&end) => crates.push(value),
            _ => {}
        }
    }
    crates.sort();
    let mut lines = vec![
        format!("cargo::rerun-if-changed={folder}"),
        format!("cargo::rustc-env=TOOLRACK_CRATES={}", crates.join(",")),
    ];
    if links {
        lines.push(format!("cargo::metadata={KEY}={package}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Vec<String> {
        lines("tools", variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn p1_a_program_learns_of_the_crates_of_tools() {
        let variables = [
            ("CARGO_PKG_NAME", "my-program"),
            ("DEP_TOOLRACK_UNITS_TOOLRACK_TOOLS", "toolrack_units"),
            ("DEP_CSV_TOOLRACK_TOOLS", "csv_tools"),
            ("DEP_Z_ROOT", "/usr"),
        ];
        assert_eq!(
            told(&variables),
            ["cargo::rerun-if-changed=tools", "cargo::rustc-env=TOOLRACK_CRATES=csv_tools,toolrack_units"]
        );
    }

    #[test]
    fn p1_a_crate_with_links_says_that_it_has_tools() {
        let variables = [("CARGO_PKG_NAME", "toolrack-units"), ("CARGO_MANIFEST_LINKS", "toolrack-units")];
        let told = told(&variables);
        assert_eq!(told.last().unwrap(), "cargo::metadata=toolrack_tools=toolrack_units");
    }

    #[test]
    fn b18_rusts_own_library_is_put_where_the_program_looks_for_it() {
        let folder = env::temp_dir().join(format!("toolrack-build-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        copy_rust_libraries(&folder).unwrap();
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        fs::remove_dir_all(&folder).unwrap();
        let start = format!("{}std-", env::consts::DLL_PREFIX);
        assert!(names.iter().any(|name| name.to_string_lossy().starts_with(&start)), "{names:?}");
    }
}
