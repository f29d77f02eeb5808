//! What `#[tool]` writes: the function, and one `const` block behind it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Type, ext::IdentExt, spanned::Spanned};

use crate::{
    attr::{self, Key},
    docs::{Docs, parameter_list},
    errors::{Errors, parsed},
    example::Example,
    keys, names,
    param::{at, meant, written_at},
    returns::{Failure, Returns},
    signature::{self, Input, ToolFn},
};

pub(crate) fn tool(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let goes_on = "a function, and `#[tools]` on an `impl` block";
    let function = match parsed("tool", item, goes_on, ToolFn::read) {
        Ok(function) => function,
        Err(told) => return told,
    };
    let Expanded { function, behind } = expand(attribute, &function, None);
    quote!(#function #behind)
}

/// The function as it was written, and what goes behind it.
pub(crate) struct Expanded {
    pub(crate) function: TokenStream,
    pub(crate) behind: TokenStream,
}

/// Expands a function, or a method of `owner`.
pub(crate) fn expand(attribute: TokenStream, function: &ToolFn, owner: Option<&Type>) -> Expanded {
    let ident = &function.sig.ident;
    let mut errors = Errors::new(format!("tool `{}`", ident.unraw()));
    signature::check(function, &mut errors);
    let inputs = signature::inputs(&function.sig, owner, &mut errors);
    let returns = Returns::of(&function.sig, &mut errors);
    let description = description(function, &mut errors);

    let mut keys = attr::keys(attribute, &mut errors);
    let core = attr::core_path(&mut keys, &mut errors);
    if !keys.iter().any(|key| key.is("name")) {
        names::check_name(&ident.unraw().to_string(), ident, &mut errors);
    }
    let arguments: Vec<&Input> = inputs.iter().filter(|input| input.is_argument()).collect();
    let names: Vec<String> = arguments.iter().map(|argument| argument.name.clone()).collect();
    let has_whole = inputs.iter().any(|input| input.is_whole);
    keys::check_effect(&keys, &mut errors);
    let (examples, keys): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(|key| key.is("example"));
    let assignments = keys::assignments(&keys, (!has_whole).then_some(&names[..]), &mut errors);
    let examples: Vec<Example<'_>> =
        examples.iter().filter_map(|key| Example::of(key, &mut errors)).collect();
    let known = (!has_whole).then_some(&arguments[..]);
    let checks: Vec<TokenStream> =
        examples.iter().flat_map(|example| example.checks(known, &mut errors)).collect();
    let examples = (!examples.is_empty()).then(|| {
        let examples = examples.iter().map(Example::to_core);
        quote!(__plugin.examples = &[#(#examples),*];)
    });
    let assignments: Vec<TokenStream> = assignments.into_iter().chain(examples).collect();

    let list: Vec<(&str, &str)> =
        arguments.iter().map(|argument| (&*argument.name, &*argument.description)).collect();
    let cleaned = function.cleaned(&parameter_list(&list));
    let cfgs = function.conditions();
    let constants = inputs.iter().map(constant);
    let probes = (!inputs.is_empty()).then(|| {
        quote!(
            use __private::Otherwise as _;
        )
    });
    let ends = returns.as_ref().map(ends);
    let (lints, plugin) = match (&returns, errors.is_empty()) {
        (Some(returns), true) => {
            (quote!(), plugin(function, owner, &inputs, returns, &description, &assignments))
        }
        // What can be checked is checked all the same, so that one build shows all there is to mend.
        _ => (
            quote!(, dead_code),
            quote! {
                const __PLUGIN: __private::Plugin = {
                    let mut __plugin = __private::unregistered();
                    #(#assignments)*
                    __plugin
                };
            },
        ),
    };
    let errors = errors.into_tokens();
    if owner.is_none() && (function.sig.receiver().is_some() || !function.has_body()) {
        // A `const _` cannot stand where methods do, in an `impl` block or in a trait.
        return Expanded { function: cleaned, behind: errors };
    }
    let behind = quote! {
        #(#cfgs)*
        #[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated #lints)]
        const _: () = {
            use #core::__private;
            #probes
            #(#constants)*
            #ends
            #(#checks)*
            #plugin
        };
        #errors
    };
    Expanded { function: cleaned, behind }
}

fn description(function: &ToolFn, errors: &mut Errors) -> String {
    let docs = Docs::of(&function.attrs);
    match (docs.first_paragraph(), docs.computed()) {
        (Some(text), _) => return text,
        (None, Some(computed)) => errors.push(
            computed,
            "the description has to be written out",
            "write its first paragraph as `/// …` above this",
        ),
        (None, None) => errors.push(
            &function.sig.ident,
            "it has no description",
            "say in `/// …` above it what it does and when to use it; a model chooses by that",
        ),
    }
    String::new()
}

/// The name of what is known about a parameter. No other generated name begins like it.
fn constant_of(parameter: &Ident) -> Ident {
    format_ident!("__of_{}", parameter.unraw(), span = Span::call_site())
}

/// The name of an argument's value.
fn value_of(parameter: &Ident) -> Ident {
    format_ident!("__value_{}", parameter.unraw(), span = Span::call_site())
}

/// What is known about one parameter.
fn constant(input: &Input) -> TokenStream {
    let Input { ident, name, description, shape, options, is_whole, fault, superfluous } = input;
    let constant = constant_of(ident);
    let (ty, mut value) = (&shape.held, shape.taken.clone());
    if !is_whole {
        value.extend(quote!(.named(#name, #description, __private::Type::<#ty>::ABSENT)));
    }
    let private = quote!(__private);
    if let Some((key, default)) = &options.default {
        let method = Ident::new("default", *key);
        let (default, of_key, shown) = (meant(default, &private, ty), at(*key, &private), at(*key, ty));
        let show = quote_spanned!(*key=> <#shown as #of_key::Shown>::SHOW);
        value.extend(quote!(.#method(|| #default, #show)));
    }
    if let Some((key, example)) = &options.example {
        let (example, of_key, shown) = (meant(example, &private, ty), at(*key, &private), at(*key, ty));
        let show = quote_spanned!(*key=> <#shown as #of_key::Shown>::SHOW);
        value.extend(quote!(.examples(|| ::std::vec::Vec::from([(#show)(&#example)]))));
    }
    let bounds = options.bounds(&private, ty);
    if !bounds.is_empty() {
        value.extend(quote!(.bounds(|| ::std::vec::Vec::from([#(#bounds),*]))));
    }
    // The type decides whether it is one, so it says what is wrong. Whatever is described is an argument.
    let checks = [(fault, "unless_provided"), (superfluous, "only_argument")];
    for (check, method) in checks {
        if let Some((place, message)) = check.as_ref().filter(|_| !is_whole) {
            let method = Ident::new(method, Span::call_site());
            value = called_at(place.span(), quote!(__private::Parameter::#method), quote!(#value, #message));
        }
    }
    // Not a `const`: rustc would write down how it is computed for other crates.
    quote!(static #constant: __private::Parameter<#ty> = #value;)
}

/// What is known about the function's value and failure.
fn ends(returns: &Returns) -> TokenStream {
    let value = &returns.value;
    let mut ends = if returns.is_stream {
        quote!(static __RETURNS: __private::Streams<#value> = __private::streams::<#value>();)
    } else {
        quote!(static __RETURNS: __private::Returns<#value> = __private::returns::<#value, _>();)
    };
    if let Failure::Named(error) = &returns.failure {
        ends.extend(quote!(static __FAILS: __private::Fails<#error> = __private::fails::<#error>();));
    }
    ends
}

fn plugin(
    function: &ToolFn,
    owner: Option<&Type>,
    inputs: &[Input],
    returns: &Returns,
    description: &str,
    assignments: &[TokenStream],
) -> TokenStream {
    let ident = &function.sig.ident;
    let name = ident.unraw().to_string();
    let constants: Vec<Ident> = inputs.iter().map(|input| constant_of(&input.ident)).collect();
    let passed = inputs.iter().map(pass);
    let taken = taken(inputs);
    let given = if taken.is_some() { quote!(__given) } else { quote!(_) };
    let takes_context = taken.is_some();
    let is_async = function.sig.asyncness.is_some();
    let context = if takes_context || !is_async || returns.is_stream { quote!(__context) } else { quote!(_) };
    let wait = is_async.then(|| quote!(.await));
    let path = owner.map_or_else(|| quote!(#ident), |owner| quote!(<#owner>::#ident));
    let call = quote!(#path(#(#passed),*) #wait);
    let (with_context, collected) = match returns.is_stream {
        true => (quote!(__context,), quote!(.await)),
        false => (quote!(), quote!()),
    };
    let outcome = match returns.failure {
        Failure::Never => quote!(__RETURNS.give(#with_context #call) #collected),
        Failure::Hidden(alias) => {
            // What rustc has to say of the error's type stands at the alias.
            let done = Ident::new("__done", alias);
            quote!(let #done = #call; __RETURNS.give_or_fail(#with_context #done) #collected)
        }
        Failure::Named(_) => quote!(__RETURNS.give_or(#with_context &__FAILS, #call) #collected),
    };
    // A plain function runs on a thread where it may block. What it gets is read there, as references are not sent.
    // One that gives a stream only begins it.
    let body = if is_async || returns.is_stream {
        quote!(#taken #outcome)
    } else {
        quote!(__private::blocking(__context, move |__context| { #taken #outcome }).await)
    };
    // The span is what rustc points at when the future cannot be sent between threads.
    let boxed = quote_spanned!(ident.span()=> __private::boxed(async move { #body }));
    quote! {
        fn __run<'__a>(
            #context: &'__a __private::ToolContext,
            #given: __private::Given,
        ) -> __private::ToolFuture<'__a> {
            #boxed
        }

        __private::inventory::submit!({
            let mut __plugin = __private::Plugin::new(
                #name,
                #description,
                &[#(&#constants),*],
                __RETURNS.schema,
                __run,
                __private::Place {
                    module_path: ::core::module_path!(),
                    file: ::core::file!(),
                    line: ::core::line!(),
                },
            );
            #(#assignments)*
            __plugin
        });
    }
}

/// A call that rustc shows at this place, whatever its arguments are.
fn called_at(place: Span, function: TokenStream, arguments: TokenStream) -> TokenStream {
    let function = written_at(place, function);
    let mut arguments = Group::new(Delimiter::Parenthesis, arguments);
    arguments.set_span(place);
    quote!(#function #arguments)
}

/// The statement that reads the parameters. One for all of them: each that stands by itself costs the user's build the time of
/// a `?` in an `async` block.
fn taken(inputs: &[Input]) -> Option<TokenStream> {
    if inputs.is_empty() {
        return None;
    }
    let (mut values, mut constants) = (quote!(()), quote!(()));
    for Input { ident, .. } in inputs.iter().rev() {
        let (value, constant) = (value_of(ident), constant_of(ident));
        values = quote!((#value, #values));
        constants = quote!((&#constant, #constants));
    }
    Some(quote!(let #values = __private::take(#constants, __context, __given)?;))
}

/// The expression that the function is called with, for one parameter.
fn pass(input: &Input) -> TokenStream {
    let value = value_of(&input.ident);
    input.shape.pass(&quote!(#value))
}
