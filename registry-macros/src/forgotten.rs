//! What was forgotten in the file of a tool, where rustc says something else or nothing.

use std::{fs, path::Path};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, FnArg, Item, ItemFn, UseTree};

use crate::{discover::Place, errors::Errors};

/// The attributes that make something of an item.
const MARKS: [&str; 3] = ["tool", "tools", "resource"];
/// Attributes that leave an item as it is.
const HARMLESS: [&str; 6] = ["doc", "allow", "expect", "deprecated", "must_use", "inline"];

/// Looks into a file, which is shown under this name: reports what cannot be compiled, and gives a warning of one without a tool.
pub(crate) fn look(shown: &str, path: &Path, place: &Place, errors: &mut Errors) -> Option<TokenStream> {
    let text = fs::read_to_string(path).ok()?;
    let is_marked = text.trim_start_matches('\u{feff}').lines().any(is_mark);
    // Most files have both, and are not read by two parsers. What does not parse is left to the compiler.
    let is_whole = is_marked && text.contains("prelude::*");
    let file = if is_whole { None } else { syn::parse_file(&text).ok() }?;
    if is_marked {
        if let Some(mark) = unknown_mark(&file.items).filter(|_| !imports_macros(place)) {
            let core = place.core.to_string().replace(' ', "");
            let what = format!("`{shown}`: `#[{mark}]` is not known there");
            let help = format!("begin the file with `use {}::prelude::*;`", core.trim_start_matches(':'));
            errors.push_at(Span::call_site(), what, help);
        }
        return None;
    }
    let unmarked = |item: &Item| match item {
        Item::Fn(function) if lacks_mark(function) => Some(function.sig.ident.to_string()),
        _ => None,
    };
    let mut unmarked = file.items.iter().filter_map(unmarked).peekable();
    if unmarked.peek().is_none() {
        let may_become_one = file.items.iter().any(|item| matches!(item, Item::Macro(_)));
        return (!may_become_one).then(|| warning(shown));
    }
    for name in unmarked {
        let what = format!("`{shown}`: `fn {name}` has no `#[tool]`, and a doc comment at a parameter");
        errors.push_at(Span::call_site(), what, "put `#[tool]` before it");
    }
    None
}

/// Warns of a file without a tool: whoever forgets `#[tool]` would look for it in vain. A use of something deprecated is the one warning
/// that a macro can give.
fn warning(shown: &str) -> TokenStream {
    let note = format!(
        "`{shown}` has neither a `#[tool]` nor a `#[resource]`\nhelp: put one before its function, or begin the file's name with `_`, \
         which leaves it out"
    );
    quote! {
        const _: () = {
            #[deprecated(note = #note)]
            const FILE_WITHOUT_A_TOOL: () = ();
            FILE_WITHOUT_A_TOOL
        };
    }
}

/// Whether a line begins with an attribute that makes a tool or a resource, or may become one.
fn is_mark(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[") && ["tool", "resource"].iter().any(|mark| line.contains(mark))
}

/// Whether a function has docs at its parameters, which Rust refuses, and no attribute that could take them away.
fn lacks_mark(function: &ItemFn) -> bool {
    let is_doc = |attribute: &Attribute| attribute.path().is_ident("doc");
    let has_docs = |argument: &FnArg| match argument {
        FnArg::Typed(argument) => argument.attrs.iter().any(is_doc),
        FnArg::Receiver(_) => false,
    };
    let is_harmless = |attribute: &Attribute| HARMLESS.iter().any(|name| attribute.path().is_ident(name));
    function.sig.inputs.iter().any(has_docs) && function.attrs.iter().all(is_harmless)
}

/// The mark that a file has on an item and does not import.
fn unknown_mark(items: &[Item]) -> Option<&'static str> {
    let may_import = |item: &Item| match item {
        Item::Use(item) => imports_mark(&item.tree),
        Item::Macro(_) | Item::ExternCrate(_) => true,
        _ => false,
    };
    if items.iter().any(may_import) {
        return None;
    }
    let mut attributes = items.iter().flat_map(|item| match item {
        Item::Fn(item) => item.attrs.as_slice(),
        Item::Impl(item) => item.attrs.as_slice(),
        _ => &[],
    });
    let mark = |attribute: &Attribute| MARKS.into_iter().find(|mark| attribute.path().is_ident(mark));
    attributes.find_map(mark)
}

fn imports_mark(tree: &UseTree) -> bool {
    match tree {
        UseTree::Path(path) => imports_mark(&path.tree),
        UseTree::Group(group) => group.items.iter().any(imports_mark),
        UseTree::Name(name) => MARKS.iter().any(|mark| name.ident == mark),
        UseTree::Rename(name) => MARKS.iter().any(|mark| name.rename == mark),
        UseTree::Glob(_) => true,
    }
}

/// Whether the crate may import macros for all of its files.
fn imports_macros(place: &Place) -> bool {
    let text = place.asking.as_ref().and_then(|file| fs::read_to_string(file).ok());
    text.is_some_and(|text| text.contains("macro_use"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u22_what_was_forgotten_is_named() {
        let folder = std::env::temp_dir().join(format!("forgotten-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("weather.rs");
        let place = Place::for_test(quote!(::registry_core), None);
        let look = |text: &str| {
            fs::write(&path, text).unwrap();
            let mut errors = Errors::new("`discover!`");
            let warned = look("weather.rs", &path, &place, &mut errors).is_some();
            (errors.into_tokens().to_string(), warned)
        };
        let function = "/// Gets the weather.\nasync fn weather(\n    /// City.\n    city: String,\n) {}\n";
        let prelude = "use registry_core::prelude::*;\n";
        let (said, warned) = look(&format!("{prelude}{function}"));
        assert!(said.contains("`weather.rs`: `fn weather` has no `#[tool]`") && !warned, "{said}");
        let (said, _) = look(&format!("#[tool]\n{function}"));
        assert!(said.contains("begin the file with `use registry_core::prelude::*;`"), "{said}");
        for right in [
            format!("{prelude}#[tool]\n{function}"),
            format!("use registry_core::{{tool, ToolError}};\n#[tool]\n{function}"),
            format!("#[registry_core::tool]\n{function}"),
            format!("#[another]\n{function}"),
        ] {
            let (said, _) = look(&right);
            assert_eq!(said, "", "{right}");
        }
        // What may hold a tool is not warned of.
        for perhaps in ["make_tool!(a);", "fn {", "  #[reg::tool(a = 1)]\nfn a() {}"] {
            assert_eq!(look(perhaps), (String::new(), false), "{perhaps}");
        }
        assert_eq!(look("fn help() {}\n"), (String::new(), true));
        // As some editors save them: with a mark of the byte order, and with other ends of lines.
        let first = format!("\u{feff}#[registry_core::tool]\n{function}");
        for right in [first.replace('\n', "\r\n"), first] {
            assert_eq!(look(&right), (String::new(), false), "{right}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
