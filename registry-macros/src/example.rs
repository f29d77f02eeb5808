//! `example = "What is the weather in Oslo?" => {"city": "Oslo"}`: what a person asks, and the call that answers it.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use crate::{
    attr::Key,
    errors::Errors,
    literal::{Literal, Value, to_core},
    nearest::nearest,
    signature::Input,
};

/// One example of a tool.
pub(crate) struct Example<'k> {
    question: &'k LitStr,
    arguments: &'k [(LitStr, Literal)],
}

impl<'k> Example<'k> {
    /// Reads the value of a key `example`.
    pub(crate) fn of(key: &'k Key, errors: &mut Errors) -> Option<Self> {
        const FORM: &str = "write `example = \"What is the weather in Oslo?\" => {\"city\": \"Oslo\"}`";
        let Some(question) = key.text().filter(|text| !text.value().trim().is_empty()) else {
            return errors.none(&key.name, "an example begins with what a person asks", FORM);
        };
        let Some(arguments) = &key.call else {
            return errors.none(question, "the example does not say what is called with it", FORM);
        };
        let Value::Object(arguments) = &arguments.value else {
            return errors.none(&arguments.tokens, "the arguments of a call are an object", FORM);
        };
        Some(Self { question, arguments })
    }

    /// Checks what can be seen here, and gives the checks that need types. Where one parameter takes all arguments nothing is known of them.
    pub(crate) fn checks(&self, known: Option<&[&Input]>, errors: &mut Errors) -> Vec<TokenStream> {
        let mut checks = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, value) in self.arguments {
            if !seen.insert(name.value()) {
                errors.push(name, format!("`{}` is given twice", name.value()), "leave one of them");
            }
            let Some(known) = known else { continue };
            let Some(argument) = known.iter().find(|argument| argument.name == name.value()) else {
                let names = || known.iter().map(|argument| argument.name.as_str());
                let help = match (nearest(&name.value(), names()), names().collect::<Vec<_>>().join(", ")) {
                    (Some(meant), _) => format!("did you mean `{meant}`?"),
                    (None, names) if names.is_empty() => "write `{}`: it takes no arguments".to_owned(),
                    (None, names) => format!("its arguments are: {names}"),
                };
                errors.push(name, format!("it has no argument `{}`", name.value()), help);
                continue;
            };
            argument.options.check(value, "example", errors);
            checks.push(value.check(&argument.shape.held));
        }
        checks
    }

    /// The example as the core keeps it.
    pub(crate) fn to_core(&self) -> TokenStream {
        let (question, arguments) = (self.question, to_core(self.arguments));
        quote!(__private::PluginExample { question: #question, arguments: &[#arguments] })
    }
}
