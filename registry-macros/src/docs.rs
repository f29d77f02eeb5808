//! Doc comments: what of them goes to the model, and the list of parameters that is added for people.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// A doc comment as it was written.
pub(crate) struct Docs {
    lines: Vec<String>,
    /// The first piece that is not written out: `#[doc = include_str!("…")]`.
    computed: Option<TokenStream>,
}

impl Docs {
    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        let mut docs = Self { lines: Vec::new(), computed: None };
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
            let Meta::NameValue(doc) = &attr.meta else { continue };
            match &doc.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => docs.add(&text.value()),
                other => {
                    docs.computed.get_or_insert_with(|| other.to_token_stream());
                }
            }
        }
        docs
    }

    fn add(&mut self, text: &str) {
        let is_block = text.contains('\n');
        // Not `lines()`, which has none for the empty text of an empty line.
        for line in text.split('\n') {
            let line = line.trim();
            // The stars down the side of a block comment.
            let line = if is_block { line.strip_prefix('*').unwrap_or(line).trim() } else { line };
            self.lines.push(line.to_owned());
        }
    }

    /// The paragraphs, each in one line.
    fn paragraphs(&self) -> Vec<String> {
        self.lines
            .split(|line| line.is_empty())
            .filter(|lines| !lines.is_empty())
            .map(|lines| lines.join(" "))
            .collect()
    }

    pub(crate) fn first_paragraph(&self) -> Option<String> {
        self.paragraphs().into_iter().next()
    }

    pub(crate) fn text(&self) -> Option<String> {
        let paragraphs = self.paragraphs();
        (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
    }

    /// What keeps the text from being read here.
    pub(crate) fn computed(&self) -> Option<&TokenStream> {
        self.computed.as_ref()
    }
}

/// What is added to the function's own docs. rustdoc and editors show no docs on parameters.
pub(crate) fn parameter_list(parameters: &[(&str, &str)]) -> TokenStream {
    if parameters.is_empty() {
        return TokenStream::new();
    }
    let mut list = "\n# Parameters\n".to_owned();
    for (name, description) in parameters {
        list.push_str(&format!("\n- `{name}`: {}", description.replace("\n\n", "\n\n  ")));
    }
    // One attribute, as each costs the user's build some time.
    quote!(#[doc = #list])
}
