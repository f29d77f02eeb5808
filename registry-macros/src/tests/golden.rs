//! What the macros write, as Rust to read: `tests/expand/NAME.rs` in, `NAME.expanded.rs` out.
//!
//! `UPDATE_GOLDEN=1 cargo test -p registry-macros` writes the expansions anew.

use std::{env, fs, path::Path};

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, File, Item};

/// Expands the items of a file that have one of our attributes, and leaves the others.
fn expand(source: &str) -> String {
    let file = syn::parse_file(source).unwrap();
    let mut expanded = TokenStream::new();
    for item in file.items {
        expanded.extend(expand_item(item));
    }
    let file: File = syn::parse2(expanded).unwrap();
    prettyplease::unparse(&file)
}

fn expand_item(mut item: Item) -> TokenStream {
    let attrs = match &mut item {
        Item::Fn(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        _ => return item.into_token_stream(),
    };
    let is_ours = |attr: &Attribute| {
        ["tool", "tools", "resource", "args", "output"].iter().any(|name| attr.path().is_ident(name))
    };
    let Some(at) = attrs.iter().position(is_ours) else { return item.into_token_stream() };
    let attr = attrs.remove(at);
    let tokens = match &attr.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => quote!(),
    };
    if attr.path().is_ident("tool") {
        crate::expand::tool(tokens, &item.into_token_stream())
    } else if attr.path().is_ident("resource") {
        crate::resource::resource(tokens, &item.into_token_stream())
    } else if attr.path().is_ident("tools") {
        crate::methods::tools(&tokens, &item.into_token_stream())
    } else if attr.path().is_ident("args") {
        crate::data::args(tokens, item.into_token_stream())
    } else {
        crate::data::output(tokens, item.into_token_stream())
    }
}

fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let source = fs::read_to_string(folder.join(name).with_extension("rs")).unwrap();
    let expanded = expand(&source);
    let path = folder.join(name).with_extension("expanded.rs");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &expanded).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == expanded, "{name} expands to something else than {}:\n{expanded}", path.display());
}

#[test]
fn function() {
    check("function");
}

#[test]
fn borrowed() {
    check("borrowed");
}

#[test]
fn resources() {
    check("resources");
}

#[test]
fn resource() {
    check("resource");
}

#[test]
fn keys() {
    check("keys");
}

#[test]
fn args_struct() {
    check("args_struct");
}

#[test]
fn methods() {
    check("methods");
}

#[test]
fn faults() {
    check("faults");
}

#[test]
fn nothing_but_the_named_path() {
    let expanded = expand(
        r#"
        /// Says hello.
        #[tool(crate = other::core)]
        async fn hello(
            http: Resource<Client>,
            /// To whom.
            #[arg(length = 1.., default = "you")]
            name: Option<&str>,
        ) -> Result<String, Oops> {}

        #[resource(crate = other::core)]
        fn client(settings: Settings<Hello>) -> Client {}

        #[args(crate = other::core)]
        struct Hello {
            /// To whom.
            #[arg(length = 1.., default = "you")]
            name: String,
        }
        "#,
    );
    assert!(!expanded.contains("registry_core"), "{expanded}");
}
