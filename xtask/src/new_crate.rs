//! `cargo xtask new-crate NAME`.

use std::{
    env, fs,
    path::{Component, Path, PathBuf},
    process::ExitCode,
};

use crate::Result;

const USAGE: &str = "usage: cargo xtask new-crate NAME [FOLDER], such as `toolrack-units`; by default it is written beside this project";

/// Writes a crate of tools: a tool, a resource, their tests, and what is needed to publish it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let (name, folder) = match arguments {
        [name] => (name, root.join("..").join(name)),
        [name, folder] => (name, PathBuf::from(folder)),
        _ => return Err(USAGE.to_owned()),
    };
    let folder = write(root, name, &folder)?;
    let (shown, module) = (folder.display(), module(name)?);
    println!("Wrote {shown}. Now:");
    println!("  cargo test --manifest-path {shown}/Cargo.toml   run its tests");
    println!("  cargo xtask add {shown}   add its tools to the program");
    println!("  cargo xtask call {module}.greet '{{\"name\": \"Ada\"}}'   call one");
    Ok(ExitCode::SUCCESS)
}

/// Writes the crate, and gives the folder's whole path.
fn write(root: &Path, name: &str, folder: &Path) -> Result<PathBuf> {
    let module = module(name)?;
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    let root = root.canonicalize().map_err(cannot)?;
    let folder = normal(&env::current_dir().map_err(cannot)?.join(folder));
    if folder.starts_with(&root) {
        return Err(format!(
            "{} is inside of this project, whose workspace it would belong to; name a folder outside, as in `cargo xtask new-crate {name} ../{name}`",
            folder.display()
        ));
    }
    if folder.exists() {
        return Err(format!("{} is there already; choose another name or folder", folder.display()));
    }
    let project = from(&folder, &root).display().to_string().replace('\\', "/");
    for (file, text) in [
        ("Cargo.toml", MANIFEST),
        ("build.rs", BUILD),
        ("README.md", README),
        ("src/lib.rs", LIB),
        ("src/greeting.rs", RESOURCE),
        ("src/greet.rs", TOOL),
    ] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&folder)).map_err(cannot)?;
        let text = text.replace("@name", name).replace("@module", &module).replace("@project", &project);
        fs::write(&path, text).map_err(cannot)?;
    }
    Ok(folder)
}

/// The module that the crate's tools will be in; the name has to be one for a package.
fn module(name: &str) -> Result<String> {
    let is_legal = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'));
    if !is_legal {
        return Err(format!(
            "`{name}` cannot be a crate's name: use small letters, digits, `-` and `_`, a letter first. {USAGE}"
        ));
    }
    Ok(crate::add::module_of(name))
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

/// The path of one folder as seen from another, both absolute.
fn from(here: &Path, there: &Path) -> PathBuf {
    let shared = here.components().zip(there.components()).take_while(|(one, other)| one == other).count();
    let up = here.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(there.components().skip(shared)).collect()
}

const MANIFEST: &str = r#"[package]
name = "@name"
description = "Tools for Toolrack."
version = "0.1.0"
edition = "2024"
license = "MIT OR Apache-2.0"
# By this the crates that depend on this one learn that it has tools.
links = "@name"

[dependencies]
registry-core = { path = "@project/registry-core" }
# For types of your own, where you derive in place of `#[args]` and `#[output]`.
schemars = "1.2"
serde = { version = "1", features = ["derive"] }

[build-dependencies]
toolrack-build = { path = "@project/registry-core/build" }

[dev-dependencies]
tokio = { version = "1", features = ["macros", "rt"] }

[workspace]
"#;

const BUILD: &str = r#"fn main() {
    toolrack_build::tools("src");
}
"#;

const README: &str = r#"# @name

Tools for Toolrack. `@module.greet` greets a person.

`cargo xtask add FOLDER` in Toolrack's project adds them, and so does a line in its `tools/Cargo.toml`:

```toml
@name = { path = "FOLDER" }
```

The table `[@module]` of `toolrack.toml` has the settings:

```toml
[@module]
greeting = "Good morning"
```
"#;

const LIB: &str = r#"//! Tools for Toolrack. Each file beside this one is a tool or a resource; what begins with `_` is neither.

registry_core::discover!();
"#;

const RESOURCE: &str = r#"//! What the tools of this crate share.

use registry_core::prelude::*;

/// How people are greeted.
pub(crate) struct Greeting(pub(crate) String);

/// The table `[@module]` of the configuration.
#[args]
pub(crate) struct GreetingSettings {
    /// The words before the name.
    #[arg(default = "Hello")]
    pub(crate) greeting: String,
}

#[resource(table = "@module")]
pub(crate) fn greeting(settings: Settings<GreetingSettings>) -> Greeting {
    Greeting(settings.greeting.clone())
}
"#;

const TOOL: &str = r#"//! Greets.

use registry_core::prelude::*;

use crate::greeting::Greeting;

/// Greet a person by name. Use it when somebody asks to be greeted. Returns the greeting.
#[tool]
async fn greet(
    greeting: Resource<Greeting>,
    /// Whom.
    #[arg(length = 1..=80)]
    name: String,
) -> String {
    format!("{}, {name}!", greeting.0)
}

#[cfg(test)]
mod tests {
    use registry_core::testing::TestHost;

    use super::*;
    use crate::greeting::{GreetingSettings, greeting};

    #[tokio::test]
    async fn a_person_is_greeted_as_configured() {
        let settings = Settings::new(GreetingSettings { greeting: "Good morning".to_owned() });
        let host = TestHost::new().resource(greeting(settings)).build();
        let outcome = host.call("greet", json!({"name": "Ada"})).await;
        assert_eq!(outcome.for_model(), "Good morning, Ada!");
        assert!(!host.call("greet", json!({"name": ""})).await.is_success());
    }

    #[tokio::test]
    async fn without_its_resource_the_tool_is_off() {
        let host = TestHost::new().build();
        assert!(host.why_not("greet").unwrap().contains("needs Greeting"));
    }
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p1_a_crate_is_written_once_and_outside() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let root = folder.join("project");
        fs::create_dir(&root).unwrap();
        let written = write(&root, "toolrack-units", &folder.join("crates/units")).unwrap();
        let manifest = fs::read_to_string(written.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("registry-core = { path = \"../../project/registry-core\" }"),
            "{manifest}"
        );
        assert!(
            manifest.contains("links = \"toolrack-units\"") && manifest.contains("license = "),
            "{manifest}"
        );
        let resource = fs::read_to_string(written.join("src/greeting.rs")).unwrap();
        assert!(resource.contains("#[resource(table = \"units\")]"), "{resource}");
        let tool = fs::read_to_string(written.join("src/greet.rs")).unwrap();
        assert!(tool.contains("format!(\"{}, {name}!\", greeting.0)"), "{tool}");
        let error = write(&root, "toolrack-units", &folder.join("crates/units")).unwrap_err();
        assert!(error.contains("is there already"), "{error}");
        let error = write(&root, "toolrack-units", &root.join("units")).unwrap_err();
        assert!(error.contains("is inside of this project"), "{error}");
        for name in ["", "Units", "3d", "a b", "../x"] {
            assert!(
                write(&root, name, &folder.join("other")).unwrap_err().contains("cannot be a crate's name"),
                "{name}"
            );
        }
        assert!(!folder.join("other").exists());
    }
}
