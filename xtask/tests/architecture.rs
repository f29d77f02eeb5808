//! The map in `ARCHITECTURE.md` has the arrows and the crates that the manifests have.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

const MAP: &str = include_str!("../../ARCHITECTURE.md");

/// What each crate of the workspace depends on within it, tests and build scripts left out.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
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
fn what_could_be_published_alone_depends_on_nothing_of_ours() {
    let manifests = manifests();
    for name in ["toolrack-dialects", "toolrack-apis", "registry-macros"] {
        assert!(manifests[name].is_empty(), "{name}: {:?}", manifests[name]);
    }
}
