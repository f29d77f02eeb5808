//! What `#[tool]` writes: the function, and one `const` block behind it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;

use crate::{
    attr,
    docs::{Docs, parameter_list},
    errors::Errors,
    param::{Shape, meant},
    returns::{Failure, Returns},
    signature::{self, Argument, Input, Need, ToolFn},
};

pub(crate) fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function: ToolFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let mut errors = Errors::new("`#[tool]`");
            errors.absorb(&error, "`#[tool]` goes on a function");
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
    };
    let ident = &function.sig.ident;
    let mut errors = Errors::new(format!("tool `{}`", ident.unraw()));
    signature::check(&function, &mut errors);
    let inputs = signature::inputs(&function.sig, &mut errors);
    let returns = Returns::of(&function.sig, &mut errors);
    let description = description(&function, &mut errors);

    let mut keys = attr::keys(attribute, &mut errors);
    let core = attr::core_path(&mut keys, &mut errors);
    if !keys.iter().any(|key| key.is("name")) {
        attr::check_name(&ident.unraw().to_string(), ident, &mut errors);
    }
    let arguments: Vec<&Argument> = inputs
        .iter()
        .filter_map(|input| match input {
            Input::Argument(argument) => Some(&**argument),
            _ => None,
        })
        .collect();
    let names: Vec<String> = arguments.iter().map(|argument| argument.name.clone()).collect();
    let has_whole = inputs.iter().any(|input| matches!(input, Input::Whole(_)));
    attr::check_effect(&keys, &mut errors);
    let calls = attr::calls(&keys, (!has_whole).then_some(&names[..]), &mut errors);

    let list: Vec<(&str, &str)> = arguments
        .iter()
        .map(|argument| (&*argument.name, &*argument.description))
        .filter(|(_, description)| !description.is_empty())
        .collect();
    let cleaned = function.cleaned(&parameter_list(&list));
    let cfgs = function.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let constants = inputs.iter().map(constant);
    let ends = returns.as_ref().map(ends);
    let (lints, plugin) = match (&returns, errors.is_empty()) {
        (Some(returns), true) => (quote!(), plugin(&function, &inputs, returns, &description, &calls)),
        // What can be checked is checked all the same, so that one build shows all there is to mend.
        _ => (
            quote!(, dead_code),
            quote! {
                const __PLUGIN: __private::Plugin = {
                    let mut __plugin = __private::unregistered();
                    #(#calls)*
                    __plugin
                };
            },
        ),
    };
    let errors = errors.into_tokens();
    if function.sig.receiver().is_some() {
        // A `const _` cannot stand where methods do.
        return quote!(#cleaned #errors);
    }
    quote! {
        #cleaned

        #(#cfgs)*
        #[allow(non_upper_case_globals, non_snake_case, unused_mut, deprecated #lints)]
        const _: () = {
            use #core::__private;
            #(#constants)*
            #ends
            #plugin
        };
        #errors
    }
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

/// What is known about one parameter. Each type is named once, so that a fault in it is reported once.
fn constant(input: &Input) -> TokenStream {
    let argument = match input {
        Input::Context => return TokenStream::new(),
        Input::Resource(Need { ident, ty, .. }) => {
            let constant = constant_of(ident);
            return quote!(const #constant: __private::Need<#ty> = __private::need::<#ty>(););
        }
        Input::Whole(Shape { owned, .. }) => {
            return quote!(const __ARGUMENTS: __private::Whole<#owned> = __private::whole::<#owned>(););
        }
        Input::Argument(argument) => argument,
    };
    let Argument { ident, name, description, shape, options } = &**argument;
    let constant = constant_of(ident);
    let ty = &shape.owned;
    let (held, make) = if shape.optional {
        (quote!(::core::option::Option<#ty>), quote!(optional))
    } else {
        (quote!(#ty), quote!(parameter))
    };
    let mut value = quote!(__private::#make::<#ty>(#name, #description));
    if let Some((key, default)) = &options.default {
        let method = Ident::new("default", *key);
        let default = meant(default, ty);
        value.extend(quote!(.#method(|| #default)));
    }
    if let Some((key, example)) = &options.example {
        let show = Ident::new("example", *key);
        let example = meant(example, ty);
        value.extend(quote!(.examples(|| __private::#show::<#ty>(#example))));
    }
    let bounds = options.bounds(&quote!(__private), ty);
    if !bounds.is_empty() {
        value.extend(quote!(.bounds(|| ::std::vec::Vec::from([#(#bounds),*]))));
    }
    quote!(const #constant: __private::Parameter<#held> = #value;)
}

/// What is known about the function's value and failure.
fn ends(returns: &Returns) -> TokenStream {
    let value = &returns.value;
    let mut ends = quote!(const __RETURNS: __private::Returns<#value> = __private::returns::<#value>(););
    if let Failure::Named(error) = &returns.failure {
        ends.extend(quote!(const __FAILS: __private::Fails<#error> = __private::fails::<#error>();));
    }
    ends
}

fn plugin(
    function: &ToolFn,
    inputs: &[Input],
    returns: &Returns,
    description: &str,
    calls: &[TokenStream],
) -> TokenStream {
    let ident = &function.sig.ident;
    let name = ident.unraw().to_string();
    let schema = schema(inputs);
    let missing = missing(inputs);
    let passed = inputs.iter().map(pass);
    let taken = taken(inputs);
    let given = if taken.is_some() { quote!(__given) } else { quote!(_) };
    let takes_context = inputs.iter().any(|input| !matches!(input, Input::Whole(_) | Input::Argument(_)));
    let is_async = function.sig.asyncness.is_some();
    let context = if takes_context || !is_async { quote!(__context) } else { quote!(_) };
    let wait = is_async.then(|| quote!(.await));
    let call = quote!(#ident(#(#passed),*) #wait);
    let outcome = match returns.failure {
        Failure::Never => quote!(__RETURNS.give(#call)),
        Failure::Hidden => quote!(__RETURNS.give_or_fail(#call)),
        Failure::Named(_) => quote!(__RETURNS.give_or(&__FAILS, #call)),
    };
    // A plain function runs on a thread where it may block. What it gets is read there, as references are not sent.
    let body = if is_async {
        quote!(#taken #outcome)
    } else {
        quote!(__private::blocking(__context, move |__context| { #taken #outcome }).await)
    };
    // The span is what rustc points at when the future cannot be sent between threads.
    let boxed = quote_spanned!(ident.span()=> ::std::boxed::Box::pin(async move { #body }));
    quote! {
        fn __run<'__a>(
            #context: &'__a __private::ToolContext,
            #given: __private::Map<::std::string::String, __private::Value>,
        ) -> __private::BoxFuture<'__a, ::core::result::Result<__private::ToolResult, __private::ToolError>> {
            #boxed
        }

        const __PLUGIN: __private::Plugin = {
            let mut __plugin = __private::Plugin::new(
                #name,
                #description,
                || #schema,
                || __RETURNS.schema(),
                __run,
                __private::Place {
                    module_path: ::core::module_path!(),
                    file: ::core::file!(),
                    line: ::core::line!(),
                },
            );
            #missing
            #(#calls)*
            __plugin
        };
        __private::inventory::submit!(__PLUGIN);
    }
}

fn schema(inputs: &[Input]) -> TokenStream {
    if inputs.iter().any(|input| matches!(input, Input::Whole(_))) {
        return quote!(__ARGUMENTS.schema());
    }
    let constants = inputs.iter().filter_map(|input| match input {
        Input::Argument(argument) => Some(constant_of(&argument.ident)),
        _ => None,
    });
    quote!(__private::of_parameters(&[#(&#constants),*]))
}

/// The condition that follows from what the function asks of the host.
fn missing(inputs: &[Input]) -> Option<TokenStream> {
    let mut needs = inputs.iter().filter_map(|input| match input {
        Input::Resource(need) if need.required => Some(constant_of(&need.ident)),
        _ => None,
    });
    let first = needs.next()?;
    let others = needs.map(|need| quote!(.or_else(|| #need.missing(__context))));
    Some(quote! {
        __plugin = __plugin.missing(|__context| #first.missing(__context) #(#others)*);
    })
}

/// The statement that reads the arguments. One for all of them: each that stands by itself costs the user's build the time of
/// a `?` in an `async` block.
fn taken(inputs: &[Input]) -> Option<TokenStream> {
    let (mut values, mut constants) = (quote!(()), quote!(()));
    for input in inputs.iter().rev() {
        match input {
            Input::Whole(_) => return Some(quote!(let __value = __ARGUMENTS.take(__given)?;)),
            Input::Argument(argument) => {
                let (value, constant) = (value_of(&argument.ident), constant_of(&argument.ident));
                values = quote!((#value, #values));
                constants = quote!((&#constant, #constants));
            }
            Input::Context | Input::Resource(_) => {}
        }
    }
    let takes_any = inputs.iter().any(|input| matches!(input, Input::Argument(_)));
    takes_any.then(|| quote!(let #values = __private::take(#constants, __given)?;))
}

/// The expression that the function is called with, for one parameter.
fn pass(input: &Input) -> TokenStream {
    match input {
        Input::Context => quote!(__context),
        Input::Resource(need) => {
            let constant = constant_of(&need.ident);
            if need.required { quote!(#constant.take(__context)?) } else { quote!(#constant.find(__context)) }
        }
        Input::Whole(shape) => shape.pass(&quote!(__value)),
        Input::Argument(argument) => {
            let value = value_of(&argument.ident);
            argument.shape.pass(&quote!(#value))
        }
    }
}
