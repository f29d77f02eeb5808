//! `discover!()`: the files and folders of tools, as modules.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{self, Component, Path, PathBuf},
};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    LitStr, Token,
    parse::{ParseStream, Parser},
};

use crate::{attr, errors::Errors, forgotten};

/// The crates of tools that this crate depends on, separated by commas: set by `toolrack_build::tools` in its build script.
const CRATES: &str = "TOOLRACK_CRATES";

/// Folders are no deeper, so that links that lead in a circle have an end.
const MAX_DEPTH: usize = 8;

/// Folders that Cargo gives a meaning, and that are no modules therefore.
const CARGO_FOLDERS: [&str; 5] = ["target", "src", "tests", "examples", "benches"];

pub(crate) fn discover(input: TokenStream) -> TokenStream {
    let mut errors = Errors::new("`discover!`");
    let mut test = None;
    let found = match Place::of(input, &mut errors) {
        Ok(_) if !errors.is_empty() => Ok(Vec::new()),
        Ok(place) => {
            test = Some(place.test());
            place.scan(&mut errors)
        }
        Err(error) => {
            errors.absorb(
                &error,
                "write `discover!()`, or `discover!(\"folder\")` for one below the crate's root",
            );
            Ok(Vec::new())
        }
    };
    let modules = found.unwrap_or_else(|(path, error)| {
        let what = format!("`{}` cannot be read: {error}", shown(&path));
        errors.push_at(Span::call_site(), what, "give a folder below the crate's root");
        Vec::new()
    });
    let errors = errors.into_tokens();
    quote!(#(#modules)* #test #errors)
}

/// Links the crates of tools, which nobody names, and submits their names as modules.
fn crates(names: &str, core: &TokenStream) -> Vec<TokenStream> {
    let names = names.split(',').filter_map(|name| Some((name, syn::parse_str::<Ident>(name).ok()?)));
    names
        .map(|(name, ident)| {
            let module = module_of_crate(name);
            quote! {
                #[allow(unused_extern_crates)]
                extern crate #ident as _;
                #core::__private::inventory::submit!(#core::__private::Folder { module_path: #name, name: #module });
            }
        })
        .collect()
}

/// The module of a crate's tools: its name without what all such crates begin with.
fn module_of_crate(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let short = ["toolrack_", "tools_"].iter().find_map(|start| name.strip_prefix(start));
    short
        .filter(|short| short.starts_with(|first: char| first.is_ascii_lowercase()))
        .unwrap_or(&name)
        .to_owned()
}

/// Where to look.
pub(crate) struct Place {
    folder: PathBuf,
    /// The file that asks. It is no tool, and paths are written from its folder, so that they are the same on every
    /// machine.
    pub(crate) asking: Option<PathBuf>,
    /// What the core is called here.
    pub(crate) core: TokenStream,
}

impl Place {
    #[cfg(test)]
    pub(crate) fn for_test(core: TokenStream, asking: Option<PathBuf>) -> Self {
        Self { folder: PathBuf::new(), asking, core }
    }

    /// Reads `"folder", crate = path`, both of which may be left out.
    fn of(input: TokenStream, errors: &mut Errors) -> syn::Result<Self> {
        let read = |input: ParseStream<'_>| {
            let folder: Option<LitStr> = if input.peek(LitStr) { Some(input.parse()?) } else { None };
            if folder.is_some() && !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Ok((folder, input.parse::<TokenStream>()?))
        };
        let (folder, rest) = read.parse2(input)?;
        let core = attr::only_core_path(rest, errors);
        let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
        let asking = proc_macro::Span::call_site().local_file().and_then(|file| path::absolute(file).ok());
        let folder = match (folder, asking.as_deref().and_then(Path::parent)) {
            (Some(folder), _) => root.join(folder.value()),
            (None, Some(folder)) => folder.to_owned(),
            (None, None) => root,
        };
        Ok(Self { folder, asking, core })
    }

    fn scan(&self, errors: &mut Errors) -> Result<Vec<TokenStream>, (PathBuf, io::Error)> {
        let mut modules = crates(&env::var(CRATES).unwrap_or_default(), &self.core);
        modules.extend(self.folder(&self.folder, 0, errors)?);
        Ok(modules)
    }

    /// The files and folders of a folder, as modules.
    fn folder(
        &self,
        folder: &Path,
        depth: usize,
        errors: &mut Errors,
    ) -> Result<Vec<TokenStream>, (PathBuf, io::Error)> {
        let mut modules = Vec::new();
        let (files, folders) = entries(folder)?;
        for (name, path) in &files {
            if self.asking.as_ref() == Some(path) {
                continue;
            }
            if let Some(mut module) = module_name(name, path, errors) {
                // The folder of the same name is the module. No other file is called like this: `_` is left out.
                if folders.contains_key(name) {
                    module = format_ident!("__{module}");
                }
                modules.extend(forgotten::look(&shown(path), path, self, errors));
                // In a module with a path of its own, paths are written from there.
                let path = if depth == 0 { self.path_from_here(path) } else { format!("{name}.rs") };
                modules.push(file(&module, &path));
            }
        }
        for (name, path) in folders {
            if depth == 0 && CARGO_FOLDERS.contains(&name.as_str()) {
                // Elsewhere the folder may well be a crate's root. Beside the file that asks there are tools, and a module that
                // is silently left out would be looked for in vain.
                if self.asks_from_within() && !entries(&path)?.0.is_empty() {
                    errors.push_at(
                        Span::call_site(),
                        format!(
                            "`{}` cannot be a module of tools: Cargo gives this name a meaning",
                            shown(&path)
                        ),
                        "rename the folder; a name that begins with `_` is left out",
                    );
                }
                continue;
            }
            if !has_files(&path, depth)? {
                continue;
            }
            if depth == MAX_DEPTH {
                errors.push_at(
                    Span::call_site(),
                    format!("`{}` is too deep for tools", shown(&path)),
                    "put it higher; a name that begins with `_` is left out",
                );
                continue;
            }
            let Some(module) = module_name(&name, &path, errors) else { continue };
            let inner = self.folder(&path, depth + 1, errors)?;
            let path = if depth == 0 { self.path_from_here(&path) } else { name };
            modules.push(self.module(&module, &path, &inner));
        }
        Ok(modules)
    }

    /// The test that tools keep to what they say of themselves, which nobody has to write.
    fn test(&self) -> TokenStream {
        let core = &self.core;
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let folder = folder.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let module = format_ident!("__{folder}_as_discovered");
        quote! {
            #[cfg(test)]
            mod #module {
                #[test]
                fn examples_and_defaults_fit_their_tools() {
                    let found = #core::testing::inconsistencies(::core::module_path!());
                    assert!(found.is_empty(), "{}", found.join("\n"));
                }
            }
        }
    }

    /// Whether the file that asks lies beside the tools.
    fn asks_from_within(&self) -> bool {
        self.asking.as_deref().and_then(Path::parent) == Some(self.folder.as_path())
    }

    fn module(&self, module: &Ident, path: &str, inner: &[TokenStream]) -> TokenStream {
        let core = &self.core;
        let name = module.to_string();
        let docs = format!("The tools of the module `{name}`.");
        quote! {
            #[doc = #docs]
            #[path = #path]
            pub mod #module {
                #(#inner)*

                #core::__private::inventory::submit!(#core::__private::Folder {
                    module_path: ::core::module_path!(),
                    name: #name,
                });
            }
        }
    }

    /// A path as the file that asks would write it.
    fn path_from_here(&self, path: &Path) -> String {
        let Some(base) = self.asking.as_deref().and_then(Path::parent) else {
            return path.to_string_lossy().into_owned();
        };
        let shared = base.components().zip(path.components()).take_while(|(a, b)| a == b).count();
        let up = base.components().skip(shared).map(|_| Component::ParentDir);
        let relative: PathBuf = up.chain(path.components().skip(shared)).collect();
        relative.to_string_lossy().into_owned()
    }
}

