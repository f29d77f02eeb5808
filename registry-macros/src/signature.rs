//! The function under `#[tool]`: its signature is read, its body is not.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, FnArg, Pat, PatType, Signature, Type, TypePath, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

use crate::{
    attr::ends_in,
    docs::Docs,
    errors::Errors,
    param::{Options, Shape, inside, mentions, peeled},
};

/// A function with its body as tokens.
pub(crate) struct ToolFn {
    pub(crate) attrs: Vec<Attribute>,
    vis: Visibility,
    pub(crate) sig: Signature,
    body: TokenStream,
}

impl Parse for ToolFn {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attrs: input.call(Attribute::parse_outer)?,
            vis: input.parse()?,
            sig: input.parse()?,
            body: input.parse()?,
        })
    }
}

impl ToolFn {
    /// The function as written, without what is written for `#[tool]` on its parameters, and with more docs.
    pub(crate) fn cleaned(&self, more_docs: &TokenStream) -> TokenStream {
        let Self { attrs, vis, sig, body } = self;
        let mut sig = sig.clone();
        for input in &mut sig.inputs {
            let (FnArg::Receiver(syn::Receiver { attrs, .. }) | FnArg::Typed(PatType { attrs, .. })) = input;
            attrs.retain(|attr| {
                !["doc", "arg", "args", "context"].iter().any(|ours| attr.path().is_ident(ours))
            });
        }
        quote!(#(#attrs)* #more_docs #vis #sig #body)
    }
}

/// One parameter.
pub(crate) enum Input {
    /// The request.
    Context,
    /// Something the host provides.
    Resource(Need),
    /// All arguments in one struct.
    Whole(Shape),
    /// One argument.
    Argument(Box<Argument>),
}

/// Something of the host's.
pub(crate) struct Need {
    /// A name for what is generated for it.
    pub(crate) ident: syn::Ident,
    pub(crate) ty: Type,
    /// Whether the tool is off without it.
    pub(crate) required: bool,
}

/// One argument.
pub(crate) struct Argument {
    /// The parameter's name, for what is generated for it.
    pub(crate) ident: syn::Ident,
    /// What the model calls it.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) shape: Shape,
    pub(crate) options: Options,
}

/// Reads the parameters; those with faults are left out.
pub(crate) fn inputs(sig: &Signature, errors: &mut Errors) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut names = Vec::new();
    for input in &sig.inputs {
        let input = match input {
            FnArg::Receiver(this) => {
                errors.push(
                    this,
                    "a tool is a free function",
                    "take `Resource<T>` for what the host provides",
                );
                continue;
            }
            FnArg::Typed(input) => input,
        };
        let ident = format_ident!("resource_{}", inputs.len());
        let Some(read) = self::input(input, ident, errors) else { continue };
        match &read {
            Input::Context if inputs.iter().any(|input| matches!(input, Input::Context)) => {
                errors.push(&input.ty, "there is a second context", "leave one of them");
            }
            Input::Argument(argument) => {
                if names.contains(&argument.name) {
                    let what = format!("two arguments are named `{}`", argument.name);
                    errors.push(&input.pat, what, "rename one of them");
                }
                names.push(argument.name.clone());
            }
            _ => {}
        }
        inputs.push(read);
    }
    let count = inputs.iter().filter(|input| matches!(input, Input::Whole(_))).count();
    if count > 1 || (count == 1 && !names.is_empty()) {
        let is_whole = |input: &&FnArg| matches!(input, FnArg::Typed(input) if has(&input.attrs, "args"));
        for whole in sig.inputs.iter().filter(is_whole) {
            let help = "put the others into the struct, or the struct's fields into the signature";
            errors.push(whole, "`#[args]` takes all arguments, so there can be no others", help);
        }
    }
    inputs
}

fn input(input: &PatType, ident: syn::Ident, errors: &mut Errors) -> Option<Input> {
    let ty = peeled(&input.ty);
    let is_cfg = |attr: &&Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
    if let Some(cfg) = input.attrs.iter().find(is_cfg) {
        errors.push(cfg, "a tool's arguments are the same in every build", "put the `cfg` on the function");
    }
    if mentions(ty, "impl") {
        return errors.none(ty, "`impl Trait` has no schema", "name a type");
    }
    let read = if has(&input.attrs, "context") {
        Input::Context
    } else if let Some(resource) = inside(ty, "Resource") {
        Input::Resource(Need { ident, ty: resource.clone(), required: true })
    } else if let Some(resource) = inside(ty, "Option").and_then(|ty| inside(ty, "Resource")) {
        Input::Resource(Need { ident, ty: resource.clone(), required: false })
    } else if is_context(ty, errors)? {
        Input::Context
    } else if has(&input.attrs, "args") {
        Input::Whole(Shape::of(ty))
    } else {
        return argument(input, errors).map(|argument| Input::Argument(Box::new(argument)));
    };
    if let Some(attr) = input.attrs.iter().find(|attr| attr.path().is_ident("arg")) {
        errors.push(attr, "`#[arg]` is for arguments, and this is none", "remove it");
    }
    Some(read)
}

fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident(name))
}

/// Whether a parameter is the request; `None` where it tries to be.
fn is_context(ty: &Type, errors: &mut Errors) -> Option<bool> {
    let named = |ty: &Type, name: &str| matches!(peeled(ty), Type::Path(TypePath { path, .. }) if ends_in(path, name).is_some());
    match ty {
        Type::Reference(reference) if named(&reference.elem, "ToolContext") => {
            if let Some(token) = &reference.mutability {
                return errors.none(token, "the context is shared", "write `&ToolContext`");
            }
            Some(true)
        }
        Type::Reference(reference) if named(&reference.elem, "Resource") => {
            errors.none(ty, "a resource is taken as it is", "write `Resource<T>`; it can be used as a `&T`")
        }
        _ if named(ty, "ToolContext") => errors.none(ty, "the context is borrowed", "write `&ToolContext`"),
        _ => Some(false),
    }
}

fn argument(input: &PatType, errors: &mut Errors) -> Option<Argument> {
    let ty = peeled(&input.ty);
    let ident = match &*input.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        other => {
            return errors.none(
                other,
                "an argument needs a name",
                "write `name: Type` and take it apart in the body",
            );
        }
    };
    let owns = check_type(&ident, ty, errors);
    let shape = Shape::of(ty);
    let options = Options::of(&input.attrs, &shape, errors);
    let name = options.rename.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
    let docs = Docs::of(&input.attrs);
    if let Some(computed) = docs.computed() {
        errors.push(computed, "the doc comment of an argument has to be written out", "write `/// …`");
    }
    let description = docs.text().unwrap_or_else(|| {
        let what = format!("the argument `{ident}` has no doc comment");
        errors.push(&ident, what, "say in `/// …` above it what the model is to give");
        String::new()
    });
    owns.then_some(Argument { ident, name, description, shape, options })
}

/// Whether what the type borrows can be held for the length of the call.
fn check_type(ident: &syn::Ident, ty: &Type, errors: &mut Errors) -> bool {
    let borrowed = match ty {
        Type::Reference(reference) => Some(reference),
        _ => match inside(ty, "Option") {
            Some(Type::Reference(reference)) => Some(reference),
            _ => None,
        },
    };
    if let Some(reference) = borrowed {
        if let Some(token) = &reference.mutability {
            errors.push(token, format!("`{ident}` cannot be changed for the model"), "take it by value");
        }
        if let Some(lifetime) = &reference.lifetime {
            errors.push(lifetime, format!("`{ident}` lives as long as the call"), "leave out the lifetime");
        }
    }
    let within = borrowed.map_or(ty, |reference| &reference.elem);
    let borrows = mentions(within, "&");
    if borrows {
        errors.push(within, "there is nothing to borrow this from", "use types that own what is in them");
    }
    !borrows
}

/// Refuses what cannot be called by name with JSON.
pub(crate) fn check(function: &ToolFn, errors: &mut Errors) {
    let sig = &function.sig;
    if let Some(token) = &sig.constness {
        errors.push(token, "a tool cannot be `const`", "remove it");
    }
    if let Some(token) = &sig.unsafety {
        errors.push(token, "a tool cannot be `unsafe`", "make it safe to call with any arguments");
    }
    if let Some(token) = &sig.abi {
        errors.push(token, "a tool is called from Rust only", "remove the ABI");
    }
    if let Some(token) = &sig.variadic {
        errors.push(token, "a tool has a fixed number of arguments", "take a `Vec`");
    }
    if !sig.generics.params.is_empty() {
        errors.push(
            &sig.generics,
            "a tool has no generic parameters",
            "name the types, and leave lifetimes out",
        );
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.push(clause, "a tool has no `where` clause", "name the types");
    }
    if !function.body.to_string().starts_with('{') {
        errors.push(&sig.ident, "the function has no body", "write one");
    }
}
