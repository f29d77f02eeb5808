//! `#[tools]` on an `impl` block: its methods under `#[tool]`, which share what the host provides as a `Resource` of their type.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ImplItem, ItemImpl, Meta};

use crate::{
    errors::{Errors, parsed},
    expand::{self, Expanded},
    signature::ToolFn,
};

pub(crate) fn tools(attribute: &TokenStream, item: &TokenStream) -> TokenStream {
    let mut block: ItemImpl = match parsed("tools", item, "`impl Type { … }`", syn::parse2) {
        Ok(block) => block,
        Err(told) => return told,
    };
    let mut errors = Errors::new("`#[tools]`");
    if let Some((_, of, _)) = &block.trait_ {
        errors.push(of, "the methods of a trait cannot be tools", "put them into `impl Type { … }`");
    }
    if !block.generics.params.is_empty() {
        let what = "a tool cannot be generic: it is called by its name, with JSON";
        errors.push(&block.generics, what, "name the types");
    }
    let (mut behind, mut found) = (TokenStream::new(), false);
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let is_tool =
            |attr: &syn::Attribute| attr.path().segments.last().is_some_and(|last| last.ident == "tool");
        let Some(at) = method.attrs.iter().position(is_tool) else { continue };
        found = true;
        let keys = match method.attrs.remove(at).meta {
            // `crate = path` holds for all of them.
            Meta::List(list) if !attribute.is_empty() => {
                let keys = list.tokens;
                quote!(#attribute, #keys)
            }
            Meta::List(list) => list.tokens,
            _ => attribute.clone(),
        };
        if !errors.is_empty() {
            continue;
        }
        match ToolFn::read(method.to_token_stream()) {
            Ok(function) => {
                let Expanded { function, behind: more } =
                    expand::expand(keys, &function, Some(&block.self_ty));
                *item = ImplItem::Verbatim(function);
                behind.extend(more);
            }
            Err(error) => errors.absorb(&error, "`#[tool]` goes on a method"),
        }
    }
    if !found {
        errors.push(&block.self_ty, "no method is a tool", "put `#[tool]` on one");
    }
    let errors = errors.into_tokens();
    quote!(#block #behind #errors)
}
