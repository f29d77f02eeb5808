//! The function under `#[tool]`: its signature is read, its body is not.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, FnArg, Meta, Pat, PatType, Receiver, Signature, Token, Type, Visibility,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
    spanned::Spanned,
};

use crate::{
    docs::Docs,
    errors::Errors,
    names,
    param::{Options, Shape, inside, is_bytes, mentions, peeled},
};

/// Attributes that mean nothing at a parameter.
const OF_FIELDS: [&str; 2] = ["serde", "schemars"];

/// A function with its body as tokens.
pub(crate) struct ToolFn {
    pub(crate) attrs: Vec<Attribute>,
    vis: Visibility,
    pub(crate) sig: Signature,
    body: TokenStream,
}

impl ToolFn {
    /// Reads a function. Its body is put aside first: a parser would go through every token of it.
    pub(crate) fn read(item: TokenStream) -> syn::Result<Self> {
        let mut tokens: Vec<TokenTree> = item.into_iter().collect();
        let body = tokens.pop_if(|last| is_block(last));
        let head = |input: ParseStream<'_>| {
            Ok(Self {
                attrs: input.call(Attribute::parse_outer)?,
                vis: input.parse()?,
                sig: input.parse()?,
                body: input.parse()?,
            })
        };
        let mut function = head.parse2(tokens.into_iter().collect())?;
        function.body.extend(body);
        Ok(function)
    }

    pub(crate) fn has_body(&self) -> bool {
        self.body.clone().into_iter().next().is_some_and(|first| is_block(&first))
    }

    /// The attributes that decide whether the function is there at all.
    pub(crate) fn conditions(&self) -> Vec<Attribute> {
        let mut conditions = Vec::new();
        for attr in &self.attrs {
            if attr.path().is_ident("cfg") {
                conditions.push(attr.clone());
            } else if attr.path().is_ident("cfg_attr")
                && let Ok(metas) = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                && let Some(condition) = metas.first()
            {
                let cfgs = metas.iter().skip(1).filter(|meta| meta.path().is_ident("cfg"));
                conditions.extend(cfgs.map(|cfg| syn::parse_quote!(#[cfg_attr(#condition, #cfg)])));
            }
        }
        conditions
    }

    /// The function as written, without what is written for `#[tool]` on its parameters, and with more docs.
    pub(crate) fn cleaned(&self, more_docs: &TokenStream) -> TokenStream {
        let Self { attrs, vis, sig, body } = self;
        let mut sig = sig.clone();
        for input in &mut sig.inputs {
            let (FnArg::Receiver(syn::Receiver { attrs, .. }) | FnArg::Typed(PatType { attrs, .. })) = input;
            let is_other = |attr: &Attribute| {
                ["doc", "arg", "args"].iter().chain(&OF_FIELDS).all(|known| !attr.path().is_ident(known))
            };
            attrs.retain(is_other);
        }
        quote!(#(#attrs)* #more_docs #vis #sig #body)
    }
}

/// One parameter. Whether it is an argument, the type decides; what is said of arguments here counts where it is one.
pub(crate) struct Input {
    /// The parameter's name, for what is generated for it.
    pub(crate) ident: syn::Ident,
    /// What the model calls it.
    pub(crate) name: String,
    /// What the model is told about it. Arguments have one.
    pub(crate) description: String,
    pub(crate) shape: Shape,
    pub(crate) options: Options,
    /// Whether it takes all arguments.
    pub(crate) is_whole: bool,
    /// What is wrong with it if it is an argument, and where.
    pub(crate) fault: Option<(TokenStream, String)>,
    /// What is wrong with it if it is none, and where.
    pub(crate) superfluous: Option<(TokenStream, String)>,
}

impl Input {
    /// Whether it is known to be an argument: nothing else has to be described.
    pub(crate) fn is_argument(&self) -> bool {
        !self.is_whole && !self.description.is_empty()
    }
}

/// Reads the parameters; those with faults are left out.
pub(crate) fn inputs(sig: &Signature, owner: Option<&Type>, errors: &mut Errors) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    for input in &sig.inputs {
        let input = match input {
            FnArg::Receiver(this) => {
                inputs.extend(receiver(this, owner, errors));
                continue;
            }
            FnArg::Typed(input) => input,
        };
        let Some(read) = self::input(input, inputs.len(), errors) else { continue };
        if read.is_argument() && inputs.iter().any(|known| known.is_argument() && known.name == read.name) {
            errors.push(&input.pat, format!("two arguments are named `{}`", read.name), "rename one of them");
        }
        inputs.push(read);
    }
    let wholes = inputs.iter().filter(|input| input.is_whole).count();
    let what = "`#[args]` takes all arguments, so there can be no others";
    let help = "put the others into the struct, or the struct's fields into the signature";
    if wholes > 1 {
        let is_whole = |input: &&FnArg| matches!(input, FnArg::Typed(input) if has(&input.attrs, "args"));
        for whole in sig.inputs.iter().filter(is_whole) {
            errors.push(whole, what, help);
        }
    } else if wholes == 1 {
        for input in inputs.iter_mut().filter(|input| !input.is_whole) {
            let at = input.ident.to_token_stream();
            input.fault = Some((at, errors.message(what, help)));
        }
    }
    inputs
}

/// The `&self` of a method: the host provides it.
fn receiver(this: &Receiver, owner: Option<&Type>, errors: &mut Errors) -> Option<Input> {
    let Some(owner) = owner else {
        let help = "put `#[tools]` on the `impl` block, or take `Resource<T>` for what the host provides";
        return errors.none(this, "a tool is a free function", help);
    };
    if this.reference.is_none() || this.mutability.is_some() {
        return errors.none(this, "calls share it", "write `&self`, and put what changes behind a lock");
    }
    Some(Input {
        ident: format_ident!("self"),
        name: String::new(),
        description: String::new(),
        shape: Shape::of_receiver(owner),
        options: Options::default(),
        is_whole: false,
        fault: None,
        superfluous: None,
    })
}

fn input(input: &PatType, index: usize, errors: &mut Errors) -> Option<Input> {
    let ty = peeled(&input.ty);
    if let Some(cfg) = input.attrs.iter().find(|attr| changes_by_build(attr)) {
        errors.push(cfg, "a tool's arguments are the same in every build", "put the `cfg` on the function");
    }
    if mentions(ty, "impl") {
        return errors.none(ty, "`impl Trait` has no schema", "name a type");
    }
    if mentions(ty, "Self") {
        return errors.none(ty, "a parameter cannot be named by `Self`", "write the type's name");
    }
    let name = match &*input.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(&pat.ident),
        _ => None,
    };
    let ident = name.cloned().unwrap_or_else(|| {
        let pattern = &input.pat;
        format_ident!("nameless_{index}", span = pattern.span())
    });
    let owns = check_type(&ident, ty, errors);
    let docs = Docs::of(&input.attrs);
    let options = Options::of(&input.attrs, errors);
    let is_whole = has(&input.attrs, "args");
    if let Some(computed) = docs.computed().filter(|_| !is_whole) {
        errors.push(computed, "the doc comment of an argument has to be written out", "write `/// …`");
    }
    let description = docs.text().filter(|_| !is_whole).unwrap_or_default();
    for attr in input.attrs.iter().filter(|attr| OF_FIELDS.iter().any(|name| attr.path().is_ident(name))) {
        let what = "`#[serde(…)]` and `#[schemars(…)]` are for fields, and this is a parameter";
        let help = "write `#[arg(default = …)]` or another key of `#[arg]`, or take a struct with `#[args]`";
        errors.push(attr, what, help);
    }
    if let Some(name) = name.filter(|_| !description.is_empty() && options.rename.is_none()) {
        names::check_argument_name(&name.unraw().to_string(), name, errors);
    }
    let fault = match name {
        None => {
            let help = "write `name: Type` and take it apart in the body";
            Some((input.pat.to_token_stream(), errors.message("an argument needs a name", help)))
        }
        Some(name) if description.is_empty() && !is_whole => {
            let what = format!("the argument `{name}` has no doc comment");
            let help = "say in `/// …` above it what the model is to give";
            Some((name.to_token_stream(), errors.message(what, help)))
        }
        Some(_) => None,
    };
    let mut undescribed = input.attrs.iter().filter(|_| description.is_empty());
    let superfluous = undescribed.find(|attr| attr.path().is_ident("arg")).map(|attr| {
        (attr.to_token_stream(), errors.message("`#[arg]` is for arguments, and this is none", "remove it"))
    });
    let name = options.rename.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
    let shape = if is_whole { Shape::of_whole(ty) } else { Shape::of(ty) };
    owns.then_some(Input { ident, name, description, shape, options, is_whole, fault, superfluous })
}

/// Whether an attribute of a parameter takes the parameter, or what is said of it, away in some builds.
fn changes_by_build(attr: &Attribute) -> bool {
    let ours = |name: &str| attr.path().is_ident("cfg_attr") && mentions(&attr.meta, name);
    attr.path().is_ident("cfg") || ["cfg", "arg", "args", "doc"].into_iter().any(ours)
}

fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident(name))
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
            errors.push(
                token,
                format!("`{ident}` cannot be changed"),
                "leave out the `mut`, or take it by value",
            );
        }
        if let Some(lifetime) = &reference.lifetime {
            errors.push(lifetime, format!("`{ident}` lives as long as the call"), "leave out the lifetime");
        }
    }
    if is_bytes(ty) {
        let what = format!("a model would have to write `{ident}` as a list of numbers, one for each byte");
        let help = "take a `String` with a text, a path or Base64; or a `Vec<u16>` where numbers are meant";
        errors.push(ty, what, help);
    }
    let within = borrowed.map_or(ty, |reference| &reference.elem);
    let borrows = mentions(within, "&");
    if borrows {
        errors.push(within, "there is nothing to borrow this from", "use types that own what is in them");
    }
    !borrows
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
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
            "a tool cannot be generic: it is called by its name, with JSON",
            "name the types, and leave lifetimes out",
        );
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.push(clause, "a tool has no `where` clause", "name the types");
    }
    if !function.has_body() {
        errors.push(&sig.ident, "the function has no body", "write one");
    }
}
