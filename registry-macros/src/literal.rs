//! JSON as it is written in an attribute: `{"city": "Oslo", "days": [1, 2]}`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Ident, LitBool, LitFloat, LitInt, LitStr, Token, braced, bracketed,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    spanned::Spanned,
};

/// A value without anything to compute.
#[derive(Debug)]
pub(crate) struct Literal {
    /// Where it stands.
    pub(crate) tokens: TokenStream,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(LitStr),
    List(Vec<Literal>),
    Object(Vec<(LitStr, Literal)>),
}

const FORMS: &str = "this is not JSON: a text, a number, `true`, `false`, `null`, `[…]` or `{\"name\": …}`";

impl Parse for Literal {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let begin = input.cursor();
        let value = Value::parse(input)?;
        let mut tokens = TokenStream::new();
        let mut cursor = begin;
        while cursor != input.cursor()
            && let Some((token, next)) = cursor.token_tree()
        {
            tokens.extend([token]);
            cursor = next;
        }
        Ok(Self { tokens, value })
    }
}

impl Value {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let sign = input.parse::<Option<Token![-]>>()?;
        let signed = |digits: &str| format!("{}{digits}", if sign.is_some() { "-" } else { "" });
        if input.peek(LitInt) {
            let number: LitInt = input.parse()?;
            let read = signed(number.base10_digits()).parse();
            return read.map(Self::Integer).map_err(|_| syn::Error::new(number.span(), "it is too great"));
        }
        if input.peek(LitFloat) {
            let number: LitFloat = input.parse()?;
            let read = signed(number.base10_digits()).parse();
            return read.map(Self::Number).map_err(|error| syn::Error::new(number.span(), error));
        }
        if sign.is_some() {
            return Err(input.error("there is no number behind the `-`"));
        }
        if input.peek(LitStr) {
            return Ok(Self::Text(input.parse()?));
        }
        if input.peek(LitBool) {
            return Ok(Self::Bool(input.parse::<LitBool>()?.value));
        }
        if input.peek(syn::token::Bracket) {
            let items;
            bracketed!(items in input);
            return Ok(Self::List(items.parse_terminated(Literal::parse, Token![,])?.into_iter().collect()));
        }
        if input.peek(syn::token::Brace) {
            return Ok(Self::Object(object(input)?));
        }
        if input.peek(Ident::peek_any) && input.fork().call(Ident::parse_any)? == "null" {
            input.call(Ident::parse_any)?;
            return Ok(Self::Null);
        }
        Err(input.error(FORMS))
    }
}

fn object(input: ParseStream<'_>) -> syn::Result<Vec<(LitStr, Literal)>> {
    let fields;
    braced!(fields in input);
    let field = |input: ParseStream<'_>| -> syn::Result<(LitStr, Literal)> {
        let name: LitStr = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok((name, input.parse()?))
    };
    Ok(fields.parse_terminated(field, Token![,])?.into_iter().collect())
}

impl Literal {
    pub(crate) fn span(&self) -> Span {
        self.tokens.span()
    }

    /// As a value of the core's type for it.
    pub(crate) fn to_core(&self) -> TokenStream {
        match &self.value {
            Value::Null => quote!(__private::Literal::Null),
            Value::Bool(value) => quote!(__private::Literal::Bool(#value)),
            Value::Integer(number) => {
                let number = proc_macro2::Literal::i128_unsuffixed(number.unsigned_abs().cast_signed());
                let sign = matches!(self.value, Value::Integer(number) if number < 0).then(|| quote!(-));
                quote!(__private::Literal::Integer(#sign #number))
            }
            Value::Number(number) => {
                let sign = number.is_sign_negative().then(|| quote!(-));
                let number = proc_macro2::Literal::f64_unsuffixed(number.abs());
                quote!(__private::Literal::Number(#sign #number))
            }
            Value::Text(text) => quote!(__private::Literal::Text(#text)),
            Value::List(items) => {
                let items = items.iter().map(Self::to_core);
                quote!(__private::Literal::List(&[#(#items),*]))
            }
            Value::Object(fields) => {
                let fields = to_core(fields);
                quote!(__private::Literal::Object(&[#fields]))
            }
        }
    }

    /// The check that a type takes it. What is said about it stands at the literal.
    pub(crate) fn check(&self, ty: &impl ToTokens) -> TokenStream {
        let literal = self.to_core();
        let check = quote!(const _: () = __private::Type::<#ty>::KIND.check(&#literal););
        crate::param::written_at(self.span(), check)
    }
}

/// The fields of an object, for the core.
pub(crate) fn to_core(fields: &[(LitStr, Literal)]) -> TokenStream {
    let fields = fields.iter().map(|(name, value)| {
        let value = value.to_core();
        quote!((#name, #value))
    });
    quote!(#(#fields),*)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        syn::parse_str::<Literal>(text)
            .map(|literal| literal.to_core().to_string().replace(' ', ""))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn b19_json_is_read_as_it_is_written() {
        let core = |text| read(text).unwrap().replace("__private::Literal::", "");
        assert_eq!(core("null"), "Null");
        assert_eq!(core("true"), "Bool(true)");
        assert_eq!(core("-3"), "Integer(-3)");
        assert_eq!(core("18_446_744_073_709_551_615"), "Integer(18446744073709551615)");
        assert_eq!(core("-0.5e1"), "Number(-5.0)");
        assert_eq!(
            core(r#"{"a": [1, "b",], "c": {}}"#),
            r#"Object(&[("a",List(&[Integer(1),Text("b")])),("c",Object(&[]))])"#
        );
    }

    #[test]
    fn b19_what_has_to_be_computed_is_refused() {
        for text in ["1 + 1", "NAME", "format!(\"x\")", "{a: 1}", "-", "-true", "None", "b\"x\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
