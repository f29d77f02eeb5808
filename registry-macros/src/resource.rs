//! What `#[resource]` writes: the function, and one `const` block behind it.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{FnArg, PatType, ReturnType, Signature, Type, TypePath, ext::IdentExt};

use crate::{
    attr::{self, Field, Key, Known, ends_in},
    errors::{Errors, parsed},
    param::{inside, mentions, peeled, types},
    signature::ToolFn,
};

pub(crate) fn resource(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let goes_on = "a function that returns what tools ask for";
    let function = match parsed("resource", item, goes_on, ToolFn::read) {
        Ok(function) => function,
        Err(told) => return told,
    };
    let sig = &function.sig;
    let mut errors = Errors::new(format!("resource `{}`", sig.ident.unraw()));
    check(sig, &mut errors);
    let inputs = inputs(sig, &mut errors);
    let gives = Gives::of(sig, &mut errors);
    let mut keys = attr::keys(attribute, &mut errors);
    let core = attr::core_path(&mut keys, &mut errors);
    let reads = inputs.iter().any(|input| matches!(input, Input::Settings(_)));
    let assignments = assignments(&keys, reads, &mut errors);

    let cfgs = function.conditions();
    let constants = inputs.iter().map(constant);
    let given = gives
        .as_ref()
        .map(|Gives { ty, .. }| quote!(const __GIVES: __private::Gives<#ty> = __private::gives::<#ty>();));
    let (lints, plugin) = match (&gives, errors.is_empty()) {
        (Some(gives), true) => (quote!(), plugin(sig, &inputs, gives, &assignments)),
        _ => (
            quote!(, dead_code),
            quote! {
                const __RESOURCE: __private::ResourcePlugin = {
                    let mut __resource = __private::unprovided();
                    #(#assignments)*
                    __resource
                };
            },
        ),
    };
    let cleaned = function.cleaned(&TokenStream::new());
    let errors = errors.into_tokens();
    if sig.receiver().is_some() {
        // A `const _` cannot stand where methods do.
        return quote!(#cleaned #errors);
    }
    quote! {
        #cleaned

        #(#cfgs)*
        #[allow(non_upper_case_globals, unused_mut, deprecated #lints)]
        const _: () = {
            use #core::__private;
            #(#constants)*
            #given
            #plugin
        };
        #errors
    }
}

/// One parameter.
enum Input {
    /// The request.
    Context,
    /// A table of the configuration.
    Settings(Type),
    /// Another resource.
    Resource {
        /// A name for what is generated for it.
        constant: Ident,
        ty: Type,
        /// Whether there is nothing to provide without it.
        required: bool,
    },
}

/// Refuses what cannot be called by its name alone.
fn check(sig: &Signature, errors: &mut Errors) {
    let help = "write a plain `fn` or an `async fn`";
    if let Some(token) = &sig.constness {
        errors.push(token, "it cannot be `const`", help);
    }
    if let Some(token) = &sig.unsafety {
        errors.push(token, "it cannot be `unsafe`", help);
    }
    if let Some(token) = &sig.abi {
        errors.push(token, "it is called from Rust only", "remove the ABI");
    }
    if !sig.generics.params.is_empty() {
        errors.push(&sig.generics, "it has no generic parameters", "name the types, and leave lifetimes out");
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.push(clause, "it has no `where` clause", "name the types");
    }
}

/// Reads the parameters; those with faults are left out.
fn inputs(sig: &Signature, errors: &mut Errors) -> Vec<Input> {
    let mut inputs = Vec::new();
    for input in &sig.inputs {
        let input = match input {
            FnArg::Receiver(this) => {
                errors.push(this, "it is a free function", "take `Resource<T>` for what another provides");
                continue;
            }
            FnArg::Typed(input) => input,
        };
        let Some(read) = self::input(input, inputs.len(), errors) else { continue };
        let is_same = |other: &Input| std::mem::discriminant(other) == std::mem::discriminant(&read);
        match &read {
            Input::Context if sig.asyncness.is_some() => errors.push(
                &input.ty,
                "what differs by request is made in every listing, and cannot wait",
                "write a plain `fn`, or take what has to be waited for as a `Resource<T>` that is made once",
            ),
            Input::Context if inputs.iter().any(is_same) => {
                errors.push(&input.ty, "there is a second context", "leave one of them");
            }
            Input::Settings(_) if inputs.iter().any(is_same) => {
                errors.push(&input.ty, "there are second settings", "put all keys into one struct");
                continue;
            }
            _ => {}
        }
        inputs.push(read);
    }
    inputs
}

fn input(input: &PatType, index: usize, errors: &mut Errors) -> Option<Input> {
    let ty = peeled(&input.ty);
    let constant = format_ident!("__of_{index}");
    if let Some(ty) = inside(ty, "Settings") {
        return Some(Input::Settings(ty.clone()));
    }
    if let Some(ty) = inside(ty, "Resource") {
        return Some(Input::Resource { constant, ty: ty.clone(), required: true });
    }
    if let Some(ty) = inside(ty, "Option").and_then(|ty| inside(ty, "Resource")) {
        return Some(Input::Resource { constant, ty: ty.clone(), required: false });
    }
    if let Type::Reference(reference) = ty
        && let Type::Path(TypePath { path, .. }) = peeled(&reference.elem)
        && reference.mutability.is_none()
        && ends_in(path, "ToolContext").is_some()
    {
        return Some(Input::Context);
    }
    errors.none(
        ty,
        "nothing gives it a value of this type",
        "take `Settings<T>`, a table of the configuration; `Resource<T>` or `Option<Resource<T>>`, another resource; or \
         `&ToolContext`, the request",
    )
}

/// What the function returns.
struct Gives {
    /// The `T` of `T`, `Option<T>`, `Result<T, E>` and `Result<Option<T>, E>`.
    ty: Type,
    /// The method that takes it.
    method: &'static str,
}

impl Gives {
    fn of(sig: &Signature, errors: &mut Errors) -> Option<Self> {
        let returned = match &sig.output {
            ReturnType::Default => {
                return errors.none(
                    &sig.ident,
                    "it returns nothing",
                    "return what tools are to ask for: `-> MyClient`, or an `Option` or a `Result` of it",
                );
            }
            ReturnType::Type(_, ty) => peeled(ty),
        };
        if mentions(returned, "impl") {
            return errors.none(returned, "tools ask for a resource by its type", "name the type");
        }
        let result = match returned {
            Type::Path(TypePath { path, .. }) => ends_in(path, "Result"),
            _ => None,
        };
        let value = match result {
            Some(result) => match types(&result.arguments).next() {
                Some(value) => peeled(value),
                None => {
                    return errors.none(
                        returned,
                        "the type of the value cannot be seen",
                        "write `Result<T, E>`",
                    );
                }
            },
            None => returned,
        };
        let (ty, method) = match (inside(value, "Option"), result.is_some()) {
            (Some(ty), true) => (ty, "option_or"),
            (Some(ty), false) => (ty, "option"),
            (None, true) => (value, "value_or"),
            (None, false) => (value, "value"),
        };
        if let Type::Reference(_) = ty {
            return errors.none(
                ty,
                "it gives away what it returns",
                "return a value that owns what is in it",
            );
        }
        if inside(ty, "Resource").is_some() {
            let help = "return the `T` itself; tools ask for it by `Resource<T>`";
            return errors.none(ty, "a resource is returned as it is", help);
        }
        Some(Self { ty: ty.clone(), method })
    }
}

/// The keys of `#[resource]`.
const KEYS: [Known<()>; 3] = [
    ("table", Field::Optional("table"), ()),
    ("needs", Field::Optional("needs"), ()),
    ("timeout", Field::Always("timeout"), ()),
];

/// The assignments that the keys stand for.
fn assignments(keys: &[Key], reads: bool, errors: &mut Errors) -> Vec<TokenStream> {
    let mut assignments = Vec::new();
    for key in keys {
        let name = &key.name;
        let Some((field, ())) = attr::known(key, &KEYS, errors) else { continue };
        let Some(value) = &key.value else {
            errors.push(name, format!("`{name}` needs a value"), format!("write `{name} = …`"));
            continue;
        };
        if key.is("table") {
            if !reads {
                let help = "add a parameter `settings: Settings<T>`, or remove the key";
                errors.push(name, "it reads no table", help);
            }
            let fits = |text: &str| {
                text.starts_with(|first: char| first.is_ascii_lowercase())
                    && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            };
            match key.text() {
                Some(text) if fits(&text.value()) => {}
                Some(text) => errors.push(
                    text,
                    format!("`{}` cannot be the name of a table", text.value()),
                    "use a-z, 0-9 and `_`, a letter first, as in `table = \"weather\"` for `[weather]`",
                ),
                None => errors.push(value, "the table has to be written out", "write `table = \"…\"`"),
            }
        }
        assignments.push(field.assignment(&quote!(__resource), key, &quote!(#value)));
    }
    assignments
}

/// What is known about one parameter. Each type is named once, so that a fault in it is reported once.
fn constant(input: &Input) -> TokenStream {
    match input {
        Input::Context => TokenStream::new(),
        Input::Settings(ty) => {
            quote!(const __SETTINGS: __private::OfSettings<#ty> = __private::of_settings::<#ty>();)
        }
        Input::Resource { constant, ty, .. } => {
            quote!(const #constant: __private::Need<#ty> = __private::need::<#ty>();)
        }
    }
}

fn plugin(sig: &Signature, inputs: &[Input], gives: &Gives, assignments: &[TokenStream]) -> TokenStream {
    let ident = &sig.ident;
    let name = ident.unraw().to_string();
    let by_request = inputs.iter().any(|input| matches!(input, Input::Context));
    let context = if by_request { quote!(__context) } else { quote!(&__context) };
    let settings = if by_request { quote!(__settings) } else { quote!(__settings.as_ref()) };
    let passed = inputs.iter().map(|input| match input {
        Input::Context => quote!(__context),
        Input::Settings(_) => quote!(__SETTINGS.take(#settings)?),
        Input::Resource { constant, required: true, .. } => quote!(#constant.take(#context)?),
        Input::Resource { constant, .. } => quote!(#constant.find(#context)),
    });
    let wait = sig.asyncness.map(|_| quote!(.await));
    let method = Ident::new(gives.method, proc_macro2::Span::call_site());
    let body = quote!(__GIVES.#method(#ident(#(#passed),*) #wait));
    let uses_context = inputs.iter().any(|input| !matches!(input, Input::Settings(_)));
    let uses_settings = inputs.iter().any(|input| matches!(input, Input::Settings(_)));
    let context = if uses_context { quote!(__context) } else { quote!(_) };
    let settings = if uses_settings { quote!(__settings) } else { quote!(_) };
    // The span is what rustc points at when the future cannot be sent between threads.
    let make = if by_request {
        quote!(__private::Make::ByRequest(|#context, #settings| #body))
    } else if sig.asyncness.is_some() {
        let boxed = quote_spanned!(ident.span()=> ::std::boxed::Box::pin(async move { #body }));
        quote!(__private::Make::Once(|#context, #settings| #boxed))
    } else {
        quote!(__private::Make::Once(|#context, #settings| __private::on_blocking_thread(move || #body)))
    };
    let taken = if uses_settings { quote!(__SETTINGS.taken) } else { quote!(__private::no_settings()) };
    let asks = inputs.iter().filter_map(|input| match input {
        Input::Resource { constant, required: true, .. } => Some(quote!(#constant.asked())),
        Input::Resource { constant, .. } => Some(quote!(#constant.asked().optional())),
        _ => None,
    });
    quote! {
        const __RESOURCE: __private::ResourcePlugin = {
            let mut __resource = __private::ResourcePlugin::new(
                #name,
                &__GIVES,
                #taken,
                &[#(#asks),*],
                #make,
                __private::Place {
                    module_path: ::core::module_path!(),
                    file: ::core::file!(),
                    line: ::core::line!(),
                },
            );
            #(#assignments)*
            __resource
        };
        __private::inventory::submit!(__RESOURCE);
    }
}
