//! The map in `ARCHITECTURE.md` has the arrows and the crates that the manifests have; and the manifests are such that nothing is built twice.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const MAP: &str = include_str!("../../ARCHITECTURE.md");

/// What a command of Cargo prints.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(ROOT).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// What each crate of the workspace depends on within it, tests and build scripts left out.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let names: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let product = all.filter(|dependency| dependency["kind"].is_null());
        let within = product.filter_map(|dependency| names.get(dependency["name"].as_str()?).copied());
        within.map(str::to_owned).collect()
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), dependencies(package)))
        .collect()
}

#[test]
fn the_arrows_of_the_map_are_those_of_the_manifests() {
    let mut map: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, to) in MAP.lines().filter_map(|line| line.trim().split_once(" --> ")) {
        map.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    let mut manifests = manifests();
    let crates: BTreeSet<String> = manifests.keys().cloned().collect();
    manifests.retain(|_, dependencies| !dependencies.is_empty());
    assert_eq!(map, manifests);
    for name in crates {
        assert!(MAP.contains(&format!("| `{name}` | ")), "{name} has no row in the table of crates");
    }
}

#[test]
fn the_places_of_the_map_are_there() {
    let (_, places) = MAP.split_once("## Where to add what").unwrap();
    let is_path = |text: &&str| text.contains('/') && !text.contains([' ', ':', '(']);
    let named: Vec<&str> = places.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 20, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|path| !Path::new(ROOT).join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_could_be_published_alone_depends_on_nothing_of_ours() {
    let manifests = manifests();
    for name in ["toolrack-dialects", "toolrack-apis", "registry-macros"] {
        assert!(manifests[name].is_empty(), "{name}: {:?}", manifests[name]);
    }
}

/// The crates of others that are built for a choice of packages, each with the features that it is built with: a build script's
/// dependencies may have others than the program's.
fn built(choice: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let tree = ["tree", "--offline", "--prefix=none", "--format={p}|{f}"];
    let mut built: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in cargo(&[&tree, choice].concat()).lines() {
        let (package, features) = line.trim_end_matches(" (*)").split_once('|').unwrap_or((line, ""));
        if !package.is_empty() && !package.contains("(/") {
            built.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    built
}

#[test]
fn g17_u20_tests_and_fixtures_use_what_was_built_for_the_program() {
    let program = built(&["--edges=normal,build", "--package=toolrack"]);
    assert!(program.keys().any(|package| package.starts_with("tokio v1.")), "{program:?}");
    let tests = "--edges=normal,build,dev";
    for choice in [
        &[tests, "--workspace"][..],
        &[tests, "--package=tools"],
        &[tests, "--workspace", "--manifest-path=fixtures/Cargo.toml"],
    ] {
        for (package, features) in built(choice) {
            if let Some(of_program) = program.get(&package) {
                assert!(
                    features.is_subset(of_program),
                    "{package} is built twice: with {of_program:?} for the program, and with {features:?} for {choice:?}"
                );
            }
        }
    }
}

/// The tests of a crate of macros are built for the compiler, as macros are, and so would be all that they need.
#[test]
fn g17_the_tests_of_the_macros_need_no_crate_of_ours() {
    let packages = packages();
    let macros = packages.iter().find(|package| package["name"] == "registry-macros").unwrap();
    let needed: Vec<&Value> =
        macros["dependencies"].as_array().unwrap().iter().map(|needed| &needed["name"]).collect();
    assert!(
        !needed.is_empty() && packages.iter().all(|package| !needed.contains(&&package["name"])),
        "{needed:?}"
    );
}

#[test]
fn g17_every_lock_file_has_the_same_rmcp() {
    let version = |file: &str| {
        let text = std::fs::read_to_string(format!("{ROOT}/{file}")).unwrap();
        let (_, rest) = text.split_once("name = \"rmcp\"\nversion = \"").unwrap();
        assert!(!rest.contains("name = \"rmcp\"\n"), "{file} has two");
        rest.split('"').next().unwrap().to_owned()
    };
    let ours = version("Cargo.lock");
    for file in ["fixtures/Cargo.lock", "fixtures/thousand_rmcp/Cargo.lock"] {
        assert_eq!(version(file), ours, "{file}");
    }
}

#[test]
fn g17_no_crate_has_more_than_two_test_binaries() {
    for package in packages() {
        let targets = package["targets"].as_array().unwrap().iter();
        let tests = targets.filter(|target| target["kind"][0] == "test").count();
        assert!(tests <= 2, "{}: {tests}; put them into one, with a module for each", package["name"]);
    }
}
