//! What is wrong with an item: all of it, each on its token.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// The item under an attribute; one that is something else is given back as it is, with what the attribute goes on.
pub(crate) fn parsed<T>(
    attribute: &str,
    item: &TokenStream,
    goes_on: &str,
    read: fn(TokenStream) -> syn::Result<T>,
) -> Result<T, TokenStream> {
    read(item.clone()).map_err(|error| {
        let mut errors = Errors::new(format!("`#[{attribute}]`"));
        errors.absorb(&error, format!("`#[{attribute}]` goes on {goes_on}"));
        let errors = errors.into_tokens();
        quote!(#item #errors)
    })
}

/// The errors of one item.
pub(crate) struct Errors {
    subject: String,
    errors: Vec<syn::Error>,
}

impl Errors {
    /// `subject` begins every message: "tool `weather`".
    pub(crate) fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), errors: Vec::new() }
    }

    /// A message, for an error that only a type decides.
    pub(crate) fn message(&self, what: impl Display, help: impl Display) -> String {
        format!("{}: {what}\nhelp: {help}", self.subject)
    }

    pub(crate) fn push(&mut self, at: impl ToTokens, what: impl Display, help: impl Display) {
        let message = self.message(what, help);
        self.errors.push(syn::Error::new_spanned(at, message));
    }

    /// The same in place of a value.
    pub(crate) fn none<T>(&mut self, at: impl ToTokens, what: impl Display, help: impl Display) -> Option<T> {
        self.push(at, what, help);
        None
    }

    pub(crate) fn push_at(&mut self, at: Span, what: impl Display, help: impl Display) {
        let message = self.message(what, help);
        self.errors.push(syn::Error::new(at, message));
    }

    /// What a parser had to say.
    pub(crate) fn absorb(&mut self, error: &syn::Error, help: impl Display) {
        for one in error.clone() {
            self.push_at(one.span(), one, &help);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.errors.iter().map(syn::Error::to_compile_error).collect()
    }
}