/// A path as people know it.
fn shown(path: &Path) -> String {
    let root = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn file(module: &Ident, path: &str) -> TokenStream {
    quote!(#[path = #path] mod #module;)
}

/// Whether there are Rust files in a folder or below.
fn has_files(folder: &Path, depth: usize) -> Result<bool, (PathBuf, io::Error)> {
    let (files, folders) = entries(folder)?;
    let mut deeper = folders.values().filter(|_| depth < MAX_DEPTH);
    Ok(!files.is_empty() || deeper.try_fold(false, |found, path| Ok(found || has_files(path, depth + 1)?))?)
}

type Entries = BTreeMap<String, PathBuf>;

/// The Rust files and the folders of a folder, by name, without those that begin with `_` or `.`.
fn entries(folder: &Path) -> Result<(Entries, Entries), (PathBuf, io::Error)> {
    let read = || -> io::Result<(Entries, Entries)> {
        let (mut files, mut folders) = (Entries::new(), Entries::new());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(['_', '.']) {
                continue;
            }
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                folders.insert(name, path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.insert(name, path);
            }
        }
        Ok((files, folders))
    };
    read().map_err(|error| (folder.to_owned(), error))
}

fn module_name(name: &str, path: &Path, errors: &mut Errors) -> Option<Ident> {
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match syn::parse_str::<Ident>(name) {
        Ok(ident) if fits => Some(Ident::new(&ident.to_string(), Span::call_site())),
        _ => {
            errors.push_at(
                Span::call_site(),
                format!("`{}` is not named as a Rust module", shown(path)),
                "use a-z, 0-9 and `_`, a letter first, and no word of the language",
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is declared and reported for a folder with these files, asked for from `asking`.
    fn scan(name: &str, files: &[&str], asking: &str, below: &str) -> (String, String) {
        let root = env::temp_dir().join(format!("discover-{}-{name}", std::process::id()));
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                if file.contains("helper") { "//! Not `#[tool]`.\nfn help() {}\n" } else { "#[tool]\n" },
            )
            .unwrap();
        }
        let core = quote!(::registry_core);
        let place = Place { folder: root.join(below), asking: Some(root.join(asking)), core };
        let mut errors = Errors::new("`discover!`");
        let modules = place.scan(&mut errors).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let declared = modules.iter().map(ToString::to_string).collect::<String>().replace(' ', "");
        (declared, errors.into_tokens().to_string())
    }

    #[test]
    fn files_and_folders_are_declared_in_order() {
        let files =
            ["_lib.rs", "_build.rs", "b.rs", "a.rs", "notes.md", "m/y.rs", "m/x.rs", "m/_z.rs", "data/x.txt"];
        let (declared, reported) = scan("order", &files, "_lib.rs", "");
        assert_eq!(reported, "");
        let expected = r#"#[path="a.rs"]moda;#[path="b.rs"]modb;#[doc="Thetoolsofthemodule`m`."]#[path="m"]pubmodm{#[path="x.rs"]modx;#[path="y.rs"]mody;"#;
        assert!(declared.starts_with(expected), "{declared}");
    }

    #[test]
    fn what_is_cargos_is_no_module() {
        let files = ["target/x.rs", "tests/x.rs", "examples/x.rs", "benches/x.rs", "src/x.rs", ".git/x.rs"];
        let (declared, reported) = scan("cargo-root", &files, "src/x.rs", "");
        assert_eq!((declared.as_str(), reported.as_str()), ("", ""));
        let (declared, reported) = scan("cargo", &files, "_lib.rs", "");
        assert_eq!(declared, "");
        for folder in CARGO_FOLDERS {
            assert!(reported.contains(&format!("{folder}` cannot be a module")), "{folder}: {reported}");
        }
        let data = ["_lib.rs", "target/debug/x.rs", "tests/data.txt"];
        assert_eq!(scan("cargo-data", &data, "_lib.rs", ""), (String::new(), String::new()));
    }

    #[test]
    fn another_folder_is_reached_from_the_file_that_asks() {
        let (declared, _) =
            scan("other", &["src/main.rs", "tools/a.rs", "tools/m/b.rs"], "src/main.rs", "tools");
        assert!(declared.contains(r#"#[path="../tools/a.rs"]moda;"#), "{declared}");
        assert!(declared.contains(r#"#[path="../tools/m"]pubmodm{#[path="b.rs"]modb;"#), "{declared}");
    }

    #[test]
    fn what_cannot_be_a_tool_is_reported() {
        for (name, file, reported) in [
            ("case", "Web.rs", "not named as a Rust module"),
            ("dash", "web-search.rs", "not named as a Rust module"),
            ("word", "match.rs", "not named as a Rust module"),
            ("folder", "my-tools/a.rs", "not named as a Rust module"),
        ] {
            let (declared, said) = scan(name, &["_lib.rs", file], "_lib.rs", "");
            assert_eq!(declared, "", "{file}");
            assert!(said.contains(reported), "{file}: {said}");
        }
    }

    #[test]
    fn s3_a_file_without_a_tool_is_warned_of() {
        let (declared, reported) =
            scan("none", &["_lib.rs", "a.rs", "helper.rs", "m/helper.rs"], "_lib.rs", "");
        assert_eq!(reported, "", "it may be on its way to become one");
        for file in ["/helper.rs`hasneithera`#[tool]`nora`#[resource]`", "m/helper.rs`hasneither"] {
            assert!(declared.contains(file), "{declared}");
        }
        assert!(declared.contains("modhelper;") && !declared.contains("a.rs`has"), "{declared}");
    }

    #[test]
    fn p1_a_folder_in_a_folder_is_a_module_in_a_module() {
        let (declared, reported) = scan("inner", &["_lib.rs", "a/b/c.rs", "a/b/d/e.rs"], "_lib.rs", "");
        assert_eq!(reported, "");
        let expected = r##"#[path="a"]pubmoda{#[doc="Thetoolsofthemodule`b`."]#[path="b"]pubmodb{#[path="c.rs"]modc;#[doc="Thetoolsofthemodule`d`."]#[path="d"]pubmodd{#[path="e.rs"]mode;"##;
        assert!(declared.contains(expected), "{declared}");
    }

    #[test]
    fn p1_folders_have_an_end() {
        let (_, reported) = scan("deep", &["_lib.rs", "a/b/c/d/e/f/g/h/i/j.rs"], "_lib.rs", "");
        assert!(reported.contains("a/b/c/d/e/f/g/h/i` is too deep for tools"), "{reported}");
    }

    #[test]
    fn p1_a_crate_of_tools_is_linked_and_is_a_module() {
        let core = quote!(::registry_core);
        let linked: String =
            crates("toolrack_units,csv_tools", &core).iter().map(ToString::to_string).collect();
        let linked = linked.replace(' ', "");
        for expected in [
            "externcratetoolrack_unitsas_;",
            r#"Folder{module_path:"toolrack_units",name:"units"}"#,
            "externcratecsv_toolsas_;",
            r#"Folder{module_path:"csv_tools",name:"csv_tools"}"#,
        ] {
            assert!(linked.contains(expected), "{linked}");
        }
        assert!(crates("", &core).is_empty());
        for (name, module) in [
            ("tools_for_csv", "for_csv"),
            ("toolrack_3d", "toolrack_3d"),
            ("toolrack_", "toolrack_"),
            ("Big", "big"),
        ] {
            assert_eq!(module_of_crate(name), module);
        }
    }

    #[test]
    fn p1_a_file_may_have_the_name_of_a_folder() {
        let (declared, reported) = scan("twice", &["_lib.rs", "a.rs", "a/a.rs"], "_lib.rs", "");
        assert_eq!(reported, "");
        assert!(declared.starts_with(r#"#[path="a.rs"]mod__a;"#), "{declared}");
        assert!(declared.contains(r##"#[path="a"]pubmoda{#[path="a.rs"]moda;"##), "{declared}");
    }
}
