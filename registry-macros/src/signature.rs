//! The function under `#[tool]`: its signature is read, its body is not.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, FnArg, Pat, PatType, ReturnType, Signature, Type, TypePath, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

use crate::{
    attr::ends_in,
    docs::Docs,
    errors::Errors,
    param::{Options, Shape, inside, mentions, types},
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
    Resource(Type),
    /// Something the host may provide.
    MaybeResource(Type),
    /// All arguments in one struct.
    Whole(Shape),
    /// One argument.
    Argument(Box<Argument>),
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

/// What the function returns.
pub(crate) struct Returns {
    /// The value, or the `T` of a `Result<T, E>`.
    pub(crate) value: Type,
    pub(crate) failure: Failure,
}

/// How the function says that it failed.
pub(crate) enum Failure {
    Never,
    /// By a `Result` whose alias hides the error's type.
    Hidden,
    Named(Box<Type>),
}

impl Returns {
    fn always(value: Type) -> Self {
        Self { value, failure: Failure::Never }
    }
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
        let Some(read) = self::input(input, errors) else { continue };
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
    let wholes = sig.inputs.iter().filter(|input| {
        matches!(input, FnArg::Typed(input) if input.attrs.iter().any(|attr| attr.path().is_ident("args")))
    });
    let is_whole = |input: &Input| matches!(input, Input::Whole(_));
    let is_argument = |input: &Input| matches!(input, Input::Argument(_));
    let count = inputs.iter().filter(|input| is_whole(input)).count();
    if count > 1 || (count == 1 && inputs.iter().any(is_argument)) {
        let help = "put the others into the struct, or the struct's fields into the signature";
        for whole in wholes {
            errors.push(whole, "`#[args]` takes all arguments, so there can be no others", help);
        }
    }
    inputs
}

fn input(input: &PatType, errors: &mut Errors) -> Option<Input> {
    let ty = &*input.ty;
    let has = |name: &str| input.attrs.iter().any(|attr| attr.path().is_ident(name));
    if let Some(cfg) =
        input.attrs.iter().find(|attr| ["cfg", "cfg_attr"].iter().any(|name| attr.path().is_ident(name)))
    {
        errors.push(cfg, "a tool's arguments are the same in every build", "put the `cfg` on the function");
    }
    if mentions(ty, "impl") {
        errors.push(ty, "`impl Trait` has no schema", "name a type");
        return None;
    }
    let read = if has("context") {
        Input::Context
    } else if let Some(resource) = inside(ty, "Resource") {
        Input::Resource(resource.clone())
    } else if let Some(resource) = inside(ty, "Option").and_then(|ty| inside(ty, "Resource")) {
        Input::MaybeResource(resource.clone())
    } else if is_context(ty, errors)? {
        Input::Context
    } else if has("args") {
        Input::Whole(Shape::of(ty))
    } else {
        return argument(input, errors).map(|argument| Input::Argument(Box::new(argument)));
    };
    if let Some(attr) = input.attrs.iter().find(|attr| attr.path().is_ident("arg")) {
        errors.push(attr, "`#[arg]` is for arguments, and this is none", "remove it");
    }
    Some(read)
}

/// Whether a parameter is the request; `None` where it tries to be.
fn is_context(ty: &Type, errors: &mut Errors) -> Option<bool> {
    let named = |ty: &Type, name: &str| matches!(ty, Type::Path(TypePath { path, .. }) if ends_in(path, name).is_some());
    match ty {
        Type::Reference(reference) if named(&reference.elem, "ToolContext") => {
            if let Some(token) = &reference.mutability {
                errors.push(token, "the context is shared", "write `&ToolContext`");
                return None;
            }
            Some(true)
        }
        Type::Reference(reference) if named(&reference.elem, "Resource") => {
            errors.push(ty, "a resource is taken as it is", "write `Resource<T>`; it can be used as a `&T`");
            None
        }
        _ if named(ty, "ToolContext") => {
            errors.push(ty, "the context is borrowed", "write `&ToolContext`");
            None
        }
        _ => Some(false),
    }
}

fn argument(input: &PatType, errors: &mut Errors) -> Option<Argument> {
    let ty = &*input.ty;
    let ident = match &*input.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        other => {
            errors.push(
                other,
                "an argument needs a name",
                "write `name: Type` and take it apart in the body",
            );
            return None;
        }
    };
    check_type(&ident, ty, errors);
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
    Some(Argument { ident, name, description, shape, options })
}

fn check_type(ident: &syn::Ident, ty: &Type, errors: &mut Errors) {
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
    if mentions(within, "&") {
        errors.push(within, "there is nothing to borrow this from", "use types that own what is in them");
    }
}

/// Reads what the function returns.
pub(crate) fn returns(sig: &Signature, errors: &mut Errors) -> Option<Returns> {
    let ty = match &sig.output {
        ReturnType::Default => return Some(Returns::always(syn::parse_quote!(()))),
        ReturnType::Type(_, ty) => &**ty,
    };
    if mentions(ty, "impl") {
        errors.push(ty, "`impl Trait` has no schema", "name the type");
        return None;
    }
    if let Type::Reference(reference) = ty
        && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
    {
        errors.push(ty, "a tool gives away what it returns", "return a value that owns what is in it");
        return None;
    }
    let Type::Path(TypePath { path, .. }) = ty else { return Some(Returns::always(ty.clone())) };
    let Some(result) = ends_in(path, "Result") else { return Some(Returns::always(ty.clone())) };
    let Some(value) = types(&result.arguments).next() else {
        errors.push(ty, "the type of the value cannot be seen", "write `Result<T, E>`");
        return None;
    };
    let failure =
        types(&result.arguments).nth(1).map_or(Failure::Hidden, |error| Failure::Named(Box::new(error.clone())));
    Some(Returns { value: value.clone(), failure })
}

/// Refuses what cannot be called by name with JSON.
pub(crate) fn check(function: &ToolFn, errors: &mut Errors) {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        errors.push(sig.fn_token, "the function is not async", "write `async fn`");
    }
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
        errors.push(clause.to_token_stream(), "a tool has no `where` clause", "name the types");
    }
    if !function.body.to_string().starts_with('{') {
        errors.push(&sig.ident, "the function has no body", "write one");
    }
}
