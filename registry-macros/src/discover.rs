//! `discover!()`: the files and folders of tools, as modules.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::LitStr;

use crate::errors::Errors;

/// Folders that Cargo gives a meaning.
const CARGO_FOLDERS: [&str; 5] = ["target", "src", "tests", "examples", "benches"];

pub(crate) fn discover(input: TokenStream) -> TokenStream {
    let mut errors = Errors::new("`discover!`");
    let found = match place(input) {
        Ok(place) => place.scan(&mut errors),
        Err(error) => {
            errors.absorb(
                &error,
                "write `discover!()`, or `discover!(\"folder\")` for one below the crate's root",
            );
            Ok(Vec::new())
        }
    };
    let modules = found.unwrap_or_else(|(path, error)| {
        let what = format!("`{}` cannot be read: {error}", path.display());
        errors.push_at(Span::call_site(), what, "give a folder below the crate's root");
        Vec::new()
    });
    let errors = errors.into_tokens();
    quote!(#(#modules)* #errors)
}

/// Where to look.
struct Place {
    folder: PathBuf,
    /// The file that asks: it is no tool, and paths are written as it would write them.
    asking: Option<PathBuf>,
}

fn place(input: TokenStream) -> syn::Result<Place> {
    let asking = proc_macro::Span::call_site().local_file();
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = if input.is_empty() {
        asking.as_deref().and_then(Path::parent).map_or(root, Path::to_owned)
    } else {
        root.join(syn::parse2::<LitStr>(input)?.value())
    };
    Ok(Place { folder, asking })
}

type Found = Result<Vec<TokenStream>, (PathBuf, io::Error)>;

impl Place {
    fn scan(&self, errors: &mut Errors) -> Found {
        let mut modules = Vec::new();
        let (files, folders) = entries(&self.folder)?;
        for (name, path) in &files {
            if self.is_asking(path) {
                continue;
            }
            if let Some(module) = module_name(name, path, errors) {
                modules.push(self.file(&module, path));
            }
        }
        for (name, path) in folders {
            if CARGO_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            let (inner, deeper) = entries(&path)?;
            for (_, path) in deeper {
                if !entries(&path)?.0.is_empty() {
                    errors.push_at(
                        Span::call_site(),
                        format!("`{}` is too deep for tools", path.display()),
                        "modules have one level; a name that begins with `_` is left out",
                    );
                }
            }
            if inner.is_empty() {
                continue;
            }
            if files.contains_key(&name) {
                errors.push_at(
                    Span::call_site(),
                    format!("`{}` is a file of tools and a folder of tools", path.display()),
                    "rename one of them",
                );
                continue;
            }
            let Some(module) = module_name(&name, &path, errors) else { continue };
            let inner: Vec<TokenStream> = inner
                .iter()
                .filter_map(|(name, path)| Some(self.file(&module_name(name, path, errors)?, path)))
                .collect();
            modules.push(self.module(&module, &path, &inner));
        }
        Ok(modules)
    }

    fn file(&self, module: &Ident, path: &Path) -> TokenStream {
        let path = match (self.relative(path), path.file_name()) {
            (true, Some(name)) => Path::new(name),
            _ => path,
        };
        let path = path.to_string_lossy();
        quote!(#[path = #path] mod #module;)
    }

    fn module(&self, module: &Ident, path: &Path, inner: &[TokenStream]) -> TokenStream {
        let name = module.to_string();
        let docs = format!("The tools of the module `{name}`.");
        let folder = self.relative(path).then(|| quote!(#[path = #name]));
        quote! {
            #[doc = #docs]
            #folder
            pub mod #module {
                #(#inner)*

                ::registry_core::__private::inventory::submit!(::registry_core::__private::Folder {
                    module_path: ::core::module_path!(),
                    name: #name,
                });
            }
        }
    }

    /// Whether a path can be written from the file that asks. Such paths say the same on every machine.
    fn relative(&self, path: &Path) -> bool {
        let _ = path;
        self.asking.as_deref().and_then(Path::parent) == Some(&self.folder)
    }

    fn is_asking(&self, path: &Path) -> bool {
        self.asking.as_deref().is_some_and(|asking| asking == path || path.ends_with(asking))
    }
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
                format!("`{}` is not named as a Rust module", path.display()),
                "use a-z, 0-9 and `_`, a letter first, and no word of the language",
            );
            None
        }
    }
}
