//! `#[args]` and `#[output]`: the derives that a type needs, with the core's paths.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, Data, DeriveInput, Field, Fields, Ident, LitStr, Meta, Path, Token, Type, ext::IdentExt,
    punctuated::Punctuated,
};

use crate::{
    attr,
    docs::Docs,
    errors::Errors,
    names,
    param::{Options, meant},
};

pub(crate) fn args(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand("args", attribute, item, |item, core, errors| {
        let ahead = checks(item, &quote!(#core::__private::readable));
        let mut wanted = vec![("Deserialize", "serde"), ("JsonSchema", "schemars")];
        if take(&mut item.attrs, "output") {
            wanted.push(("Serialize", "serde"));
        }
        let ident = item.ident.clone();
        let mut defaults = Vec::new();
        match &mut item.data {
            Data::Struct(data) => {
                fields(&ident, "", &mut data.fields, core, &mut defaults, errors);
                // A field that takes what is left over cannot also refuse it.
                let is_flat = |field: &Field| serde_words(&field.attrs).any(|word| word == "flatten");
                let says_so = serde_words(&item.attrs).any(|word| word == "deny_unknown_fields");
                if matches!(data.fields, Fields::Named(_)) && !says_so && !data.fields.iter().any(is_flat) {
                    item.attrs.push(syn::parse_quote!(#[serde(deny_unknown_fields)]));
                }
            }
            Data::Enum(data) => {
                let is_told = |variant: &syn::Variant| {
                    let docs = Docs::of(&variant.attrs);
                    docs.text().is_some() || docs.computed().is_some()
                };
                // Plain names may speak for themselves, all or none of them.
                let asks =
                    data.variants.iter().any(|one| is_told(one) || !matches!(one.fields, Fields::Unit));
                for variant in data.variants.iter().filter(|variant| asks && !is_told(variant)) {
                    let what = format!("the variant `{}` has no doc comment", variant.ident);
                    errors.push(&variant.ident, what, "say in `/// …` above it when the model is to give it");
                }
                for variant in &mut data.variants {
                    let prefix = format!("{}_", variant.ident.unraw());
                    fields(&ident, &prefix, &mut variant.fields, core, &mut defaults, errors);
                }
                let is_plain = data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
                if is_plain && !wanted.contains(&("Serialize", "serde")) {
                    wanted.push(("Serialize", "serde"));
                }
            }
            Data::Union(_) => {}
        }
        let (generics, types, clause) = item.generics.split_for_impl();
        let defaults = (!defaults.is_empty()).then(|| {
            quote! {
                #[allow(non_snake_case)]
                const _: () = { impl #generics #ident #types #clause { #(#defaults)* } };
            }
        });
        Change { wanted, ahead, behind: defaults.unwrap_or_default() }
    })
}

pub(crate) fn output(attribute: TokenStream, item: TokenStream) -> TokenStream {
    // With both on one type, whichever stands first writes the derives of both.
    if let Ok(mut parsed) = syn::parse2::<DeriveInput>(item.clone())
        && take(&mut parsed.attrs, "args")
    {
        parsed.attrs.push(syn::parse_quote!(#[output]));
        return args(attribute, quote!(#parsed));
    }
    expand("output", attribute, item, |item, core, _| Change {
        wanted: vec![("Serialize", "serde"), ("JsonSchema", "schemars")],
        ahead: checks(item, &quote!(#core::__private::writable)),
        behind: TokenStream::new(),
    })
}

/// Takes the attribute of that name off; whether it was there.
fn take(attrs: &mut Vec<Attribute>, name: &str) -> bool {
    let before = attrs.len();
    attrs.retain(|attr| attr.path().segments.last().is_none_or(|last| last.ident != name));
    attrs.len() < before
}

struct Change {
    /// The derives that are wanted, each with its crate.
    wanted: Vec<(&'static str, &'static str)>,
    /// What goes before the item.
    ahead: TokenStream,
    /// What goes behind it.
    behind: TokenStream,
}

/// The check that the fields are of types which can be derived for. It stands before the derives, whose errors do not say what to do. Types and
/// fields that say themselves how they are written, or whether they are there, are left to the derives.
fn checks(item: &DeriveInput, check: &TokenStream) -> TokenStream {
    let is_own =
        |attr: &Attribute| ["cfg", "serde", "schemars"].iter().any(|name| attr.path().is_ident(name));
    let is_plain = |attrs: &[Attribute]| !attrs.iter().any(is_own);
    let fields: Vec<&Field> = match &item.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(data) => {
            data.variants.iter().filter(|one| is_plain(&one.attrs)).flat_map(|one| &one.fields).collect()
        }
        Data::Union(_) => Vec::new(),
    };
    let types = fields.into_iter().filter(|field| is_plain(&field.attrs)).map(|field| &field.ty);
    let types: Vec<&Type> = types.collect();
    if types.is_empty() || !item.generics.params.is_empty() || !is_plain(&item.attrs) {
        return TokenStream::new();
    }
    quote!(const _: () = { #(#check::<#types>();)* };)
}

fn expand(
    macro_name: &str,
    attribute: TokenStream,
    item: TokenStream,
    change: impl FnOnce(&mut DeriveInput, &TokenStream, &mut Errors) -> Change,
) -> TokenStream {
    let mut errors = Errors::new(format!("`#[{macro_name}]`"));
    let core = attr::only_core_path(attribute, &mut errors);
    let mut parsed: DeriveInput = match syn::parse2(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.absorb(&error, format!("`#[{macro_name}]` goes on a struct or an enum"));
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
    };
    let Change { wanted, ahead, behind } = change(&mut parsed, &core, &mut errors);
    if let Data::Union(data) = &parsed.data {
        errors.push(data.union_token, "a union has no schema", "use an enum");
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    }
    let derived = derived(&parsed.attrs);
    let wanted = wanted.into_iter().filter(|(name, _)| !derived.iter().any(|derived| derived == name));
    let derives = wanted.map(|(name, krate)| {
        let (name, krate) = (Ident::new(name, Span::call_site()), Ident::new(krate, Span::call_site()));
        quote!(#core::__private::#krate::#name)
    });
    let path = |krate: &str| {
        let path = format!("{core}::__private::{krate}").replace(' ', "");
        LitStr::new(&path, Span::call_site())
    };
    let (serde, schemars) = (path("serde"), path("schemars"));
    parsed.attrs.push(syn::parse_quote!(#[serde(crate = #serde)]));
    parsed.attrs.push(syn::parse_quote!(#[schemars(crate = #schemars)]));
    let errors = errors.into_tokens();
    quote! {
        #ahead
        #[derive(#(#derives),*)]
        #parsed
        #behind
        #errors
    }
}

/// Turns `#[arg(…)]` on fields into what serde and schemars read.
fn fields(
    owner: &Ident,
    prefix: &str,
    fields: &mut Fields,
    core: &TokenStream,
    defaults: &mut Vec<TokenStream>,
    errors: &mut Errors,
) {
    let is_named = matches!(fields, Fields::Named(_));
    for (index, field) in fields.iter_mut().enumerate() {
        let name = field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.unraw().to_string());
        let docs = Docs::of(&field.attrs);
        let is_flat = serde_words(&field.attrs).any(|word| word == "flatten" || word == "skip");
        if is_named && docs.text().is_none() && docs.computed().is_none() && !is_flat {
            let what = format!("the field `{name}` has no doc comment");
            errors.push(&field.ident, what, "say in `/// …` above it what the model is to give");
        }
        let ty = &field.ty.to_token_stream();
        let options = Options::of(&field.attrs, errors);
        let is_renamed = options.rename.is_some() || serde_words(&field.attrs).any(|word| word == "rename");
        if is_named && !is_flat && !is_renamed {
            names::check_argument_name(&name, &field.ident, errors);
        }
        field.attrs.retain(|attr| !attr.path().is_ident("arg"));
        if let Some((key, default)) = &options.default {
            let make = format_ident!("__default_{prefix}{name}", span = *key);
            let path = LitStr::new(&format!("{owner}::{make}"), *key);
            let default = meant(default, &quote!(#core::__private), ty);
            defaults.push(quote! {
                fn #make() -> #ty {
                    use #core::__private::Otherwise as _;
                    #default
                }
            });
            field.attrs.push(syn::parse_quote!(#[serde(default = #path)]));
        }
        if let Some(name) = &options.rename {
            field.attrs.push(syn::parse_quote!(#[serde(rename = #name)]));
        }
        if let Some((_, example)) = &options.example {
            field.attrs.push(syn::parse_quote!(#[schemars(example = &#example)]));
        }
        for bound in options.bounds(&quote!(#core::__private), ty) {
            field.attrs.push(syn::parse_quote!(#[schemars(transform = #bound)]));
        }
    }
}

/// The names of what a type derives itself.
fn derived(attrs: &[Attribute]) -> Vec<String> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("derive"))
        .filter_map(|attr| attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).ok())
        .flatten()
        .filter_map(|path| path.segments.last().map(|last| last.ident.to_string()))
        .collect()
}

/// The words in `#[serde(…)]`.
fn serde_words(attrs: &[Attribute]) -> impl Iterator<Item = String> {
    attrs.iter().filter(|attr| attr.path().is_ident("serde")).flat_map(|attr| match &attr.meta {
        Meta::List(list) => list.tokens.clone().into_iter().map(|token| token.to_string()).collect(),
        _ => Vec::new(),
    })
}
